"""Which name of a document a shorter one stands for: Curtiz for Michael Curtiz, where it can be no other's.

And what a text says of names itself: International Business Machines (IBM), X also known as Y, Y formerly X.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from shared.graph.mentions import Mention
from shared.graph.name_folding import fold
from shared.graph.types import Relation

# Kinds whose first word alone stands for the whole, and whose last one does.
_BY_FIRST = frozenset({"person", "organization", "name", "work"})
_BY_LAST = frozenset({"person", "name"})
_PLACES = frozenset({"date", "email", "identifier", "place", "service"})
_HEAD = re.compile(r",? (?:of|the|von|de|van) |, ")
_NAME = "[\ue000-\uf8fe]"
_ALIASES = re.compile(
    rf"(?P<whole>{_NAME})(?:"
    r"(?: ,)?(?: \()?(?: ,)? (?:also|better|otherwise|formerly|previously|originally|once|commonly|now|later)"
    r"(?: (?:known|called|named|styled))?(?: as)?"
    r"| \((?: (?:née|aka|formerly|now|short to|shortened to))?"
    r"|(?: ,)? (?:aka|alias|auch bekannt als|früher|aussi appelée?|también conocid[oa] como)(?: ,)?)"
    rf"(?: the| \"| “)* (?P<other>{_NAME})(?:(?: \"| ”)* (?P<closed>\)))?"
)


_OPENING = 8


class AliasMap:
    """The longer names of one document, by their first and last words."""

    def __init__(self, spots: Iterable[Mention], subject: Mention | None) -> None:
        self._subject = fold(subject.name) if subject else ""
        self._longer: dict[str, dict[str, Mention]] = defaultdict(dict)
        # A full name comes before its short form: the order of the text is that of the keys.
        self._first: dict[str, int] = {}
        self._spelled: dict[str, Mention] = {}
        self._same: dict[str, Mention] = {}
        for spot in [subject] if subject else []:
            self._add(spot, -1)
        for place, spot in enumerate(spots):
            if place == 0 and subject is not None and spot.start < _OPENING and _is_full(spot, subject):
                self._same[fold(spot.name)] = subject
            self._add(spot, place)

    def _add(self, spot: Mention, place: int) -> None:
        folded = fold(spot.name)
        if not folded or folded in self._spelled:
            return
        self._spelled[folded] = spot
        self._first[folded] = place
        words = folded.split()
        if folded != self._subject and (not 1 < len(words) < 6 or spot.kind in _PLACES):
            return
        head = fold(_HEAD.split(spot.name, maxsplit=1)[0])
        if head != folded:
            # Adolf I of Lotharingia; Lambert, Margrave of Tuscany.
            self._longer[head][folded] = spot
            words = [words[0]]
        if (spot.kind in _BY_FIRST or folded == self._subject) and not words[0].isdigit():
            self._longer[words[0]][folded] = spot
        if spot.kind in _BY_LAST and len(words) > 1 and len(words[-1]) > 2:
            self._longer[words[-1]][folded] = spot

    def whole(self, spot: Mention) -> Mention:
        """What it stands for: itself, spelled as first, or the one longer name it begins or ends."""
        folded = fold(spot.name)
        same = self._same.get(folded) or self._spelled.get(folded, spot)
        if spot.kind in _PLACES:
            return same
        longer = {
            name: mention for name, mention in self._longer.get(folded, {}).items()
            if name != folded and self._first[name] < self._first.get(folded, 0)
        }  # fmt: skip
        if self._subject in longer:
            return longer[self._subject]
        return next(iter(longer.values())) if len(longer) == 1 else same


def _is_full(spot: Mention, subject: Mention) -> bool:
    """Whether what a text opens with is what its title names, in full: Joseph Bradley Story for Joe Story."""
    full, title = fold(spot.name).split(), fold(_HEAD.split(subject.name, maxsplit=1)[0]).split()
    opened = fold(_HEAD.split(spot.name, maxsplit=1)[0]).split()
    return len(title) > 1 and (set(title) <= set(full) or title[-1] == opened[-1] or title == opened)


def aliases_of(skeleton: str, spots: dict[str, Mention]) -> Iterator[Relation]:
    """The aliases that a sentence tells, each of its names a letter of its own."""
    for match in _ALIASES.finditer(skeleton):
        whole, other = spots[match["whole"]], spots[match["other"]]
        bare = skeleton[match.end("whole") : match.start("other")].strip() in {"(", "( the"}
        if bare and not (match["closed"] and _shortens(other.name, whole.name)):
            continue
        if {"date", "email"} & {whole.kind, other.kind}:
            continue
        yield Relation(other.name, "ALIAS_OF", whole.name, 0.9)


def _shortens(short: str, name: str) -> bool:
    """Whether its letters are the initials of the name, or it is one of the name's words."""
    letters = [one for one in short.casefold() if one.isalnum()]
    initials = [word[0] for word in fold(name).split()]
    if len(letters) < 2 or len(letters) > 10 or not letters:
        return False
    rest = iter(initials)
    return all(letter in rest for letter in letters) or fold(short) in fold(name).split()
