"""Outline of a document: the page and the headings of each passage."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Any

_HEADING = re.compile(r"^(#{1,6}) +(\S.*)$|^(?:```|~~~)", re.MULTILINE)
_SHOWS = re.compile(r"\S")
MAX_SECTION = 300
# A title's spaces beside > become no-break spaces: " > " only separates titles.
_SPACE_BESIDE_SEPARATOR = re.compile(r" (?=>)|(?<=>) ")


class Outline:
    """Pages and headings of a Markdown text. `pages`: (first character, number); `headings`: those that are
    not Markdown's, as (start, end, level, title), below level 6. Both are in order."""

    def __init__(
        self,
        text: str,
        pages: Sequence[tuple[int, int]] = (),
        headings: Sequence[tuple[int, int, int, str]] = (),
    ) -> None:
        self._text = text
        self._page_starts = [start for start, _ in pages]
        self._page_numbers = [number for _, number in pages]
        # Start and end of each heading, and its title below those above it.
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._paths: list[tuple[str, ...]] = []
        above: list[tuple[int, str]] = []
        for start, end, level, title in merge(_headings(text), headings):
            above = [heading for heading in above if heading[0] < level]
            above.append((level, _SPACE_BESIDE_SEPARATOR.sub("\u00a0", title)))
            self._starts.append(start)
            self._ends.append(end)
            self._paths.append(tuple(title for _, title in above))

    def place(self, start: int, end: int) -> dict[str, Any]:
        """`page_number` and `section` of text[start:end], where known: the titles of the headings above it,
        joined by " > ". `page_end`: the last page of a passage on several."""
        place: dict[str, Any] = {}
        page = bisect_right(self._page_starts, start) - 1
        if page >= 0:
            place["page_number"] = self._page_numbers[page]
            last = bisect_right(self._page_starts, end - 1) - 1
            if last > page:
                place["page_end"] = self._page_numbers[last]
        heading = bisect_right(self._starts, start) - 1
        # Headings at the beginning of the passage belong to it.
        start = max(start, self._ends[heading]) if heading >= 0 else start
        while heading + 1 < len(self._starts) and not _SHOWS.search(
            self._text, start, self._starts[heading + 1]
        ):
            heading += 1
            start = self._ends[heading]
        if heading >= 0 and (section := " > ".join(filter(None, self._paths[heading]))):
            place["section"] = section[:MAX_SECTION]
        return place


def _headings(text: str) -> Iterator[tuple[int, int, int, str]]:
    in_code = False
    for line in _HEADING.finditer(text):
        if line[1] is None:
            in_code = not in_code
        elif not in_code:
            yield line.start(), line.end(), len(line[1]), line[2].strip(" #")
