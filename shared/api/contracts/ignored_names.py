"""Unknown filters and unknown changes, which are ignored and named in the response.

Otherwise a misspelt filter would widen a search unnoticed, and a misspelt change seem to be made.
"""

from operator import not_
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

MAX_NAMES, MAX_CHARACTERS = 20, 100
# A response field, omitted if empty.
IgnoredNames = Annotated[list[str], Field(default_factory=list, exclude_if=not_)]


class LenientModel(BaseModel):
    """Filters or changes that record the names of unknown keys."""

    _ignored: list[str] = PrivateAttr(default_factory=list)

    @model_validator(mode="wrap")
    @classmethod
    def _record_unknown(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        filters = validate(value)
        if isinstance(value, dict):
            fields = {*cls.model_fields, *(field.alias for field in cls.model_fields.values())}
            unknown = sorted(str(name) for name in value if name not in fields)[:MAX_NAMES]
            # A lone surrogate cannot be encoded.
            filters._ignored = [name[:MAX_CHARACTERS].encode(errors="replace").decode() for name in unknown]
        return filters


def ignored_names(model: LenientModel | None) -> list[str]:
    """Those in a field that is such a model follow its name, as config.chunk_sise."""
    if model is None:
        return []
    nested = [(name, value) for name, value in model if isinstance(value, LenientModel)]
    return model._ignored + [f"{name}.{key}" for name, value in nested for key in value._ignored]
