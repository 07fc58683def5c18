"""Query expansion by rules: removes filler phrases, adds other forms of abbreviations."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shared.retrieval.query import MAX_LENGTH
from shared.retrieval.query.filler_phrases import strip_filler
from shared.text.identifiers import whole_word
from shared.text.word_lists import read_toml

_DATA = read_toml(Path(__file__).with_suffix(".toml"))
ABBREVIATIONS: dict[str, str] = _DATA["both_ways"]
# A question with more names is a text.
MAX_ADDITIONS = 20


@dataclass(frozen=True, slots=True)
class Expansion:
    """`text` is embedded; `words`: keywords with the additions."""

    text: str
    words: str
    additions: tuple[str, ...]


# A whole word, not part of a path, an address or a longer name.
_BEGIN, _END = r"(?<![\w./:@#+&=-])", r"(?![\w@#=]|[-./:+&]\w)"
# Keys have no hyphens: their use varies.
_OTHERS = (
    {short.lower(): long for short, long in ABBREVIATIONS.items()}
    | {long.replace("-", " "): short for short, long in ABBREVIATIONS.items()}
    | _DATA["short"]
)
_CAPITALS = {short.lower() for short in ABBREVIATIONS if short.upper() == short and not short[0].isdigit()}
_FORMS = "|".join(
    re.escape(form).replace(r"\ ", r"[\s-]+") for form in sorted(_OTHERS, key=len, reverse=True)
)
_ABBREVIATION = re.compile(rf"{_BEGIN}(?:{_FORMS}){_END}", re.IGNORECASE)


def expand(question: str) -> Expansion:
    """The question without filler phrases, and with other forms of its words. Idempotent. Empty only for an
    empty question."""
    text = strip_filler(question)
    words, additions = text, list[str]()
    for form in dict.fromkeys(_other_forms(text)):
        if len(additions) == MAX_ADDITIONS:
            break
        if not _has(text, form) and len(words) + 1 + len(form) <= MAX_LENGTH:
            additions.append(form)
            words = f"{words} {form}"
    return Expansion(text, words, tuple(additions))


def _other_forms(text: str) -> Iterator[str]:
    """In the order of the text."""
    for match in _ABBREVIATION.finditer(text):
        form = " ".join(re.split(r"[\s-]+", match.group().lower()))
        if form not in _CAPITALS or match.group().isupper():
            yield _OTHERS[form]


def _has(text: str, form: str) -> bool:
    return form.lower() in text.lower() and re.search(whole_word(form), text, re.IGNORECASE) is not None
