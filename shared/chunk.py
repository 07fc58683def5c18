"""Text to passages: whole sentences packed up to a size in tokens, spans exact, nothing random.

A heading starts a new passage once the running one is worth keeping, and never ends one; a little of the
end of a passage is repeated at the start of the next, so that a fact on the border is whole in one of them.
"""

from collections.abc import Callable
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
    """A sentence, or a part of one that is longer than a chunk, with its tokens."""

    start: int
    end: int
    heading: bool
    tokens: int


def chunk(text: str, *, size: int, overlap: int, count: CountTokens, lang: str | None = None) -> list[Chunk]:
    """Passages of at most `size` tokens, each beginning with up to `overlap` tokens of the one before.

    Every chunk satisfies text[start:end] == chunk.text. Raises ValueError unless 0 <= overlap < size.
    """
    if not 0 <= overlap < size:
        raise ValueError("overlap must be at least 0 and below size")
    pieces = [piece for sentence in sentences(text, lang) for piece in _pieces(text, sentence, size, count)]
    groups: list[list[_Piece]] = []
    running: list[_Piece] = []
    for piece in pieces:
        held = sum(item.tokens for item in running)
        full = held + piece.tokens > size
        if running and (full or (piece.heading and held >= size // 4)):
            carried = _headings_at_the_end(running)
            groups.append(running[: len(running) - len(carried)])
            tail = _tail(groups[-1], overlap) if full and not carried else carried
            running = tail if sum(item.tokens for item in tail) + piece.tokens <= size else []
        running.append(piece)
    groups.append(running)
    return [_chunk(text, group, count) for group in groups if group]


def _chunk(text: str, group: list[_Piece], count: CountTokens) -> Chunk:
    start, end = group[0].start, group[-1].end
    return Chunk(text[start:end], start, end, count(text[start:end]))


def _headings_at_the_end(group: list[_Piece]) -> list[_Piece]:
    """The headings that close a group: they belong to what follows. Not the whole group, though."""
    length = 0
    while length < len(group) - 1 and group[-1 - length].heading:
        length += 1
    return group[len(group) - length :]


def _tail(group: list[_Piece], overlap: int) -> list[_Piece]:
    """As many of the last sentences as fit `overlap`, never all of them."""
    tail: list[_Piece] = []
    for piece in reversed(group[1:]):
        if piece.heading or sum(item.tokens for item in tail) + piece.tokens > overlap:
            break
        tail.insert(0, piece)
    return tail


def _pieces(text: str, sentence: Sentence, size: int, count: CountTokens) -> list[_Piece]:
    """The sentence, halved at the white space nearest its middle until every part fits."""
    tokens = count(text[sentence.start : sentence.end])
    if tokens <= size or sentence.end - sentence.start <= 1:
        return [_Piece(sentence.start, sentence.end, sentence.heading, tokens)]
    middle = (sentence.start + sentence.end) // 2
    before = text.rfind(" ", sentence.start + 1, middle)
    after = text.find(" ", middle, sentence.end - 1)
    cut = min(
        (spot for spot in (before, after) if spot >= 0), key=lambda spot: abs(spot - middle), default=middle
    )
    # What follows the cut keeps no leading space: spans begin and end on a character that shows.
    rest = cut + len(text[cut : sentence.end]) - len(text[cut : sentence.end].lstrip())
    left = Sentence(
        sentence.start, sentence.start + len(text[sentence.start : cut].rstrip()), sentence.heading
    )
    right = Sentence(rest, sentence.end, sentence.heading)
    return _pieces(text, left, size, count) + _pieces(text, right, size, count)
