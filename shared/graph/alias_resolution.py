"""Short forms of the names in a document, and aliases that its sentences state.

Curtiz is Michael Curtiz where no other name fits. Stated aliases: International Business Machines (IBM), X
also known as Y, Y formerly X.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from shared.graph.mentions import Mention
from shared.graph.name_folding import fold
from shared.graph.named_sentences import NAME
from shared.graph.types import ALIAS, Relation

# Kinds whose names are shortened to their first word, and to their last word.
_SHORTENED_TO_FIRST_WORD = frozenset({"person", "organization", "name", "work"})
_SHORTENED_TO_LAST_WORD = frozenset({"person", "name"})
_NEVER_SHORTENED = frozenset({"date", "email", "identifier", "place", "service"})
# A name in full ends here: Adolf I of Lotharingia; Lambert, Margrave of Tuscany.
_ADDITION = re.compile(r",? (?:of|the|von|de|van) |, ")
_ALIASES = re.compile(
    rf"(?<!{NAME} )(?<!\bof )(?P<name>{NAME})(?:,? \(?(?:also|better|otherwise|formerly|previously|originally"
    r"|commonly) (?:known|called|named)(?: professionally| simply)?(?: as)?"
    r"|,? \(?(?:aka|a\.k\.a\.|auch bekannt als|aussi appelée?|también conocid[oa] como)"
    rf"| \((?:formerly|now))(?: [Tt]he)? (?P<alias>{NAME})(?=[,.;)]|$)"
    rf"|(?P<full_name>{NAME}) \((?:the )?(?P<short_form>{NAME})\)"
)
_OPENING_CHARACTERS = 8


class AliasMap:
    """The longer names of one document, by their first and last words."""

    def __init__(self, mentions: Iterable[Mention], subject: Mention | None) -> None:
        self._subject = fold(subject.name) if subject else ""
        self._long_names: dict[str, dict[str, Mention]] = defaultdict(dict)
        # A name in full precedes its short forms in the text.
        self._order: dict[str, int] = {}
        self._first_mentions: dict[str, Mention] = {}
        self._full_titles: dict[str, Mention] = {}
        if subject:
            self._add(subject, -1)
        for index, mention in enumerate(mentions):
            if (
                index == 0
                and subject is not None
                and mention.start < _OPENING_CHARACTERS
                and _is_full_title(mention, subject)
            ):
                self._full_titles[fold(mention.name)] = subject
            self._add(mention, index)

    def _add(self, mention: Mention, index: int) -> None:
        folded = fold(mention.name)
        if not folded or folded in self._first_mentions:
            return
        self._first_mentions[folded] = mention
        self._order[folded] = index
        words = folded.split()
        if folded != self._subject and (not 1 < len(words) < 6 or mention.kind in _NEVER_SHORTENED):
            return
        without_addition = _without_addition(mention.name)
        if without_addition != folded:
            self._long_names[without_addition][folded] = mention
            words = [words[0]]
        if (mention.kind in _SHORTENED_TO_FIRST_WORD or folded == self._subject) and not words[0].isdigit():
            self._long_names[words[0]][folded] = mention
        if mention.kind in _SHORTENED_TO_LAST_WORD and len(words) > 1 and len(words[-1]) > 2:
            self._long_names[words[-1]][folded] = mention

    def resolve(self, mention: Mention) -> Mention:
        """The only longer name that begins or ends with the mention, else the first mention of its name."""
        folded = fold(mention.name)
        first_mention = self._full_titles.get(folded) or self._first_mentions.get(folded, mention)
        if mention.kind in _NEVER_SHORTENED:
            return first_mention
        candidates = {
            name: mention for name, mention in self._long_names.get(folded, {}).items()
            if name != folded and self._order[name] < self._order.get(folded, 0)
        }  # fmt: skip
        if self._subject in candidates:
            return candidates[self._subject]
        return next(iter(candidates.values())) if len(candidates) == 1 else first_mention


def _is_full_title(mention: Mention, subject: Mention) -> bool:
    """Whether the first name of a text is its title in full: Joseph Bradley Story for Joe Story."""
    full, title = fold(mention.name).split(), _without_addition(subject.name).split()
    opening = _without_addition(mention.name).split()
    return len(title) > 1 and (set(title) <= set(full) or title[-1] == opening[-1] or title == opening)


def aliases_in(sentence: str, mentions: Mapping[str, Mention]) -> Iterator[Relation]:
    """The stated aliases of a sentence whose names are placeholders (named_sentences.py)."""
    for match in _ALIASES.finditer(sentence):
        name, alias = (
            mentions[match["name"] or match["full_name"]],
            mentions[match["alias"] or match["short_form"]],
        )
        if match["name"] or _is_short_form(alias.name, name.name):
            yield Relation(alias.name, "ALIAS_OF", name.name, ALIAS)


def _is_short_form(short: str, name: str) -> bool:
    """Whether the short form consists of initials of the name, or is one of its words."""
    letters = [letter for letter in short.casefold() if letter.isalnum()]
    words = fold(name).split()
    initials = iter([word[0] for word in words])
    return 2 <= len(letters) <= 10 and (all(letter in initials for letter in letters) or fold(short) in words)


def _without_addition(name: str) -> str:
    return fold(_ADDITION.split(name, maxsplit=1)[0])
