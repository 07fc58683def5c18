"""A turn in progress: its question, its search results, its text."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering.chat_completions.openai_request import truncate_question
from shared.answering.platform_chat.budgeted_model import BudgetedModel
from shared.answering.platform_chat.multi_step_search import SubQueryResults
from shared.answering.platform_chat.types import Message, ReasoningStep, Session, Sources, SubQuery, Turn
from shared.generation.extractive.answer import MODEL as EXTRACTIVE
from shared.services import Services
from shared.types import (
    Confidence,
    GeneratedText,
    JudgedSearch,
    Judgement,
    Principal,
    Query,
    TextDelta,
    Usage,
)

Caller = Callable[[], Principal]


@dataclass(slots=True)
class TurnState:
    """`question`: the rewritten question; `previous`: the question that it begins with, if rules joined both;
    `model`: the generator's name."""

    services: Services
    caller: Caller
    turn: Turn
    session: Session
    query_model: BudgetedModel | None
    question: str = ""
    previous: str = ""
    results: SubQueryResults = field(default_factory=SubQueryResults)
    model: str = EXTRACTIVE
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    retrieval_tokens: int = 0
    generated: GeneratedText | None = None
    queries: list[Query] = field(default_factory=list)

    @property
    def history(self) -> tuple[Message, ...]:
        return self.session.messages or self.turn.history

    async def search(self, text: str) -> JudgedSearch:
        """Raises a RagError."""
        return await run_in_threadpool(self._search, text)

    def _search(self, text: str) -> JudgedSearch:
        query = self.turn.retrieval
        collections = (self.session.collection_id,) if self.session.collection_id else ()
        filters = replace(query.filters, org_id=self.session.org_id, collection_ids=collections)
        query = replace(query, text=truncate_question(self.services.embedder, text), filters=filters)
        self.queries.append(query)
        return pipeline.search_and_judge(self.services, self.caller(), query)


@dataclass(frozen=True, slots=True)
class TurnDone:
    """The answered turn, with the judgement of its text. `is_saved`: false if the session was deleted or the
    database failed; `session_id`: NIL without a session; `is_recorded`: the request has a record
    (request_recording.py)."""

    state: TurnState
    judgement: Judgement
    usage: Usage
    session_id: str
    is_saved: bool
    is_recorded: bool
    milliseconds: int
    retrieval_ms: int
    generation_ms: int

    @property
    def sub_queries(self) -> tuple[str, ...]:
        """Those of deep reasoning."""
        return tuple(self.state.results.by_query) if self.state.turn.deep else ()

    @property
    def withheld(self) -> bool:
        """Whether confidence was low, and no model was called."""
        return self.judgement.confidence is Confidence.LOW

    @property
    def is_extractive(self) -> bool:
        return self.state.model == EXTRACTIVE


# Sources come first; deep reasoning repeats Step, SubQuery, Sources.
Event = ReasoningStep | SubQuery | Sources | TextDelta | TurnDone
