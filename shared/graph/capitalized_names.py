"""Names in scripts with case: runs of capitalized words, connected by of or von.

The first word of a sentence is a name only where the document capitalizes it inside a sentence too, or more
capitalized words follow. Text in capitals alone does not count.
"""

import re
from collections.abc import Iterator, Sequence

from shared.graph.capitalization import (
    COMMON,
    CONNECTORS,
    DEMONYMS,
    GERMAN_CONNECTORS,
    INSEPARABLE,
    NEVER_LAST,
    POSSESSIVE,
    UNIT,
    DocumentWords,
    Token,
)
from shared.graph.entity_types import HONORIFICS, RANKS, SERVICES, TEAMS, kind_of
from shared.graph.mentions import Mention
from shared.graph.relation_forms import ACTIVE, PASSIVE, REVERSE
from shared.graph.types import MAX_NAME_CHARACTERS

_INITIAL = re.compile(r"[^\W\d_](?:\.[^\W\d_])*")
_ABBREVIATED = frozenset("st ste mt ft jr sr dr mr mrs ms prof bros co inc ltd no vs".split())  # noqa: SIM905
_NUMBER = re.compile(r"\d{1,3}[A-Za-z]?")
# In a chat: Rosa Keane 11:05.
_TIME = re.compile(r"\d{1,2}:\d\d")
# Lothair I was; but: in Mallow I told them.
_BEHIND_NUMERAL = re.compile(r"\s*(?:[^\s\w]|\Z)|\s+(?:of|and|was|is|in|the|who|on|to|by|as|from|at)\b")
# One capitalized word is a name as a cell of a table, as a term before a definition or a statement, behind a
# colon, and before a clause about it: Ladle, which reads the files.
_BEFORE_SOLE_WORD = re.compile(r"(?P<cell>\| ?)\Z|(?P<term>\n(?:\*\*)?)\Z|(?P<value>: )\Z")
_BEHIND_SOLE_WORD = {
    "cell": re.compile(r" ?\|| \("),
    "term": re.compile(r"(?:\*\*)?\n: |: [a-z\d]\S*(?: \S+){3}"),
    "value": re.compile(r", [a-z]|\. \S"),
}
_CLAUSE = re.compile(r", (?:which|who|whose)\b")
# A longer run is a list.
_MAX_WORDS = 24
# Behind a name at the beginning of a sentence: owns, depends on; is a, is owned by.
_VERBS = frozenset(phrase.split()[0] for phrase in (*ACTIVE, *REVERSE)) - {"is", "are"}
_COPULAS = frozenset({"is", "was", "ist", "wurde", "est", "es"})
_AFTER_COPULA = {"a", "an", "the", "required", "used", "responsible"}.union(
    phrase.split()[0] for phrase in PASSIVE
)
_HEADS = TEAMS | SERVICES | {"department", "office", "cooperative", "group"}


