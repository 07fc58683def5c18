"""Errors of requests, each with its status and code.

app.py renders them in the envelope of the contract. The docstring of a class is its default message, which
callers read.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

log = logging.getLogger("rag")
# Headers of a call that did not get a lock in time, or whose user has too many running writes.
BUSY_HEADERS = MappingProxyType({"Retry-After": "3"})


class ConfigurationError(Exception):
    """A setting is missing or malformed; the message names its key, never its value."""


class RagError(Exception):
    """Something went wrong on our side. Please try again."""

    status = 500
    code = "internal_error"
    default_headers: Mapping[str, str] = MappingProxyType({})

    def __init_subclass__(
        cls, *, status: int | None = None, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """A subclass inherits what it does not state."""
        cls.status = status or cls.status
        cls.code = code or cls.code
        cls.default_headers = headers or cls.default_headers

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        log_reason: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """`log_reason` is for the log alone: an SQLSTATE, the type of an exception, or the beginning of an
        endpoint's own words without secrets.
        `details` are names and ids of the error's subject that the caller sent or may see, for envelopes that
        have a field for them."""
        super().__init__(message or (type(self).__doc__ or "").strip())
        self.code = code or self.code
        self.headers = {**self.default_headers, **(headers or {})}
        self.details = dict(details or {})
        self._log_reason = log_reason

    @property
    def log_reason(self) -> str:
        """The cause, as the log may name it."""
        return self._log_reason or type(self.__cause__ or self).__name__


class InvalidRequest(RagError, status=400, code="invalid_request"):
    """The request is not valid. Check its path, parameters and body."""

    def __init__(
        self,
        message: str | None = None,
        *,
        status: int = 400,
        faults: Sequence[Mapping[str, Any]] = (),
        **more: Any,
    ) -> None:
        """`faults` are the fields of a malformed request with the rules that they break, for envelopes that
        list them, without the values. `status` is the API's own for a malformed request."""
        super().__init__(message, **more)
        self.status = status
        self.faults = faults


class Unauthorized(RagError, status=401, code="unauthorized", headers={"WWW-Authenticate": "Bearer"}):
    """A valid user token is required: Authorization: Bearer <JWT>."""


class KeysUnavailable(RagError, code="keys_unavailable"):
    """Your token could not be checked just now. Please try again in a minute."""


class Forbidden(RagError, status=403, code="forbidden"):
    """You have no permission for this. Ask an admin of your org for it."""


class NoOrg(Forbidden, code="no_org"):
    """You belong to no org. Ask an admin to invite you to one."""


class NotFound(RagError, status=404, code="not_found"):
    """Nothing was found at this address. Check the path and the ids in it."""


class MethodNotAllowed(RagError, status=405, code="method_not_allowed"):
    """This address does not support the HTTP method. Use one of those in the header Allow."""


class PublicUrlUnset(RagError, status=503, code="public_url_unset"):
    """Links cannot be made for this host. Set RAG_PUBLIC_URL to the address that clients use."""


class Conflict(RagError, status=409, code="conflict"):
    """The request conflicts with the stored data. Please read them again and then retry."""


class UnsupportedFileType(InvalidRequest, code="unsupported_file_type"):
    """Files of this type are not supported. Please convert the file, for example to PDF."""

    # False for a type that another configuration can read.
    is_permanent = True


class UnreadableDocument(InvalidRequest, code="processing_failed"):
    """The file is broken or of another type than it seems. Check that it opens, and upload it again."""


class AddressRefused(InvalidRequest, code="url_not_allowed"):
    """The address belongs to a network that is not public. Use a public address."""


class TranscriptionFailed(RagError, code="transcription_failed"):
    """The recording could not be transcribed. Please try again."""


class FetchFailed(RagError, code="url_unreachable"):
    """The address could not be reached. Check it, or try again later."""


class AuthFailed(RagError, code="auth_failed"):
    """Supabase Auth could not answer. Please try again."""


class RegisteredWithoutKey(RagError, code="registered_without_key"):
    """The user is registered, but got no API key. Sign in, and create one with POST /api/keys."""


class StorageFailed(RagError, code="storage_failed"):
    """The file storage could not answer. Please try again."""


class StorageOff(NotFound, code="storage_off"):
    """This deployment has no storage for large files. Send files that fit in a request."""


