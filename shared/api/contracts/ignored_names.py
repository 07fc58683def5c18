"""Unknown filters and unknown changes, which are ignored and named in the response.

Otherwise a misspelt filter would widen a search unnoticed, and a misspelt change seem to be made.
"""

import re
from collections.abc import Iterable, Iterator
from operator import not_
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from shared.tracing import current

MAX_NAMES, MAX_CHARACTERS = 20, 100
_FILTER = re.compile("filt|condition|constraint", re.IGNORECASE)
# A response field, omitted if empty.
IgnoredNames = Annotated[list[str], Field(default_factory=list, exclude_if=not_)]


class _Recording(BaseModel):
    """A model that records names of the JSON object that was sent."""

    _ignored: list[str] = PrivateAttr(default_factory=list)

    @model_validator(mode="wrap")
    @classmethod
    def _record(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        model = validate(value)
        if isinstance(value, dict):
            # A lone surrogate cannot be encoded.
            first = sorted({name[:MAX_CHARACTERS] for name in model._ignored_of(value)})[:MAX_NAMES]
            model._ignored = [name.encode(errors="replace").decode() for name in first]
        return model

    def _ignored_of(self, sent: dict[str, Any]) -> Iterable[str]:
        raise NotImplementedError


class LenientModel(_Recording):
    """Filters or changes that record the names of unknown keys."""

    def _ignored_of(self, sent: dict[str, Any]) -> Iterable[str]:
        return sent.keys() - _fields(self)


class SearchBody(_Recording):
    """Body of a search or an answer, which records the filters that it ignores: unknown keys of a filter, and
    other unknown fields that are named like one, also within an object, as retrieval.metadata_filtr."""

    def _ignored_of(self, sent: dict[str, Any]) -> Iterable[str]:
        # Chat completions pass unknown objects to the model.
        return _unknown_filters(self, sent, descends=self.model_config.get("extra") != "allow")

    @model_validator(mode="after")
    def _trace_ignored(self) -> Self:
        if trace := current.get():
            trace.ignored_filters = self._ignored
        return self

    @property
    def ignored_filters(self) -> list[str]:
        return self._ignored


def _unknown_filters(model: BaseModel | None, sent: dict[str, Any], *, descends: bool) -> Iterator[str]:
    fields = _fields(model)
    for name, value in sent.items():
        part = getattr(model, fields[name]) if name in fields else None
        if isinstance(part, LenientModel):
            yield from part._ignored
        elif name not in fields and value is not None and _FILTER.search(name):
            yield name
        elif descends and isinstance(value, dict) and (part is None or isinstance(part, BaseModel)):
            yield from (
                f"{name[:MAX_CHARACTERS]}.{key}" for key in _unknown_filters(part, value, descends=False)
            )


def _fields(model: BaseModel | None) -> dict[str | None, str]:
    """The names of a model's fields by name and alias."""
    fields = type(model).model_fields if model else {}
    return {key: name for name, field in fields.items() for key in (name, field.alias)}


def ignored_names(model: LenientModel) -> list[str]:
    """Those in a field that is such a model follow its name, as config.chunk_sise."""
    nested = [(name, value) for name, value in model if isinstance(value, LenientModel)]
    return model._ignored + [f"{name}.{key}" for name, value in nested for key in value._ignored]
