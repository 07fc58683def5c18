"""Relations in sentences of a few sure forms: X is owned by Y, X is a film directed by Y, Y owns X.

A sentence with a condition states none, nor do words before the object such as not, may and formerly.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from shared.graph.alias_resolution import aliases_in
from shared.graph.entity_types import RANKS
from shared.graph.mentions import Mention
from shared.graph.name_folding import fold
from shared.graph.placeholder_sentences import NamedSentence, named_sentences
from shared.graph.relation_forms import (
    CONTINUATIONS,
    FORMS,
    OBJECT_KINDS,
    OBJECTS,
    OPENING,
    POSSESSIVE,
    ROLES,
    SUBJECT_KINDS,
    SYMMETRIC,
)
from shared.graph.types import Relation
from shared.text.word_lists import word_sets

_LISTS = word_sets(__file__)
_PARENTHESIS = re.compile(r" ?\([^()]*\)")
_CODE = re.compile(r"[`{}<>=\\|]|//")
_WORD = re.compile(r"[^\W\d_]+(?:['’]t)?")


def relations_in(text: str, mentions: Sequence[Mention], subject: Mention | None) -> Iterator[Relation]:
    """The relations in the order of the text."""
    for sentence in named_sentences(text, mentions, subject):
        yield from aliases_in(sentence.text, sentence.names)
        yield from _Statements(sentence).relations()


def argument_kinds(relations: Iterable[Relation]) -> dict[str, str]:
    """The kinds that relations give to their arguments, by folded name."""
    kinds: dict[str, str] = {}
    for relation in relations:
        for name, kind_by_type in ((relation.subject, SUBJECT_KINDS), (relation.object, OBJECT_KINDS)):
            if kind := kind_by_type.get(relation.type):
                kinds[fold(name)] = kind
    return kinds


def _has_word(text: str, list_name: str) -> bool:
    words = _WORD.findall(text[:1].lower() + text[1:])
    return not _LISTS[list_name].isdisjoint(word.replace("’", "'") for word in words)


class _Statements:
    """The relations that one sentence states."""

    def __init__(self, sentence: NamedSentence) -> None:
        self._mentions = sentence.names
        self._text = _PARENTHESIS.sub("", sentence.text)

    def relations(self) -> Iterator[Relation]:
        if self._text.endswith("?") or _CODE.search(self._text) or _has_word(self._text, "conditions"):
            return
        for match in POSSESSIVE.finditer(self._text):
            if not _has_word(self._text[: match.end()], "qualifiers"):
                yield from self._relations(match, match["subjects"], ROLES, match["words"] in OBJECTS)
        if (opening := OPENING.match(self._text)) is not None:
            yield from self._chain(opening)

    def _chain(self, opening: re.Match[str]) -> Iterator[Relation]:
        """The relations of a subject: directed by A, and starring B and C."""
        subjects, position, forms = opening["subjects"], opening.end(), FORMS
        while True:
            for pattern, types, is_forward in forms:
                match = pattern.match(self._text, position)
                if match is not None and not _has_word(self._text[: match.end()], "qualifiers"):
                    yield from self._relations(match, subjects, types, is_forward)
                    position, forms = match.end(), CONTINUATIONS
                    break
            else:
                return

    def _relations(
        self, match: re.Match[str], subjects: str, types: Mapping[str, str], is_forward: bool
    ) -> Iterator[Relation]:
        participles = re.findall(r"[\w-]+(?=,? and |, )", match.groupdict().get("coordinated") or "")
        for phrase in (*(f"{one} by" for one in participles), match["words"]):
            type_ = types[phrase]
            for pair in product(self._names(subjects), self._names(match["objects"])):
                first, second = pair if is_forward else pair[::-1]
                if type_ in SYMMETRIC and fold(second) < fold(first):
                    first, second = second, first
                yield Relation(first, type_, second)

    def _names(self, placeholders: str) -> list[str]:
        """The names of a list, without ranks: William, Count of Nassau and Anna."""
        names = [self._mentions[one].name for one in placeholders if one in self._mentions]
        return [name for name in names if name == names[0] or not _is_rank(name)]


def _is_rank(name: str) -> bool:
    first, _, rest = name.partition(" ")
    return rest.startswith("of ") and first.lower().removeprefix("arch") in RANKS