class SnapshotFailed(RagError, code="snapshot_failed"):
    """The snapshot storage could not answer. Please try again."""


class SnapshotRefused(Conflict, code="snapshot_refused"):
    """The snapshot cannot be loaded into this deployment. Persist the index again."""


class SnapshotsOff(RagError, status=503, code="snapshots_off"):
    """This deployment has no snapshot storage. Please ask its operator for one."""


class BodyTooLarge(RagError, status=413, code="body_too_large"):
    """The request body is too large. Send less at once."""


# The status is nginx's for this. The response reaches no client.
class ClientLeft(RagError, status=499, code="client_left"):
    """The client closed the connection. The request was stopped, and nothing was stored."""


class RateLimited(RagError, status=429, code="rate_limited"):
    """Too many requests. Wait for the number of seconds in the header Retry-After."""


# Changes have the code too_many_writes.
class TooManyCalls(RateLimited, code="too_many_reads", headers=BUSY_HEADERS):
    """Too many of your requests are running at the same time. Please wait until one of them ends."""

    # Of the caller, as SQL reports it.
    org_id = ""


class ModelQuotaExceeded(RateLimited, code="model_quota_exceeded"):
    """Today's model tokens of your org are used up. Please try again after midnight UTC."""


class EmbeddingQuotaExceeded(RateLimited, code="embedding_quota_exceeded"):
    """Today's embedding tokens of your org are used up. Please try again after midnight UTC."""


class EmbeddingFailed(RagError, code="embedding_failed"):
    """The query could not be embedded. Please try again."""

    def __init__(self, message: str | None = None, *, text: int | None = None, **more: Any) -> None:
        """`text`: the index of the text that cannot be embedded, if it is one."""
        super().__init__(message, **more)
        self.text = text

    def of_passage(self, title: str, number: int) -> "EmbeddingFailed":
        """The same error of a document's passage, counted from 1, whose text is alone the cause."""
        place = f'Passage {number} of "{title[:100]}"'
        message = f"{place} could not be embedded. Check its text, or try again."
        if isinstance(self, TextTooLong):
            message = f"{place} is too long for the embedding model. Set a smaller chunk_size."
        return type(self)(message, log_reason=self.log_reason, details={**self.details, "passage": number})


class DocumentNotEmbedded(EmbeddingFailed, code="document_not_embedded"):
    """The document could not be embedded. Please try again."""


class EmbedderUnauthorized(EmbeddingFailed, code="embedder_unauthorized"):
    """The embedding model refused the deployment's key. The operator must check OPENAI_API_KEY."""


class EmbedderNotFound(EmbeddingFailed, code="embedder_not_found"):
    """The embedding endpoint has no such model. The operator must check RAG_EMBEDDING_MODEL and its URL."""


class EmbedderWithoutCredit(EmbeddingFailed, status=503, code="embedder_without_credit"):
    """The deployment has no credit left at its embedding model. The operator must add some."""


class EmbedderRefused(EmbeddingFailed, code="embedder_refused"):
    """The embedding model refused the request. The operator finds its reason in the log."""


class TextTooLong(EmbeddingFailed, status=400, code="text_too_long"):
    """The query is too long for the embedding model. Shorten it."""


# Never sent: the matches keep their order, and the response says so (reranking.py).
class RerankFailed(RagError, code="rerank_failed"):
    """The matches could not be reranked. Please try again."""


class DatabaseFailed(RagError, code="database_error"):
    """The database could not answer. Please try again."""


class DatabaseTimedOut(RagError, code="database_timeout"):
    """The database took too long. Please request less at once, or try again."""


class DatabaseBusy(RagError, status=503, code="database_busy", headers=BUSY_HEADERS):
    """The database is busy with other changes. Please try again in a few seconds."""


class IngestionBusy(RagError, status=503, code="ingestion_busy", headers=BUSY_HEADERS):
    """Your other ingestions are still running. Please try again in a few seconds."""


class ApiKeysOff(RagError, status=503, code="api_keys_off"):
    """This deployment has no key to sign tokens with. Please ask its operator for one."""


class GenerationFailed(RagError, code="generation_failed"):
    """The answer could not be generated. Please try again."""


class GenerationTimedOut(GenerationFailed, code="generation_timeout"):
    """Generating the answer took too long. Please try again."""


