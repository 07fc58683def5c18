"""Settings, read from the environment in this module alone.

A missing key selects the local default (embedder, extractive answers), which the start-up log and /health
report. A malformed value stops the start, and the error names its key.
"""

import base64
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from limits import parse_many
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Json,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from shared.errors import ConfigurationError


def _rate(value: str) -> str:
    # Checked here because slowapi ignores a rate that it cannot parse.
    try:
        (rate,) = parse_many(value)
    except ValueError:
        rate = None
    if rate is None or rate.amount < 1 or rate.get_expiry() not in (1, 60, 3600, 86400):
        raise ValueError("one rate per second, minute, hour or day, for example 60/minute") from None
    return value


def _address(value: str) -> str:
    # httpx refuses other characters, ports and IP addresses at each request.
    parts = re.fullmatch(
        r"https?://(?:\[([0-9a-f:.]+)\]|((?:\d+\.){3}\d+)|[\w.-]+)(?::(\d{1,5}))?(?:/[!$->@-~]*)?",
        value,
        re.ASCII | re.IGNORECASE,
    )
    try:
        if not parts or int(parts[3] or 0) > 65_535:
            raise ValueError
        if parts[1]:
            IPv6Address(parts[1])
        elif parts[2]:
            IPv4Address(parts[2])
    except ValueError:
        raise ValueError(
            "an ASCII URL with http:// or https:// and a host, without credentials, query and fragment"
        ) from None
    return value.rstrip("/")


def _store(value: str) -> str:
    scheme, values, rest = value.partition("://")
    if not values or not rest or "::" in value or not re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme):
        raise ValueError("a URL for fsspec: s3://bucket/folder, or file:///folder")
    if scheme in ("file", "local", "memory") and _loses_files():
        raise ValueError("this platform keeps no files: use a persistent store, s3://bucket/folder")
    return value


def _split(value: Any) -> Any:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _signing_key(value: SecretStr) -> SecretStr:
    try:
        key = json.loads(value.get_secret_value())
        kind = (key["kty"], key["alg"], bool(key["kid"]), bool(key["d"]))
    except (ValueError, TypeError, KeyError):
        kind = None
    if kind not in (("EC", "ES256", True, True), ("RSA", "RS256", True, True)):
        raise ValueError("a private JWK, ES256 or RS256, as `supabase gen signing-key` prints it") from None
    return value


def _shared_secret(value: SecretStr) -> SecretStr:
    # PostgREST's setting also accepts key sets. Here a public key would serve as the secret.
    text = value.get_secret_value().strip()
    try:
        is_key = isinstance(json.loads(text), dict | list)
    except ValueError:
        is_key = "-----BEGIN" in text or text.startswith(("ssh-", "ecdsa-"))
    if is_key:
        raise ValueError("the HS256 secret, not a key or key set; leave it out with asymmetric signing keys")
    return value


def _public_key(value: SecretStr) -> SecretStr:
    key = value.get_secret_value()
    try:
        payload = json.loads(base64.urlsafe_b64decode(f"{key.split('.')[1]}=="))
        is_secret = payload["role"] == "service_role"
    except (ValueError, LookupError, TypeError):
        is_secret = key.startswith("sb_secret_")
    if not re.fullmatch(r"[!-~]+", key):
        raise ValueError(
            "a key without spaces and line breaks is required, in SUPABASE_PUBLISHABLE_KEY, "
            "SUPABASE_PUBLISHABLE_KEYS or SUPABASE_ANON_KEY"
        )
    if is_secret:
        raise ValueError(
            "a secret or service_role key, which row security does not bind; set the project's publishable "
            "key (sb_publishable_…, in its settings under API keys)"
        )
    return value


