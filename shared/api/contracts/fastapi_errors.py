"""What the index and knowledge contracts' wire models share: FastAPI's own envelope of errors, `{"detail":
...}` with a sentence, or, for a request that does not have the form, a list of what is wrong where; names,
questions and metadata."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, StringConstraints

from shared.api.contracts.platform.common import WithoutNul, small
from shared.errors import InvalidRequest, RagError

MAX_DOCUMENTS = 1000

# Not dots alone: in a path, clients take them for a way elsewhere.
CollectionName = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=255, pattern=r"[^.]"), WithoutNul
]
DocumentName = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=500), WithoutNul]
# Null is none.
Metadata = Annotated[dict[str, Any], BeforeValidator(lambda value: {} if value is None else small(value))]


def _blank(question: str) -> str:
    if not question.strip():
        raise ValueError("must not be blank")
    return question


# Longer ones are no questions, and the database takes no more.
Question = Annotated[
    str, StringConstraints(strict=True, max_length=10_000), WithoutNul, AfterValidator(_blank)
]


class Fault(BaseModel):
    type: str
    loc: list[str | int]
    msg: str


class ErrorBody(BaseModel):
    """Every error, whatever its status."""

    detail: str | list[Fault]


def message(error: RagError) -> str:
    """A business error, where an API has no words of its own for it."""
    if error.code == "org_required":
        return "You belong to several orgs: an API key says which is meant."
    if "document" in error.details:
        return f"documents.{error.details['document']}: {error}"
    return str(error)


def error_body(error: RagError, message: Callable[[RagError], str]) -> dict[str, Any]:
    """`message` is how the API words a business error."""
    if isinstance(error, InvalidRequest) and error.faults:
        return {"detail": [dict(fault) for fault in error.faults]}
    return {"detail": message(error)}
