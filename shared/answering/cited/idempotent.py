"""An answer that is given once for each idempotency key: the same request again gets the same answer for a
day, and whoever asks while it is still being written is told to wait."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool

from shared.access.idempotency_store import Reservation, StoredResponse, begin
from shared.answering.cited.answer import answer
from shared.answering.cited.types import AnswerDone, AnswerRequest, Event
from shared.graph.query_result import evidence_of
from shared.retrieval.workspace import locate
from shared.services import Services
from shared.types import Principal

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A request as its key knows it: the key, what was asked beside the place, and how its answer is
    written."""

    key: str
    said: str
    render: Callable[[AnswerDone], Body]


async def answer_once(
    core: Services,
    caller: Callable[[], Principal],
    question: AnswerRequest,
    idempotency: IdempotencyKey | None,
) -> StoredResponse | AsyncGenerator[Event]:
    """The answer as it comes about, or the one that was given before. Raises Conflict for a key that stands
    for another request, or for one that is still being answered; or another RagError."""
    if idempotency is None:
        return answer(core, caller, question)
    claim = await run_in_threadpool(_begin, core, caller, question, idempotency)
    if isinstance(claim, StoredResponse):
        return claim
    return _store_when_done(claim, answer(core, caller, question), idempotency)


def _begin(
    core: Services, caller: Callable[[], Principal], question: AnswerRequest, idempotency: IdempotencyKey
) -> Reservation | StoredResponse:
    place = locate(core.database, caller(), question.wanted.workspace, question.wanted.org)
    # However the place was written.
    said = f"v1-answer {place.org_id} {place.collection_id} {idempotency.said}"
    # As long as a search and an answer may take, retries included.
    lease = round(core.settings.rag_stream_timeout_seconds) + 180
    return begin(core.database, caller, place.org_id, idempotency.key, said.encode(), lease)


async def _store_when_done(
    claim: Reservation, events: AsyncGenerator[Event], idempotency: IdempotencyKey
) -> AsyncGenerator[Event]:
    """What happens, kept when it is finished; where it never is, the next one may begin anew."""
    ended = False
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, AnswerDone):
                    # From here on it ends by itself, whoever leaves meanwhile.
                    ended = True
                    await run_in_threadpool(_keep, claim, idempotency.render(event), event)
                yield event
    finally:
        if not ended:
            await run_in_threadpool(claim.release)


def _keep(claim: Reservation, body: Body, done: AnswerDone) -> None:
    retrieved = done.begun.retrieved
    # What the graph tells was in some document, too.
    shown = {match.chunk_id for match in retrieved.matches} | evidence_of(retrieved.graph)
    claim.keep(200, body, body["requestId"], sorted(shown))
