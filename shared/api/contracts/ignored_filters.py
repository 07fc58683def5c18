"""Names of filters that a contract does not know: ignored, and named in the response.

A misspelt filter would otherwise widen a search unnoticed."""

from operator import not_
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

MOST_NAMES, MOST_CHARACTERS = 20, 100
# In a response; left out where every filter was known.
IgnoredFilters = Annotated[list[str], Field(default_factory=list, exclude_if=not_)]


class NotesIgnored(BaseModel):
    """Filters that remember the names of unknown keys."""

    _ignored: list[str] = PrivateAttr(default_factory=list)

    @model_validator(mode="wrap")
    @classmethod
    def _note(cls, sent: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        filters = read(sent)
        if isinstance(sent, dict):
            fields = {*cls.model_fields, *(field.alias for field in cls.model_fields.values())}
            unknown = sorted(str(name) for name in sent if name not in fields)[:MOST_NAMES]
            # A lone surrogate cannot be encoded.
            filters._ignored = [name[:MOST_CHARACTERS].encode(errors="replace").decode() for name in unknown]
        return filters


def ignored_in(filters: NotesIgnored | None) -> list[str]:
    return filters._ignored if filters else []
