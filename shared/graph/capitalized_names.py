"""Names in scripts with case: runs of capitalised words, with small words such as of and von inside.

What a sentence begins with is a name only where the document shows it elsewhere within a sentence, or more
capitalised words follow. Headings in capitals and shouted sentences tell nothing.
"""

import re
from collections.abc import Iterator

from shared.graph.entity_types import HONORIFICS, RANKS, SERVICES, TEAMS, kind_of
from shared.graph.mentions import Mention
from shared.graph.relation_patterns import NOUNS
from shared.graph.stopwords import ACTS, COMMON, CONNECTORS, DEMONYMS, ENDLESS, IS, WHOLE
from shared.graph.tokens import POSSESSIVE, UNIT, Evidence, Token
from shared.graph.types import MOST_LETTERS

_INITIAL = re.compile(r"\A[^\W\d_]\Z|\A(?:[^\W\d_]\.)+[^\W\d_]\Z")
_INITIAL_BEHIND = re.compile(r"\. ?\w")
_ABBREVIATED = frozenset("st ste mt ft jr sr dr mr mrs ms prof bros co inc ltd no vs".split())  # noqa: SIM905
_FIRST_OF_A_NAME = re.compile(r"\s*(?:[^\s\w]|\Z|\n)|\s+(?:of|and|was|is|in|the|who|on|to|by|as|from|at)\b")
NUMERAL = re.compile(r"(?=[IVX])X{0,2}(?:IX|IV|V?I{0,3})")
_NUMBER = re.compile(r"\d{1,3}[A-Za-z]?")
# More words than this are no name, but a list of something.
_MOST_WORDS = 24
# German for you: what stands before it is a verb.
_POLITE = frozenset({"sie", "ihnen", "ihr", "ihre"})
_DEGREES = re.compile(r"[°\d] ?$")
_HEADS = TEAMS | SERVICES | {"department", "office", "cooperative", "group"}


