"""Everything that can go wrong, as nouns. Raised anywhere, rendered once (app.py); a contract only chooses
the envelope. A class's docstring is its default message and is read by callers: it helps and leaks nothing.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

# Retry-After of a call that did not get a lock in time, or whose user has too many writes running.
BUSY_SECONDS = "3"


class ConfigurationError(Exception):
    """A setting is missing or malformed; the message names its key, never its value."""


class RagError(Exception):
    """Something went wrong on our side. Please try again."""

    status = 500
    code = "internal_error"

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        because: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """`because` is for the log alone: an SQLSTATE or an exception's kind, never a message. `details` are
        what the error is about, for envelopes with room: names and ids that the caller sent or may see."""
        super().__init__(message or (type(self).__doc__ or "").strip())
        self.code = code or self.code
        self.headers = dict(headers or {})
        self.details = dict(details or {})
        self._because = because

    @property
    def because(self) -> str:
        """What the log may say about the cause."""
        return self._because or type(self.__cause__ or self).__name__


class InvalidRequest(RagError):
    """The request is not valid."""

    status = 400
    code = "invalid_request"

    def __init__(
        self,
        message: str | None = None,
        *,
        status: int = 400,
        faults: Sequence[Mapping[str, Any]] = (),
        **more: Any,
    ) -> None:
        """Of a request that does not have the form, `faults` say where and what, for envelopes that list
        them, never what was sent, and `status` is the API's own for it."""
        super().__init__(message, **more)
        self.status = status
        self.faults = faults


class Unauthorized(RagError):
    """A valid user token is required: Authorization: Bearer <JWT>."""

    status = 401
    code = "unauthorized"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, headers={"WWW-Authenticate": "Bearer"})


class KeysUnavailable(RagError):
    """Your sign-in could not be checked just now. Please try again in a minute."""

    code = "keys_unavailable"


class Forbidden(RagError):
    """This user may not do that."""

    status = 403
    code = "forbidden"


class NotFound(RagError):
    """There is nothing here."""

    status = 404
    code = "not_found"


class MethodNotAllowed(RagError):
    """This address does not take that method."""

    status = 405
    code = "method_not_allowed"


class PublicUrlUnset(RagError):
    """Links cannot be made for this host. Set RAG_PUBLIC_URL to the address that clients use."""

    status = 503
    code = "public_url_unset"


class Conflict(RagError):
    """What is already here does not allow that."""

    status = 409
    code = "conflict"


class UnsupportedFileType(InvalidRequest):
    """This kind of file is not read here."""

    code = "unsupported_file_type"


class UnreadableDocument(InvalidRequest):
    """The document could not be read."""

    code = "processing_failed"


class AddressRefused(InvalidRequest):
    """This address leads into a network that is not public: it is not fetched."""

    code = "url_not_allowed"


class TranscriptionFailed(RagError):
    """What is said could not be written down."""

    code = "transcription_failed"


class FetchFailed(RagError):
    """The address could not be reached."""

    code = "url_unreachable"


class StorageFailed(RagError):
    """The store of large files could not answer. Please try again."""

    code = "storage_failed"


class StorageOff(NotFound):
    """Files that are too large for a request are not taken here: there is no bucket for them."""

    code = "storage_off"


class SnapshotFailed(RagError):
    """The store of snapshots could not answer. Please try again."""

    code = "snapshot_failed"


class SnapshotRefused(Conflict):
    """The snapshot cannot be loaded here."""

    code = "snapshot_refused"


class SnapshotsOff(RagError):
    """Indexes are neither persisted nor loaded here: there is no place for snapshots."""

    status = 503
    code = "snapshots_off"


class BodyTooLarge(RagError):
    """The request body is too large."""

    status = 413
    code = "body_too_large"


class ClientLeft(RagError):
    """The client has left: the work is stopped, and nothing is stored."""

    # As nginx logs it. The response reaches no client.
    status = 499
    code = "client_left"


class RateLimited(RagError):
    """Too many requests. Please wait."""

    status = 429
    code = "rate_limited"


class EmbeddingFailed(RagError):
    """The query could not be embedded. Please try again."""

    code = "embedding_failed"


class RerankFailed(RagError):
    """The matches could not be reranked. Please try again."""

    # Never sent: the order from before stays, and the response says so (reranking.py).
    code = "rerank_failed"