class GenerationBusy(RagError, status=503, code="generation_busy"):
    """The answering model is busy. Please try again in a moment."""


class GenerationRefused(InvalidRequest, code="generation_refused"):
    """The answering model rejected the request. Check its parameters and messages."""


class GenerationFiltered(GenerationRefused, code="generation_filtered"):
    """The answering model's content filter refused the request. Rephrase it."""


class PromptTooLong(GenerationRefused, code="prompt_too_long"):
    """The request is too long for the answering model. Shorten it, or lower RAG_CONTEXT_TOKENS."""


class ModelNotFound(GenerationRefused, code="model_not_found"):
    """The answering model is unknown to its endpoint. Check the model's name."""


class GenerationEmpty(GenerationFailed, code="generation_empty"):
    """The answering model returned no text. Please try again."""


class ModelUnauthorized(GenerationFailed, code="model_unauthorized"):
    """The answering model refused the deployment's key. The operator must check RAG_LLM_API_KEY."""


class ModelWithoutCredit(RagError, status=503, code="model_without_credit"):
    """The deployment has no credit left at its answering model. The operator must add some."""


class NoModel(RagError, status=503, code="no_model"):
    """No model is configured here. Send an index_name, or the model rag, to get extracted sentences."""


class ContentFlagged(InvalidRequest, code="content_flagged"):
    """The moderation model flagged the text of the request. Please rephrase it."""


class ModerationFailed(RagError, code="moderation_failed"):
    """The texts could not be moderated. Please try again."""


@contextmanager
def error_details(**details: Any) -> Iterator[None]:
    """Add the details that are not None to each RagError raised inside."""
    try:
        yield
    except RagError as error:
        error.details |= {name: value for name, value in details.items() if value is not None}
        raise


@contextmanager
def logged(message: str) -> Iterator[None]:
    """Log a RagError raised inside, and go on. The message has %s for the reason."""
    try:
        yield
    except RagError as error:
        log.warning(message, error.log_reason)


# Errors raised by the project's SQL functions, by SQLSTATE.
SQL_ERRORS: Mapping[str, Callable[..., RagError]] = {
    "PT400": InvalidRequest,
    "PT401": Unauthorized,
    "PT403": Forbidden,
    "PT404": NotFound,
    "PT409": Conflict,
    "PT413": BodyTooLarge,
    "PT425": DatabaseBusy,
    "PT429": RateLimited,
}


def error_from_sql(code: str | None, message: str | None, detail: object) -> RagError:
    """The error for one that PostgREST reported.

    `code` is an SQLSTATE or PostgREST's own. The project's SQL functions raise PTnnn, with a message for
    callers and an error code in `detail`. Other messages may quote data and are not passed on.
    """
    log_reason = f"SQL {code}"
    error_code = detail if isinstance(detail, str) and re.fullmatch(r"[a-z_]{1,40}", detail) else None
    # Requests contain no vectors: the number is that of the deployment's own embedder, or of a snapshot, for
    # which load_session.py raises its own error.
    if error_code == "wrong_dimensions":
        return EmbeddingFailed(log_reason=error_code)
    if error_code in (TooManyCalls.code, "too_many_writes"):
        return TooManyCalls(message, code=error_code, log_reason=log_reason)
    if error := SQL_ERRORS.get(code or ""):
        return error(message, code=error_code, log_reason=log_reason)
    match code or "":
        case "PGRST301" | "PGRST302" | "PGRST303":
            return Unauthorized("The token is not valid or has expired. Sign in again.")
        case "42501":
            return Forbidden(log_reason=log_reason)
        # A lock that was not free within the lock time-out (rag.begin_call).
        case "55P03":
            return DatabaseBusy(log_reason=log_reason)
        # A statement that took too long; a pool without a free connection in time.
        case "57014" | "PGRST003":
            return DatabaseTimedOut(log_reason=log_reason)
        # A row that this one belongs to was deleted in the meantime.
        case "23503":
            return Conflict(
                "The request refers to data that were deleted meanwhile. Please read them again.",
                log_reason=log_reason,
            )
        case state if state[:2] in ("22", "23"):
            return InvalidRequest(
                "A value is malformed or outside its allowed range. Check the fields of the request.",
                log_reason=log_reason,
            )
        case _:
            return DatabaseFailed(log_reason=log_reason)
