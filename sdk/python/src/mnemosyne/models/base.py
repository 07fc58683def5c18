"""Base of all models: frozen, with fields that a newer server sends and this version does not know. Where the
API may add a value (a status, a mode), the type is str."""

from typing import Self, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from mnemosyne import errors
from mnemosyne.errors import UnexpectedResponseError

Item = TypeVar("Item")


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=())

    @classmethod
    def of(cls, response: httpx.Response) -> Self:
        """The model of a response. Raises UnexpectedResponseError for another form."""
        try:
            return cls.model_validate_json(response.content)
        except ValidationError as fault:
            error = fault
        raise unexpected(response, error)


def items_of(kind: TypeAdapter[list[Item]], response: httpx.Response) -> list[Item]:
    """The items of a list. Raises UnexpectedResponseError."""
    try:
        return kind.validate_json(response.content)
    except ValidationError as fault:
        error = fault
    raise unexpected(response, error)


def unexpected(response: httpx.Response, fault: ValidationError) -> UnexpectedResponseError:
    """The error for a malformed response: it names the field, not the value."""
    first = fault.errors(include_input=False, include_url=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"])) or "the answer"
    return errors.unexpected(
        response, f"The response is not one of this API, check base_url: {place}: {first['type']}."
    )


class Pagination(Model):
    total: int
    limit: int
    offset: int
    has_more: bool
