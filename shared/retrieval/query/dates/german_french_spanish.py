"""Time expressions in German, French and Spanish, with their English: data for extract.py.

Longer phrases come first. {month}, {weekday} and {unit} match words of the language, {n} a number. Months
include misspellings (maerz), unlike text/language_detection.py. A word with another sense in another
language stands in a phrase: the French "hier" is German for "here".
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.text.language_detection import ENGLISH_MONTHS, WEEKDAYS

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


_GERMAN = DateLanguage(
    months=("januar|jänner", "februar", "märz|maerz", "april", "mai", "juni", "juli", "august", "september",
            "oktober", "november", "dezember"),
    weekdays=("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag|sonnabend", "sonntag"),
    units={"tage?n?": "day", "wochen?": "week", "monate?n?": "month", "quartale?n?": "quarter",
           "jahre?n?": "year",
           "stunden?": "hour"},
    numbers={"eine[mnr]?": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "paar": 5},
    phrases=(
        ("(?:der |die )?(?:letzte|vergangene|vorige)[nr]? woche", "last week"),
        ("(?:letzte|vergangene|vorige)[mns]? {unit}", "last {unit}"),
        ("(?:dieser?|der laufenden) woche", "this week"),
        ("diese[mns]? {unit}", "this {unit}"),
        ("(?:(?:den|der|die) )?(?:letzten|vergangenen) {n} {unit}", "last {n} {unit}"),
        ("vor {n} {unit}", "{n} {unit} ago"),
        ("(?:letzte|vergangene)[mnr]? {weekday}", "last {weekday}"),
        (r"(?P<day>\d{1,2})\. {month}(?: (?P<of>\d{4}))?", "{day} {month} {of}"),
        (r"(?:im )?jahre? (?P<of>\d{4})", "in {of}"),
        ("vorgestern", "day before yesterday"), ("gestern", "yesterday"), ("heute", "today"),
        ("{month}", "{month}"), ("{weekday}", "{weekday}"), ("zwischen", "between"), ("und", "and"),
        ("seit", "since"),
        ("ab", "since"), ("bis(?: (?:zum|ende))?", "until"), ("vor(?: dem)?", "before"),
        ("nach(?: dem)?", "after"),
        ("vo[nm]", "from"), ("im|in|am|während", "in"),
    ),
)  # fmt: skip
_FRENCH = DateLanguage(
    months=("janvier", "février|fevrier", "mars", "avril", "mai", "juin", "juillet", "août|aout", "septembre",
            "octobre", "novembre", "décembre|decembre"),
    weekdays=("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
    units={"jours?": "day", "semaines?": "week", "mois": "month", "trimestres?": "quarter",
           "ans?|années?": "year",
           "heures?": "hour"},
    numbers={"une?": 1, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "six": 6, "quelques": 5},
    phrases=(
        ("(?:la )?semaine (?:dernière|derniere|passée)", "last week"),
        ("(?:le )?mois (?:dernier|passé)", "last month"), ("(?:le )?trimestre dernier", "last quarter"),
        ("(?:l['’])?(?:année (?:dernière|passée)|an (?:dernier|passé))", "last year"),
        ("cette semaine", "this week"), ("ce mois(?:-ci)?", "this month"), ("ce trimestre", "this quarter"),
        ("cette année", "this year"),
        ("(?:les |ces )?{n} (?:derniers|dernières) {unit}", "last {n} {unit}"),
        ("il y a {n} {unit}", "{n} {unit} ago"),
        ("{weekday} dernier", "last {weekday}"),
        (r"(?:le )?(?P<day>\d{1,2})(?:er)? {month}(?: (?P<of>\d{4}))?", "{day} {month} {of}"),
        ("avant-hier", "day before yesterday"), ("depuis hier", "since yesterday"),
        ("aujourd['’]hui", "today"),
        ("{month}", "{month}"), ("{weekday}", "{weekday}"), ("entre", "between"), ("et", "and"),
        ("depuis(?: le)?", "since"), ("jusqu(?:['’]en|['’]au|['’]à|e)", "until"), ("avant(?: le)?", "before"),
        ("après(?: le)?", "after"), ("d[eu]", "from"), ("à|au", "to"), ("en|pendant|durant", "in"),
    ),
)  # fmt: skip
_SPANISH = DateLanguage(
    months=("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre|setiembre",
            "octubre", "noviembre", "diciembre"),
    weekdays=("lunes", "martes", "miércoles|miercoles", "jueves", "viernes", "sábado|sabado", "domingo"),
    units={"días?|dias?": "day", "semanas?": "week", "mes(?:es)?": "month", "trimestres?": "quarter",
           "años?|anos?": "year", "horas?": "hour"},
    numbers={"una?": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6},
    phrases=(
        ("(?:la )?(?:semana pasada|última semana)", "last week"), ("(?:el )?mes pasado", "last month"),
        ("(?:el )?trimestre pasado", "last quarter"), ("(?:el )?año pasado", "last year"),
        ("esta semana", "this week"), ("este mes", "this month"), ("este trimestre", "this quarter"),
        ("este año", "this year"),
        ("(?:l[oa]s )?(?:últim[oa]s|ultim[oa]s) {n} {unit}", "last {n} {unit}"),
        ("hace {n} {unit}", "{n} {unit} ago"),
        ("(?:el )?{weekday} pasado", "last {weekday}"),
        (r"(?:el )?(?P<day>\d{1,2}) de {month}(?: del? (?P<of>\d{4}))?", "{day} {month} {of}"),
        (r"{month} del? (?P<of>\d{4})", "{month} {of}"),
        ("anteayer", "day before yesterday"), ("ayer", "yesterday"), ("hoy", "today"),
        ("{month}", "{month}"), ("(?:el )?{weekday}", "{weekday}"), ("entre", "between"), ("y", "and"),
        ("desde(?: el)?", "since"), ("hasta(?: el)?", "until"), ("antes de", "before"),
        ("después de", "after"),
        ("del?", "from"), ("al?", "to"), ("en|durante", "in"),
    ),
)  # fmt: skip
DATE_LANGUAGES = (_GERMAN, _FRENCH, _SPANISH)
