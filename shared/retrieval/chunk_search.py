"""Calls of the SQL functions that find and order chunks."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from itertools import chain, zip_longest
from typing import Any

from shared.clients.lenient_row_reading import object_of, readable
from shared.clients.postgrest import Database
from shared.errors import error_details
from shared.graph.graph_of_rows import graph_of
from shared.models.vectors import vector_literal
from shared.types import Match, Mode, Principal, Query, QueryEmbedding, ResultKind, SearchResult, SimilarTo

# Columns of a row that a match has under the same names.
_SAME_NAMES = (
    "chunk_id", "document_id", "org_id", "ordinal", "similarity", "score", "source_type", "title", "uri",
    "lang", "collection_id", "origin", "author", "state", "created_by",
)  # fmt: skip


def match(
    database: Database,
    caller: Principal,
    embeddings: Sequence[QueryEmbedding],
    query: Query,
    judged: Query | None = None,
) -> SearchResult:
    """The caller's top_k chunks, best first, and in `judged` those of a hybrid search for the text of that
    query, with the same filters and embeddings, in the same call. Raises a RagError, NotFound for an unknown
    collection name."""
    has_options = (query.half_life_days, query.neighbours, query.prefer) != (None, 0, ())
    is_plain = query.mode is Mode.SEMANTIC and not (has_options or query.asks_the_graph or judged)
    legs = "rag_judged_search" if judged else "rag_match" if is_plain else "rag_search"
    function = "rag_graph_search" if query.asks_the_graph else legs
    options = {} if is_plain else _options(query)
    if judged:
        options |= {"judged_text": judged.text, "judged_top_k": judged.top_k}
    return _search(database, caller, function, options, embeddings, query)


def _search(
    database: Database,
    caller: Principal,
    function: str,
    options: dict[str, Any],
    embeddings: Sequence[QueryEmbedding],
    query: Query,
) -> SearchResult:
    """The results of one call for each embedding, fused. While the deployment changes its model there are
    two, and an org may go from the second model to the first between the calls."""
    call = partial(_call, database, caller, function, options, query)
    with error_details(name=query.filters.collection):
        results = [*map(call, embeddings)]
        if len(results) > 1 and not any(result.matches for result in results):
            results[0] = call(embeddings[0])
    return fuse_by_rank(results, query.top_k) if len(results) > 1 else results[0]


def _call(
    database: Database,
    caller: Principal,
    function: str,
    options: dict[str, Any],
    query: Query,
    embedding: QueryEmbedding,
) -> SearchResult:
    arguments = {
        "query_vector": embedding.vector and vector_literal(embedding.vector),
        "top_k": query.top_k,
        "filters": {**_filters(query), "model": embedding.model},
    }
    result = database.call(caller, function, arguments | options, idempotent=True)
    if isinstance(result, list):
        return _page(result, embedding.model)
    page = _page(result["matches"], embedding.model)
    # Where the caller's search has no matches, nothing is judged.
    judged_rows = result.get("judged", ()) if page.matches else ()
    graph = {"graph": graph_of(result), "graph_ms": result["graph_ms"]} if query.asks_the_graph else {}
    return replace(page, judged=_page(judged_rows, embedding.model).matches, **graph)


def _options(query: Query) -> dict[str, Any]:
    return {
        "query_text": query.words or query.text,
        "mode": query.mode,
        "expand_context": query.neighbours,
        "half_life_days": query.half_life_days,
        "prefer": query.prefer,
    }


def similar(
    database: Database,
    caller: Principal,
    subject: SimilarTo,
    embeddings: Sequence[QueryEmbedding],
    query: Query,
    result: ResultKind = ResultKind.CHUNKS,
) -> SearchResult:
    """The top_k chunks or documents most similar to the subject, without the subject.

    A text is compared by its embeddings, chunks and documents by their own vectors. Uses the query's filters,
    mode, top_k, words and prefer. Raises a RagError, NotFound for a subject that the caller cannot see."""
    options: dict[str, Any] = {"result": result, "mode": query.mode, "prefer": query.prefer}
    if subject.kind == "text":
        options["query_text"] = query.words or subject.value
    else:
        options[f"{subject.kind}_id"] = subject.value
    return _search(database, caller, "rag_similar", options, embeddings, query)


def fuse_by_rank(results: Sequence[SearchResult], top_k: int) -> SearchResult:
    """The best top_k matches of searches with different embedding models, whose scores cannot be compared:
    the first of each, then the second of each, and so on. A score is at most that of the match before it. The
    graph is that of the first search with matches."""
    matches = _by_rank([result.matches for result in results])
    first = next((result for result in results if result.matches), results[0])
    return replace(
        first,
        matches=matches[:top_k],
        exact=all(result.exact for result in results) if first.exact is not None else None,
        considered=sum(result.considered for result in results),
        judged=_by_rank([result.judged for result in results]),
        vector_ms=sum(result.vector_ms for result in results),
        lexical_ms=sum(result.lexical_ms for result in results),
        graph_ms=sum(result.graph_ms for result in results),
    )


def _by_rank(lists: Sequence[Sequence[Match]]) -> tuple[Match, ...]:
    matches: dict[str, Match] = {}
    score = 1.0
    for match in filter(None, chain(*zip_longest(*lists))):
        if match.chunk_id not in matches:
            score = min(score, match.score)
            matches[match.chunk_id] = replace(match, score=score)
    return tuple(matches.values())


def widen(
    database: Database, caller: Principal, matches: Sequence[Match], neighbours: int
) -> tuple[Match, ...]:
    """The matches, each text with its neighbours' before and after it. Raises a RagError."""
    if not matches:
        return ()
    arguments = {"chunk_ids": [match.chunk_id for match in matches], "neighbours": neighbours}
    rows = {row["chunk_id"]: row for row in database.call(caller, "rag_widen", arguments, idempotent=True)}
    # Chunks may have been deleted since the search.
    return tuple(_widened(match, row) for match in matches if (row := rows.get(match.chunk_id)))


def _widened(match: Match, row: dict[str, Any]) -> Match:
    """The match with a longer text. A text that begins earlier may begin in another section and table."""
    location = match.location
    if row["span_start"] < match.span[0]:
        location = {name: value for name, value in location.items() if name not in ("section", "header")}
    return replace(match, text=row["content"], span=(row["span_start"], row["span_end"]), location=location)


def _filters(query: Query) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(query.filters).items()
        if value
    }


def _page(rows: Sequence[dict[str, Any]], model: str) -> SearchResult:
    if not rows:
        # Without rows, SQL compared every candidate.
        return SearchResult((), exact=True, considered=0)
    first = rows[0]
    return SearchResult(
        matches=readable(rows, partial(_match, model=model)),
        exact=first["exact"],
        considered=first["considered"],
        vector_ms=first["vector_ms"] or 0,
        lexical_ms=first["lexical_ms"] or 0,
    )


def _match(row: dict[str, Any], model: str) -> Match:
    return Match(
        **{name: row[name] for name in _SAME_NAMES},
        text=row["content"],
        span=(row["span_start"], row["span_end"]),
        occurred_at=datetime.fromisoformat(row["occurred_at"]) if row["occurred_at"] else None,
        metadata=object_of(row["metadata"]),
        labels=tuple(row["labels"]),
        document_name=row["external_id"] or row["document_id"],
        location=object_of(row["location"]),
        graph_sourced=row.get("graph_sourced", False),
        filename=row.get("filename"),
        owner_id=row.get("owner_id"),
        word_score=row.get("word_score"),
        model=model,
        collection_name=row.get("collection_name"),
    )
