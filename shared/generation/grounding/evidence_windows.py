"""The passages that an answer was written from, taken apart once: each run of one to three sentences is a
window that may hold one of the answer's."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from shared.generation.grounding import citation_markers
from shared.generation.grounding.facts import day, facts_of, forms_of
from shared.generation.grounding.markup import plain
from shared.generation.grounding.negation import Denials, denials_of
from shared.generation.grounding.numbers import Fact
from shared.generation.grounding.terms import content, words_of
from shared.generation.grounding.types import Evidence
from shared.text.sentences import sentences
from shared.types import Match

WIDEST = 3


@dataclass(frozen=True, slots=True)
class Sentence:
    """[start, end) of its match's text, and the stems of its content words."""

    start: int
    end: int
    stems: frozenset[str]


class Passage:
    """A match, its sentences, and what its title and date add to each of them."""

    def __init__(self, place: int, match: Match) -> None:
        self.place = place
        self.match = match
        title_words = words_of(match.title)
        self.title = content(title_words)
        self.sentences = [
            Sentence(item.start, item.end, content(words_of(match.text[item.start : item.end])))
            for item in sentences(match.text, match.lang)
        ]
        self.stems = self.title.union(*(item.stems for item in self.sentences))

    @cached_property
    def names(self) -> frozenset[str]:
        """Every word of the text and its title, in whatever case."""
        return frozenset(words_of(f"{self.match.title}\n{self.match.text}\n{self.match.author or ''}"))

    @cached_property
    def around(self) -> frozenset[str]:
        """What the title and the date say, of every window."""
        dated = day(self.match.occurred_at) if self.match.occurred_at else []
        return forms_of([*facts_of(self.match.title), *facts_of(self.match.uri or ""), *dated])

    @cached_property
    def forms(self) -> frozenset[str]:
        return forms_of(facts_of(self.match.text)) | self.around


class Window:
    """Sentences [first, last] of a passage. What costs more than counting words is worked out when asked."""

    def __init__(self, passage: Passage, first: int, last: int) -> None:
        self.passage = passage
        self.start = passage.sentences[first].start
        self.end = passage.sentences[last].end
        self.size = last - first + 1

    @cached_property
    def text(self) -> str:
        return self.passage.match.text[self.start : self.end]

    @cached_property
    def facts(self) -> list[Fact]:
        return facts_of(self.text)

    @cached_property
    def forms(self) -> frozenset[str]:
        return forms_of(self.facts) | self.passage.around

    @cached_property
    def denials(self) -> Denials:
        return denials_of(self.text)

    @property
    def backing(self) -> Evidence:
        begin = self.passage.match.span[0]
        return Evidence(self.passage.place, begin + self.start, begin + self.end)

    def overlaps(self, other: "Window") -> bool:
        """Whether both hold some of the same text: chunks overlap."""
        if self.passage.match.document_id != other.passage.match.document_id:
            return False
        return self.backing.start < other.backing.end and other.backing.start < self.backing.end


class Passages:
    """All of them, and how rare a word is among their sentences."""

    def __init__(self, matches: Sequence[Match]) -> None:
        self.all = [Passage(place, match) for place, match in enumerate(matches)]
        stems_by_sentence = [sentence.stems for passage in self.all for sentence in passage.sentences]
        self._count = len(stems_by_sentence)
        self._frequency = Counter(stem for stems in stems_by_sentence for stem in stems)
        self._windows: dict[tuple[int, int, int], Window] = {}

    def rarity(self, stem: str) -> float:
        return math.log(1 + (1 + self._count) / (1 + self._frequency[stem]))

    def window(self, passage: Passage, first: int, last: int) -> Window:
        key = (passage.place, first, last)
        if key not in self._windows:
            self._windows[key] = Window(passage, first, last)
        return self._windows[key]

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset[str]().union(*(passage.stems for passage in self.all))

    @cached_property
    def forms(self) -> frozenset[str]:
        return frozenset[str]().union(*(passage.forms for passage in self.all))

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset[str]().union(*(passage.names for passage in self.all))

    @cached_property
    def exact(self) -> dict[str, Window]:
        """Windows by what they say to the letter."""
        windows: dict[str, Window] = {}
        for passage in self.all:
            for first, last in spans(len(passage.sentences)):
                window = self.window(passage, first, last)
                windows.setdefault(letter_for_letter(window.text), window)
        return windows


def spans(count: int) -> Iterator[tuple[int, int]]:
    """First and last of each run of one to three, the shorter ones first."""
    for width in range(WIDEST):
        for first in range(count - width):
            yield first, first + width


def letter_for_letter(text: str) -> str:
    return " ".join(plain(citation_markers.without(text)).split())
