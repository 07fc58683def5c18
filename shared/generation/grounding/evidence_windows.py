"""Windows of one to three sentences of an answer's passages."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from shared.generation.grounding import markers_of_models
from shared.generation.grounding.facts import date_facts, facts_in, forms_of
from shared.generation.grounding.markup import displayable
from shared.generation.grounding.negation import Negations, negations_in
from shared.generation.grounding.terms import content_stems, words_in
from shared.generation.grounding.types import Evidence
from shared.text.line_breaks import unwrapped
from shared.text.sentences import sentences_of_lines
from shared.types import Match

MAX_SENTENCES = 3


@dataclass(frozen=True, slots=True)
class EvidenceSentence:
    """The span [start, end) of a match's text, its words in order, and the stems of its content words."""

    start: int
    end: int
    words: tuple[str, ...]
    stems: frozenset[str]


class EvidencePassage:
    """A match, its sentences, and the facts of its title, address, date and table's header."""

    def __init__(self, match_index: int, match: Match) -> None:
        self.match_index = match_index
        self.match = match
        self.text = unwrapped(match.text)
        title_words = words_in(f"{match.title}\n{match.table_header}")
        # Of the title and the header of the chunk's table.
        self.context_stems = content_stems(title_words)
        self.heading = frozenset([*title_words, *words_in(match.author or "")])
        self.sentences = [
            EvidenceSentence(item.start, item.end, words, content_stems(words))
            for item in sentences_of_lines(self.text, match.lang)
            for words in [tuple(words_in(self.text[item.start : item.end]))]
        ]
        self.stems = self.context_stems.union(*(item.stems for item in self.sentences))
        # Every word of the text, title, table's header and author.
        self.names = self.heading.union(*(item.words for item in self.sentences))

    def text_of(self, sentence: EvidenceSentence) -> str:
        return self.text[sentence.start : sentence.end]

    @cached_property
    def context(self) -> frozenset[str]:
        """Facts that hold for every window."""
        dated = date_facts(self.match.occurred_at) if self.match.occurred_at else []
        texts = self.match.title, self.match.uri or "", self.match.table_header
        return forms_of([*(fact for text in texts for fact in facts_in(text)), *dated])

    @cached_property
    def forms(self) -> frozenset[str]:
        return forms_of(facts_in(self.text)) | self.context


class SentenceWindow:
    """Sentences [first, last] of a passage. Costly properties are computed on demand."""

    def __init__(self, passage: EvidencePassage, first: int, last: int) -> None:
        self.passage = passage
        self.start = passage.sentences[first].start
        self.end = passage.sentences[last].end

    @cached_property
    def text(self) -> str:
        return self.passage.text[self.start : self.end]

    @cached_property
    def forms(self) -> frozenset[str]:
        return forms_of(facts_in(self.text)) | self.passage.context

    @cached_property
    def negations(self) -> Negations:
        return negations_in(self.text)

    @property
    def evidence(self) -> Evidence:
        begin = self.passage.match.span[0]
        return Evidence(self.passage.match_index, begin + self.start, begin + self.end)

    def overlaps(self, other: "SentenceWindow") -> bool:
        """Whether both have some of the same text: chunks overlap."""
        if self.passage.match.document_id != other.passage.match.document_id:
            return False
        return self.evidence.start < other.evidence.end and other.evidence.start < self.evidence.end


class EvidencePassages:
    """All passages, and the rarity of words among their sentences."""

    def __init__(self, matches: Sequence[Match]) -> None:
        self.all = [EvidencePassage(match_index, match) for match_index, match in enumerate(matches)]
        stems_by_sentence = [sentence.stems for passage in self.all for sentence in passage.sentences]
        self._count = len(stems_by_sentence)
        self._frequency = Counter(stem for stems in stems_by_sentence for stem in stems)
        self.window = cache(SentenceWindow)
        self.stems = frozenset[str]().union(*(passage.stems for passage in self.all))
        self.names = frozenset[str]().union(*(passage.names for passage in self.all))

    def rarity(self, stem: str) -> float:
        return math.log(1 + (1 + self._count) / (1 + self._frequency[stem]))

    def share(self, stems: frozenset[str], of: frozenset[str]) -> float:
        """The share of `of`, weighted by rarity, that these stems have; 1 of an empty set."""
        total = sum(map(self.rarity, of))
        return sum(map(self.rarity, of & stems)) / total if total else 1.0

    @cached_property
    def forms(self) -> frozenset[str]:
        return frozenset[str]().union(*(passage.forms for passage in self.all))

    @cached_property
    def exact(self) -> dict[str, SentenceWindow]:
        """The first window of each normalized text."""
        windows: dict[str, SentenceWindow] = {}
        for passage in self.all:
            for first, last in window_spans(len(passage.sentences)):
                window = self.window(passage, first, last)
                windows.setdefault(normalized_text(window.text), window)
        return windows


def window_spans(count: int) -> Iterator[tuple[int, int]]:
    """First and last sentence of each window, the shorter ones first."""
    for width in range(MAX_SENTENCES):
        for first in range(count - width):
            yield first, first + width


def normalized_text(text: str) -> str:
    return " ".join(displayable(markers_of_models.without_markers(text)).split())
