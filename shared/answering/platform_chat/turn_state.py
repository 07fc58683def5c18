"""A turn in progress: its question, its search results, its text."""

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering.chat_completions.request import truncate_question
from shared.answering.platform_chat.budgeted_model import BudgetedModel
from shared.answering.platform_chat.decomposition import SubQueryResults
from shared.answering.platform_chat.types import Message, Session, Turn
from shared.generation.extractive import MODEL as EXTRACTIVE
from shared.services import Services
from shared.types import Filters, Principal, Query, SearchResult, Usage

Caller = Callable[[], Principal]


@dataclass(slots=True)
class TurnState:
    """`question` is the question that is searched for; `earlier` the messages before it; `model` the
    generator's name."""

    core: Services
    caller: Caller
    turn: Turn
    session: Session
    thinking: BudgetedModel | None
    question: str = ""
    findings: SubQueryResults = field(default_factory=SubQueryResults)
    model: str = EXTRACTIVE
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    retrieval_tokens: int = 0

    @property
    def earlier(self) -> tuple[Message, ...]:
        return self.session.messages or self.turn.earlier

    async def search(self, text: str) -> SearchResult:
        return await run_in_threadpool(self._search, text)

    def _search(self, text: str) -> SearchResult:
        looking = self.turn.looking
        query = Query(
            truncate_question(self.core.embedder, text),
            looking.top_k,
            Filters(
                org_id=self.session.org_id,
                collection_ids=(self.session.collection_id,) if self.session.collection_id else (),
                metadata=looking.metadata,
                document_type=looking.document_type,
            ),
            looking.mode,
            looking.rerank,
            looking.neighbours,
            compares=True,
            graph=looking.graph,
        )
        return pipeline.search(self.core, self.caller(), query)
