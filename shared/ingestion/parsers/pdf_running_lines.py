"""Running headers and footers of a PDF's pages, which belong to no passage."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from shared.ingestion.parsers.pdf_tables import Line, tables_in

# The most lines of a header or footer. More lines that recur are a form, which is content.
EDGE_LINES = 3
# The least number of pages with the line, and their least share: of all, of the left or of the right pages.
PAGES, SHARE_OF_PAGES = 3, 0.6
_NUMBER = re.compile(r"(?<!\d)[1-9]\d{0,4}(?!\d)")

_Key = tuple[int, str]


def without_running_lines(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """The pages without the lines that recur at the same place of their top or bottom edge, the same except
    for the page number. A line without a page number stays on its first page. Pages that have no other
    lines stay as they are."""
    pages_with: defaultdict[_Key, list[int]] = defaultdict(list)
    for number, page in enumerate(pages):
        edges = _from_top(page)
        outer = {*edges[: EDGE_LINES + 1], *edges[-EDGE_LINES - 1 :]}
        for key in {key for position in outer for key in _keys(page[position], number)}:
            pages_with[key].append(number)
    recurring = {key: numbers[0] for key, numbers in pages_with.items() if _is_running(numbers, len(pages))}
    remaining = [_without(page, number, recurring) for number, page in enumerate(pages)]
    return remaining if any(remaining) else [*pages]


def _is_running(numbers: Sequence[int], pages: int) -> bool:
    """Whether a line on the pages of these numbers is that of all pages, or of all left or all right ones."""
    is_of_one_side = len({number % 2 for number in numbers}) == 1
    return len(numbers) >= max(PAGES, SHARE_OF_PAGES * pages / (2 if is_of_one_side else 1))


def _without(page: list[Line], number: int, recurring: Mapping[_Key, int]) -> list[Line]:
    from_top = _from_top(page)
    removed: set[int] = set()
    for positions in (from_top, from_top[::-1]):
        edge: list[int] = []
        for position in positions:
            if recurring.keys().isdisjoint(_keys(page[position], number)):
                break
            edge.append(position)
        removed.update(edge if len(edge) <= EDGE_LINES else [])
    # The header of a table that continues on each page.
    for rows, _ in tables_in(page) if removed else ():
        if not removed.issuperset(rows):
            removed.difference_update(rows)
    first = {position for position in removed if recurring.get(next(_keys(page[position], number))) == number}
    return [line for position, line in enumerate(page) if position not in removed - first]


def _from_top(page: Sequence[Line]) -> list[int]:
    """The positions of the lines from the top of the page to its bottom; in reading order where their places
    are unknown."""
    return sorted(range(len(page)), key=lambda position: -page[position].baseline)


def _keys(line: Line, page: int) -> Iterator[_Key]:
    """The line's height on the page and its text: as it is, and with the distance from the page to each of
    its numbers in the place of the number. None of a line without a position, as OCR reads it."""
    if not line.height:
        return
    height, text = round(line.baseline), " ".join(line.text.split())
    yield height, text
    for number in _NUMBER.finditer(text):
        yield height, f"{text[: number.start()]}\0{int(number.group()) - page}\0{text[number.end() :]}"
