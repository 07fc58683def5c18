"""Sentences as relations are read in them: small words, and a letter of its own for each thing named.

He, she, it, his and "the film" stand for what the sentence before was about, or else for the title.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shared.graph.mentions import Mention
from shared.text.sentences import Sentence, sentences
from shared.text.word_lists import word_sets

FIRST = 0xE000
# More things than this are no sentence.
_MOST = 200
_LONGEST = 2000
_TOKEN = re.compile(r"[’']s\b|[^\W_]+(?:-[^\W_]+|[’']t\b)*|[^\w\s]")
_POSSESSIVES = frozenset({"his", "her", "its", "their"})
_SUBJECTS = frozenset({"he", "she", "it", "this", "they"})
# The film, this service: of a kind that the title may be.
_KINDS = {
    noun: kinds
    for nouns, kinds in (
        ("film movie song album book novel series show play opera game single episode documentary story poem",
         {"work", "name", "person", "place", "organization", "identifier"}),
        ("service system api database queue library package module repository",
         {"service", "identifier", "name"}),
        ("team squad group", {"team"}),
        ("company band organisation organization firm", {"organization", "name"}),
        ("village town city river island mountain district", {"place", "name"}),
        ("incident outage ticket bug issue", {"identifier"}),
    )
    for noun in nouns.split()
}  # fmt: skip


_MEANING = _SUBJECTS | _POSSESSIVES | _KINDS.keys()
_WORDS = word_sets(__file__)
_ARTICLES = _WORDS["articles"]
_PREPOSITIONS = _WORDS["prepositions"]
_OPENING = _ARTICLES | {'"', "*", "#", "-", "“", "_", ">", "`", "dr", "mr", "mrs", "ms"}


@dataclass(slots=True)
class Clause:
    """Small tokens, and what each letter of the private area stands for; `implied` ones are pronouns."""

    tokens: list[str] = field(default_factory=list)
    names: dict[str, Mention] = field(default_factory=dict)
    implied: set[str] = field(default_factory=set)

    def add(self, spot: Mention, *, implied: bool = False) -> None:
        letter = chr(FIRST + len(self.names))
        self.names[letter] = spot
        self.tokens.append(letter)
        if implied:
            self.implied.add(letter)

    def named(self, place: int) -> bool:
        return 0 <= place < len(self.tokens) and self.tokens[place] in self.names

    def token(self, place: int) -> str:
        return self.tokens[place] if 0 <= place < len(self.tokens) else ""

    def head(self) -> int | None:
        """The place of the name that it begins with, behind an article or what comes before a comma."""
        place = 0
        if "," in self.tokens[:12]:
            comma = self.tokens.index(",")
            place = comma + 1 if not any(map(self.named, range(comma))) else 0
        while self.token(place) in _OPENING:
            place += 1
        # The service Frostline; nothing else may stand there.
        for _ in range(2 if self.token(place - 1) in _ARTICLES else 0):
            if (
                self.named(place)
                or not self.token(place).isalpha()
                or self.token(place) in _WORDS["prepositions"]
            ):
                break
            place += 1
        return place if self.named(place) else None


def clauses_of(text: str, spots: Sequence[Mention], subject: Mention | None) -> Iterator[Clause]:
    """One a sentence, and one for each parenthesis behind a name. Headings and questions say nothing."""
    places = iter([spot for spot in spots if not spot.nested])
    waiting = next(places, None)
    before: Mention | None = None
    reached = 0
    for sentence in _sentences(text):
        if "\n\n" in text[reached : sentence.start]:
            before = None
        inside: list[Mention] = []
        while waiting is not None and waiting.start < sentence.end:
            if waiting.start >= sentence.start and waiting.end <= sentence.end:
                inside.append(waiting)
            waiting = next(places, None)
        reached = sentence.end
        if sentence.heading or text[sentence.end - 1] == "?" or len(inside) > _MOST:
            continue
        clause = _clause(text, sentence.start, sentence.end, inside, before, subject)
        if clause.names:
            yield clause
        head = clause.head()
        before = clause.names[clause.tokens[head]] if head is not None else None


def _sentences(text: str) -> Iterator[Sentence]:
    """In pieces, since what has no end takes the segmenter long."""
    start = 0
    for line in text.splitlines(keepends=True):
        for begin in range(0, len(line), _LONGEST):
            piece = line[begin : begin + _LONGEST]
            for sentence in sentences(piece):
                yield Sentence(start + sentence.start, start + sentence.end, sentence.heading)
            start += len(piece)


def _clause(
    text: str, start: int, end: int, spots: list[Mention], before: Mention | None, subject: Mention | None
) -> Clause:
    clause = Clause()
    for spot in spots:
        _words(clause, text[start : spot.start], before, subject)
        if spot.kind == "date":
            # Born on the first of May in Limerick: born in Limerick.
            if clause.tokens[-1:] == ["on"]:
                clause.tokens.pop()
        else:
            clause.add(spot)
        start = spot.end
    _words(clause, text[start:end], before, subject)
    return clause


def _words(clause: Clause, text: str, before: Mention | None, subject: Mention | None) -> None:
    """The words between names; pronouns that stand for a name are names."""
    for word in _TOKEN.findall(text.lower().replace("’", "'").replace("- ", "-")):
        if word not in _MEANING:
            if not (word.isdigit() and clause.tokens[-1:] in (["born"], ["died"])):
                clause.tokens.append(word)
            continue
        opens = not clause.tokens or (len(clause.tokens) < 12 and clause.tokens[-1] == ",")
        if word in _SUBJECTS and opens and not clause.names:
            referent = _referent(word, before, subject)
        elif word in _POSSESSIVES:
            head = clause.head()
            referent = (
                clause.names[clause.tokens[head]] if head is not None else _referent(word, before, subject)
            )
        elif word in _KINDS and clause.token(len(clause.tokens) - 1) in {"the", "this"}:
            referent = subject if subject is not None and subject.kind in _KINDS[word] else None
        else:
            referent = None
        if referent is None or len(clause.names) > _MOST:
            clause.tokens.append(word)
            continue
        clause.add(referent, implied=True)
        if word in _POSSESSIVES:
            clause.tokens.append("'s")


def _referent(word: str, before: Mention | None, subject: Mention | None) -> Mention | None:
    for spot in (before, subject):
        if spot is None:
            continue
        if word in {"he", "she", "his", "her"} and spot.kind not in {"person", "name"}:
            continue
        if word in {"it", "this", "its"} and spot.kind == "person":
            continue
        if word in {"they", "their"} and spot.kind not in {"team", "organization"}:
            continue
        return spot
    return None
