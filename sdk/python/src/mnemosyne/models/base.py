"""What all models share: they are frozen, and keep fields that a newer server sends and this version does not
know. Where the API may learn another word (a status, a mode), the type is str."""

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
        """Raises UnexpectedResponseError for an answer of another form."""
        try:
            return cls.model_validate_json(response.content)
        except ValidationError as fault:
            error = fault
        raise unexpected(response, error)


def items_of(kind: TypeAdapter[list[Item]], response: httpx.Response) -> list[Item]:
    """Raises the same."""
    try:
        return kind.validate_json(response.content)
    except ValidationError as fault:
        error = fault
    raise unexpected(response, error)


def unexpected(response: httpx.Response, fault: ValidationError) -> UnexpectedResponseError:
    """It says where the answer differs, and nothing of what it holds."""
    first = fault.errors(include_input=False, include_url=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"])) or "the answer"
    return errors.unexpected(response, f"This is no answer of the API: {place}: {first['type']}.")


class Pagination(Model):
    total: int
    limit: int
    offset: int
    has_more: bool
