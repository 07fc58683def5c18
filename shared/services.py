"""Services of one process: settings, clients and models, created when first used and closed once."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import Protocol, TypeVar, runtime_checkable

from shared.access.anonymous_index_caller import warn_if_anonymous
from shared.access.api_key_authenticator import ApiKeyAuthenticator
from shared.access.concurrent_ingestion_limit import IngestionLimit
from shared.access.jwks import KeySet
from shared.access.jwt_verifier import Issuer, Verifier
from shared.access.org_administration import list_orgs
from shared.access.rate_limit import RefusalCache
from shared.access.registration_limit import RegistrationLimit
from shared.access.token_signer import Signer, signer_for, without_user
from shared.access.token_usage import Quota, is_exceeded, require
from shared.clients.http_client import deadline
from shared.clients.postgrest import DatabaseStatus
from shared.clients.read_replica import database_for
from shared.clients.snapshot_store import Store
from shared.clients.ssrf_guard import AddressPolicy
from shared.clients.supabase_auth import Auth
from shared.clients.supabase_storage import Storage
from shared.config import Settings
from shared.errors import (
    ApiKeysOff,
    ConfigurationError,
    EmbeddingFailed,
    NoModel,
    RagError,
    SnapshotsOff,
    StorageOff,
)
from shared.generation.confidence import (
    CALIBRATIONS,
    NO_CALIBRATION,
    SHIPPED_QUESTIONS,
    Calibration,
    calibration_name,
)
from shared.generation.generators import Extractive, Generator, ModelGenerator
from shared.models.chat_gateway import ChatGateway, chat_gateway_for
from shared.models.chunk_sizes import EmbedderLimits
from shared.models.embedding_roles import Role
from shared.models.embeddings import (
    Embedder,
    embedder_for,
    known_limits_of,
    other_embedder_for,
    requested_dimensions,
)
from shared.models.moderation import Moderator
from shared.models.query_embedding_cache import QueryEmbeddingCache
from shared.models.reranking import Reranker, reranker_for
from shared.models.scale_before_calibration import scale_of
from shared.models.transcription import Transcriber, transcriber_for
from shared.models.vectors import DIMENSIONS, MAX_DIMENSIONS
from shared.observability.request_record_store import RequestRecorder
from shared.types import Principal, PrincipalSource

log = logging.getLogger("rag")
Service = TypeVar("Service")
# Ingestions of one user at the same time in a process: a local model uses all processors for one.
LOCAL_INGESTIONS, REMOTE_INGESTIONS = 1, 4
CALIBRATION_SECONDS, CALIBRATION_TIMEOUT_SECONDS = 60, 2.0
# The time-out of the first request to a remote embedder, which may load its model.
EMBEDDER_SECONDS = 10.0


@runtime_checkable
class Closeable(Protocol):
    def close(self) -> None: ...


class Services:
    """Safe to use from many threads. Its caches separate the data of users."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.verifier = Verifier(
            secret.get_secret_value() if (secret := settings.supabase_jwt_secret) else None,
            KeySet(settings.jwks_url),
            settings.issuer,
            [
                Issuer(each.issuer, KeySet(each.jwks_url), each.audience, each.algorithms)
                for each in settings.rag_third_party_issuers
            ],
        )
        self.database = database_for(settings)
        self.refusals = RefusalCache()
        self.recorder = RequestRecorder()
        self.query_embeddings = QueryEmbeddingCache()
        self._is_prepared = False
        # By name, with the time at which it expires.
        self._calibrations: dict[str, tuple[float, Calibration | None]] = {}
        # Dates such as "last week" are relative to it.
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @cached_property
    def embedder(self) -> Embedder:
        return embedder_for(self.settings)

    @cached_property
    def other_embedder(self) -> Embedder | None:
        """The embedder of the other model, while the deployment changes its model."""
        return other_embedder_for(self.settings)

    @property
    def embedders(self) -> tuple[Embedder, ...]:
        """Those that embed a query: while the deployment changes its model, an org has embeddings of one of
        two models."""
        return (self.embedder, self.other_embedder) if self.other_embedder else (self.embedder,)

    def embedder_of_org(self, caller: PrincipalSource) -> Embedder:
        """The embedder of new documents in the caller's only org, or the token's. Raises a RagError."""
        if self.other_embedder is None:
            return self.embedder
        models = {org["embedding_model"] for org in list_orgs(self.database, caller)}
        return self.other_embedder if models == {self.other_embedder.model} else self.embedder

    @property
    def embedder_limits(self) -> EmbedderLimits:
        """Does not load a local model."""
        limits = known_limits_of(self.settings)
        return limits or EmbedderLimits(self.embedder.window, self.embedder.passage_tokens)

    @cached_property
    def ingestions(self) -> IngestionLimit:
        return IngestionLimit(REMOTE_INGESTIONS if self.embedder.remote else LOCAL_INGESTIONS)

    @property
    def generator(self) -> Generator:
        """Extracts sentences without a gateway, and for an org that has used up its tokens of today."""
        gateway = self.chat_gateway
        return ModelGenerator(gateway) if gateway else self.extractive

    @cached_property
    def extractive(self) -> Extractive:
        return Extractive(self.embedder, self.settings.rag_context_tokens)

    @property
    def chat_gateway(self) -> ChatGateway | None:
        """The model that writes answers; None without one, and for a request of an org that has used up its
        tokens of today. Raises ConfigurationError for an incomplete configuration."""
        return None if is_exceeded(Quota.MODEL) else self._configured_gateway

    @cached_property
    def _configured_gateway(self) -> ChatGateway | None:
        return chat_gateway_for(self.settings)

    @property
    def reranker(self) -> Reranker | None:
        """None without one, and for a request of an org that has used up its tokens of today."""
        return None if is_exceeded(Quota.MODEL) else self._configured_reranker

    @cached_property
    def _configured_reranker(self) -> Reranker | None:
        return reranker_for(self.settings)

    def calibration(self, caller: Principal, model: str, *, is_reranked: bool) -> Calibration:
        """The embedding model's calibration, or, for reranked matches, that of both models, if there is one:
        the deployment's own in rag.settings, read once a minute, or the built-in one. If it cannot be read,
        the former one serves another minute. Without one, that of other models on the scale of this model."""
        for name in self._calibration_names(model, is_reranked=is_reranked):
            if calibration := self._named_calibration(caller, name):
                return calibration
        embedder = next((each for each in self.embedders if each.model == model), None)
        scale = scale_of(embedder) if embedder else None
        return Calibration.on_scale(scale) if scale else NO_CALIBRATION

    def calibration_source(self, caller: Principal) -> str:
        """The origin of the calibration of the embedder's answers: `rag.settings` for the adopter's own,
        `shipped_questions` for the worker's, `built_in`, or `none`. Raises a RagError."""
        model = self.embedder.model
        for name in self._calibration_names(model, is_reranked=self.settings.rag_rerank_enabled):
            row = self.database.call(caller, "rag_get_calibration", {"model": name}, idempotent=True)
            if row:
                return SHIPPED_QUESTIONS if row.get("source") == SHIPPED_QUESTIONS else "rag.settings"
        return "built_in" if model in CALIBRATIONS else "none"

    def _calibration_names(self, model: str, *, is_reranked: bool) -> list[str]:
        reranked = [calibration_name(model, self.reranker.model)] if is_reranked and self.reranker else []
        return [*reranked, model]

    def _named_calibration(self, caller: Principal, name: str) -> Calibration | None:
        expires_at, calibration = self._calibrations.get(name, (0.0, None))
        if time.monotonic() < expires_at:
            return calibration
        try:
            with deadline(CALIBRATION_TIMEOUT_SECONDS):
                row = self.database.call(caller, "rag_get_calibration", {"model": name}, idempotent=True)
            calibration = Calibration.of(row) if row else CALIBRATIONS.get(name)
        except RagError as error:
            log.warning(
                "the calibration of confidence could not be read (%s): the former one is used",
                error.log_reason,
            )
            calibration = calibration or CALIBRATIONS.get(name)
        self._calibrations[name] = time.monotonic() + CALIBRATION_SECONDS, calibration
        return calibration

    def check_embedder(self) -> None:
        """Embed a word, as a server starts. Raises ConfigurationError for vectors that cannot be stored.

        It ignores an endpoint that does not answer, which may start later.
        """
        requested = requested_dimensions(
            self.settings.rag_embedding_model, self.settings.rag_embedding_dimensions
        )
        if not self.embedder.remote or requested:
            return
        try:
            with deadline(EMBEDDER_SECONDS):
                (vector,) = self.embedder.embed(["start"], Role.DOCUMENT)
        except EmbeddingFailed:
            return
        if len(vector) > MAX_DIMENSIONS:
            raise ConfigurationError(
                f"RAG_EMBEDDING_MODEL: {self.embedder.model} has {len(vector):,} dimensions, and at most "
                f"{MAX_DIMENSIONS:,} are stored; set a model with fewer, or RAG_EMBEDDING_DIMENSIONS for one "
                "that can reduce them (docs/models.md)"
            )
        if len(vector) > DIMENSIONS:
            log.warning(
                "RAG_EMBEDDING_MODEL: %s has %s dimensions, and the database refuses more than %s unless "
                "rag.set_dimensions was called for the model: see docs/models.md",
                self.embedder.model, f"{len(vector):,}", f"{DIMENSIONS:,}",
            )  # fmt: skip

    def prepare(self, *, logs_defaults: bool = True) -> None:
        """Create the services of functions that search and answer, so that a wrong or missing setting stops
        the start; log which settings are missing, and what applies instead. Raises ConfigurationError."""
        if self._is_prepared:
            return
        _ = self.embedder, self.other_embedder, self.generator, self.reranker, self.moderator
        self._is_prepared = True
        if not logs_defaults:
            return
        if self.settings.supabase_jwt_secret is None:
            log.info("SUPABASE_JWT_SECRET is not set: HS256 tokens are refused, ES256 and RS256 accepted")
        if self.settings.rag_functions_secret is None:
            log.warning(
                "RAG_FUNCTIONS_SECRET is not set: guarded SQL functions refuse all calls; see docs/install.md"
            )
        if self.settings.openai_api_key is None:
            log.warning("OPENAI_API_KEY is not set: embedding locally with %s", self.embedder.model)
        elif self.embedder.model != self.settings.rag_embedding_model:
            log.warning(
                "RAG_EMBEDDING_ROLES sets another form of documents: the database has the model as %s, and "
                "searches do not find documents of %s; see docs/configuration.md",
                self.embedder.model,
                self.settings.rag_embedding_model,
            )
        if self.embedder.model not in CALIBRATIONS:
            log.warning(
                "%s has no built-in calibration of confidence: answers are medium at most until the worker "
                "or make calibrate has written one to rag.settings; see docs/evaluation.md",
                self.embedder.model,
            )
        if self.settings.rag_llm_api_key is None:
            log.warning("RAG_LLM_API_KEY is not set: answers are extracted sentences")

    @cached_property
    def moderator(self) -> Moderator | None:
        """The moderation model, if any. Raises ConfigurationError for one without a key."""
        model, seconds = self.settings.rag_moderation_model, self.settings.rag_llm_timeout_seconds
        return Moderator.of_gateway(self.settings, "RAG_MODERATION_MODEL", model, seconds)

    @cached_property
    def api_key_authenticator(self) -> ApiKeyAuthenticator | None:
        """None without a key to sign with."""
        return ApiKeyAuthenticator(self.database, self.signer) if self.signer else None

    @cached_property
    def signer(self) -> Signer | None:
        """Raises ConfigurationError for an invalid key."""
        return signer_for(self.settings)

    def database_status(self) -> DatabaseStatus:
        """The result of a probe of PostgREST and Postgres."""
        return self.database.status(without_user(self.signer) if self.signer else None)

    @cached_property
    def transcriber(self) -> Transcriber | None:
        return transcriber_for(self.settings)

    @cached_property
    def registrations(self) -> RegistrationLimit:
        """Made by the first registration, since its storage starts a thread."""
        return RegistrationLimit()

    @cached_property
    def auth(self) -> Auth:
        return Auth(self.settings.supabase_url, self.settings.supabase_anon_key.get_secret_value())

    @cached_property
    def storage(self) -> Storage | None:
        """The storage of files that are too large for a request, if any."""
        settings, key = self.settings, self.settings.supabase_anon_key.get_secret_value()
        bucket = settings.rag_storage_bucket
        return Storage(settings.supabase_url, key, bucket) if bucket else None

    @cached_property
    def snapshots(self) -> Store | None:
        """The storage of snapshots, if any. Raises ConfigurationError for one that cannot be opened."""
        url = self.settings.rag_snapshot_url
        return Store(url) if url else None

    @cached_property
    def networks(self) -> AddressPolicy:
        """The networks to which URLs of callers may lead."""
        return AddressPolicy(self.settings.rag_allowed_private_networks)

    @cached_property
    def allows_anonymous(self) -> bool:
        """Whether the index API allows requests without a credential. The first use logs a warning if it
        does. Raises ConfigurationError."""
        return warn_if_anonymous(self.settings, self.signer)

    def require_signer(self) -> Signer:
        """Raises ApiKeysOff without a key to sign with."""
        return _required(self.signer, ApiKeysOff)

    def require_chat_gateway(self) -> ChatGateway:
        """Raises NoModel without one, ModelQuotaExceeded."""
        gateway = _required(self._configured_gateway, NoModel)
        require(Quota.MODEL)
        return gateway

    def require_storage(self) -> Storage:
        """Raises StorageOff without one."""
        return _required(self.storage, StorageOff)

    def require_snapshots(self) -> Store:
        """Raises SnapshotsOff without a storage for them."""
        return _required(self.snapshots, SnapshotsOff)

    def close(self) -> None:
        """Close the connections. The services cannot be used after this."""
        for service in list(vars(self).values()):
            if isinstance(service, Closeable):
                service.close()


def _required(service: Service | None, off: type[RagError]) -> Service:
    if service is None:
        raise off
    return service
