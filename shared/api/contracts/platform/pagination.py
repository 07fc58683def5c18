"""Pages of the platform contract: limit, offset and order of a request, pagination of a response."""

from collections.abc import Sequence
from typing import Annotated, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, Field

Limit = Annotated[int, Field(ge=1, le=100)]
Order = Literal["asc", "desc"]
Item = TypeVar("Item")


class Pagination(BaseModel):
    total: int
    limit: int
    offset: int
    has_more: bool

    @classmethod
    def of(cls, total: int, limit: int, offset: int) -> Self:
        return cls(total=total, limit=limit, offset=offset, has_more=offset + limit < total)


class Page(BaseModel, Generic[Item]):
    data: list[Item]
    pagination: Pagination

    @classmethod
    def of(cls, data: Sequence[Item], total: int, limit: int, offset: int) -> Self:
        return cls(data=list(data), pagination=Pagination.of(total, limit, offset))
