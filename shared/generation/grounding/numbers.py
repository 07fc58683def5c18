"""Numbers and their units: 1,000, 1.000 and 1 000; 5 %, five percent; $3 million.

Forms are strings for the possible meanings of a number. "bare:5" is a five without a unit, as in a table
whose header names the unit.
"""

import re
from dataclasses import dataclass, field
from decimal import Decimal

_COUNTED = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty",
    "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn zwanzig",
    "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize",
    "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
)
COUNTED = {
    word: value for words in _COUNTED for value, word in enumerate(words.split(), start=2) if word != "once"
} | {
    word: 10 * value
    for words in (
        "twenty thirty forty fifty sixty seventy eighty ninety",
        "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
        "vingt trente quarante cinquante soixante",
        "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    )
    for value, word in enumerate(words.split(), start=2)
}
_SCALES = {
    "hundred": 100, "thousand": 1000, "tausend": 1000, "mille": 1000, "mil": 1000, "k": 1000,
    "million": 10**6, "millions": 10**6, "millionen": 10**6, "mio": 10**6, "m": 10**6, "millones": 10**6,
    "billion": 10**9, "billions": 10**9, "bn": 10**9, "milliarde": 10**9, "milliarden": 10**9,
    "mrd": 10**9, "milliards": 10**9, "milliard": 10**9, "trillion": 10**12,
}  # fmt: skip
# Scales only behind a currency ("$3m"); else metres and kelvins.
_SHORT_SCALES = {"k", "m"}
_UNITS = {
    "%": "% percent prozent pourcent porcentaje",
    "usd": "$ us$ usd dollar dollars", "eur": "€ eur euro euros", "gbp": "£ gbp pound pounds pfund",
    "jpy": "¥ jpy yen", "chf": "chf franken francs franc",
    "s": "s sec second seconds sekunde sekunden seconde secondes segundos",
    "min": "min minute minutes minuten minutos", "h": "h hour hours stunde stunden heure heures horas",
    "day": "day days tag tage tagen jour jours días",
    "week": "week weeks woche wochen semaine semaines semanas",
    "month": "month months monat monate monaten mois meses",
    "year": "year years jahr jahre jahren an ans année années años",
    "mm": "mm millimetre millimetres millimeter millimeters", "cm": "cm centimetre centimetres centimeter",
    "m": "m metre metres meter meters mètre mètres metros",
    "km": "km kilometre kilometres kilometer kilometers kilomètres", "mile": "mi mile miles meilen",
    "foot": "ft foot feet", "inch": "inch inches zoll", "g": "g gram grams gramm",
    "kg": "kg kilogram kilograms",
    "l": "l litre litres liter liters", "°c": "°c celsius", "°f": "°f fahrenheit", "w": "w watt watts",
    "kw": "kw kilowatt kilowatts", "kwh": "kwh", "v": "v volt volts", "mb": "mb megabyte megabytes",
    "gb": "gb gigabyte gigabytes", "tb": "tb terabyte terabytes", "ms": "ms millisecond milliseconds",
}  # fmt: skip
UNITS = {word: unit for unit, words in _UNITS.items() for word in words.split()}
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
