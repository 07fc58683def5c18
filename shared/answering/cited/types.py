"""Request and events of an answer with citations."""

from dataclasses import dataclass

from shared.graph.query_result import evidence_chunk_ids
from shared.retrieval.types import RoutedResult, SearchRequest
from shared.types import Judgement, Match, Usage


@dataclass(frozen=True, slots=True)
class Reference:
    """What a sentence rests on: the number of a citation, and [start, end) in the text of its document."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """What to look for, and how to answer: in a model's words, where there is one, or in the documents' own;
    with numbers of citations in the text or without. `model`: the gateway's own where it is None."""

    wanted: SearchRequest
    abstractive: bool = True
    cites: bool = True
    max_tokens: int = 400
    model: str | None = None
    streams: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """[start, end) of the answer, without the numbers behind it. One without references states nothing."""

    start: int
    end: int
    references: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class NumberedCitation:
    """A match that the answer rests on, by the number that stands in the text."""

    number: int
    match: Match


@dataclass(frozen=True, slots=True)
class ComposedAnswer:
    """An answer: its sentences, what they rest on, and why others were left out, a list a sentence."""

    text: str
    sentences: tuple[Sentence, ...]
    citations: tuple[NumberedCitation, ...]
    dropped: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class RetrievalDone:
    """What the answer will be from."""

    retrieved: RoutedResult
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Token:
    """More of the answer's text: all of them, in order, are the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerDone:
    """The answer, whole. `withheld`: nothing that could be said holds, or nothing good enough was found."""

    begun: RetrievalDone
    answer: ComposedAnswer
    withheld: bool
    abstractive: bool
    model: str
    usage: Usage
    generation_ms: int
    milliseconds: int

    @property
    def chunk_ids(self) -> set[str]:
        """The chunks whose text the answer shows, those of the graph included."""
        retrieved = self.begun.retrieved
        return {match.chunk_id for match in retrieved.matches} | evidence_chunk_ids(retrieved.graph)


# As an answer comes about.
Event = RetrievalDone | Token | NumberedCitation | AnswerDone
