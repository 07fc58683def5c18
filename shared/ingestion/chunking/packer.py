"""Text to passages: its parts packed up to a size in tokens, spans exact, nothing random.

A heading starts a new passage once the running one is worth keeping, and never ends one; a little of the
end of a passage is repeated at the start of the next, so that a fact on the border is whole in one of them.
What should stay whole starts a new passage when it fits one, and not the running one.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from shared.ingestion.chunking.boundaries import Opening
from shared.ingestion.chunking.segments import Part, Span
from shared.ingestion.chunking.splitters import split
from shared.ingestion.chunking.strategy import BY_SENTENCES, Plan

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: text[start:end] of its document, and what it costs in the embedder's tokens.

    `under` is the place of what should be read before it: the head of the table that it goes on with, or the
    question that it goes on answering.
    """

    text: str
    start: int
    end: int
    tokens: int
    under: Span | None = None


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the text, or a part of one that is longer than a chunk.

    `tokens` is its own cost, `joined` its cost behind the piece before it: with the space between them.
    `rest` is the cost of what should stay in one chunk with it, and can.
    """

    start: int
    end: int
    heading: bool
    opening: Opening
    under: Span | None
    tokens: int
    joined: int
    rest: int = 0


def chunk(
    text: str,
    *,
    size: int,
    overlap: int,
    count: CountTokens,
    lang: str | None = None,
    plan: Plan = BY_SENTENCES,
) -> list[Chunk]:
    """Passages of at most `size` tokens, each beginning with up to `overlap` tokens of the one before.

    Only a single character may cost more than `size`: it cannot be halved.

    Every chunk satisfies text[start:end] == chunk.text. Raises ValueError unless 0 <= overlap < size.
    """
    if not 0 <= overlap < size:
        raise ValueError("overlap must be at least 0 and below size")
    groups: list[list[_Piece]] = []
    running: list[_Piece] = []
    cost = 0
    for piece in _pieces(text, size, count, lang, plan):
        if running and _ends(running, cost, piece, size):
            running = _close(running, piece, groups, size, overlap if piece.opening == Opening.NONE else 0)
            cost = _cost(running)
        cost += piece.joined if running else piece.tokens
        running.append(piece)
    groups.append(running)
    return [item for group in groups if group for item in _chunks(text, group, size, count)]


def _chunks(text: str, group: list[_Piece], size: int, count: CountTokens) -> list[Chunk]:
    """The group as one chunk; as several where its pieces cost more together than one by one, as "..." and
    another script's full stop do by the upper bound of hosted models."""
    start, end = group[0].start, group[-1].end
    item = Chunk(text[start:end], start, end, count(text[start:end]), group[0].under)
    if item.tokens <= size or len(group) == 1:
        return [item]
    middle = len(group) // 2
    return [part for half in (group[:middle], group[middle:]) for part in _chunks(text, half, size, count)]


def _cost(group: list[_Piece]) -> int:
    return sum(item.joined for item in group[1:]) + group[0].tokens if group else 0


def _ends(running: list[_Piece], cost: int, upcoming: _Piece, size: int) -> bool:
    """The running group, which costs so much, is full, or what comes begins another."""
    if cost + upcoming.joined > size:
        return True
    if upcoming.opening < Opening.SOFT and cost + upcoming.joined + upcoming.rest <= size:
        return False
    # Headings stay with what they head, even if that is divided for it.
    if all(item.heading for item in running):
        return False
    return (
        upcoming.opening == Opening.ALWAYS
        or (upcoming.opening == Opening.SOFT and cost >= size // 4)
        or cost + upcoming.joined + upcoming.rest > size
    )


def _close(
    running: list[_Piece], upcoming: _Piece, groups: list[list[_Piece]], size: int, overlap: int
) -> list[_Piece]:
    """Add the running group to `groups`; what the next group begins with, before `upcoming`."""
    body = list(running)
    while len(body) > 1 and body[-1].heading:
        body.pop()
    if body[-1].heading:
        body = list(running)
    groups.append(body)
    # Headings that closed the group belong to what follows; otherwise its last parts are repeated.
    headings = running[len(body) :]
    opening = headings or _tail(body, overlap)
    if _cost([*opening, upcoming]) + (0 if headings else upcoming.rest) <= size:
        return opening
    if headings:
        groups.append(headings)
    return []


def _tail(group: list[_Piece], overlap: int) -> list[_Piece]:
    """As many of the last pieces as fit `overlap`, never all of them."""
    tail: list[_Piece] = []
    for piece in reversed(group[1:]):
        if piece.heading or _cost([piece, *tail]) > overlap:
            break
        tail.insert(0, piece)
    return tail


def _pieces(text: str, size: int, count: CountTokens, lang: str | None, plan: Plan) -> list[_Piece]:
    end = 0
    division = split(text, plan, lang)
    pieces: list[_Piece] = []
    for whole in division.parts:
        opening, tokens = whole.opening, count(text[whole.start : whole.end])
        parts = [whole] if tokens <= size else _parts(text, whole, size, count)
        for part in parts:
            tokens = tokens if part is whole else count(text[part.start : part.end])
            joined = count(text[end : part.end])
            pieces.append(_Piece(part.start, part.end, part.heading, opening, part.under, tokens, joined))
            end = part.end
            # What is left of a part that was cut goes on, but for a heading.
            opening = opening if part.heading else Opening.NONE
    return _with_rests(pieces, division.wholes, size) if division.wholes else pieces


def _with_rests(pieces: list[_Piece], wholes: Sequence[Span], size: int) -> list[_Piece]:
    """The pieces that begin the largest whole that fits a chunk know what the others of it cost."""
    starts = [piece.start for piece in pieces]
    sums = [0, *accumulate(piece.joined for piece in pieces)]
    rests: dict[int, int] = {}
    for start, end in wholes:
        first, after = bisect_left(starts, start), bisect_left(starts, end)
        if after - first > 1:
            rest = sums[after] - sums[first + 1]
            if pieces[first].tokens + rest <= size:
                rests[first] = max(rest, rests.get(first, 0))
    for place, rest in rests.items():
        pieces[place] = replace(pieces[place], rest=rest)
    return pieces


def _parts(text: str, part: Part, size: int, count: CountTokens) -> list[Part]:
    """The part, halved at the white space nearest its middle until every half fits."""
    start, end = part.start, part.end
    if end - start <= 1 or count(text[start:end]) <= size:
        return [part]
    if text[start].isspace():
        # A line of code may stand far in.
        return _parts(text, replace(part, start=end - len(text[start:end].lstrip())), size, count)
    middle = (start + end) // 2
    spaces = (text.rfind(" ", start + 1, middle), text.find(" ", middle, end - 1))
    cut = min((spot for spot in spaces if spot >= 0), key=lambda spot: abs(spot - middle), default=middle)
    # Spans begin and end on a character that shows.
    left = replace(part, start=start, end=start + len(text[start:cut].rstrip()))
    right = replace(part, start=end - len(text[cut:end].lstrip()), end=end)
    return _parts(text, left, size, count) + _parts(text, right, size, count)
