"""Names in scripts with case: runs of capitalized words, connected by of or von.

The first word of a sentence is a name only where the document capitalizes it inside a sentence too, or more
capitalized words follow. Text in capitals alone is no evidence.
"""

import re
from collections.abc import Iterator

from shared.graph.entity_types import HONORIFICS, RANKS, SERVICES, TEAMS, kind_of
from shared.graph.mentions import Mention
from shared.graph.relation_words import ROLES
from shared.graph.stopwords import AFTER_IS, COMMON, CONNECTORS, DEMONYMS, INSEPARABLE, NAME_VERBS, NEVER_LAST
from shared.graph.tokens import POSSESSIVE, UNIT, CaseEvidence, Token
from shared.graph.types import MAX_NAME_CHARACTERS

_INITIAL = re.compile(r"\A[^\W\d_]\Z|\A(?:[^\W\d_]\.)+[^\W\d_]\Z")
_INITIAL_BEHIND = re.compile(r"\. ?\w")
_ABBREVIATED = frozenset("st ste mt ft jr sr dr mr mrs ms prof bros co inc ltd no vs".split())  # noqa: SIM905
_NUMERAL_FOLLOWER = re.compile(r"\s*(?:[^\s\w]|\Z|\n)|\s+(?:of|and|was|is|in|the|who|on|to|by|as|from|at)\b")
NUMERAL = re.compile(r"(?=[IVX])X{0,2}(?:IX|IV|V?I{0,3})")
_NUMBER = re.compile(r"\d{1,3}[A-Za-z]?")
# A longer run is a list.
_MAX_WORDS = 24
# The polite German pronouns, which follow a verb.
_GERMAN_YOU = frozenset({"sie", "ihnen", "ihr", "ihre"})
_DEGREES = re.compile(r"[°\d] ?$")
_HEADS = TEAMS | SERVICES | {"department", "office", "cooperative", "group"}


