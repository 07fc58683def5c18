"""Look-up of identifiers: a query that is one identifier is searched by its words, without a vector."""

import re
from collections.abc import Sequence
from dataclasses import replace

from shared.clients.postgrest import Database
from shared.retrieval.chunk_search import match
from shared.text.identifiers import identifier_in, whole_word
from shared.tracing import step
from shared.types import Match, Mode, Principal, Query, QueryEmbedding, SearchResult


def may_be_identifier(query: Query) -> bool:
    """Whether a search by keywords alone may serve."""
    return query.mode is not Mode.SEMANTIC and identifier_in(query.text) is not None


def match_identifier(
    database: Database, caller: Principal, models: Sequence[str], query: Query
) -> SearchResult | None:
    """The matches that have the identifier that the query is. `models`: the embedding models. None when the
    query is no identifier, or no match has it. Raises a RagError."""
    name = identifier_in(query.text)
    if query.mode in (Mode.SEMANTIC, Mode.KEYWORD) or name is None:
        return None
    keywords = replace(query, mode=Mode.KEYWORD, graph=query.asks_the_graph)
    with step("match"):
        result = match(database, caller, tuple(map(QueryEmbedding, models)), keywords)
    return result if result.matches and has_identifier(result.matches[0], name) else None


def has_identifier(match: Match, identifier: str) -> bool:
    """Whether the match's text or title has the whole identifier, in any case."""
    return re.search(whole_word(identifier.casefold()), f"{match.title}\n{match.text}".casefold()) is not None


def with_exact_names(candidates: Sequence[Match], text: str) -> list[Match]:
    """The matches; if the text is an identifier, those that have it get the similarity 1.0."""
    if (name := identifier_in(text)) is None:
        return [*candidates]
    return [replace(match, similarity=1.0) if has_identifier(match, name) else match for match in candidates]
