"""FastAPI's own envelope of errors, which the index and knowledge contracts have: `{"detail": ...}`, a
sentence, or, for a request that does not have the form, a list of what is wrong where."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from shared.errors import InvalidRequest, RagError


class Fault(BaseModel):
    type: str
    loc: list[str | int]
    msg: str


class ErrorBody(BaseModel):
    """Every error, whatever its status."""

    detail: str | list[Fault]


def error_body(error: RagError, said: Callable[[RagError], str] = str) -> dict[str, Any]:
    """`said` is how the API words a business error."""
    if isinstance(error, InvalidRequest) and error.faults:
        return {"detail": [dict(fault) for fault in error.faults]}
    return {"detail": said(error)}
