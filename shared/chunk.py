"""Text to passages: whole sentences packed up to a size in tokens, spans exact, nothing random.

A heading starts a new passage once the running one is worth keeping, and never ends one; a little of the
end of a passage is repeated at the start of the next, so that a fact on the border is whole in one of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shared.sentences import Sentence, sentences

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: text[start:end] of its document, and what it costs in the embedder's tokens."""

    text: str
    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence, or a part of one that is longer than a chunk.

    `tokens` is its own cost, `joined` its cost behind the piece before it: with the space between them.
    """

    start: int
    end: int
    heading: bool
    tokens: int
    joined: int


def chunk(text: str, *, size: int, overlap: int, count: CountTokens, lang: str | None = None) -> list[Chunk]:
    """Passages of at most `size` tokens, each beginning with up to `overlap` tokens of the one before.

    Only a single character may cost more than `size`: it cannot be halved.

    Every chunk satisfies text[start:end] == chunk.text. Raises ValueError unless 0 <= overlap < size.
    """
    if not 0 <= overlap < size:
        raise ValueError("overlap must be at least 0 and below size")
    groups: list[list[_Piece]] = []
    running: list[_Piece] = []
    for piece in _pieces(text, size, count, lang):
        full = _cost([*running, piece]) > size
        opens = piece.heading and _cost(running) >= size // 4 and not all(item.heading for item in running)
        if running and (full or opens):
            running = _close(running, piece, groups, size, 0 if piece.heading else overlap)
        running.append(piece)
    groups.append(running)
    return [_chunk(text, group, count) for group in groups if group]


def _chunk(text: str, group: list[_Piece], count: CountTokens) -> Chunk:
    start, end = group[0].start, group[-1].end
    return Chunk(text[start:end], start, end, count(text[start:end]))


def _cost(group: list[_Piece]) -> int:
    return sum(item.joined for item in group[1:]) + group[0].tokens if group else 0


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
    # Headings that closed the group belong to what follows; otherwise its last sentences are repeated.
    headings = running[len(body) :]
    opening = headings or _tail(body, overlap)
    if _cost([*opening, upcoming]) <= size:
        return opening
    if headings:
        groups.append(headings)
    return []


def _tail(group: list[_Piece], overlap: int) -> list[_Piece]:
    """As many of the last sentences as fit `overlap`, never all of them."""
    tail: list[_Piece] = []
    for piece in reversed(group[1:]):
        if piece.heading or _cost([piece, *tail]) > overlap:
            break
        tail.insert(0, piece)
    return tail


def _pieces(text: str, size: int, count: CountTokens, lang: str | None) -> Iterator[_Piece]:
    end = 0
    for sentence in sentences(text, lang):
        for part in _parts(text, sentence, size, count):
            tokens, joined = count(text[part.start : part.end]), count(text[end : part.end])
            yield _Piece(part.start, part.end, part.heading, tokens, joined)
            end = part.end


def _parts(text: str, sentence: Sentence, size: int, count: CountTokens) -> list[Sentence]:
    """The sentence, halved at the white space nearest its middle until every part fits."""
    start, end = sentence.start, sentence.end
    if end - start <= 1 or count(text[start:end]) <= size:
        return [sentence]
    middle = (start + end) // 2
    spaces = (text.rfind(" ", start + 1, middle), text.find(" ", middle, end - 1))
    cut = min((spot for spot in spaces if spot >= 0), key=lambda spot: abs(spot - middle), default=middle)
    # Spans begin and end on a character that shows.
    left = Sentence(start, start + len(text[start:cut].rstrip()), sentence.heading)
    right = Sentence(end - len(text[cut:end].lstrip()), end, sentence.heading)
    return _parts(text, left, size, count) + _parts(text, right, size, count)