class CapitalizedNames:
    """The names of one text, by its tokens and the words of its document."""

    def __init__(self, text: str, tokens: Sequence[Token], document_words: DocumentWords) -> None:
        self._text = text
        self._tokens = tokens
        self._document_words = document_words

    def mentions(self) -> Iterator[Mention]:
        index = 0
        while index < len(self._tokens):
            end = index + 1
            if self._tokens[index].is_capitalized:
                end = self._run_end(index)
                yield from self._mentions_of_run(index, end)
            index = end

    def _between(self, index: int) -> str:
        return self._text[self._tokens[index].end : self._tokens[index + 1].start]

    def _run_end(self, start: int) -> int:
        """The end of the run that begins there."""
        end = start + 1
        while end < min(len(self._tokens), start + _MAX_WORDS) and self._continues(start, end):
            token = self._tokens[end]
            if not token.is_capitalized and not _NUMBER.fullmatch(token.text):
                behind_connectors = self._behind_connectors(start, end)
                if behind_connectors is None:
                    break
                end = behind_connectors
            end += 1
        return end

    def _continues(self, start: int, index: int) -> bool:
        """Whether the run goes on with the token, a part of the name or a connector."""
        before, token, between = self._tokens[index - 1], self._tokens[index], self._between(index - 1)
        if index == start + 1 and before.text.endswith(("'s", "’s")) and self._is_attested(before):
            return False
        if self._document_words.is_german and not COMMON.isdisjoint({before.folded, token.folded}):
            # Öffnen Sie Frostline Cloud.
            return token.folded in GERMAN_CONNECTORS and between == " "
        if between in {". ", "."} and (token.folded not in COMMON or self._is_initial(token)):
            # St. Maurice, J. R. R. Tolkien.
            return before.folded in _ABBREVIATED or _INITIAL.fullmatch(before.text) is not None
        return between in {" ", "\u00a0", " & "}

    def _behind_connectors(self, start: int, index: int) -> int | None:
        """The capitalized word behind up to three connectors."""
        first = self._tokens[start]
        if index == start + 1 and self._tokens[index].text == "the" and first.starts_sentence:
            # Install the Frostline app.
            return None
        connectors = GERMAN_CONNECTORS if self._document_words.is_german else CONNECTORS
        for position in range(index, min(index + 3, len(self._tokens) - 1)):
            if self._tokens[position].text not in connectors or self._between(position) != " ":
                return None
            if self._tokens[position + 1].is_capitalized:
                return position + 1
        return None

    def _mentions_of_run(self, first: int, end: int) -> Iterator[Mention]:
        kind = ""
        in_capitals = self._tokens[first].in_capitals
        # Titles of persons and the first words of sentences are no part of the name.
        while first < end:
            if self._tokens[first].folded in HONORIFICS and first + 1 < end:
                kind = "person"
            elif not self._is_outside_name(first, end):
                break
            first += 1
        while first < end and not self._may_end_name(first, end):
            end -= 1
        words = self._tokens[first:end]
        if all(word.folded in DEMONYMS for word in words):
            return
        if in_capitals and any(word.is_capitalized and not self._is_attested(word) for word in words):
            return
        if len(words) == 1 and not self._is_single_name(first, kind):
            return
        if end < len(self._tokens) and self._tokens[end].text in _HEADS and self._between(end - 1) == " ":
            end += 1
        yield from self._mentions(first, end, kind)

    def _is_initial(self, token: Token) -> bool:
        return len(token.text) == 1 and self._text.startswith(".", token.end)

    def _is_attested(self, token: Token) -> bool:
        return token.folded in self._document_words.capitalized

    def _is_outside_name(self, first: int, end: int) -> bool:
        """Whether a word at the beginning of a run is no part of the name."""
        token, is_alone = self._tokens[first], first + 1 == end
        if not token.is_capitalized:
            return True
        if token.folded in COMMON and not self._is_initial(token):
            # Inside a sentence "When the Stars Go Blue" is a name; an article never begins one.
            return token.starts_sentence or is_alone or token.folded in {"the", "a", "an", "i"}
        if is_alone or not token.starts_sentence or token.folded in RANKS:
            return False
        return token.folded in self._document_words.lowercase and not self._is_attested(token)

    def _may_end_name(self, first: int, end: int) -> bool:
        """Whether the last token may end a name, as in Lothair I and Studio 54."""
        token, is_alone = self._tokens[end - 1], end - first == 1
        if token.text == "I" and not is_alone:
            return _BEHIND_NUMERAL.match(self._text, token.end) is not None
        if _NUMBER.fullmatch(token.text):
            is_time = _TIME.match(self._text, token.start) is not None
            return not is_alone and not is_time and self._tokens[end - 2].folded not in COMMON
        return token.is_capitalized and token.folded not in (COMMON if is_alone else NEVER_LAST)

    def _is_single_name(self, index: int, kind: str) -> bool:
        """Whether one capitalized word is a name."""
        token = self._tokens[index]
        word = POSSESSIVE.sub("", token.text)
        if len(word) < 2 or UNIT.fullmatch(word):
            return False
        has_inner_capital = not word[1:].islower()
        if self._document_words.is_german and not kind and not token.in_capitals:
            return has_inner_capital
        is_evident = not token.starts_sentence or self._is_attested(token) or self._has_verb(index)
        return is_evident or has_inner_capital or kind != "" or self._stands_alone(token)

    def _has_verb(self, index: int) -> bool:
        """Whether words follow that mostly follow names."""
        if self._tokens[index].folded in self._document_words.lowercase:
            return False
        verb, after = [*(token.text for token in self._tokens[index + 1 : index + 3]), "", ""][:2]
        return verb in _VERBS or (verb in _COPULAS and after in _AFTER_COPULA)

    def _stands_alone(self, token: Token) -> bool:
        """Whether the word has a place of its own, or a clause about it follows."""
        if token.folded in self._document_words.lowercase:
            return False
        before = _BEFORE_SOLE_WORD.search(self._text[max(0, token.start - 3) : token.start])
        line = self._text.rfind("\n", 0, token.start)
        if before is not None and before["cell"] and not self._text.endswith("|", 0, max(0, line)):
            # The header of a table.
            return False
        behind = _BEHIND_SOLE_WORD[before.lastgroup or ""] if before is not None else _CLAUSE
        return any(pattern.match(self._text, token.end) for pattern in (behind, _CLAUSE))

    def _mentions(self, first: int, end: int, kind: str) -> Iterator[Mention]:
        of = [index for index in range(first + 1, end - 1) if self._tokens[index].text == "of"]
        inside = [index for index in of if self._separates(first, index)]
        if inside:
            # Rosa Keane of Brightwater is two names, and one.
            yield from self._mention(first, inside[0], kind)
            yield from self._mention(self._behind_of(inside[0]), end, "")
            yield from self._mention(first, end, kind, is_nested=True)
            return
        yield from self._mention(first, end, kind)
        if of:
            # Duke of Tuscany contains the name Tuscany.
            yield from self._mention(self._behind_of(of[-1]), end, "", is_nested=True)

    def _separates(self, first: int, of: int) -> bool:
        """Whether an "of" stands between two names, unlike in Ministry of Health and Duke of York."""
        words = {token.folded for token in self._tokens[first:of]}
        return of - first > 1 and INSEPARABLE.isdisjoint(words) and not self._tokens[of - 1].text.isupper()

    def _behind_of(self, index: int) -> int:
        """The token behind "of" or "of the"."""
        return index + 1 + (self._tokens[index + 1].text == "the")

    def _mention(self, first: int, end: int, kind: str, is_nested: bool = False) -> Iterator[Mention]:
        start, stop = self._tokens[first].start, self._tokens[end - 1].end
        name = POSSESSIVE.sub("", self._text[start:stop])
        if 1 < len(name) <= MAX_NAME_CHARACTERS:
            yield Mention(start, start + len(name), name, kind or kind_of(name), is_nested)
