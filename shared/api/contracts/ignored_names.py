"""Unknown filters and unknown changes, which are ignored and named in the response.

Otherwise a misspelt filter would widen a search unnoticed, and a misspelt change seem to be made.
"""

from collections.abc import Iterable, Iterator
from operator import not_
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from shared.tracing import current

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
            filters._ignored = _shown(name for name in value if name not in _fields(filters))
        return filters


class SearchBody(BaseModel):
    """Body of a search or an answer, which records the filters that it ignores: unknown keys of a filter, and
    other unknown fields with "filt" in their name, also within an object, as retrieval.metadata_filtr."""

    _ignored_filters: list[str] = PrivateAttr(default_factory=list)

    @model_validator(mode="wrap")
    @classmethod
    def _record_unknown_filters(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        body = validate(value)
        if isinstance(value, dict):
            body._ignored_filters = _shown(_unknown_filters(body, value))
            if trace := current.get():
                trace.ignored_filters = body._ignored_filters
        return body

    @property
    def ignored_filters(self) -> list[str]:
        return self._ignored_filters


def _unknown_filters(model: BaseModel | None, sent: dict[str, Any], *, nested: bool = False) -> Iterator[str]:
    fields = _fields(model)
    for name, value in sent.items():
        part = getattr(model, fields[name]) if name in fields else None
        if isinstance(part, LenientModel):
            yield from part._ignored
        elif name not in fields and "filt" in name.lower():
            yield name
        elif isinstance(value, dict) and not nested and (name not in fields or isinstance(part, BaseModel)):
            yield from (f"{name}.{key}" for key in _unknown_filters(part, value, nested=True))


def _fields(model: BaseModel | None) -> dict[str | None, str]:
    """The names of a model's fields by name and alias."""
    fields = type(model).model_fields if model else {}
    return {key: name for name, field in fields.items() for key in (name, field.alias)}


def _shown(names: Iterable[str]) -> list[str]:
    # A lone surrogate cannot be encoded.
    return [name[:MAX_CHARACTERS].encode(errors="replace").decode() for name in sorted(names)[:MAX_NAMES]]


def ignored_names(model: LenientModel) -> list[str]:
    """Those in a field that is such a model follow its name, as config.chunk_sise."""
    nested = [(name, value) for name, value in model if isinstance(value, LenientModel)]
    return model._ignored + [f"{name}.{key}" for name, value in nested for key in value._ignored]
