"""Client of an OpenAI-compatible embeddings endpoint, which learns the requests that it accepts."""

import binascii
import json
import logging
import math
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from shared.access.token_usage import Quota, add_call, reported_tokens, require
from shared.clients.http_client import deadline, retry_after, retry_service
from shared.clients.probe_cache import CachedProbe
from shared.config import EmbeddingForms
from shared.errors import (
    DocumentNotEmbedded,
    EmbedderNotFound,
    EmbedderRefused,
    EmbedderUnauthorized,
    EmbedderWithoutCredit,
    EmbeddingFailed,
    TextTooLong,
)
from shared.models.chunk_sizes import OPENAI
from shared.models.embedding_refusals import Cause, EmbeddingRefusal, refusal_in
from shared.models.embedding_replies import vectors_in
from shared.models.embedding_roles import (
    NO_FORMS,
    Role,
    Roles,
    each_role,
    required_parameters,
    without_parameters,
)
from shared.models.openai_model import OpenAIModel
from shared.text.token_count import count_tokens
from shared.tracing import call, model_attributes, usage_attributes

if TYPE_CHECKING:
    from openai import OpenAI

# How long the default window serves after an endpoint did not answer.
WINDOW_SECONDS = 60.0
# Changes of a request after refusals: there are five fields that it can do without.
MAX_CHANGES = 6
log = logging.getLogger("rag")
ERRORS: dict[Cause, type[EmbeddingFailed]] = {
    Cause.KEY: EmbedderUnauthorized,
    Cause.CREDIT: EmbedderWithoutCredit,
    Cause.MODEL: EmbedderNotFound,
    Cause.LENGTH: TextTooLong,
    Cause.BATCH: TextTooLong,
}