def _functions_secret(value: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[!-~]{32,}", value.get_secret_value()):
        raise ValueError("at least 32 characters, all printable ASCII: openssl rand -hex 32")
    return value


OPENAI_URL = "https://api.openai.com/v1"
# The embedding model without a key (minilm.py), and the one for other languages than English, which
# RAG_EMBEDDING_MODEL selects (multilingual_e5.py).
LOCAL_MODEL, MULTILINGUAL_MODEL = "all-MiniLM-L6-v2", "multilingual-e5-small"

# Variables of the commands and the tests, which no function reads.
COMMAND_VARIABLES = {
    "RAG_DEMO_MODELS", "RAG_TOKEN", "RAG_LOCAL_POSTGREST", "RAG_LOCAL_POSTGRES_USER", "RAG_TEST_SERVER",
    "RAG_HOSTILE_SECONDS", "RAG_DATABASE_URL",
}  # fmt: skip

SettingsType = TypeVar("SettingsType", bound="AppSettings")
# Names that Supabase and the contracts give to settings, and that OpenAI's client gives to the endpoint of
# OPENAI_API_KEY, which counts only with that key.
OTHER_NAMES = {
    "SUPABASE_ANON_KEY": "SUPABASE_PUBLISHABLE_KEY",
    "RAG_EMBEDDING_URL": "OPENAI_BASE_URL",
    "RAG_LLM_API_KEY": "LOVABLE_API_KEY",
    "RAG_RERANK_ENABLED": "RERANK_ENABLED",
    "RAG_RERANK_PROVIDER": "RERANK_PROVIDER",
    "RAG_RERANK_MODEL": "RERANK_MODEL",
    "RAG_RERANK_API_KEY": "RERANK_API_KEY",
}
Address = Annotated[str, AfterValidator(_address)]
# Part of URLs, without encoding.
Bucket = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]
CommaSeparated = BeforeValidator(_split)
Network = IPv4Network | IPv6Network
Rate = Annotated[str, AfterValidator(_rate)]
Dimensions = Annotated[int, Field(ge=256, le=3072)]
Seconds = Annotated[float, Field(gt=0, le=600)]
Share = Annotated[float, Field(ge=0, le=1)]
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high"]
RerankProvider = Literal["cohere", "jina", "voyage", "mixedbread", "local"]


# A prefix of the text, or parameters of the request.
EmbeddingForm = str | dict[str, str | int | bool]


class EmbeddingForms(BaseModel):
    """The forms in which an embedding model receives a question and a document; both are empty for most."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: EmbeddingForm = ""
    document: EmbeddingForm = ""


class OtherEmbedding(BaseModel):
    """The other embedding model of a deployment that changes its model, with its endpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # all-MiniLM-L6-v2 and multilingual-e5-small are local.
    model: Annotated[str, Field(min_length=1)]
    url: Address = OPENAI_URL
    # To request, as RAG_EMBEDDING_DIMENSIONS.
    dimensions: Dimensions | None = None
    # None: OPENAI_API_KEY.
    api_key: SecretStr | None = None


