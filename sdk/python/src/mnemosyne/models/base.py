"""Base of all models: frozen, with fields that a newer server sends and this version does not know. Where the
API may add a value (a status, a mode), the type is str."""

from collections.abc import Callable
from typing import Self, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from mnemosyne import errors

Item = TypeVar("Item")


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=())

    @classmethod
    def of(cls, response: httpx.Response) -> Self:
        """The model of a response. Raises UnexpectedResponseError for another form."""
        return validated(cls.model_validate_json, response)


def validated(validate: Callable[[bytes], Item], response: httpx.Response) -> Item:
    """The response as `validate` reads it. Raises UnexpectedResponseError, which names the malformed field,
    not the value."""
    try:
        return validate(response.content)
    except ValidationError as fault:
        first = fault.errors(include_input=False, include_url=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"])) or "the answer"
    raise errors.unexpected(
        response, f"The response is not one of this API, check base_url: {place}: {first['type']}."
    )


class Pagination(Model):
    total: int
    limit: int
    offset: int
    has_more: bool
