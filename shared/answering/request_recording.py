"""Records of answered requests, alike for all contracts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool

from shared.generation.extractive.answer import MODEL as EXTRACTIVE
from shared.generation.prompt import without_texts
from shared.services import Services
from shared.text.chat_messages import count_usage
from shared.text.normalize import storable
from shared.tracing import current
from shared.types import (
    Answer,
    GeneratedText,
    Judgement,
    Match,
    Principal,
    PrincipalSource,
    Query,
    Usage,
)

# The limits of rag.request_records.
QUESTION_CHARACTERS, ANSWER_CHARACTERS, MODEL_CHARACTERS = 10_000, 100_000, 200
MAX_PASSAGES, MAX_QUERIES = 100, 20


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """`question`: the user's; `queries`: the searches for it; `answer`: None if it was withheld; `model`,
    `usage` and `messages`: those of a language model, if one was called. Without `usage` an upper bound of
    the tokens is recorded."""

    question: str
    queries: Sequence[Query]
    matches: Sequence[Match]
    judgement: Judgement
    answer: str | None
    model: str | None = None
    usage: Usage | None = None
    messages: Sequence[Mapping[str, Any]] = field(default=(), repr=False)

    def row(self, request_id: str, function: str, milliseconds: int) -> dict[str, Any]:
        """As rag_record_request reads it."""
        collections = {query.filters.collection_ids for query in self.queries}
        (only,) = collections if len(collections) == 1 else ((),)
        usage = self.usage or (
            count_usage([*map(dict, self.messages)], self.answer or "") if self.messages else Usage()
        )
        return {
            "request_id": request_id,
            "function": function,
            "collection_id": only[0] if len(only) == 1 else None,
            "question": storable(self.question)[:QUESTION_CHARACTERS],
            "queries": [
                queries().dump_python(query, mode="json", exclude_defaults=True)
                for query in self.queries[:MAX_QUERIES]
            ],
            "passages": [_passage(match) for match in self.matches[:MAX_PASSAGES]],
            "confidence": self.judgement.confidence,
            "score": min(1.0, max(0.0, self.judgement.score)),
            "because": self.judgement.because,
            "answer": storable(self.answer)[:ANSWER_CHARACTERS] or None if self.answer else None,
            "model": storable(self.model)[:MODEL_CHARACTERS] if self.model else None,
            "prompt": [
                {**message, "content": storable(message["content"])}
                for message in without_texts(self.messages, self.matches)
            ]
            or None,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "milliseconds": milliseconds,
        }


@cache
def queries() -> TypeAdapter[Query]:
    """Queries as JSON."""
    return TypeAdapter(Query)


def record(services: Services, caller: PrincipalSource, answered: AnsweredRequest) -> bool:
    """Record the current request, if its org records requests; whether it was. Raises nothing."""
    trace = current.get()
    if trace is None:
        return False
    org_ids = {match.org_id for match in answered.matches}
    org_ids |= {query.filters.org_id for query in answered.queries if query.filters.org_id}
    milliseconds = (trace.now() - trace.started) // 1_000_000
    return services.recorder.record(
        services.database,
        caller,
        sorted(org_ids),
        lambda: answered.row(trace.request_id, trace.function, milliseconds),
    )


async def record_answer(services: Services, caller: Principal, query: Query, answer: Answer) -> None:
    """Record an answer of the pipeline. Raises nothing."""
    answered = of_generated(
        query.text,
        [query],
        answer.matches,
        answer.judgement,
        answer.draft.text if answer.draft else None,
        answer.generated,
    )
    await run_in_threadpool(record, services, caller, answered)


def of_generated(
    question: str,
    queries: Sequence[Query],
    matches: Sequence[Match],
    judgement: Judgement,
    answer: str | None,
    generated: GeneratedText | None,
    usage: Usage | None = None,
) -> AnsweredRequest:
    """`generated`: the generator's reply, None if it was not called; `usage`: of all models, by default the
    reply's."""
    if generated is None or generated.model == EXTRACTIVE:
        model = EXTRACTIVE if generated else None
        return AnsweredRequest(question, queries, matches, judgement, answer, model, usage)
    return AnsweredRequest(
        question,
        queries,
        matches,
        judgement,
        answer,
        generated.model,
        usage or generated.usage,
        generated.messages,
    )


def _passage(match: Match) -> dict[str, Any]:
    return {
        "chunk_id": match.chunk_id,
        "document_id": match.document_id,
        "score": match.score,
        "similarity": match.similarity,
        "word_score": match.word_score,
        "relevance": match.relevance,
        "graph_sourced": match.graph_sourced or None,
    }