class CapitalizedNames:
    """The names of one text, given its tokens and what the whole document shows."""

    def __init__(self, text: str, tokens: list[Token], evidence: Evidence) -> None:
        self._text = text
        self._tokens = tokens
        self._evidence = evidence

    def spots(self) -> Iterator[Mention]:
        place = 0
        while place < len(self._tokens):
            if not self._tokens[place].capital:
                place += 1
                continue
            end = self._end(place)
            yield from self._spots(place, end)
            place = end

    def _between(self, place: int) -> str:
        return self._text[self._tokens[place].end : self._tokens[place + 1].start]

    def _end(self, place: int) -> int:
        """Behind the last token of the run that begins there."""
        end = place + 1
        while end < min(len(self._tokens), place + _MOST_WORDS):
            behind = self._between(end - 1)
            token, before = self._tokens[end], self._tokens[end - 1]
            if token.folded in _POLITE or before.folded in _POLITE:
                break
            if behind not in {" ", "\u00a0", " & "} and not self._abbreviated(before, behind, token):
                break
            if (
                end == place + 1
                and before.text.endswith(("'s", "’s"))
                and self._evidence.shows(before.folded)
            ):
                break
            if token.capital or (_NUMBER.fullmatch(token.text) and behind == " "):
                end += 1
                continue
            behind_name = self._joined(end)
            if behind_name is None or not self._joins(place, end):
                break
            end = behind_name
        return end

    @staticmethod
    def _abbreviated(token: Token, behind: str, following: Token) -> bool:
        """Whether the dot behind it ends no sentence: St. Maurice, J. R. R. Tolkien."""
        if behind not in {". ", "."} or following.folded in COMMON:
            return False
        return token.folded in _ABBREVIATED or _INITIAL.match(token.text) is not None

    def _joined(self, place: int) -> int | None:
        """Behind the capitalised word that up to three connectors lead to."""
        for end in range(place, min(place + 3, len(self._tokens) - 1)):
            if self._tokens[end].text not in CONNECTORS or self._between(end) != " ":
                return None
            if self._tokens[end + 1].capital:
                return end + 2
        return None

    def _joins(self, place: int, end: int) -> bool:
        """Neither Install the Frostline app is a name, nor, in German, Kalibrierung der Logger."""
        first, connector = self._tokens[place], self._tokens[end].text
        if self._evidence.german and connector not in {"von", "van", "of", "de"}:
            return False
        alone = connector == "the" and first.opens and end == place + 1
        return not alone or self._evidence.shows(first.folded)

    def _spots(self, first: int, end: int) -> Iterator[Mention]:
        kind = ""
        shouted = self._tokens[first].shouted
        # Titles before persons, and what sentences begin with, are no part of the name.
        while first < end:
            token = self._tokens[first]
            if token.folded in HONORIFICS and first + 1 < end:
                kind = "person"
            elif not self._stripped(token, first, end):
                break
            first += 1
        while first < end and not self._ends(first, self._tokens[end - 1], end):
            end -= 1
        if all(token.folded in DEMONYMS for token in self._tokens[first:end]):
            return
        if (
            first + 2 == end
            and self._tokens[first].folded in COMMON
            and self._tokens[first + 1].text.isdigit()
        ):
            return
        if first >= end or (shouted and not self._shown(first, end)):
            return
        if first + 1 == end and not self._stands(first, kind):
            return
        if end < len(self._tokens) and self._tokens[end].text in _HEADS and self._between(end - 1) == " ":
            end += 1
        yield from self._named(first, end, kind)

    def _ends(self, first: int, token: Token, end: int) -> bool:
        """Whether a run of more than a word may end with it: Lothair I does, and Studio 54."""
        if end - first > 1 and (_NUMBER.fullmatch(token.text) or NUMERAL.fullmatch(token.text)):
            # Lothair I was; but what I did in Mallow I told nobody.
            return token.text != "I" or _FIRST_OF_A_NAME.match(self._text, token.end) is not None
        return token.capital and token.folded not in (ENDLESS if end - first > 1 else COMMON)

    def _stripped(self, token: Token, first: int, end: int) -> bool:
        """Whether a word at the front of a run is none of the name."""
        folded = token.folded
        if len(token.text) == 1 and _DEGREES.search(self._text, max(0, token.start - 2), token.start):
            return True
        # Daughter of Boso, said first: another sentence tells whose name that is.
        if not token.capital or (token.opens and folded in NOUNS and first + 1 < end):
            return True
        if folded in COMMON and not (len(folded) == 1 and _INITIAL_BEHIND.match(self._text, token.end)):
            # Within a sentence, "When the Stars Go Blue" is called so; The and A are left out anyway.
            return token.opens or first + 1 >= end or folded in {"the", "a", "an"} or len(token.text) == 1
        return (
            token.opens
            and first + 1 < end
            and folded in self._evidence.small
            and not self._evidence.shows(folded)
            and folded not in RANKS
        )

    def _shown(self, first: int, end: int) -> bool:
        """Whether the document writes all words of it with capitals within sentences."""
        words = [token.folded for token in self._tokens[first:end] if token.capital]
        return all(self._evidence.shows(word) for word in words)

    def _stands(self, place: int, kind: str) -> bool:
        """Whether one capitalised word is a name."""
        token = self._tokens[place]
        word = POSSESSIVE.sub("", token.text)
        if (
            token.folded in COMMON
            or token.folded in DEMONYMS
            or len(word) < 2
            or UNIT.fullmatch(word)
            or _NUMBER.fullmatch(word)
        ):
            return False
        if kind == "person":
            return True
        if word.isupper() and (len(word) > 5 or token.shouted) and token.opens:
            return self._evidence.shows(token.folded)
        if self._evidence.german and not token.shouted:
            return word.isupper() or not word[1:].islower()
        if not token.opens:
            return True
        if self._evidence.shows(token.folded) or (not token.shouted and self._acts(place)):
            return True
        return (word.isupper() or not word[1:].islower()) and not token.shouted

    def _acts(self, place: int) -> bool:
        """Whether what follows is mostly said of names: owns, depends on, is a, was born."""
        if self._tokens[place].folded in self._evidence.small or place + 1 >= len(self._tokens):
            return False
        behind = self._tokens[place + 1].text
        if behind in ACTS:
            return True
        after = self._tokens[place + 2].text if place + 2 < len(self._tokens) else ""
        if "," in self._between(place):
            return behind in {"formerly", "also", "previously", "born", "son", "daughter"}
        return behind in {"is", "was", "ist", "war", "est", "es"} and after in IS

    def _named(self, first: int, end: int, kind: str) -> Iterator[Mention]:
        parts = self._parts(first, end)
        for begin, stop in parts:
            spot = self._spot(begin, stop, kind)
            if spot is not None:
                yield spot
        if len(parts) > 1:
            # Rosa Keane of Brightwater may be called so as well.
            if (spot := self._spot(first, end, kind, nested=True)) is not None:
                yield spot
        else:
            of = [place for place in range(first + 1, end - 1) if self._tokens[place].text == "of"]
            # What a name is of is a name too: Duke of Tuscany.
            if of:
                begin = of[-1] + 1 + (self._tokens[of[-1] + 1].text == "the")
                if (spot := self._spot(begin, end, "", nested=True)) is not None:
                    yield spot

    def _parts(self, first: int, end: int) -> list[tuple[int, int]]:
        """Rosa Keane of Brightwater are two names; Ministry of Health and Duke of York are one."""
        for place in range(first + 1, end - 1):
            if self._tokens[place].text != "of" or place - first < 2:
                continue
            words = [token.folded for token in self._tokens[first:place]]
            if WHOLE.isdisjoint(words) and not self._tokens[place - 1].text.isupper():
                return [(first, place), (place + 1 + (self._tokens[place + 1].text == "the"), end)]
        return [(first, end)]

    def _spot(self, first: int, end: int, kind: str, nested: bool = False) -> Mention | None:
        if first >= end:
            return None
        start, stop = self._tokens[first].start, self._tokens[end - 1].end
        name = POSSESSIVE.sub("", self._text[start:stop])
        if not 1 < len(name) <= MOST_LETTERS:
            return None
        return Mention(start, start + len(name), name, kind or kind_of(name), nested)
