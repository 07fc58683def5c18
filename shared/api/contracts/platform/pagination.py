"""Pages of the platform contract: limit, offset and order of a request, pagination of a response."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field

Limit = Annotated[int, Field(ge=1, le=100)]
Order = Literal["asc", "desc"]


class Pagination(BaseModel):
    total: int
    limit: int
    offset: int
    has_more: bool

    @classmethod
    def of(cls, total: int, limit: int, offset: int) -> Self:
        return cls(total=total, limit=limit, offset=offset, has_more=offset + limit < total)
