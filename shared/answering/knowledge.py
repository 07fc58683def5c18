"""Knowledge as agents use it: texts brought into namespaces, found, asked and deleted, which is noted for
those who audit it. What leaves through here lacks the metadata that the deployment keeps to itself."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.clients.row_validation import object_of, readable
from shared.documents import by_name
from shared.documents.by_name import Row
from shared.documents.documents import TITLE_CHARACTERS, first_words, title_of
from shared.errors import AnswersOff, NotFound, RagError
from shared.generation.confidence import snippet
from shared.ingestion.chunking.passages import ChunkingConfig
from shared.ingestion.ingest import UNGUARDED, Guard, NewDocument, chunk_and_embed, store_many
from shared.ingestion.metadata_fields import Fields
from shared.observability import usage_metrics
from shared.observability.usage_metrics import Measure
from shared.services import Services
from shared.text.normalize import clean_line
from shared.types import (
    Filters,
    GeneratedText,
    Match,
    Mode,
    Passage,
    Principal,
    PrincipalSource,
    Query,
    Source,
)

# Metadata keys that a document's title may be made of.
TITLED = {"title", "source"}


@dataclass(frozen=True, slots=True)
class Text:
    """A document as it comes. `name`: the caller's own for it; `source`: where it is from."""

    name: str | None
    text: str
    metadata: dict[str, Any]
    source: str | None = None
    title: str | None = None

    def made_name(self) -> str:
        """For one without: the same for the same again, which is then the same document."""
        said = json.dumps([self.text, self.metadata, self.source, self.title], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()[:32]

    def document(self, name: str, denied: frozenset[str]) -> NewDocument:
        metadata = self.metadata if self.source is None else {"source": self.source, **self.metadata}
        # Answers name titles: what is denied makes none.
        source = "" if "source" in denied else clean_line(self.source or "")
        title = title_of(self.title, _without(denied, metadata)) or source or first_words(self.text)
        origin = Fields.of({"source": self.source}).origin
        return NewDocument(None, title, self.text, external_id=name, origin=origin, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Asked:
    """What to look for: in the documents whose metadata have all the values."""

    text: str
    top_k: int
    metadata: Mapping[str, Any] = field(default_factory=dict)


def ingest(
    core: Services, caller: PrincipalSource, namespace: str, texts: Sequence[Text], guard: Guard = UNGUARDED
) -> list[str]:
    """Store texts, searchable when this returns; their names, in order, made for those without. One takes the
    place of what has its name, and no two that are named have the same. The namespace is made when it is new.
    Raises Forbidden for another user's own, and as ingest_many."""
    home = by_name.find_or_none(core.database, caller, namespace)
    config = ChunkingConfig.of_collection(home)
    names = [text.name or text.made_name() for text in texts]
    documents = {
        name: text.document(name, _denied(core))
        for name, text in dict(zip(names, texts, strict=True)).items()
    }

    def put(names: Sequence[str], *, only_present: bool) -> list[str]:
        """Those that were passed over."""
        chosen = [rows[name] for name in names]
        stored = store_many(core.database, caller, namespace, chosen, only_present=only_present)
        return [name for name, kept in zip(names, stored, strict=True) if kept is None]

    # What came through another API without a name goes by its id, and is replaced by that.
    ids = [text.name for text in texts if home and text.name and _is_id(text.name)]
    there = list(by_name.existing_documents(core.database, caller, namespace, ids)) if ids else []
    with _noted_if_it_fails(core, caller, "knowledge.ingest", namespace):
        ready = chunk_and_embed(core.embedder, list(documents.values()), config, guard)
        rows = dict(zip(documents, ready, strict=True))
        gone = put(there, only_present=True) if there else []
        put([name for name in documents if name not in there or name in gone], only_present=False)
    counted = Measure("gateway_knowledge_documents_ingested_total", len(documents))
    usage_metrics.record_event(
        core.database, caller, "knowledge.ingest", namespace, counted, documents=len(documents)
    )
    return names


def documents(
    core: Services, caller: Principal, namespace: str, limit: int, offset: int
) -> tuple[list[Row], int]:
    """A page of the namespace's documents, the oldest first, and how many there are: none where there is no
    such namespace. Raises Forbidden for another user's own."""
    denied = _denied(core)
    untitled = not denied.isdisjoint(TITLED)
    try:
        # Of their texts nothing, or as much as a title may be made of.
        wanted = by_name.DocumentPageRequest(limit, offset, TITLE_CHARACTERS + 1 if untitled else 0)
        page, total = by_name.documents(core.database, caller, namespace, wanted)
    except NotFound as missing:
        if missing.code != "collection_not_found":
            raise
        return [], 0

    def shown(row: Row) -> Row:
        metadata = _without(denied, object_of(row["metadata"]))
        return {
            **row,
            "metadata": metadata,
            "title": first_words(row["content"]) if untitled else row["title"],
        }

    return list(readable(page, shown)), total


def delete(core: Services, caller: Principal, namespace: str, name: str) -> None:
    """Raises NotFound where there is no such document, or namespace; Forbidden for another user's own."""
    if not by_name.delete(core.database, caller, namespace, [name]):
        raise NotFound(code="document_not_found")
    counted = Measure("gateway_knowledge_documents_deleted_total", 1)
    usage_metrics.record_event(core.database, caller, "knowledge.delete", namespace, counted, documents=1)


def retrieve(
    core: Services, caller: Principal, namespaces: Sequence[str], request: Asked
) -> tuple[Passage, ...]:
    """The best passages of these namespaces, by word and by meaning; none where there are no such namespaces.
    Raises Forbidden for another user's own, or another RagError."""
    homes = _homes(core, caller, namespaces)
    matches: tuple[Match, ...] = ()
    if any(homes.values()):
        found = pipeline.search(core, caller, _query(homes, request, Mode.HYBRID))
        matches = tuple(map(_redaction(_denied(core)), found.matches))
    counted = [Measure("gateway_knowledge_chunks_retrieved_total", len(matches))]
    if matches:
        counted.append(Measure("gateway_knowledge_retrieval_score", matches[0].score))
    for namespace, home in homes.items():
        _note(core, caller, "knowledge.retrieve", namespace, home, matches, counted)
        # Counted once, however many namespaces were searched.
        counted = []
    return tuple(passage_of(match, _denied(core)) for match in matches)


async def query(
    core: Services, caller: Principal, namespace: str, request: Asked
) -> tuple[GeneratedText | None, tuple[Passage, ...]]:
    """An answer, None where confidence withholds it or there is nothing, and the passages that it is from.
    Raises AnswersOff, Forbidden for another user's own, or another RagError."""
    if not core.settings.rag_knowledge_query_enabled:
        raise AnswersOff
    event, denied = "knowledge.query", _denied(core)
    homes = await run_in_threadpool(_homes, core, caller, [namespace])
    draft: GeneratedText | None = None
    matches: tuple[Match, ...] = ()
    if any(homes.values()):
        # By meaning, in the order of the cosine: that is what confidence was measured on.
        # One good passage of a namespace suffices for an answer.
        search_query = _query(homes, request, Mode.SEMANTIC, rerank=False)
        try:
            answer = await pipeline.answer(core, caller, search_query, judged=1, redact=_redaction(denied))
        except RagError:
            await run_in_threadpool(usage_metrics.record_event, core.database, caller, event, namespace)
            raise
        draft, matches = answer.draft, answer.matches
    measures: list[Measure] = []
    if draft:
        tokens = {"prompt": draft.usage.prompt_tokens, "completion": draft.usage.completion_tokens}
        measures = [Measure("gateway_knowledge_query_tokens_total", n, kind) for kind, n in tokens.items()]
    await run_in_threadpool(_note, core, caller, event, namespace, homes[namespace], matches, measures)
    return draft, tuple(passage_of(match, denied) for match in matches)


def passage_of(match: Match, denied: frozenset[str]) -> Passage:
    """The match, with where it stands. A field that says what a denied metadata key says is left out too."""
    metadata = match.metadata
    said = metadata.get("source")
    known = match.origin or (said if isinstance(said, str) else None) or match.title
    page = match.place.get("page_number", metadata.get("page"))
    is_page = isinstance(page, str | int) and not isinstance(page, bool) and "page" not in denied
    cited = Source(
        source=None if "source" in denied else known,
        uri=None if denied & {"uri", "url"} else match.uri,
        page=str(page) if is_page else None,
        span=match.span,
        snippet=snippet(match.text),
        metadata=metadata,
    )
    return Passage(match.chunk_id, match.document_name, match.text, round(match.score, 6), metadata, (cited,))


def _redaction(denied: frozenset[str]) -> Callable[[Match], Match]:
    """What may leave of a match: without the metadata that stay inside, nor a title made of them."""

    def shown(match: Match) -> Match:
        title = first_words(match.text) if denied & TITLED else match.title
        return replace(match, title=title, metadata=_without(denied, match.metadata))

    return shown


@contextmanager
def _noted_if_it_fails(core: Services, caller: PrincipalSource, event: str, namespace: str) -> Iterator[None]:
    try:
        yield
    except RagError:
        usage_metrics.record_event(core.database, caller, event, namespace)
        raise


def _is_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


def _denied(core: Services) -> frozenset[str]:
    return core.settings.metadata_denylist("knowledge")


def _without(denied: frozenset[str], metadata: Row) -> Row:
    return {name: value for name, value in metadata.items() if name not in denied}


def _homes(core: Services, caller: Principal, namespaces: Sequence[str]) -> dict[str, str | None]:
    """The collections' ids, by namespace."""
    found = {name: by_name.find_or_none(core.database, caller, name) for name in namespaces}
    return {name: home["id"] if home else None for name, home in found.items()}


def _query(
    homes: Mapping[str, str | None], request: Asked, mode: Mode, *, rerank: bool | None = None
) -> Query:
    collections = tuple(home for home in homes.values() if home)
    filters = Filters(collection_ids=collections, metadata=request.metadata)
    return Query(request.text, request.top_k, filters, mode, rerank)


def _note(
    core: Services,
    caller: Principal,
    event: str,
    namespace: str,
    home: str | None,
    matches: Sequence[Match],
    counted: Sequence[Measure],
) -> None:
    own = [match for match in matches if match.collection_id == home]
    usage_metrics.record_event(
        core.database,
        caller,
        event,
        namespace,
        *counted,
        documents=len({match.document_id for match in own}),
        chunks=len(own),
        # A sum of shares may be a little more.
        top_score=min(own[0].score, 1.0) if own else None,
    )
