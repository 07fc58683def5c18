"""Time expressions in German, French and Spanish, translated to English for extract.py."""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from shared.retrieval.query.dates.absolute import MONTH
from shared.text.language_detection import ENGLISH_MONTHS, MONTH_NAMES, MONTHS, WEEKDAYS
from shared.text.word_lists import read_toml

_DATA = read_toml(Path(__file__).with_suffix(".toml"))
# The English of a word of each kind, by pattern.
_WORDS: Mapping[str, Mapping[str, str]] = {
    "weekday": dict(zip(_DATA["weekdays"], WEEKDAYS, strict=True)),
    "unit": _DATA["units"],
    "n": _DATA["numbers"],
}
_KINDS = {name: "|".join(words) for name, words in _WORDS.items()} | {"month": MONTH_NAMES}
_KINDS["n"] += r"|\d{1,4}"


def _row(phrase: str, english: str) -> tuple[re.Pattern[str], str]:
    pattern = phrase.replace(" ", r"\s+")
    for name, words in _KINDS.items():
        pattern = pattern.replace(f"{{{name}}}", f"(?P<{name}>{words})")
    return re.compile(rf"(?:{pattern})(?![\w-])", re.IGNORECASE), english


# Patterns of phrases, each with its English.
ROWS: Sequence[tuple[re.Pattern[str], str]] = [
    _row(*phrase) for phrase in chain.from_iterable(_DATA["phrases"].values())
]


def translate(match: re.Match[str], english: str) -> str:
    words = {name: value or "" for name, value in match.groupdict().items()}
    if month := words.get("month"):
        # An English name remains as it is: "dec" alone has other senses.
        is_english = re.fullmatch(MONTH, month, re.IGNORECASE)
        words["month"] = month if is_english else ENGLISH_MONTHS[MONTHS[month.lower()] - 1].capitalize()
    for name in _WORDS.keys() & words:
        for pattern, word in _WORDS[name].items():
            if re.fullmatch(pattern, words[name], re.IGNORECASE):
                words[name] = str(word)
                break
    return english.format(**words).strip()
