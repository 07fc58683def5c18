"""Location of each chunk in its document: the pages, and the headings above it."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any

from shared.ingestion.chunking.boundaries import Heading

_HEADING = re.compile(r"^(#{1,6}) +(\S.*)$|^(?:```|~~~)", re.MULTILINE)
_SHOWS = re.compile(r"\S")
MAX_SECTION = 300
# A title's spaces beside > become no-break spaces: " > " only separates titles.
_SPACE_BESIDE_SEPARATOR = re.compile(r" (?=>)|(?<=>) ")


class Outline:
    """Pages and headings of a Markdown text. `pages`: (first character, number); `headings`: those that are
    not Markdown's, below level 6. Both are in order."""

    def __init__(
        self, text: str, pages: Sequence[tuple[int, int]] = (), headings: Sequence[Heading] = ()
    ) -> None:
        self._text = text
        self._pages = pages
        # Start and end of each heading, and its title below those above it.
        self._headings: list[tuple[int, int, str]] = []
        above: list[tuple[int, str]] = []
        for start, end, level, title in merge(_headings(text), headings):
            above = [heading for heading in above if heading[0] < level]
            above.append((level, _SPACE_BESIDE_SEPARATOR.sub("\u00a0", title)))
            self._headings.append((start, end, " > ".join(title for _, title in above if title)))

    def location(self, start: int, end: int) -> dict[str, Any]:
        """`page_number` of text[start:end]; `page_end`: its last page, if it is on several; `section`: the
        titles of the headings above it, joined by " > ". Without those that the document lacks."""
        location: dict[str, Any] = {}
        first, last = (bisect_right(self._pages, at, key=itemgetter(0)) - 1 for at in (start, end - 1))
        if first >= 0:
            location["page_number"] = self._pages[first][1]
            if last > first:
                location["page_end"] = self._pages[last][1]
        above, section = bisect_right(self._headings, start, key=itemgetter(0)) - 1, ""
        if above >= 0:
            _, after, section = self._headings[above]
            start = max(start, after)
        # Headings at the beginning of the passage belong to it.
        for number in range(above + 1, len(self._headings)):
            begin, after, title = self._headings[number]
            if _SHOWS.search(self._text, start, begin):
                break
            start, section = after, title
        return location | ({"section": section[:MAX_SECTION]} if section else {})


def _headings(text: str) -> Iterator[Heading]:
    in_code = False
    for line in _HEADING.finditer(text):
        if line[1] is None:
            in_code = not in_code
        elif not in_code:
            yield line.start(), line.end(), len(line[1]), line[2].strip(" #")