class ThirdPartyIssuer(BaseModel):
    """An issuer of users' tokens besides Supabase Auth, for example Clerk, Auth0 or Firebase."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # The claim `iss`, exactly: Auth0's ends with a slash.
    issuer: Annotated[str, Field(pattern=r"^https?://\S{1,500}$")]
    jwks_url: Address
    # One of the claim `aud`; None: the claim is not checked.
    audience: Annotated[str, Field(min_length=1)] | None = None
    algorithms: Annotated[list[Literal["RS256", "ES256"]], Field(min_length=1)] = ["RS256"]


# A JSON value's other keys may be secrets: errors do not name them.
NESTED_FIELDS = {
    name for model in (EmbeddingForms, OtherEmbedding, ThirdPartyIssuer) for name in model.model_fields
}
# Errors of a JSON value as a whole. A comma-separated value is always a list.
WHOLE_VALUE_ERRORS = {"json_invalid", "model_type", "dict_type", "list_type"}


class AppSettings(BaseModel):
    """Settings that an app needs when it is created, before it starts."""

    # Built when first used: a tenth of the import of a function.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    # The contract allows every origin until a deployment tightens it.
    rag_cors_origins: Annotated[list[str], CommaSeparated] = ["*"]


class ServerSettings(AppSettings):
    """Settings of the server of several functions (functions/server.py)."""

    # The functions' slugs, or all; the port; and the number of processes, by default that of the processors.
    rag_functions: Annotated[list[str], CommaSeparated] = ["all"]
    port: Annotated[int, Field(ge=1, le=65535)] = 8080
    web_concurrency: Annotated[int, Field(ge=1, le=1000)] | None = None


class Settings(AppSettings):
    """Field names in capitals are the environment variables; .env.example lists them all."""

    # The Supabase project.
    supabase_url: Address
    supabase_anon_key: Annotated[SecretStr, AfterValidator(_public_key)]
    # Unset with asymmetric signing keys.
    supabase_jwt_secret: Annotated[SecretStr, AfterValidator(_shared_secret)] | None = None
    # The project's read replica, for searches (docs/read-replicas.md).
    supabase_read_url: Address | None = None
    supabase_jwt_issuer: str | None = None
    # rag.settings names the same issuers (docs/third-party-sign-in.md).
    rag_third_party_issuers: Json[list[ThirdPartyIssuer]] = []

    # Embeddings: any OpenAI-compatible endpoint with a key, a local model without.
    openai_api_key: SecretStr | None = None
    rag_embedding_url: Address = OPENAI_URL
    rag_embedding_model: str = "text-embedding-3-small"
    # The dimensions to request of a model that can reduce them. Unset: 1,536 of text-embedding-3-…, of others
    # what they have. rag.set_dimensions stores as many.
    rag_embedding_dimensions: Dimensions | None = None
    # In place of the known forms of a model, by its name (embedding_roles.py).
    rag_embedding_roles: Json[dict[str, EmbeddingForms]] = {}
    # While the deployment changes its embedding model (docs/embedding-models.md).
    rag_other_embedding: Json[OtherEmbedding] | None = None

    # Answers: any OpenAI-compatible gateway with a key, extracted sentences without.
    rag_llm_api_key: SecretStr | None = None
    rag_llm_url: Address = "https://ai.gateway.lovable.dev/v1"
    rag_llm_model: str = "google/gemini-3.5-flash-lite"
    # Time-out of an answer; that of an embedding is a third.
    rag_llm_timeout_seconds: Seconds = 30
    # Of a model that thinks; `medium` is the default of most of them, and costs several times as much.
    rag_llm_reasoning_effort: ReasoningEffort = "low"
    rag_context_tokens: Annotated[int, Field(ge=100, le=100_000)] = 3000

    # Reranking by a hosted model, none without a provider. `enabled` is the default of requests that do not
    # set it.
    rag_rerank_enabled: bool = False
    rag_rerank_provider: RerankProvider | None = None
    # Unset: the provider's default (hosted_rerankers.py). Of local: a folder (local_reader.py).
    rag_rerank_model: str | None = None
    rag_rerank_api_key: SecretStr | None = None
    rag_rerank_url: Address | None = None

    # The rag contract's thresholds of the mean similarity. Where one is set, they alone decide the level of
    # the rag API's answers; the default of the other one is 0.75 or 0.60.
    rag_confidence_high_threshold: Share | None = None
    rag_confidence_medium_threshold: Share | None = None

    # The gateway's moderation model. Without one, requests for moderation are refused.
    rag_moderation_model: str | None = None

    # Callers.
    rag_rate_limit_rag: Rate = "60/minute"
    rag_rate_limit_api: Rate = "600/minute"
    # Limit of the text that a user sends to APIs which embed it before they answer: about as much as the
    # local model embeds in a minute on two processors.
    rag_ingest_bytes_per_minute: Annotated[int, Field(ge=1024, le=2**30)] = 1024 * 1024
    # Whether POST /auth/register signs users up, without a credential.
    rag_registration_enabled: bool = False
    # Signs the tokens of API keys. Only functions that accept API keys need it.
    rag_signing_key: Annotated[SecretStr, AfterValidator(_signing_key)] | None = None
    rag_metrics_token: Annotated[SecretStr, Field(min_length=16)] | None = None
    # Proves to the database that a call comes from these functions; its SHA-256 is in rag.settings.
    rag_functions_secret: Annotated[SecretStr, AfterValidator(_functions_secret)] | None = None
    # The base URL of download links.
    rag_public_url: Address | None = None
    # The bearer token of a schedule that calls the worker over HTTP.
    rag_worker_token: Annotated[SecretStr, Field(min_length=16)] | None = None

    # Speech to text, for audio and video: any OpenAI-compatible endpoint with a key. Off without one.
    rag_transcription_key: SecretStr | None = None
    rag_transcription_url: Address = OPENAI_URL

    # The bucket of the project's Storage for files that are too large for a request. Unset: refused.
    rag_storage_bucket: Bucket | None = None

    # The folder for snapshots of indexes, in any store of fsspec. Unset: no snapshots.
    rag_snapshot_url: Annotated[str, AfterValidator(_store)] | None = None

    # Internal networks from which documents may be downloaded, besides the public internet.
    rag_allowed_private_networks: Annotated[list[Network], CommaSeparated] = []

    # S3-compatible services whose buckets may be sources, besides AWS.
    rag_source_endpoints: Annotated[list[Address], CommaSeparated] = []

    # The member of an org as whom requests to the index API without a credential act. Both or none.
    rag_index_anonymous_org: UUID | None = None
    rag_index_anonymous_user: UUID | None = None

    # Metadata keys that an API does not return, by the API's name.
    rag_metadata_denylists: Json[dict[Literal["knowledge", "memory"], frozenset[str]]] = {}

    # The collector of spans. OpenTelemetry's libraries read further variables from the environment.
    otel_exporter_otlp_endpoint: Address | None = None

    @field_validator("rag_confidence_medium_threshold")
    @classmethod
    def _not_above_high(cls, medium: float | None, info: ValidationInfo) -> float | None:
        high = info.data.get("rag_confidence_high_threshold")
        if medium is not None and high is not None and medium > high:
            raise ValueError("above RAG_CONFIDENCE_HIGH_THRESHOLD")
        return medium

    @model_validator(mode="after")
    def _each_issuer_once(self) -> "Settings":
        issuers = [self.issuer, *(each.issuer for each in self.rag_third_party_issuers)]
        if len({*issuers}) < len(issuers):
            raise ValueError("RAG_THIRD_PARTY_ISSUERS: an issuer occurs twice, or is that of Supabase Auth")
        return self

    @property
    def issuer(self) -> str:
        """The required `iss` of tokens."""
        return self.supabase_jwt_issuer or f"{self.supabase_url}/auth/v1"

    @property
    def jwks_url(self) -> str:
        """The URL of the public keys of ES256 and RS256 tokens."""
        return f"{self.supabase_url}/auth/v1/.well-known/jwks.json"


def on_lambda() -> bool:
    """Whether this process runs in AWS Lambda, where the import of the handler is the start."""
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


def usable_processors() -> int:
    """The processors that this process may use; on macOS, which does not say so, those of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _loses_files() -> bool:
    """Whether the disk ends with the process, as on Lambda and Cloud Run."""
    return on_lambda() or "K_SERVICE" in os.environ


