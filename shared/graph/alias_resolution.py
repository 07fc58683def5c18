"""Short forms of names in a document, and aliases that it states.

Curtiz is Michael Curtiz where no other name fits. Stated aliases: International Business Machines (IBM), X
also known as Y, Y formerly X.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from shared.graph.mentions import Mention
from shared.graph.name_folding import fold
from shared.graph.placeholder_sentences import NAME
from shared.graph.types import Relation

# Kinds whose names are shortened to their first word, some of them also to their last word.
_SHORTENED = frozenset({"person", "organization", "name", "work"})
_SHORTENED_TO_LAST_WORD = frozenset({"person", "name"})
# Its last word is another name: Adolf I of Lotharingia; Lambert, Margrave of Tuscany.
_ADDITION = re.compile(r",? (?:of|the|von|de|van) |, ")
_ALIASES = re.compile(
    rf"(?<!{NAME} )(?<!\bof )(?P<name>{NAME})(?:,? \(?(?:also|better|otherwise|formerly|previously|originally"
    r"|commonly) (?:known|called|named)(?: professionally| simply)?(?: as)?|,? \(?(?:aka|a\.k\.a\.)"
    rf"| \((?:formerly|now))(?: [Tt]he)? (?P<alias>{NAME})(?=[,.;)]|$)"
    rf"|(?P<full_name>{NAME}) \((?:the )?(?P<short_form>{NAME})\)"
)


class AliasMap:
    """The first mentions of one document, and its longer names by their first and last words."""

    def __init__(self, mentions: Iterable[Mention], subject: Mention | None) -> None:
        self._subject = fold(subject.name) if subject else ""
        # With their position among the mentions: a name in full precedes its short forms.
        self._first: dict[str, tuple[int, Mention]] = {}
        self._longer: dict[str, dict[str, Mention]] = defaultdict(dict)
        if subject:
            self._add(subject, -1)
        for index, mention in enumerate(mentions):
            self._add(mention, index)
            title, name = self._subject.split(), fold(mention.name)
            if index == 0 and subject is not None and len(title) > 1 and {*title} < {*name.split()}:
                # Isaac Iosifovich Schwartz is the title Isaac Schwartz in full.
                self._first[name] = index, subject

    def _add(self, mention: Mention, index: int) -> None:
        folded = fold(mention.name)
        if not folded or folded in self._first:
            return
        self._first[folded] = index, mention
        words = folded.split()
        if folded != self._subject and (not 1 < len(words) < 6 or mention.kind not in _SHORTENED):
            return
        short_forms = {words[0]} if not words[0].isdigit() else set()
        is_shortened_to_last_word = mention.kind in _SHORTENED_TO_LAST_WORD and len(words[-1]) > 2
        if is_shortened_to_last_word and not _ADDITION.search(mention.name):
            short_forms.add(words[-1])
        for short_form in short_forms:
            self._longer[short_form][folded] = mention

    def resolved(self, mention: Mention) -> Mention:
        """The mention with its name in full, and its kind."""
        if mention.is_nested:
            return mention
        full_name = self._full_name(mention)
        return replace(
            mention,
            name=full_name.name,
            kind=mention.kind if full_name.kind == "name" else full_name.kind,
        )

    def _full_name(self, mention: Mention) -> Mention:
        """The only longer name that begins or ends with the mention, else the first mention of its name."""
        folded = fold(mention.name)
        index, first = self._first.get(folded, (0, mention))
        longer = {
            name: candidate
            for name, candidate in self._longer.get(folded, {}).items()
            if name != folded and self._first[name][0] < index and mention.kind in _SHORTENED
        }
        if self._subject in longer:
            return longer[self._subject]
        return next(iter(longer.values())) if len(longer) == 1 else first


def aliases_in(sentence: str, mentions: Mapping[str, Mention]) -> Iterator[Relation]:
    """The stated aliases of a sentence whose names are placeholders (placeholder_sentences.py)."""
    for match in _ALIASES.finditer(sentence):
        name = mentions[match["name"] or match["full_name"]].name
        alias = mentions[match["alias"] or match["short_form"]].name
        if match["name"] or _is_short_form(alias, name):
            yield Relation(alias, "ALIAS_OF", name)


def _is_short_form(short: str, name: str) -> bool:
    """Whether the short form consists of initials of the name, or is one of its words."""
    letters = [letter for letter in short.casefold() if letter.isalnum()]
    words = fold(name).split()
    initials = iter([word[0] for word in words])
    return 2 <= len(letters) <= 10 and (all(letter in initials for letter in letters) or fold(short) in words)
