"""Numbers and their units: 1,000, 1.000 and 1 000; 5 %, five percent; $3 million.

Forms are strings for the possible meanings of a number. "bare:5" is a five without a unit, as in a table
whose header names the unit.
"""

import re
from dataclasses import dataclass, field
from decimal import Decimal

from shared.text.word_lists import keys_of_words

COUNTED = {word: int(value) for word, value in keys_of_words(__file__, "counted").items()}
_SCALES = {word: int(value) for word, value in keys_of_words(__file__, "scales").items()}
# Scales only behind a currency ("$3m"); else metres and kelvins.
_SHORT_SCALES = {"k", "m"}
UNITS = keys_of_words(__file__, "units")
_SPACE = r"[ \u00a0\u2009\u202f]"
_DIGITS = (
    rf"\d{{1,3}}(?:[.,'’]\d{{3}})+(?!\d)(?:[.,]\d+)?|\d{{1,3}}(?:{_SPACE}\d{{3}})+(?!\d)|\d+(?:[.,]\d+)?"
)
_COUNT = "|".join(sorted(COUNTED, key=len, reverse=True))
_SCALE = "|".join(sorted(_SCALES, key=len, reverse=True))
_UNIT = "|".join(re.escape(word) for word in sorted(UNITS, key=len, reverse=True))
NUMBER = re.compile(
    rf"(?:(?P<before>US\$|[$€£¥]|\b(?:USD|EUR|GBP|CHF|JPY)\b){_SPACE}?)?"
    rf"(?:(?<![\w.,/-])(?P<sign>[-−](?=\d))?|(?<=[-–/]))(?<![\w.,])(?P<value>{_DIGITS}|\b(?:{_COUNT})\b)"
    rf"(?:st|nd|rd|th|s|er|e)?"
    rf"(?:{_SPACE}?-?(?P<scale>{_SCALE})\b)?(?:{_SPACE}?-?(?:(?P<kind>{_UNIT})(?!\w)))?(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A source with a fact has its `forms`; a source with one of the `accepted` forms states it. `is_soft`: a
    count in words, which a source may leave out. `text`: the fact as written."""

    forms: frozenset[str]
    accepted: frozenset[str]
    is_soft: bool = False
    text: str = field(default="", compare=False)


def number_fact(match: re.Match[str]) -> Fact:
    """The fact of a match of NUMBER."""
    text = match["value"].casefold()
    decimals = [str(COUNTED[text])] if text in COUNTED else _decimals(text)
    scale, unit = (match["scale"] or "").casefold(), (match["kind"] or "").casefold()
    currency = (match["before"] or "").casefold()
    if scale in _SHORT_SCALES and not currency:
        scale, unit = "", scale
    sign, times = "-" if match["sign"] else "", _SCALES.get(scale, 1)
    values = [f"{sign}{_times(decimal, times)}" for decimal in decimals]
    unit = UNITS.get(currency) or UNITS.get(unit)
    with_unit = [f"{unit}:{value}" for value in values] if unit else []
    bare = [f"bare:{value}" for value in values]
    is_soft = text in COUNTED and not unit
    forms, accepted = ([*values, *with_unit], [*with_unit, *bare]) if unit else ([*values, *bare], values)
    return Fact(frozenset(forms), frozenset(accepted), is_soft, match[0].strip())


def _times(decimal: str, scale: int) -> str:
    return decimal if scale == 1 else _plain(Decimal(decimal) * scale)


def _plain(value: Decimal) -> str:
    return f"{value.normalize():f}"


def _decimals(text: str) -> list[str]:
    """The decimal values of a number: 1.234 has two. A fraction keeps its zeros: 1,000 is never 1."""
    plain = re.sub(r"[\s'’]", "", text)
    marks = re.findall(r"[.,]", plain)
    if len(set(marks)) == 1 and re.fullmatch(r"[1-9]\d{0,2}(?:[.,]\d{3})+", plain):
        integer = _plain(Decimal(re.sub(r"[.,]", "", plain)))
        return [integer, plain.replace(",", ".")] if len(marks) == 1 else [integer]
    # Only the last mark can be a decimal one, also in malformed numbers such as 13,700,0.
    return [_plain(Decimal(re.sub(r"[.,](?=.*[.,])", "", plain).replace(",", ".")))]