# The least similarity of a misspelt name to the name meant (difflib).
NEAR = 0.75


def unknown_settings(environment: Mapping[str, str] = os.environ, /) -> list[str]:
    """The variables that look like settings and are none, each with the nearest name of a setting."""
    names = {name.upper() for kind in (Settings, ServerSettings) for name in kind.model_fields}
    unknown = {name for name in environment if name.startswith("RAG_")} - names - COMMAND_VARIABLES
    if not unknown:
        return []
    from difflib import get_close_matches

    nearest = {name: get_close_matches(name, names, 1, NEAR) for name in unknown}
    return [f"{name} (perhaps {near[0]})" if near else name for name, near in sorted(nearest.items())]


def read_server_settings() -> ServerSettings:
    """Raises ConfigurationError as read_settings does."""
    return _read(ServerSettings, os.environ, {})


def read_settings(environment: Mapping[str, str] = os.environ, /, **given: Any) -> Settings:
    """Settings from the environment, overridden by `given`. An empty variable counts as unset.

    Raises ConfigurationError, which names every invalid key and no value.
    """
    return _read(Settings, environment, given)


def _default_key(environment: Mapping[str, str]) -> str | None:
    """The entry `default` of SUPABASE_PUBLISHABLE_KEYS, a variable of Supabase's Edge Functions."""
    if not (keys := environment.get("SUPABASE_PUBLISHABLE_KEYS")):
        return None
    with suppress(ValueError):
        match json.loads(keys):
            case {"default": str(key)}:
                return key
    raise ConfigurationError('SUPABASE_PUBLISHABLE_KEYS: a JSON object with the entry "default" is required')


def _read(kind: type[SettingsType], environment: Mapping[str, str], given: Mapping[str, Any]) -> SettingsType:
    def variable(name: str) -> str | None:
        """The value of the variable, or of its other name."""
        other = OTHER_NAMES.get(name, "")
        if name == "SUPABASE_ANON_KEY":
            # The publishable key is valid longer: Supabase retires the anon key.
            return environment.get(other) or _default_key(environment) or environment.get(name)
        if other == "OPENAI_BASE_URL" and not environment.get("OPENAI_API_KEY"):
            return environment.get(name)
        return environment.get(name) or environment.get(other)

    values = {name: value for name in kind.model_fields if (value := variable(name.upper()))}
    try:
        return kind(**{**values, **given})
    except ValidationError as invalid:
        faults = [
            ": ".join(
                [
                    *(str(name).upper() for name in fault["loc"][:1]),
                    *(str(name) for name in fault["loc"][1:] if name in NESTED_FIELDS),
                    "JSON as in docs/configuration.md is required"
                    if fault["type"] in WHOLE_VALUE_ERRORS and len(fault["loc"]) == 1
                    else fault["msg"].removeprefix("Value error, "),
                ]
            )
            for fault in invalid.errors(include_input=False)
        ]
        raise ConfigurationError("; ".join(faults)) from None
