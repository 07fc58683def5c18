"""Replay of a recorded request: the same searches in today's documents, and the changes since the record."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering import rag_rule
from shared.answering.platform_chat.multi_step_search import SubQueryResults
from shared.answering.request_recording import queries
from shared.errors import Conflict
from shared.observability.request_record_store import RecordRow
from shared.services import Services
from shared.types import Judgement, Match, Principal, Query


@dataclass(frozen=True, slots=True)
class RankChange:
    """A passage with another rank than before, None where it was not among the passages. `title`: None if the
    caller does not see the passage."""

    chunk_id: str
    document_id: str
    title: str | None
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Replay:
    """`is_answered`: None for a question of several searches, which is not answered again."""

    judgement: Judgement
    is_answered: bool | None
    answer: str | None
    changes: tuple[RankChange, ...]


async def replay(services: Services, caller: Principal, record: RecordRow) -> Replay:
    """Repeat the record's searches as the caller, and answer from them. Nothing is recorded. Raises Conflict
    for a record without valid queries, or another RagError."""
    searches = _searches(record)
    if len(searches) == 1:
        rule = rag_rule.judge if record["function"] == "rag-answer" else None
        answer = await pipeline.answer(services, caller, searches[0], rule=rule)
        text = answer.draft.text if answer.draft else None
        return Replay(answer.judgement, text is not None, text, _changes(record, answer.matches))
    results = SubQueryResults()
    for query in searches:
        searched = await run_in_threadpool(pipeline.search_and_judge, services, caller, query)
        results.by_query[query.text] = searched
    return Replay(results.median(), None, None, _changes(record, results.by_score()))


def _searches(record: RecordRow) -> list[Query]:
    try:
        # The caller may not see the text of a rewritten question.
        searches = [
            queries().validate_python({**query, "text": query["text"] or record["question"]})
            for query in record["queries"]
        ]
    except ValidationError:
        raise Conflict("The record has no valid queries. Ask the question again.") from None
    return [replace(query, filters=replace(query.filters, org_id=record["org_id"])) for query in searches]


def _changes(record: RecordRow, matches: Sequence[Match]) -> tuple[RankChange, ...]:
    """The new passages and the moved ones, by their ranks, then the lost ones."""
    before = {passage["chunk_id"]: passage for passage in record["passages"]}
    after = [match.chunk_id for match in matches]
    present = [
        RankChange(match.chunk_id, match.document_id, match.title, old and old["rank"], rank)
        for rank, match in enumerate(matches, start=1)
        if (old := before.get(match.chunk_id)) is None or old["rank"] != rank
    ]
    lost = [
        RankChange(chunk_id, passage["document_id"], passage["title"], passage["rank"], None)
        for chunk_id, passage in before.items()
        if chunk_id not in after
    ]
    return (*present, *lost)
