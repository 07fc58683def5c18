"""FastAPI's error format and the fields that the index and knowledge contracts share.

`detail` is a sentence, or for an invalid request a list of faults.
"""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, StringConstraints

from shared.api.contracts.platform.common import WithoutNul, small
from shared.errors import InvalidRequest, RagError

MAX_DOCUMENTS = 1000

# Not dots alone: clients resolve them in a path.
CollectionName = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=255, pattern=r"[^.]"), WithoutNul
]
DocumentName = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=500), WithoutNul]
Metadata = Annotated[dict[str, Any], BeforeValidator(lambda value: {} if value is None else small(value))]


def _not_blank(question: str) -> str:
    if not question.strip():
        raise ValueError("must not be blank")
    return question


# The limit of the database.
Question = Annotated[
    str, StringConstraints(strict=True, max_length=10_000), WithoutNul, AfterValidator(_not_blank)
]


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
