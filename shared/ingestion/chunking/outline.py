"""Where a passage stands in its document: on which page, under which headings."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Any

_HEADING = re.compile(r"^(#{1,6}) +(\S.*)$|^(?:```|~~~)", re.MULTILINE)
_SHOWS = re.compile(r"\S")
MAX_SECTION = 300


class Outline:
    """Of a Markdown text, with the places where its pages begin: (character, number), in order; and with
    headings besides Markdown's: (start, end, level, title), in order, below level 6."""

    def __init__(
        self,
        text: str,
        pages: Sequence[tuple[int, int]] = (),
        headings: Sequence[tuple[int, int, int, str]] = (),
    ) -> None:
        self._text = text
        self._page_starts = [start for start, _ in pages]
        self._page_numbers = [number for _, number in pages]
        # Where each begins and ends, and its own title below those that it stands under.
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._paths: list[tuple[str, ...]] = []
        above: list[tuple[int, str]] = []
        for start, end, level, title in merge(_headings(text), headings):
            above = [heading for heading in above if heading[0] < level]
            above.append((level, title))
            self._starts.append(start)
            self._ends.append(end)
            self._paths.append(tuple(title for _, title in above))

    def place(self, start: int, end: int) -> dict[str, Any]:
        """Of text[start:end], what there is of: `page_number`, `page_end` where it ends on another, and
        `section`, the titles of the headings above its text, joined by " > "."""
        place: dict[str, Any] = {}
        page = bisect_right(self._page_starts, start) - 1
        if page >= 0:
            place["page_number"] = self._page_numbers[page]
            last = bisect_right(self._page_starts, end - 1) - 1
            if last > page:
                place["page_end"] = self._page_numbers[last]
        heading = bisect_right(self._starts, start) - 1
        # Headings that the passage begins with are its own.
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
