"""Where sentences begin and end, as exact character spans. Shared by chunking and extraction.

Boundaries come from sentencex (Wikimedia's segmenter, about 300 languages), asked line by line: over
several lines it misses turns of a transcript and items of a list. Of a long line it is given a part at a
time: its work grows with the square of what nobody closes (50,000 opening quotation marks take seconds).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sentencex import get_sentence_boundaries

_LINES = re.compile(r"[^\n]+")
_HEADING = re.compile(r"#{1,6} ")
# Characters of a line: longer than any sentence that somebody wrote.
_WINDOW = 5_000


@dataclass(frozen=True, slots=True)
class Sentence:
    """text[start:end] without white space around it. A heading or a table row is one sentence."""

    start: int
    end: int
    heading: bool = False


def sentences(text: str, lang: str | None = None) -> list[Sentence]:
    """The text's sentences in order; `lang` is a language tag such as en or pt-BR, English when unknown."""
    language = (lang or "en").split("-")[0].lower()
    found: list[Sentence] = []
    for line in _LINES.finditer(text):
        heading = _HEADING.match(line.group()) is not None
        whole = heading or line.group().startswith("|")
        for start, end in [(0, len(line.group()))] if whole else _boundaries(line.group(), language):
            sentence = line.group()[start:end]
            stripped = sentence.strip()
            if stripped:
                begin = line.start() + start + len(sentence) - len(sentence.lstrip())
                found.append(Sentence(begin, begin + len(stripped), heading))
    return found


def _boundaries(line: str, language: str) -> Iterator[tuple[int, int]]:
    start = 0
    while len(line) - start > _WINDOW:
        *whole, (begin, _) = _segments(line[start : start + _WINDOW], language)
        yield from ((start + first, start + last) for first, last in whole)
        # Where the last one ends is not known yet; one that fills the window ends there.
        end = start + (begin or _WINDOW)
        if not whole:
            yield start, end
        start = end
    yield from ((start + first, start + last) for first, last in _segments(line[start:], language))


def _segments(text: str, language: str) -> list[tuple[int, int]]:
    return [(item["start_index"], item["end_index"]) for item in get_sentence_boundaries(language, text)]
