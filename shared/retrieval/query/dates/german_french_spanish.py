"""Time expressions in German, French and Spanish, translated to English for extract.py."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.text.language_detection import ENGLISH_MONTHS, WEEKDAYS
from shared.text.word_lists import read_toml

# Used in every language.
_ALL_LANGUAGES = (
    (r"[QT](?P<quarter>[1-4])", "Q{quarter}"),
    (r"(?P<year>(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?)", "{year}"),
)


@dataclass(frozen=True, slots=True)
class DateLanguage:
    """Patterns of a language: months from January, weekdays from Monday, units, numbers, phrases."""

    months: Sequence[str]
    weekdays: Sequence[str]
    units: Mapping[str, str]
    numbers: Mapping[str, int]
    phrases: Sequence[tuple[str, str]]

    def rows(self) -> list[tuple[re.Pattern[str], str]]:
        parts = {
            "{month}": rf"(?P<month>{'|'.join(self.months)})",
            "{weekday}": rf"(?P<weekday>{'|'.join(self.weekdays)})",
            "{unit}": rf"(?P<unit>{'|'.join(self.units)})",
            "{n}": rf"(?P<n>\d{{1,4}}|{'|'.join(self.numbers)})",
        }
        patterns = []
        for phrase, english in (*self.phrases, *_ALL_LANGUAGES):
            pattern = phrase.replace(" ", r"\s+")
            for name, part in parts.items():
                pattern = pattern.replace(name, part)
            patterns.append((re.compile(rf"(?:{pattern})(?![\w-])", re.IGNORECASE), english))
        return patterns

    def english(self, english: str, groups: Mapping[str, str]) -> str:
        """The English phrase with its placeholders filled from the groups."""
        words = dict(groups)
        if month := words.get("month"):
            words["month"] = ENGLISH_MONTHS[_index(self.months, month)].capitalize()
        if weekday := words.get("weekday"):
            words["weekday"] = WEEKDAYS[_index(self.weekdays, weekday)]
        if unit := words.get("unit"):
            words["unit"] = list(self.units.values())[_index(tuple(self.units), unit)]
        if (number := words.get("n")) and not number.isdecimal():
            words["n"] = str(list(self.numbers.values())[_index(tuple(self.numbers), number)])
        return english.format(**words)


def _index(patterns: Sequence[str], word: str) -> int:
    matching = (re.fullmatch(pattern, word, re.IGNORECASE) for pattern in patterns)
    return next(index for index, match in enumerate(matching) if match)


_DATA = read_toml(Path(__file__).with_suffix(".toml"))
DATE_LANGUAGES = tuple(DateLanguage(**data) for data in _DATA.values())