class CapitalizedNames:
    """The names of one text, by its tokens and the evidence of its document."""

    def __init__(self, text: str, tokens: list[Token], evidence: CaseEvidence) -> None:
        self._text = text
        self._tokens = tokens
        self._evidence = evidence

    def mentions(self) -> Iterator[Mention]:
        index = 0
        while index < len(self._tokens):
            if not self._tokens[index].is_capitalized:
                index += 1
                continue
            end = self._run_end(index)
            yield from self._mentions_of_run(index, end)
            index = end

    def _between(self, index: int) -> str:
        return self._text[self._tokens[index].end : self._tokens[index + 1].start]

    def _run_end(self, index: int) -> int:
        """The end of the run that begins there."""
        end = index + 1
        while end < min(len(self._tokens), index + _MAX_WORDS):
            behind = self._between(end - 1)
            token, before = self._tokens[end], self._tokens[end - 1]
            if token.folded in _GERMAN_YOU or before.folded in _GERMAN_YOU:
                break
            if behind not in {" ", "\u00a0", " & "} and not self._is_abbreviated(before, behind, token):
                break
            if (
                end == index + 1
                and before.text.endswith(("'s", "’s"))
                and self._evidence.capitalizes(before.folded)
            ):
                break
            if token.is_capitalized or (_NUMBER.fullmatch(token.text) and behind == " "):
                end += 1
                continue
            end_behind_name = self._end_behind_connectors(end)
            if end_behind_name is None or not self._may_connect(index, end):
                break
            end = end_behind_name
        return end

    @staticmethod
    def _is_abbreviated(token: Token, behind: str, following: Token) -> bool:
        """Whether the dot behind the token belongs to an abbreviation: St. Maurice, J. R. R. Tolkien."""
        if behind not in {". ", "."} or following.folded in COMMON:
            return False
        return token.folded in _ABBREVIATED or _INITIAL.match(token.text) is not None

    def _end_behind_connectors(self, index: int) -> int | None:
        """The end of the capitalized word behind up to three connectors."""
        for end in range(index, min(index + 3, len(self._tokens) - 1)):
            if self._tokens[end].text not in CONNECTORS or self._between(end) != " ":
                return None
            if self._tokens[end + 1].is_capitalized:
                return end + 2
        return None

    def _may_connect(self, index: int, end: int) -> bool:
        """Whether a connector continues the name, unlike in Install the Frostline app."""
        first, connector = self._tokens[index], self._tokens[end].text
        if self._evidence.is_german and connector not in {"von", "van", "of", "de"}:
            return False
        alone = connector == "the" and first.starts_sentence and end == index + 1
        return not alone or self._evidence.capitalizes(first.folded)

    def _mentions_of_run(self, first: int, end: int) -> Iterator[Mention]:
        kind = ""
        in_capitals = self._tokens[first].in_capitals
        # Titles of persons and the first words of sentences are no part of the name.
        while first < end:
            token = self._tokens[first]
            if token.folded in HONORIFICS and first + 1 < end:
                kind = "person"
            elif not self._is_outside_name(token, first, end):
                break
            first += 1
        while first < end and not self._may_end_name(first, self._tokens[end - 1], end):
            end -= 1
        if all(token.folded in DEMONYMS for token in self._tokens[first:end]):
            return
        if (
            first + 2 == end
            and self._tokens[first].folded in COMMON
            and self._tokens[first + 1].text.isdigit()
        ):
            return
        if first >= end or (in_capitals and not self._is_attested(first, end)):
            return
        if first + 1 == end and not self._is_single_name(first, kind):
            return
        if end < len(self._tokens) and self._tokens[end].text in _HEADS and self._between(end - 1) == " ":
            end += 1
        yield from self._mentions(first, end, kind)

    def _may_end_name(self, first: int, token: Token, end: int) -> bool:
        """Whether the token may be the last of a name, as in Lothair I and Studio 54."""
        if end - first > 1 and (_NUMBER.fullmatch(token.text) or NUMERAL.fullmatch(token.text)):
            # Lothair I was; but: in Mallow I told them.
            return token.text != "I" or _NUMERAL_FOLLOWER.match(self._text, token.end) is not None
        return token.is_capitalized and token.folded not in (NEVER_LAST if end - first > 1 else COMMON)

    def _is_outside_name(self, token: Token, first: int, end: int) -> bool:
        """Whether a word at the beginning of a run is no part of the name."""
        folded = token.folded
        if len(token.text) == 1 and _DEGREES.search(self._text, max(0, token.start - 2), token.start):
            return True
        # "Daughter of Boso" at the beginning of a sentence is a role, not a name.
        if not token.is_capitalized or (token.starts_sentence and folded in ROLES and first + 1 < end):
            return True
        if folded in COMMON and not (len(folded) == 1 and _INITIAL_BEHIND.match(self._text, token.end)):
            # Inside a sentence "When the Stars Go Blue" is a name; an article never begins one.
            return (
                token.starts_sentence
                or first + 1 >= end
                or folded in {"the", "a", "an"}
                or len(token.text) == 1
            )
        return (
            token.starts_sentence
            and first + 1 < end
            and folded in self._evidence.lowercase
            and not self._evidence.capitalizes(folded)
            and folded not in RANKS
        )

    def _is_attested(self, first: int, end: int) -> bool:
        """Whether the document capitalizes all its words inside sentences."""
        words = [token.folded for token in self._tokens[first:end] if token.is_capitalized]
        return all(self._evidence.capitalizes(word) for word in words)

    def _is_single_name(self, index: int, kind: str) -> bool:
        """Whether one capitalized word is a name."""
        token = self._tokens[index]
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
        if word.isupper() and (len(word) > 5 or token.in_capitals) and token.starts_sentence:
            return self._evidence.capitalizes(token.folded)
        if self._evidence.is_german and not token.in_capitals:
            return word.isupper() or not word[1:].islower()
        if not token.starts_sentence:
            return True
        if self._evidence.capitalizes(token.folded) or (not token.in_capitals and self._has_name_verb(index)):
            return True
        return (word.isupper() or not word[1:].islower()) and not token.in_capitals

    def _has_name_verb(self, index: int) -> bool:
        """Whether words follow that mostly follow names: owns, depends on, is a, was born."""
        if self._tokens[index].folded in self._evidence.lowercase or index + 1 >= len(self._tokens):
            return False
        behind = self._tokens[index + 1].text
        if behind in NAME_VERBS:
            return True
        after = self._tokens[index + 2].text if index + 2 < len(self._tokens) else ""
        if "," in self._between(index):
            return behind in {"formerly", "also", "previously", "born", "son", "daughter"}
        return behind in {"is", "was", "ist", "war", "est", "es"} and after in AFTER_IS

    def _mentions(self, first: int, end: int, kind: str) -> Iterator[Mention]:
        parts = self._parts(first, end)
        for begin, stop in parts:
            yield from self._mention(begin, stop, kind)
        if len(parts) > 1:
            # Rosa Keane of Brightwater is also one name.
            yield from self._mention(first, end, kind, is_nested=True)
        elif of := [index for index in range(first + 1, end - 1) if self._tokens[index].text == "of"]:
            # Duke of Tuscany contains the name Tuscany.
            yield from self._mention(self._behind_of(of[-1]), end, "", is_nested=True)

    def _parts(self, first: int, end: int) -> list[tuple[int, int]]:
        """Rosa Keane of Brightwater are two names; Ministry of Health and Duke of York are one."""
        for index in range(first + 1, end - 1):
            if self._tokens[index].text != "of" or index - first < 2:
                continue
            words = [token.folded for token in self._tokens[first:index]]
            if INSEPARABLE.isdisjoint(words) and not self._tokens[index - 1].text.isupper():
                return [(first, index), (self._behind_of(index), end)]
        return [(first, end)]

    def _behind_of(self, index: int) -> int:
        """The token behind "of" or "of the"."""
        return index + 1 + (self._tokens[index + 1].text == "the")

    def _mention(self, first: int, end: int, kind: str, is_nested: bool = False) -> Iterator[Mention]:
        if first >= end:
            return
        start, stop = self._tokens[first].start, self._tokens[end - 1].end
        name = POSSESSIVE.sub("", self._text[start:stop])
        if 1 < len(name) <= MAX_NAME_CHARACTERS:
            yield Mention(start, start + len(name), name, kind or kind_of(name), is_nested)