@dataclass(frozen=True, slots=True)
class _Capabilities:
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
        self._capabilities, self._lock = _Capabilities(forms), Lock()
        self._document_tokens = count_tokens(forms.document) if isinstance(forms.document, str) else 0

    @property
    def forms(self) -> EmbeddingForms:
        return self._capabilities.forms

    @property
    def window(self) -> int:
        """Without the prefix of documents. Read from the endpoint once; while the endpoint does not answer,
        at most once a minute."""
        return (WINDOWS.at(self, time.monotonic) or OPENAI.window) - self._document_tokens

    @property
    def passage_tokens(self) -> int:
        return min(OPENAI.passage_tokens, self.window)

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        """In batches of 128, or as many as the endpoint accepts, each within the time-out of the settings,
        retries included. Raises EmbeddingQuotaExceeded, and EmbeddingFailed with the index of a text."""
        require(Quota.EMBEDDING)
        vectors: list[list[float]] = []
        roles, size = each_role(role, texts), len(texts)
        is_limit, is_broken = False, False
        changed = 0
        while (start := len(vectors)) < len(texts):
            capabilities = self._capabilities
            end = start + max(1, min(size, capabilities.batch))
            part = texts[start : start + _count_of_one_form(capabilities.forms, roles[start:end])]
            try:
                own = self._accepted(capabilities, part, roles[start:end], is_retried=not is_broken)
            except EmbeddingRefusal as refusal:
                if changed < MAX_CHANGES and (changes := self._changes(refusal, capabilities)):
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
                raise failure(roles[start], text=start + own.index([]))
            vectors += own
            if is_limit:
                self._learn(batch=min(size, self._capabilities.batch))
        if size < len(texts) and not is_broken:
            # All texts were accepted, so that the refusal was about their number.
            self._learn(batch=min(size, self._capabilities.batch))
        return vectors

    def _accepted(
        self, capabilities: _Capabilities, texts: Sequence[str], roles: Sequence[Role], *, is_retried: bool
    ) -> list[list[float]]:
        """The vectors, after a second attempt without the optional fields if the endpoint refuses the first
        request that has them and does not say why. Raises EmbeddingRefusal and EmbeddingFailed."""
        try:
            vectors = self._request(capabilities, texts, roles, is_retried=is_retried)
        except EmbeddingRefusal as refusal:
            if capabilities.is_checked or not refusal.may_be_a_field:
                raise
            self._learn(is_checked=True)
            plain: dict[str, Any] = {
                "forms": without_parameters(self._name, capabilities.forms),
                "sends_base64": False,
            }
            vectors = self._request(replace(capabilities, **plain), texts, roles, is_retried=is_retried)
            self._learn(**plain)
        if not self._capabilities.is_checked:
            self._learn(is_checked=True)
        return vectors

    def _request(
        self, capabilities: _Capabilities, texts: Sequence[str], roles: Sequence[Role], *, is_retried: bool
    ) -> list[list[float]]:
        from openai import APIConnectionError, OpenAIError

        body = self._body(capabilities, texts, roles)
        with call(f"embeddings {self._name}", self._attributes) as span, deadline(self.seconds):
            try:
                attempt = partial(self._reply, body)
                reply = retry_service(attempt, lost=APIConnectionError) if is_retried else attempt()
                tokens = reported_tokens(reply)
                add_call(Quota.EMBEDDING, sum(map(count_tokens, texts)) if tokens is None else tokens)
                vectors = vectors_in(reply, len(texts))
            except struct.error as error:
                raise EmbeddingRefusal(Cause.ENCODING) from error
            except (OpenAIError, ValueError, TypeError, LookupError, AttributeError) as error:
                # An endpoint may send any content with status 200.
                if capabilities.sends_base64 and isinstance(error, binascii.Error):
                    raise EmbeddingRefusal(Cause.ENCODING) from error
                raise failure(roles[0]) from error
            span.attributes |= usage_attributes(reply)
        if vectors is None:
            raise EmbeddingRefusal(Cause.COUNT)
        if self._dimensions:
            self._check_dimensions(capabilities, max(map(len, vectors), default=0))
        return vectors

    def _body(
        self, capabilities: _Capabilities, texts: Sequence[str], roles: Sequence[Role]
    ) -> dict[str, Any]:
        forms = [role.form(capabilities.forms) for role in roles[: len(texts)]]
        inputs = [
            form + text if isinstance(form, str) else text for form, text in zip(forms, texts, strict=True)
        ]
        body: dict[str, Any] = dict(forms[0]) if isinstance(forms[0], dict) else {}
        body |= {"model": self._name, "input": inputs if capabilities.sends_list else inputs[0]}
        if capabilities.sends_base64:
            body["encoding_format"] = "base64"
        if self._dimensions and capabilities.sends_dimensions:
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
            raise EmbeddingRefusal.of(error.status_code, own.headers, own.content) from error
        reply = json.loads(response.content)
        if refusal := refusal_in(reply, response.headers):
            raise refusal
        return reply

    def _check_dimensions(self, capabilities: _Capabilities, count: int) -> None:
        requested = self._dimensions or 0
        if count > requested or (count != requested and not capabilities.sends_dimensions):
            # The next request asks for the number again.
            self._learn(sends_dimensions=True)
            raise EmbedderRefused(
                log_reason=f"{self._name} has {count:,} dimensions, and {requested:,} are requested: set "
                "RAG_EMBEDDING_DIMENSIONS"
            )

    def _changes(self, refusal: EmbeddingRefusal, capabilities: _Capabilities) -> dict[str, Any]:
        """The changes after a refusal whose words name a field; none if the request needs the field."""
        parameters = without_parameters(self._name, capabilities.forms) != capabilities.forms
        match refusal.cause:
            case Cause.ENCODING if capabilities.sends_base64:
                return {"sends_base64": False}
            case Cause.DIMENSIONS if self._dimensions and capabilities.sends_dimensions:
                return {"sends_dimensions": False}
            case Cause.LIST if capabilities.sends_list:
                return {"sends_list": False, "batch": 1}
            case Cause.ROLE if parameters:
                return {"forms": without_parameters(self._name, capabilities.forms)}
            case Cause.ROLE_MISSING if not parameters:
                return {"forms": required_parameters(refusal.words)}
        return {}

    def _error(self, refusal: EmbeddingRefusal, role: Role, text: int | None) -> EmbeddingFailed:
        reason = self._reason(refusal)
        kind = ERRORS.get(refusal.cause)
        # An error of the server does not say whose fault its batch is.
        if kind and not (refusal.cause is Cause.BATCH and refusal.status >= 500):
            return kind(log_reason=reason, text=text)
        is_permanent = 400 <= refusal.status < 500 and refusal.status not in (408, 429)
        if is_permanent and refusal.cause is not Cause.TEXT:
            return EmbedderRefused(log_reason=reason, text=text)
        wait = retry_after(refusal.response.headers) if refusal.response else None
        headers = {"Retry-After": str(math.ceil(wait))} if wait else None
        return failure(role, log_reason=reason, text=text, headers=headers)

    def _reason(self, refusal: EmbeddingRefusal) -> str:
        return refusal.reason(self._client.api_key)

    def _learn(self, **capabilities: Any) -> None:
        with self._lock:
            self._capabilities = replace(self._capabilities, **capabilities)

    def count_tokens(self, text: str) -> int:
        return count_tokens(text)


def _count_of_one_form(forms: EmbeddingForms, roles: Sequence[Role]) -> int:
    """The number of first texts that one request can have: parameters apply to all texts of a request."""
    own = [role.form(forms) for role in roles]
    if all(isinstance(form, str) for form in own):
        return len(own)
    return next((index for index, form in enumerate(own) if form != own[0]), len(own))


def failure(role: Role, **more: Any) -> EmbeddingFailed:
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