class DatabaseFailed(RagError):
    """The database could not answer. Please try again."""

    code = "database_error"


class DatabaseTimedOut(RagError):
    """The database took too long. Please ask for less at once, or try again."""

    code = "database_timeout"


class DatabaseBusy(RagError):
    """The database is busy with other changes. Please try again in a few seconds."""

    status = 503
    code = "database_busy"

    def __init__(self, message: str | None = None, **more: Any) -> None:
        super().__init__(message, headers={"Retry-After": BUSY_SECONDS}, **more)


class IngestionBusy(RagError):
    """Other texts of yours are being stored. Please try again in a few seconds."""

    status = 503
    code = "ingestion_busy"

    def __init__(self, message: str | None = None, **more: Any) -> None:
        super().__init__(message, headers={"Retry-After": BUSY_SECONDS}, **more)


class ApiKeysOff(RagError):
    """This is switched off here: there is no key to sign tokens with."""

    status = 503
    code = "api_keys_off"


class GenerationFailed(RagError):
    """The answer could not be generated. Please try again."""

    code = "generation_failed"


class GenerationTimedOut(GenerationFailed):
    """Generating the answer took too long. Please try again."""

    code = "generation_timeout"


class GenerationBusy(RagError):
    """The answering model is busy. Please try again in a moment."""

    status = 503
    code = "generation_busy"


class GenerationRefused(InvalidRequest):
    """The answering model does not take this request: a parameter or a message is not what it takes."""

    code = "generation_refused"


class ReadingFailed(RagError):
    """The model that reads documents for names could not."""

    code = "reading_failed"


class ReadingBusy(RagError):
    """The model that reads documents for names is busy."""

    status = 503
    code = "reading_busy"


class NoModel(RagError):
    """No model is configured here. With an index_name or the model rag, answers are extracted sentences."""

    status = 503
    code = "no_model"


class ContentFlagged(InvalidRequest):
    """The moderation model does not let this be asked here."""

    code = "content_flagged"


class ModerationFailed(RagError):
    """What is asked, or was found, could not be moderated. Please try again."""

    code = "moderation_failed"


class AnswersOff(RagError):
    """Answers are switched off here: retrieve, and let a model of your own answer."""

    status = 501
    code = "answers_off"


@contextmanager
def error_details(**details: Any) -> Iterator[None]:
    """Whatever is raised in here says what it was about, as far as that is known."""
    try:
        yield
    except RagError as error:
        error.details |= {name: value for name, value in details.items() if value is not None}
        raise


# The errors that our SQL functions raise, by SQLSTATE.
RAISED: Mapping[str, Callable[..., RagError]] = {
    "PT400": InvalidRequest,
    "PT403": Forbidden,
    "PT404": NotFound,
    "PT409": Conflict,
    "PT413": BodyTooLarge,
    "PT429": RateLimited,
    "PT503": DatabaseBusy,
}


def error_from_sql(code: str | None, message: str | None, detail: object) -> RagError:
    """The noun for an error that PostgREST reported.

    `code` is a SQLSTATE or PostgREST's own. PTnnn are raised by our functions, with a message that callers
    may read and a machine code in `detail`; every other message stays inside, since it may quote data.
    """
    because = f"SQL {code}"
    machine = detail if isinstance(detail, str) and re.fullmatch(r"[a-z_]{1,40}", detail) else None
    if raised := RAISED.get(code or ""):
        return raised(message, code=machine, because=because)
    match code or "":
        case "PGRST301" | "PGRST302" | "PGRST303":
            return Unauthorized("The token is not valid or has expired.")
        case "42501":
            return Forbidden(because=because)
        # A lock that was not free within the lock time-out (rag.begin_call).
        case "55P03":
            return DatabaseBusy(because=because)
        # A statement that took too long; a pool that had no connection free in time.
        case "57014" | "PGRST003":
            return DatabaseTimedOut(because=because)
        # What it belongs to has gone in the meantime.
        case "23503":
            return Conflict("Somebody deletes this just now. Please try again.", because=because)
        case state if state[:2] in ("22", "23"):
            return InvalidRequest("A value is malformed or outside its allowed range.", because=because)
        case _:
            return DatabaseFailed(because=because)
