"""Chunks of a text: its parts, packed up to a size in tokens, with exact spans.

A heading begins a chunk once the running one has a useful length, and never ends one. The end of a chunk is
repeated at the start of the next one, so that a fact at the border is complete in one of them. A block that
fits a chunk, but not the running one, begins a chunk.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from shared.ingestion.chunking.boundaries import Break, Span
from shared.ingestion.chunking.text_parts import Part, SplitText
from shared.ingestion.chunking.whole_rows import is_whole_row

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Chunk:
    """text[start:end] of a document, and its length in the embedder's tokens. `header`: the span of the table
    header or the question that belongs to the chunk and stands before it."""

    text: str
    start: int
    end: int
    tokens: int
    header: Span | None = None


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the text, or a piece of a part that is longer than a chunk.

    `tokens`: its own cost; `joined`: its cost with the space before it; `rest`: the cost of the rest of its
    block, where the block fits a chunk.
    """

    part: Part
    tokens: int
    joined: int
    rest: int = 0


def pack(
    text: str, split_text: SplitText, size: int, overlap: int, count: CountTokens, row_size: int = 0
) -> list[Chunk]:
    """Chunks of at most `size` tokens, each beginning with up to `overlap` tokens of the one before. Only a
    single character may cost more, and a row (whole_rows.py): up to `row_size`. Raises ValueError
    unless 0 <= overlap < size."""
    if not 0 <= overlap < size:
        raise ValueError("overlap must be at least 0 and below size")
    groups: list[list[_Piece]] = []
    running: list[_Piece] = []
    cost = 0
    for piece in _pieces(text, split_text, size, count, row_size):
        if running and _starts_chunk(running, cost, piece, size):
            is_repeated = piece.part.break_before == Break.NONE
            running = _close(running, piece, groups, size, overlap if is_repeated else 0)
            cost = _cost(running)
        cost += piece.joined if running else piece.tokens
        running.append(piece)
    groups.append(running)
    return [item for group in groups if group for item in _chunks(text, group, size, count)]


def _chunks(text: str, group: list[_Piece], size: int, count: CountTokens) -> list[Chunk]:
    """The group as one chunk, or as several where its pieces cost more together than one by one: the upper
    bound for hosted models is not additive."""
    start, end = group[0].part.start, group[-1].part.end
    item = Chunk(text[start:end], start, end, count(text[start:end]), group[0].part.header)
    if item.tokens <= size or len(group) == 1:
        return [item]
    middle = len(group) // 2
    return [part for half in (group[:middle], group[middle:]) for part in _chunks(text, half, size, count)]


def _cost(group: list[_Piece]) -> int:
    return sum(item.joined for item in group[1:]) + group[0].tokens if group else 0


def _starts_chunk(running: list[_Piece], cost: int, upcoming: _Piece, size: int) -> bool:
    """Whether the upcoming piece begins a chunk behind the running group, whose cost is given."""
    break_before = upcoming.part.break_before
    if cost + upcoming.joined > size:
        return True
    if break_before < Break.SOFT and cost + upcoming.joined + upcoming.rest <= size:
        return False
    # Headings stay with the text below them, even if this divides a block.
    if all(item.part.heading for item in running):
        return False
    return (
        break_before == Break.HARD
        or (break_before == Break.SOFT and cost >= size // 4)
        or cost + upcoming.joined + upcoming.rest > size
    )


def _close(
    running: list[_Piece], upcoming: _Piece, groups: list[list[_Piece]], size: int, overlap: int
) -> list[_Piece]:
    """Add the running group to `groups`. Returns the beginning of the next group, before `upcoming`."""
    body = list(running)
    while len(body) > 1 and body[-1].part.heading:
        body.pop()
    if body[-1].part.heading:
        body = list(running)
    groups.append(body)
    # Headings at the end belong to the next group; otherwise the last pieces are repeated.
    headings = running[len(body) :]
    opening = headings or _overlap(body, overlap)
    if _cost([*opening, upcoming]) + (0 if headings else upcoming.rest) <= size:
        return opening
    if headings:
        groups.append(headings)
    return []


def _overlap(group: list[_Piece], overlap: int) -> list[_Piece]:
    """The last pieces that fit `overlap`, never all."""
    tail: list[_Piece] = []
    for piece in reversed(group[1:]):
        if piece.part.heading or _cost([piece, *tail]) > overlap:
            break
        tail.insert(0, piece)
    return tail


def _pieces(text: str, split_text: SplitText, size: int, count: CountTokens, row_size: int) -> list[_Piece]:
    end = 0
    pieces: list[_Piece] = []
    for part_of_text in split_text.parts:
        whole = part_of_text
        tokens = count(text[whole.start : whole.end])
        limit = max(size, row_size) if is_whole_row(text, whole) else size
        # A row that is longer than a chunk keeps the headings above it.
        while pieces and size < tokens <= limit and pieces[-1].part.heading:
            heading = pieces[-1].part
            break_before = max(heading.break_before, whole.break_before)
            longer = replace(whole, start=heading.start, break_before=break_before)
            cost = count(text[longer.start : longer.end])
            if cost > limit:
                break
            whole, tokens = longer, cost
            pieces.pop()
            end = pieces[-1].part.end if pieces else 0
        parts = [whole] if tokens <= limit else _parts(text, whole, size, count)
        for number, part in enumerate(parts):
            tokens = tokens if part is whole else count(text[part.start : part.end])
            # Further pieces of a part that is no heading have no break.
            own = part if part.heading or not number else replace(part, break_before=Break.NONE)
            pieces.append(_Piece(own, tokens, count(text[end : part.end])))
            end = part.end
    return _with_rest_of_blocks(pieces, split_text.blocks, size) if split_text.blocks else pieces


def _with_rest_of_blocks(pieces: list[_Piece], blocks: Sequence[Span], size: int) -> list[_Piece]:
    """The pieces, where the first piece of a block that fits a chunk has the cost of the others."""
    starts = [piece.part.start for piece in pieces]
    sums = [0, *accumulate(piece.joined for piece in pieces)]
    rest_by_piece: dict[int, int] = {}
    for start, end in blocks:
        first, after = bisect_left(starts, start), bisect_left(starts, end)
        if after - first > 1:
            rest = sums[after] - sums[first + 1]
            if pieces[first].tokens + rest <= size:
                rest_by_piece[first] = max(rest, rest_by_piece.get(first, 0))
    for index, rest in rest_by_piece.items():
        pieces[index] = replace(pieces[index], rest=rest)
    return pieces


def _parts(text: str, part: Part, size: int, count: CountTokens) -> list[Part]:
    """The part, halved at the white space nearest its middle until every half fits."""
    start, end = part.start, part.end
    if end - start <= 1 or count(text[start:end]) <= size:
        return [part]
    if text[start].isspace():
        # Code may have a long indentation.
        return _parts(text, replace(part, start=end - len(text[start:end].lstrip())), size, count)
    middle = (start + end) // 2
    spaces = (text.rfind(" ", start + 1, middle), text.find(" ", middle, end - 1))
    cut = min((spot for spot in spaces if spot >= 0), key=lambda spot: abs(spot - middle), default=middle)
    # Spans begin and end with a visible character.
    left = replace(part, start=start, end=start + len(text[start:cut].rstrip()))
    right = replace(part, start=end - len(text[cut:end].lstrip()), end=end)
    return _parts(text, left, size, count) + _parts(text, right, size, count)
