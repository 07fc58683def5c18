"""Knowledge API for agents: documents in namespaces, retrieval, answers, audit events."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.access.concurrent_ingestion_limit import UNGUARDED, Guard
from shared.answering import request_recording
from shared.answering.metadata_denylist import TITLE_KEYS, denied_keys, passage_of, redaction, without_keys
from shared.clients.lenient_row_reading import object_of, readable
from shared.documents import named_collections
from shared.documents.documents import TITLE_CHARACTERS, first_words, title_of
from shared.errors import NotFound, RagError
from shared.ingestion.chunking.chunked_document import ChunkingConfig
from shared.ingestion.filter_fields import fields_of
from shared.ingestion.synchronous_ingestion import NewDocument, chunk_and_embed, store_many
from shared.observability.audit_events import record_event
from shared.observability.usage_metrics import Measure
from shared.services import Services
from shared.text.normalize import clean_line
from shared.types import (
    GeneratedText,
    Judgement,
    Match,
    Mode,
    Passage,
    Principal,
    PrincipalSource,
    Query,
    Row,
)


@dataclass(frozen=True, slots=True)
class NewText:
    """A document to ingest. `name`: the client's name for it."""

    name: str | None
    text: str
    metadata: dict[str, Any]
    source: str | None = None
    title: str | None = None

    def generated_name(self) -> str:
        """A name for a document without one: the hash of its content."""
        content = json.dumps([self.text, self.metadata, self.source, self.title], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def document(self, name: str, denied: frozenset[str]) -> NewDocument:
        metadata = self.metadata if self.source is None else {"source": self.source, **self.metadata}
        # Answers show titles, so denied metadata must not become one.
        source = "" if "source" in denied else clean_line(self.source or "")
        title = title_of(self.title, without_keys(denied, metadata)) or source or first_words(self.text)
        origin = fields_of({"source": self.source})["origin"]
        return NewDocument(title, self.text, external_id=name, origin=origin, metadata=metadata)


def ingest(
    services: Services,
    caller: PrincipalSource,
    namespace: str,
    texts: Sequence[NewText],
    guard: Guard = UNGUARDED,
) -> list[str]:
    """Store documents, which are searchable when this returns; their names, in order, generated if missing. A
    document replaces the one with its name. Creates a new namespace. Raises Forbidden for another user's
    namespace, and as store_many."""
    collection = named_collections.find_or_none(services.database, caller, namespace)
    config = ChunkingConfig.of_collection(collection)
    names = [text.name or text.generated_name() for text in texts]
    documents = {
        name: text.document(name, denied_keys(services))
        for name, text in dict(zip(names, texts, strict=True)).items()
    }

    def put(names: Sequence[str], *, only_present: bool) -> list[str]:
        """The names of documents that were not stored."""
        chosen = [rows[name] for name in names]
        stored = store_many(services.database, caller, namespace, chosen, only_present=only_present)
        return [name for name, document in zip(names, stored, strict=True) if document is None]

    # The name of a document from another API is its id.
    ids = [text.name for text in texts if collection and text.name and _is_id(text.name)]
    existing = (
        list(named_collections.existing_documents(services.database, caller, namespace, ids)) if ids else []
    )
    with _record_failure(services, caller, "knowledge.ingest", namespace):
        chunked = chunk_and_embed(services.embedder_of_org(caller), list(documents.values()), config, guard)
        rows = dict(zip(documents, chunked, strict=True))
        deleted = put(existing, only_present=True) if existing else []
        put([name for name in documents if name not in existing or name in deleted], only_present=False)
    measure = Measure("gateway_knowledge_documents_ingested_total", len(documents))
    record_event(services.database, caller, "knowledge.ingest", namespace, measure, documents=len(documents))
    return names


def documents(
    services: Services, caller: Principal, namespace: str, limit: int, offset: int
) -> tuple[list[Row], int]:
    """A page of the namespace's documents, the oldest first, and their total; empty for an unknown namespace.
    Raises Forbidden for another user's namespace."""
    denied = denied_keys(services)
    needs_new_title = not denied.isdisjoint(TITLE_KEYS)
    try:
        # A new title needs the beginning of the text.
        characters = TITLE_CHARACTERS + 1 if needs_new_title else 0
        page, total = named_collections.documents(
            services.database, caller, namespace, limit, offset, characters
        )
    except NotFound as error:
        if error.code != "collection_not_found":
            raise
        return [], 0

    def redact(row: Row) -> Row:
        metadata = without_keys(denied, object_of(row["metadata"]))
        return {
            **row,
            "metadata": metadata,
            "title": first_words(row["content"]) if needs_new_title else row["title"],
        }

    return list(readable(page, redact)), total


def delete(services: Services, caller: Principal, namespace: str, name: str) -> None:
    """Raises NotFound for an unknown document or namespace; Forbidden for another user's namespace."""
    if not named_collections.delete(services.database, caller, namespace, [name]):
        raise NotFound(code="document_not_found")
    measure = Measure("gateway_knowledge_documents_deleted_total", 1)
    record_event(services.database, caller, "knowledge.delete", namespace, measure, documents=1)


def retrieve(
    services: Services, caller: Principal, namespaces: Sequence[str], request: Query
) -> tuple[Passage, ...]:
    """The best passages of a hybrid search in the namespaces; none if they are unknown. Raises Forbidden for
    another user's namespace, or another RagError."""
    collection_ids = _collection_ids(services, caller, namespaces)
    matches: tuple[Match, ...] = ()
    if any(collection_ids.values()):
        result = pipeline.search(services, caller, _hybrid(request, collection_ids))
        matches = tuple(map(redaction(denied_keys(services)), result.matches))
    measures = [Measure("gateway_knowledge_chunks_retrieved_total", len(matches))]
    if matches:
        measures.append(Measure("gateway_knowledge_retrieval_score", matches[0].score))
    for namespace, collection_id in collection_ids.items():
        _record(services, caller, "knowledge.retrieve", namespace, collection_id, matches, measures)
        # Only the first event has the measures.
        measures = []
    return tuple(passage_of(match, denied_keys(services)) for match in matches)


async def query(
    services: Services, caller: Principal, namespace: str, request: Query
) -> tuple[GeneratedText | None, Judgement, tuple[Passage, ...]]:
    """An answer, None if confidence is low or nothing matches, the confidence, and the passages. Raises
    Forbidden for another user's namespace, or another RagError."""
    event, denied = "knowledge.query", denied_keys(services)
    collection_ids = await run_in_threadpool(_collection_ids, services, caller, [namespace])
    draft: GeneratedText | None = None
    matches: tuple[Match, ...] = ()
    if any(collection_ids.values()):
        search_query = _hybrid(request, collection_ids)
        try:
            # Denied metadata is neither judged nor seen by the model.
            searched = await run_in_threadpool(
                pipeline.search_and_judge, services, caller, search_query, redaction(denied)
            )
            answer = await pipeline.write_answer(services, search_query, searched)
            await request_recording.record_answer(services, caller, search_query, answer)
        except RagError:
            await run_in_threadpool(record_event, services.database, caller, event, namespace)
            raise
        draft, judgement, matches = answer.draft, answer.judgement, answer.matches
    else:
        judgement = await run_in_threadpool(pipeline.judge_matches, services, caller, (), request.text)
    measures: list[Measure] = []
    if draft:
        tokens = {"prompt": draft.usage.prompt_tokens, "completion": draft.usage.completion_tokens}
        measures = [Measure("gateway_knowledge_query_tokens_total", n, kind) for kind, n in tokens.items()]
    await run_in_threadpool(
        _record, services, caller, event, namespace, collection_ids[namespace], matches, measures
    )
    return draft, judgement, tuple(passage_of(match, denied) for match in matches)


@contextmanager
def _record_failure(
    services: Services, caller: PrincipalSource, event: str, namespace: str
) -> Iterator[None]:
    try:
        yield
    except RagError:
        record_event(services.database, caller, event, namespace)
        raise


def _is_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


def _collection_ids(
    services: Services, caller: Principal, namespaces: Sequence[str]
) -> dict[str, str | None]:
    """The collections' ids by namespace, None for an unknown one."""
    rows = {name: named_collections.find_or_none(services.database, caller, name) for name in namespaces}
    return {name: row["id"] if row else None for name, row in rows.items()}


def _hybrid(query: Query, collection_ids: Mapping[str, str | None]) -> Query:
    collections = tuple(filter(None, collection_ids.values()))
    return replace(query, filters=replace(query.filters, collection_ids=collections), mode=Mode.HYBRID)


def _record(
    services: Services,
    caller: Principal,
    event: str,
    namespace: str,
    collection_id: str | None,
    matches: Sequence[Match],
    measures: Sequence[Measure],
) -> None:
    own = [match for match in matches if match.collection_id == collection_id]
    record_event(
        services.database,
        caller,
        event,
        namespace,
        *measures,
        documents=len({match.document_id for match in own}),
        chunks=len(own),
        # A sum of shares may exceed 1 by rounding.
        top_score=min(own[0].score, 1.0) if own else None,
    )
