"""FastAPI's error format, of the index and knowledge contracts.

`detail` is a sentence, or for an invalid request a list of faults.
"""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from shared.errors import InvalidRequest, RagError


class Fault(BaseModel):
    type: str
    loc: list[str | int]
    msg: str


class ErrorBody(BaseModel):
    detail: str | list[Fault]


def message(error: RagError) -> str:
    """The message of an error for which the contract fixes none."""
    if error.code == "org_required":
        return "You belong to several orgs: use an API key of one of them."
    if "document" in error.details:
        return f"documents.{error.details['document']}: {error}"
    return str(error)


def error_body(error: RagError, message: Callable[[RagError], str]) -> dict[str, Any]:
    if isinstance(error, InvalidRequest) and error.faults:
        return {"detail": [dict(fault) for fault in error.faults]}
    return {"detail": message(error)}
