"""Error format of the platform contract, with its types and codes."""

from typing import Any, Literal

from pydantic import BaseModel

from shared.errors import RagError

TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
# Error codes of the contract that differ from ours.
CODES = {
    "unauthorized": "invalid_api_key",
    "rate_limited": "rate_limit_exceeded",
    "collection_limit_reached": "rate_limit_exceeded",
    "document_limit_reached": "rate_limit_exceeded",
    "storage_limit_reached": "rate_limit_exceeded",
    "upload_limit_reached": "rate_limit_exceeded",
    "too_many_uploads": "rate_limit_exceeded",
    "body_too_large": "file_too_large",
}


class ErrorDetail(BaseModel):
    type: Literal[
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "rate_limit_error",
        "server_error",
    ]
    code: str
    message: str
    details: dict[str, Any]


class ErrorBody(BaseModel):
    error: ErrorDetail


def error_type(error: RagError) -> str:
    """One of OpenAI's error types."""
    return TYPES.get(error.status, "server_error" if error.status >= 500 else "invalid_request_error")


def error_body(error: RagError) -> dict[str, Any]:
    details = dict(error.details)
    code = CODES.get(error.code, error.code)
    if "missing" in details:
        code = "missing_required_field" if details.pop("missing") else "invalid_field_value"
    return {"error": {"type": error_type(error), "code": code, "message": str(error), "details": details}}
