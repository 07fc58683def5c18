"""Order of reading of columns that a PDF draws line by line."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

# The least width of the gap between two columns, relative to the height of a line.
GUTTER = 0.4
# The least number of lines with text on both sides of the gap. After the last one, the most lines that may
# belong to the longer column.
ROWS, LINES_OF_ONE_COLUMN = 3, 50
# A line with more gaps is a row of a table. It bounds the time.
MAX_GAPS = 8
# The least usual length of a column's line in characters: the cells of a table are shorter.
LENGTH = 20
# A page with more lines is read in the order of drawing. It bounds the time.
MAX_LINES = 1_000
# The greatest distance of two lines of a block, in heights of a line.
LEADING = 5.0
# The shares of lines that continue a sentence, of equal distances, and of lines that begin at the column's
# edge.
CONTINUED, EQUAL, ALIGNED = 0.3, 0.75, 0.7

Box = tuple[float, float, float, float]
_Gap = tuple[float, float]


class Word(NamedTuple):
    """A word, its horizontal interval in points, and the index of its first character."""

    text: str
    left: float
    right: float
    first: int


class WordLine(NamedTuple):
    """The words of a line. `ends_raised`: whether the last one ends with an exponent or index; `has_gaps`:
    whether some words have the gap between them that may divide columns."""

    words: Sequence[Word]
    size: float
    bottom: float
    height: float
    turn: Callable[[Box], Box]
    ends_raised: bool
    has_gaps: bool


def from_top(lines: Sequence[WordLine]) -> list[WordLine]:
    """The lines; those that are drawn after lines below all of them, as programs draw merged cells and
    running headers, stand before these."""
    if len(lines) > MAX_LINES:
        return [*lines]
    ordered: list[WordLine] = []
    for block in _blocks(lines):
        at = len(ordered)
        if ordered and _is_above(block[0], ordered[-1]):
            below = (index for index, other in enumerate(ordered) if _is_above(block[0], other))
            first = next((index for index in below if _overlap(block[0], ordered[index])), at)
            at = first if first < at and _is_above(block[-1], ordered[first]) else at
        ordered[at:at] = block
    return ordered


def _blocks(lines: Sequence[WordLine]) -> Iterator[list[WordLine]]:
    """Lines that are drawn one after the other and stand closely below each other."""
    block: list[WordLine] = []
    for line in lines:
        is_next = block and 0 < block[-1].bottom - line.bottom < LEADING * line.height
        if is_next and _overlap(block[-1], line):
            block.append(line)
        else:
            if block:
                yield block
            block = [line]
    if block:
        yield block


def _is_above(line: WordLine, other: WordLine) -> bool:
    return line.bottom - other.bottom > max(line.height, other.height) / 2


def _overlap(line: WordLine, other: WordLine) -> bool:
    """Whether the lines have half of the shorter one's width in common."""
    intervals = [(one.words[0].left, one.words[-1].right) for one in (line, other)]
    shared = min(right for _, right in intervals) - max(left for left, _ in intervals)
    return line.turn is other.turn and 2 * shared > min(right - left for left, right in intervals)


def by_columns(lines: Sequence[WordLine]) -> list[WordLine]:
    """The lines; where they stand in columns of prose, those of the left column first."""
    ordered: list[WordLine] = []
    start = 0
    while start < len(lines):
        end, gap, rows = max(
            (_rows(lines, start, gap) for gap in _gaps(lines[start])),
            key=lambda gap: len(gap[2]),
            default=(start + 1, (0.0, 0.0), []),
        )
        if len(rows) < ROWS:
            end = start + 1
        if len(rows) >= ROWS and _is_prose(lines[start:end], rows, gap):
            for is_left in (True, False):
                ordered += by_columns(
                    [part for line in lines[start:end] if (part := _part(line, gap, is_left))]
                )
        else:
            ordered += lines[start:end]
        start = end
    return ordered


def _gaps(line: WordLine) -> list[_Gap]:
    if not line.has_gaps:
        return []
    least = GUTTER * line.height
    gaps = [
        (word.right, following.left)
        for word, following in pairwise(line.words)
        if following.left - word.right >= least
    ]
    return gaps if len(gaps) <= MAX_GAPS else []


def _rows(lines: Sequence[WordLine], start: int, gap: _Gap) -> tuple[int, _Gap, list[int]]:
    """The end of the lines that the gap divides, the gap between them all, and the positions of those with
    text on both sides."""
    left, right = gap
    rows = [start]
    end = start + 1
    for position in range(start + 1, len(lines)):
        line = lines[position]
        least = GUTTER * line.height
        begins, ends = line.words[0].left, line.words[-1].right
        if ends <= right - least:
            left = max(left, ends)
        elif begins >= left + least:
            right = min(right, begins)
        else:
            shared = [(max(left, one), min(right, other)) for one, other in _gaps(line)]
            widest = max(shared, key=lambda gap: gap[1] - gap[0], default=(0.0, 0.0))
            if widest[1] - widest[0] < least:
                break
            left, right = widest
            rows.append(position)
        is_next = abs(lines[position - 1].bottom - line.bottom) < 1.6 * line.height
        if rows[-1] == position or (end == position and is_next and line.size == lines[rows[-1]].size):
            end = position + 1
        elif position - rows[-1] > LINES_OF_ONE_COLUMN:
            break
    return end, (left, right), rows


def _part(line: WordLine, gap: _Gap, is_left: bool) -> WordLine | None:
    words = [word for word in line.words if (word.left < gap[1] - 0.01) == is_left]
    return line._replace(words=words) if words else None


def _is_prose(lines: Sequence[WordLine], rows: Sequence[int], gap: _Gap) -> bool:
    """Whether the lines are sentences that continue below, at the same distances, and no rows of a table."""
    distances = [abs(one.bottom - other.bottom) for one, other in pairwise(lines)]
    usual = median(distances)
    if sum(abs(distance - usual) <= 0.15 * usual for distance in distances) < EQUAL * len(distances):
        return False
    columns = [
        [part.words for line in lines if (part := _part(line, gap, is_left))] for is_left in (True, False)
    ]
    if len(rows) * 2 < max(map(len, columns)):
        return False
    for column in columns:
        if median(sum(len(word.text) + 1 for word in words) for words in column) < LENGTH:
            return False
        firsts = [words[0].text[:1] for words in column]
        cased = sum(first.islower() or first.isupper() for first in firsts)
        if sum(map(str.islower, firsts)) < CONTINUED * cased:
            return False
    edge = min(words[0].left for words in columns[1])
    return sum(words[0].left < edge + 2 for words in columns[1]) >= ALIGNED * len(columns[1])
