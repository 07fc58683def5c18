"""The core in six steps, read from top to bottom:

    authenticate -> limit -> embed -> match -> judge -> generate

The first two steps are dependencies of every handler (api/dependencies.py). `search` is embed and match;
`answer` goes on to judge and, where confidence allows, to generate.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from shared.access.api_key_exchange import ApiKeyExchange
from shared.access.concurrency_limit import IngestionLimit
from shared.access.jwks import KeySet
from shared.access.jwt import Verifier
from shared.access.token_signer import Signer, anonymous_principal, signer_for, without_user
from shared.clients.object_store import Store, store_for
from shared.clients.postgrest import Database, DatabaseStatus
from shared.clients.ssrf_guard import AddressPolicy
from shared.clients.supabase_storage import Storage, storage_for
from shared.config import Settings
from shared.errors import (
    ApiKeysOff,
    ConfigurationError,
    InvalidRequest,
    NoModel,
    SnapshotsOff,
    StorageOff,
)
from shared.generation.confidence import CONFIDENCE_TOP_N, cite, judge, thresholds_for, with_snippets
from shared.generation.generators import DEFAULT_SAMPLING, Generator, generator_for
from shared.graph.verbalize import graph_context
from shared.models.chat_gateway import ChatGateway, chat_gateway_for
from shared.models.embeddings import Embedder, embedder_for
from shared.models.moderation import Moderator, moderator_for
from shared.models.query_embedding_cache import embed_query
from shared.models.reranking import Reranked, Reranker, rerank, reranker_for
from shared.models.transcription import Transcriber, transcriber_for
from shared.observability.tracing import milliseconds_since, step
from shared.retrieval.match import holds, match, similar, widen
from shared.text.identifiers import is_identifier
from shared.types import (
    Answer,
    Confidence,
    Connected,
    Graph,
    Judgement,
    Match,
    MatchPage,
    Mode,
    Principal,
    Query,
    Result,
    Sampling,
    SearchResult,
    SimilarTo,
    Thresholds,
)

if TYPE_CHECKING:
    from shared.graph.llm_extractor import GraphModel
    from shared.retrieval.query.llm_rewriter import Rewriter

log = logging.getLogger("rag")
# How many matches a reranker is given at least.
RERANK_CANDIDATES = 50
# Ingestions of one user at the same time in a process: a local model uses all processors for one.
LOCAL_INGESTIONS, REMOTE_INGESTIONS = 1, 4


@runtime_checkable
class Closeable(Protocol):
    """What holds connections."""

    def close(self) -> None: ...


class Services:
    """What one process needs to answer: made once, used by many threads, holding nothing of any caller."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.verifier = Verifier(
            secret.get_secret_value() if (secret := settings.supabase_jwt_secret) else None,
            KeySet(settings.jwks_url),
            settings.issuer,
            settings.supabase_jwt_audience,
            settings.supabase_jwt_leeway_seconds,
        )
        self.database = Database(
            settings.supabase_url,
            settings.supabase_anon_key.get_secret_value(),
            settings.rag_database_timeout_seconds,
            secret.get_secret_value() if (secret := settings.rag_functions_secret) else None,
        )
        # What "last week" is counted from.
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @cached_property
    def embedder(self) -> Embedder:
        return embedder_for(self.settings)

    @cached_property
    def ingestions(self) -> IngestionLimit:
        return IngestionLimit(REMOTE_INGESTIONS if self.embedder.remote else LOCAL_INGESTIONS)

    @cached_property
    def generator(self) -> Generator:
        return generator_for(self.settings, self.embedder)

    @cached_property
    def chat_gateway(self) -> ChatGateway | None:
        """The same model for conversations, where there is one."""
        return chat_gateway_for(self.settings)

    @cached_property
    def reranker(self) -> Reranker | None:
        return reranker_for(self.settings)

    @cached_property
    def rewriter(self) -> "Rewriter | None":
        """Rewrites questions before they are searched for, where it is configured. Raises ConfigurationError
        for a model without a key."""
        from shared.retrieval.query.llm_rewriter import rewriter_for

        return rewriter_for(self.settings)

    @cached_property
    def graph_model(self) -> "GraphModel | None":
        """Reads documents for names, where it is configured. Raises ConfigurationError for a model without a
        key."""
        if self.settings.rag_graph_model is None:
            return None
        from shared.graph.llm_extractor import graph_model_for

        return graph_model_for(self.settings)

    @cached_property
    def thresholds(self) -> Thresholds:
        """Raises ConfigurationError when medium would begin above high."""
        thresholds = thresholds_for(
            self.embedder.model,
            self.settings.rag_confidence_high_threshold,
            self.settings.rag_confidence_medium_threshold,
        )
        if thresholds.medium > thresholds.high:
            raise ConfigurationError(
                f"RAG_CONFIDENCE_MEDIUM_THRESHOLD: with {self.embedder.model} medium would begin at "
                f"{thresholds.medium} and high at {thresholds.high}; set both"
            )
        return thresholds

    def prepare(self) -> None:
        """Make now what functions that search and answer need: a wrong or missing setting stops the start,
        not the first request. Raises ConfigurationError."""
        if "thresholds" in vars(self):
            return
        _ = self.thresholds, self.generator, self.reranker, self.rewriter, self.moderator
        if self.settings.supabase_jwt_secret is None:
            log.info("SUPABASE_JWT_SECRET is not set: tokens must be ES256 or RS256, HS256 is refused")
        if self.settings.rag_functions_secret is None:
            log.warning("RAG_FUNCTIONS_SECRET is not set: SQL functions that require it refuse these calls")
        if self.settings.openai_api_key is None:
            log.warning("OPENAI_API_KEY is not set: embedding locally with %s", self.embedder.model)
        if self.settings.lovable_api_key is None:
            log.warning("LOVABLE_API_KEY is not set: answers are extracted sentences")

    @cached_property
    def moderator(self) -> Moderator | None:
        """Judges what may be asked and shown, where it is configured."""
        return moderator_for(self.settings)

    @cached_property
    def key_ring(self) -> ApiKeyExchange | None:
        """Exchanges API keys; None without a key to sign with. The rag pair takes none and never asks."""
        return ApiKeyExchange(self.database, self.signer) if self.signer else None

    @cached_property
    def signer(self) -> Signer | None:
        """Signs our own tokens. Raises ConfigurationError for a key that cannot."""
        return signer_for(self.settings)

    def reach(self) -> DatabaseStatus:
        """How far towards the database the project's own key leads."""
        return self.database.reach(without_user(self.signer) if self.signer else None)

    def is_reachable(self) -> bool:
        """Whether the project's PostgREST answers, knows the anon key and has our schema and its database."""
        return self.reach() is DatabaseStatus.SERVES

    @cached_property
    def transcriber(self) -> Transcriber | None:
        """Writes down what is said, where it is configured."""
        return transcriber_for(self.settings)

    @cached_property
    def storage(self) -> Storage | None:
        """Where files go that are too large for a request, where it is configured."""
        return storage_for(self.settings)

    @cached_property
    def snapshots(self) -> Store | None:
        """Where indexes are persisted, where it is configured. Raises ConfigurationError for a store that is
        not to be had."""
        return store_for(self.settings)

    @cached_property
    def networks(self) -> AddressPolicy:
        """Where addresses that callers name may lead."""
        return AddressPolicy(self.settings.fetch_networks)

    def warn_if_anonymous(self) -> None:
        """Once, and loudly, where anybody may be somebody. Raises ConfigurationError."""
        if "_warned_of_anonymous" in vars(self) or self.anonymous_principal() is None:
            return
        self._warned_of_anonymous = True
        log.warning(
            "RAG_INDEX_ANONYMOUS_ORG is set: ANYBODY who reaches this may read, write, persist and delete "
            "the indexes of org %s, and spend on its model, WITHOUT A CREDENTIAL. For private networks.",
            self.settings.rag_index_anonymous_org,
        )

    def anonymous_principal(self) -> Principal | None:
        """Whom requests to the index API without a credential act as; None where there is nobody. Raises
        ConfigurationError for half a setting, or without a key to sign with."""
        org, user = self.settings.rag_index_anonymous_org, self.settings.rag_index_anonymous_user
        if org is user is None:
            return None
        if org is None or user is None:
            raise ConfigurationError(
                "RAG_INDEX_ANONYMOUS_ORG: set it together with RAG_INDEX_ANONYMOUS_USER, a member of that org"
            )
        if self.signer is None:
            raise ConfigurationError("RAG_INDEX_ANONYMOUS_ORG: needs RAG_SIGNING_KEY, or SUPABASE_JWT_SECRET")
        return anonymous_principal(self.signer, org, user)

    def require_signer(self) -> Signer:
        """Raises ApiKeysOff where there is nothing to sign with."""
        if self.signer is None:
            raise ApiKeysOff
        return self.signer

    def require_chat_gateway(self) -> ChatGateway:
        """Raises NoModel where there is none."""
        if self.chat_gateway is None:
            raise NoModel
        return self.chat_gateway

    def require_storage(self) -> Storage:
        """Raises StorageOff where there is no bucket."""
        if self.storage is None:
            raise StorageOff
        return self.storage

    def require_snapshots(self) -> Store:
        """Raises SnapshotsOff where there is no place for them."""
        if self.snapshots is None:
            raise SnapshotsOff
        return self.snapshots

    def search(self, caller: Principal, query: Query) -> SearchResult:
        """The caller's best matches. Raises a RagError."""
        started = time.perf_counter()
        page = self._named(caller, query)
        if page is not None:
            ordered = Reranked(page.matches, None, failed=False)
        elif self._is_reranked(query):
            page, ordered = self._reranked(caller, query)
        else:
            page = self._matched(caller, query)
            ordered = Reranked(page.matches, None, failed=False)
        return _search_result(page, ordered, started)

    def similar(self, caller: Principal, subject: SimilarTo, query: Query, result: Result) -> SearchResult:
        """What is most like the subject, whose text the query has: chunks, or documents by their best chunk.
        Raises a RagError, NotFound for a subject that the caller does not see."""
        started = time.perf_counter()
        is_reranked = self._is_reranked(query)
        wider = replace(query, top_k=max(query.top_k, RERANK_CANDIDATES)) if is_reranked else query
        vector = None
        if subject.kind == "text" and query.mode is not Mode.KEYWORD:
            vector = self._embedded(caller, query.text)
        with step("match"):
            page = similar(self.database, caller, subject, vector, self.embedder.model, wider, result)
        ordered = Reranked(page.matches, None, failed=False)
        if is_reranked:
            ordered = self._in_order(query, page)
        return _search_result(page, replace(ordered, matches=ordered.matches[: query.top_k]), started)

    def _is_reranked(self, query: Query) -> bool:
        """Raises InvalidRequest for a query that wants its matches in two orders at once."""
        if query.half_life_days is None:
            return self.settings.rerank_enabled if query.rerank is None else query.rerank
        if query.rerank:
            raise InvalidRequest("A reranker knows no dates: leave out rerank or the half-life.")
        return False

    def _reranked(self, caller: Principal, query: Query) -> tuple[MatchPage, Reranked]:
        # A reranker has more to choose from than the caller wants to see, and reads passages, not what is
        # around them.
        page = self._matched(caller, replace(query, top_k=max(query.top_k, RERANK_CANDIDATES), neighbours=0))
        ordered = self._in_order(query, page)
        matches = ordered.matches[: query.top_k]
        if query.neighbours:
            with step("match"):
                matches = widen(self.database, caller, matches, query.neighbours)
        return page, replace(ordered, matches=matches)

    def _in_order(self, query: Query, page: MatchPage) -> Reranked:
        if self.reranker is None:
            return Reranked(page.matches, None, failed=True)
        with step("rerank"):
            return rerank(self.reranker, query.text, page.matches)

    def _named(self, caller: Principal, query: Query) -> MatchPage | None:
        """What holds the identifier that the query is, without an embedding; None when nothing does."""
        # (By word alone it is the same search, and nothing is embedded.)
        if query.mode in (Mode.SEMANTIC, Mode.KEYWORD) or not is_identifier(query.text):
            return None
        by_word = replace(query, mode=Mode.KEYWORD, graph=query.asks_the_graph)
        with step("match"):
            page = match(self.database, caller, None, self.embedder.model, by_word)
        return page if page.matches and holds(page.matches[0], query.text) else None

    def _matched(self, caller: Principal, query: Query) -> MatchPage:
        vector = None
        if query.mode is not Mode.KEYWORD or (query.compares and not is_identifier(query.text)):
            vector = self._embedded(caller, query.text)
        with step("match"):
            return match(self.database, caller, vector, self.embedder.model, query)

    def _embedded(self, caller: Principal, text: str) -> list[float]:
        with step("embed"):
            seconds = self.settings.rag_query_cache_seconds
            return embed_query(self.database, self.embedder, caller, text, seconds)

    def graph_query(self, caller: Principal, query: Query) -> Connected:
        """What the graph says to the question, whatever the query's mode. Raises a RagError."""
        found = self.search(caller, replace(query, mode=Mode.GRAPH))
        graph = found.graph or Graph()
        return Connected(graph_context(graph), graph, found.matches, found.milliseconds)

    def answer(
        self,
        caller: Principal,
        query: Query,
        sampling: Sampling = DEFAULT_SAMPLING,
        judged: int = CONFIDENCE_TOP_N,
        shown: Callable[[Match], Match] = lambda match: match,
    ) -> Answer:
        """An answer with citations, or, below medium confidence, the citations alone. Confidence is judged on
        the five nearest, or on so many, whatever the caller wants to see; `shown` is what the model and they
        may see of each. Raises a RagError."""
        started = time.perf_counter()
        wider = replace(query, top_k=max(query.top_k, judged))
        found = tuple(map(shown, self.search(caller, wider).matches))
        with step("judge"):
            judgement = self.judged(found, query.text, judged)
            matches = found[: query.top_k]
            citations = cite(matches)
        draft = None
        if judgement.confidence is not Confidence.LOW:
            with step("generate"):
                draft = self.generator.write(query, matches, citations, sampling)
            citations = with_snippets(citations, draft.snippets)
        return Answer(matches, judgement, citations, draft, datetime.now(UTC), milliseconds_since(started))

    def judged(self, matches: Sequence[Match], text: str, judged: int = CONFIDENCE_TOP_N) -> Judgement:
        """How sure the matches for that text make."""
        return judge(_compared(matches, text), self.thresholds, judged)

    def close(self) -> None:
        """Close the connections; the pipeline is of no use after this."""
        self.database.close()
        # Those that were made, and hold connections: the local ones hold none.
        names = (
            "embedder",
            "generator",
            "reranker",
            "rewriter",
            "graph_model",
            "moderator",
            "transcriber",
            "storage",
        )
        for part in (vars(self).get(name) for name in names):
            if isinstance(part, Closeable):
                part.close()


def _search_result(page: MatchPage, ordered: Reranked, started: float) -> SearchResult:
    return SearchResult(
        ordered.matches,
        page.exact,
        page.considered,
        milliseconds_since(started),
        ordered.model,
        ordered.failed,
        vector_ms=page.vector_ms,
        lexical_ms=page.lexical_ms,
        graph_ms=page.graph_ms,
        graph=page.graph,
    )


def _compared(found: Sequence[Match], text: str) -> list[Match]:
    """The matches, those that nobody compared as near as can be where they have the very name that is asked
    for."""
    return [
        replace(match, similarity=1.0)
        if match.similarity is None and is_identifier(text) and holds(match, text)
        else match
        for match in found
    ]
