# Generated from aio/ by `make generated`. Do not edit.
"""Pages of lists, each of which can load the next."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, TypeVar

from mnemosyne.models.base import Pagination

Item = TypeVar("Item", bound=Any)


class Page(list[Item]):
    """`pagination` is None if the API sends none (sessions); then a full page may have a next one."""

    def __init__(
        self,
        items: Iterable[Item],
        pagination: Pagination | None,
        next_offset: int | None,
        fetch: Callable[[int], "Page[Item]"],
    ) -> None:
        super().__init__(items)
        self.pagination = pagination
        self._next_offset = next_offset
        self._fetch = fetch

    @property
    def has_more(self) -> bool:
        return self._next_offset is not None

    def next_page(self) -> "Page[Item] | None":
        """The next page; None after the last one."""
        return None if self._next_offset is None else self._fetch(self._next_offset)

    def auto_paging_iter(self) -> Iterator[Item]:
        """All items from this page on; one page is in memory at a time. Items that are added meanwhile move
        others to the next page; items of the previous page are not repeated."""
        page: Page[Item] | None = self
        before: set[str] = set()
        while page is not None:
            for item in page:
                if item.id not in before:
                    yield item
            before = {item.id for item in page}
            page = page.next_page()

    @classmethod
    def of(
        cls,
        items: list[Item],
        pagination: Pagination,
        fetch: Callable[[int], "Page[Item]"],
    ) -> Self:
        """A page of a list with `pagination`."""
        following = pagination.offset + len(items)
        return cls(items, pagination, following if pagination.has_more and items else None, fetch)
