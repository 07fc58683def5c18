"""Request and events of an answer with citations."""

from dataclasses import dataclass

from shared.graph.graph_of_rows import evidence_chunk_ids
from shared.retrieval.types import RoutedResult, SearchRequest
from shared.types import Judgement, Match, TextDelta, Usage


@dataclass(frozen=True, slots=True)
class Reference:
    """Evidence of a sentence: a citation's number and match, and [start, end) of the document's text."""

    number: int
    match: Match
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """`abstractive`: written by a model, if there is one, instead of the documents' own sentences; `cites`:
    the text has the numbers of citations; `model`: None for the gateway's default."""

    search: SearchRequest
    abstractive: bool = True
    cites: bool = True
    max_tokens: int = 400
    model: str | None = None
    streams: bool = False


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """[start, end) of the answer, without citation numbers. Without references it states nothing."""

    start: int
    end: int
    references: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class NumberedCitation:
    """A match that supports the answer, with its number in the text."""

    number: int
    match: Match


@dataclass(frozen=True, slots=True)
class ComposedAnswer:
    """`dropped`: the reasons of each sentence that was left out."""

    text: str
    sentences: tuple[CitedSentence, ...]
    citations: tuple[NumberedCitation, ...]
    dropped: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class RetrievalDone:
    result: RoutedResult
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class AnswerDone:
    """The whole answer. `withheld`: confidence was low, or no sentence was supported."""

    retrieval: RetrievalDone
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
        result = self.retrieval.result
        return {match.chunk_id for match in result.matches} | evidence_chunk_ids(result.graph)


# A stream has its events in this order.
Event = RetrievalDone | TextDelta | NumberedCitation | AnswerDone
