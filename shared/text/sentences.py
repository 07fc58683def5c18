"""Sentences of a text, as exact character spans.

sentencex (Wikimedia's segmenter, about 300 languages) gets one unwrapped line at a time: over more it misses
turns of a transcript and items of a list. It gets a long line in windows: its time grows with the square of
the open quotation marks (50,000 take seconds).
"""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

from sentencex import get_sentence_boundaries

from shared.text.language_detection import MONTH_NAMES
from shared.text.line_breaks import unwrapped

_LINES = re.compile(r"[^\n]+")
_HEADING = re.compile(r"#{1,6} ")
_ORDINAL = re.compile(r"\b\d{1,2}\.\s*\Z")
# Not the English ones that may begin a sentence, or follow no period in a date.
_MONTH = re.compile(rf"(?!may\b|march\b)(?:{MONTH_NAMES})\b", re.IGNORECASE)
# The length of a window in characters, longer than any real sentence.
_WINDOW = 5_000


@dataclass(frozen=True, slots=True)
class Sentence:
    """text[start:end] without white space around it. A heading or a table row is one sentence."""

    start: int
    end: int
    heading: bool = False


def sentences(text: str, lang: str | None = None, starts: Container[int] = ()) -> list[Sentence]:
    """The text's sentences in order; `lang` is a language tag such as en or pt-BR, English when unknown.
    `starts`: the positions of lines that begin a sentence."""
    return sentences_of_lines(unwrapped(text, starts), lang)


def sentences_of_lines(text: str, lang: str | None = None) -> list[Sentence]:
    """The sentences of a text that is unwrapped already."""
    language = (lang or "en").split("-")[0].lower()
    result: list[Sentence] = []
    for line in _LINES.finditer(text):
        heading = _HEADING.match(line.group()) is not None
        is_one_sentence = heading or line.group().startswith("|")
        for start, end in (
            [(0, len(line.group()))] if is_one_sentence else _boundaries(line.group(), language)
        ):
            sentence = line.group()[start:end]
            stripped = sentence.strip()
            if stripped:
                begin = line.start() + start + len(sentence) - len(sentence.lstrip())
                result.append(Sentence(begin, begin + len(stripped), heading))
    return result


def _boundaries(line: str, language: str) -> Iterator[tuple[int, int]]:
    start = 0
    while len(line) - start > _WINDOW:
        *is_one_sentence, (begin, _) = _segments(line[start : start + _WINDOW], language)
        yield from ((start + first, start + last) for first, last in is_one_sentence)
        # The end of the last one is unknown, unless it fills the window.
        end = start + (begin or _WINDOW)
        if not is_one_sentence:
            yield start, end
        start = end
    yield from ((start + first, start + last) for first, last in _segments(line[start:], language))


def _segments(text: str, language: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for item in get_sentence_boundaries(language, text):
        start, end = item["start_index"], item["end_index"]
        # An ordinal before a lower-case word or a month, as in "17. August", in a text of unknown language.
        goes_on = text[start : start + 1].islower() or _MONTH.match(text, start)
        if spans and goes_on and _ORDINAL.search(text, 0, start):
            start = spans.pop()[0]
        spans.append((start, end))
    return spans
