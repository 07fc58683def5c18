"""Errors of this package. None of them shows the API key."""

import re
from collections.abc import Mapping
from typing import Any

import httpx


class MnemosyneError(Exception):
    """The base of all errors of this package."""


class ConfigurationError(MnemosyneError):
    """The client's configuration is incomplete or malformed; the message names the value."""


class APIError(MnemosyneError):
    """The API returned an error. Within a stream `status_code` is the status that such an error has."""

    def __init__(
        self,
        message: str,
        *,
        status_code: int = 0,
        type: str | None = None,
        code: str | None = None,
        request_id: str | None = None,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        """`retry_after`: how many seconds the API asks to wait before the next request."""
        super().__init__(message)
        self.message = message
        self.status_code = status_code
        self.type = type
        self.code = code
        self.request_id = request_id
        self.details: dict[str, Any] = dict(details or {})
        self.retry_after = retry_after

    def __str__(self) -> str:
        known = {"status": self.status_code or None, "code": self.code, "request": self.request_id}
        details = ", ".join(f"{name} {value}" for name, value in known.items() if value is not None)
        return f"{self.message} ({details})" if details else self.message


class BadRequestError(APIError):
    """400: the request is invalid. Check its arguments."""


class ValidationError(BadRequestError):
    """400 or 422: a field is missing or malformed; `details["field"]` names it."""


class AuthenticationError(APIError):
    """401: the key or the token is not valid, or has expired."""


class PermissionDeniedError(APIError):
    """403: the key lacks a scope, or its owner a right."""


class NotFoundError(APIError):
    """404: it does not exist, or belongs to another user."""


class ConflictError(APIError):
    """409: it conflicts with an existing object; `code` tells which."""


class PayloadTooLargeError(APIError):
    """413: the file or the request is too large."""


class RateLimitError(APIError):
    """429: too many requests, or more than the org's tier allows."""


class InternalServerError(APIError):
    """5xx: the API failed. Try again later."""


class UnexpectedResponseError(APIError):
    """The response is not one of this API. Check the base URL."""


class UploadFailedError(APIError):
    """The project's Storage did not accept a large file. `status_code` and the reason are Storage's."""


class APIConnectionError(MnemosyneError):
    """The API could not be reached, or the connection broke. Check the network, or try again later."""


class APITimeoutError(APIConnectionError):
    """The request exceeded its time-out."""


class StreamInterruptedError(APIConnectionError):
    """A stream ended before its last part. The received parts are the beginning of an answer."""


class DocumentFailedError(MnemosyneError):
    """The document could not be processed: `code` and `message` are the document's own error."""

    def __init__(self, document_id: str, code: str = "", message: str = "") -> None:
        super().__init__(document_id, code, message)
        self.document_id = document_id
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"Document {self.document_id} failed: {self.message} (code {self.code})"


_OF_STATUS: dict[int, type[APIError]] = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    413: PayloadTooLargeError,
    422: ValidationError,
    429: RateLimitError,
}
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "server_error": 500,
    # The search contract's codes, in place of a type.
    "INVALID_ARGUMENT": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "CONFLICT": 409,
    "RATE_LIMITED": 429,
    "UNAVAILABLE": 503,
}
# The replacement of the key in the texts of responses.
_MASK = "[the API key]"
# The API stores too many idempotency keys of this caller.
OUT_OF_KEYS = "too_many_replies"
_ABOUT_A_FIELD = {"missing_required_field", "invalid_field_value"}


def secret_of(response: httpx.Response) -> str:
    """The API key of the error's request."""
    return str(response.request.headers.get("authorization", "")).removeprefix("Bearer ")


def masked(value: Any, secret: str) -> Any:
    """The value without the key, at every depth."""
    if not secret:
        return value
    if isinstance(value, str):
        return value.replace(secret, _MASK)
    if isinstance(value, Mapping):
        return {masked(name, secret): masked(inner, secret) for name, inner in value.items()}
    return [masked(inner, secret) for inner in value] if isinstance(value, list) else value


def of_response(response: httpx.Response) -> APIError:
    """The error of a response that was read, without the request's key."""
    return _error(
        response.status_code,
        _body(response),
        secret_of(response),
        request_id=request_id(response),
        retry_after=retry_after(response),
    )


def of_storage(response: httpx.Response) -> UploadFailedError:
    """The error of an upload to a signed URL, whose token is in no error."""
    reason = _body(response).get("message") or "it gave no reason"
    message = f"Storage did not accept the file: {reason}. Create the document again."
    url = response.request.url
    message = message.replace(url.params.get("token") or str(url), "[the token]")
    return UploadFailedError(message, status_code=response.status_code)


def of_event(event: Mapping[str, Any], secret: str, request_id: str | None) -> APIError:
    """The error that ends a stream."""
    detail = event.get("error_detail")
    kind = (detail.get("type") or detail.get("code")) if isinstance(detail, dict) else None
    body = {"error": detail if isinstance(detail, dict) else {"message": event.get("error")}}
    return _error(_STATUS_OF_TYPE.get(str(kind), 500), body, secret, request_id=request_id)


def unexpected(response: httpx.Response, what: str) -> UnexpectedResponseError:
    """The error for a response that is not this API's; `what` is the reason, without the key."""
    return UnexpectedResponseError(
        masked(what, secret_of(response)),
        status_code=response.status_code,
        request_id=request_id(response),
    )


def malformed_event(place: str, secret: str, request_id: str | None) -> UnexpectedResponseError:
    """The error for an event of a stream that is not this API's; `place` is the malformed field."""
    message = masked(f"The stream has an event that is not this API's: {place}. Check base_url.", secret)
    return UnexpectedResponseError(message, status_code=200, request_id=request_id)


def request_id(response: httpx.Response) -> str | None:
    header = response.headers.get("x-request-id")
    return None if header is None else str(masked(header, secret_of(response)))


def retry_after(response: httpx.Response) -> float | None:
    """The seconds in the header Retry-After; the API sends no date."""
    header = response.headers.get("retry-after", "")
    return float(header) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", header, re.ASCII) else None


def _body(response: httpx.Response) -> dict[str, Any]:
    """The JSON object of the response; empty for another body."""
    try:
        body = response.json()
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {}


def _error(status: int, body: Mapping[str, Any], secret: str, **more: Any) -> APIError:
    inner = masked(body.get("error"), secret)
    error = inner if isinstance(inner, dict) else {}
    code, kind, details = error.get("code"), error.get("type"), error.get("details")
    message = error.get("message")
    if not isinstance(message, str) or not message:
        # A proxy's page, which may show the request itself.
        message = f"The API gave no reason. {_remedy(status)}"
    return _class_of(status, code)(
        message,
        status_code=status,
        type=kind if isinstance(kind, str) else None,
        code=code if isinstance(code, str) else None,
        details=details if isinstance(details, dict) else None,
        **more,
    )


def _remedy(status: int) -> str:
    """Advice for a response without the API's reason, such as a proxy's."""
    if 300 <= status < 400:
        return "It is a redirect, which the API key does not follow: check base_url."
    if status >= 500 or status in (408, 429):
        return "Try again later."
    return "Send less." if status == 413 else "Check the API key and base_url."


def _class_of(status: int, code: Any) -> type[APIError]:
    if status == 400:
        return ValidationError if code in _ABOUT_A_FIELD else BadRequestError
    if error_class := _OF_STATUS.get(status):
        return error_class
    if status >= 500:
        return InternalServerError
    return BadRequestError if status > 400 else UnexpectedResponseError
