"""Error format of the search contract: codes, and the field at fault."""

import re
from typing import Any

from shared.api.contracts.search.camel_case import WireModel
from shared.errors import RagError
from shared.tracing import current

CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    409: "CONFLICT",
    413: "PAYLOAD_TOO_LARGE",
    429: "RATE_LIMITED",
    503: "UNAVAILABLE",
}
# The request field of each missing object.
FIELDS = {"workspace_not_found": "workspaceId", "org_not_found": "organizationId"}
# Pydantic adds a union's tag to the field's path: subject.text.text.
_UNION_TAG = re.compile(r"^subject\.(?:text|document|chunk)\.")


class ErrorDetail(WireModel):
    code: str
    message: str
    details: dict[str, Any]


class ErrorBody(WireModel):
    error: ErrorDetail
    request_id: str


def error_body(error: RagError) -> dict[str, Any]:
    # `reason` distinguishes errors of one status.
    reason = (
        {} if error.code in ("invalid_request", "not_found", "internal_error") else {"reason": error.code}
    )
    field = FIELDS.get(error.code) or error.details.get("field")
    details: dict[str, Any] = ({"field": _UNION_TAG.sub("subject.", field)} if field else {}) | reason
    if wait := error.headers.get("Retry-After"):
        # An error event of a stream has no headers.
        details["retryAfter"] = int(wait)
    body = {"code": CODES.get(error.status, "INTERNAL"), "message": str(error), "details": details}
    return {"error": body, "requestId": request_id()}


def request_id() -> str:
    trace = current.get()
    return trace.request_id if trace else ""
