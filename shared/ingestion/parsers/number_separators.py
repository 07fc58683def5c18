"""Separators of the numbers of Office files, by the languages that a file states and the words of its texts.

The programs show numbers by the settings of the machine, which files lack. A file states the language of its
texts and that of the program, and its formats may name one.
"""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice

from shared.ingestion.parsers.number_format import ENGLISH, PLAIN, UNKNOWN, Separators
from shared.ingestion.parsers.office_xml import Package
from shared.ingestion.parsers.parsed_file import read_member

_POINT, _SPACE = (".", ","), ("\u00a0", ",")
# Those of a decimal comma with an unknown character between thousands.
_BEHIND: Separators = ("", ",")
_OF_LANGUAGE = {
    **dict.fromkeys(("de", "es", "it", "nl", "pt", "da", "tr", "el", "id", "ro", "hr", "sl", "ca"), _POINT),
    **dict.fromkeys(("fr", "fi", "cs", "sv", "nb", "nn", "no", "pl", "ru", "uk", "sk", "hu", "bg"), _SPACE),
}
# Regions that write other numbers than most of their language.
_OF_REGION = dict.fromkeys(("de-CH", "de-LI", "fr-CH", "it-CH"), PLAIN) | dict.fromkeys(
    ("es-MX", "es-US", "es-GT", "es-HN", "es-NI", "es-PA", "es-PE", "es-PR", "es-SV", "es-DO"), ENGLISH
)
# The names of Excel's normal style in other languages than English.
LANGUAGE_OF_STYLE = {
    "Standard": "de", "Standaard": "nl", "Normale": "it", "Normaali": "fi", "Normalny": "pl",
    "Normální": "cs", "Normál": "hu", "Обычный": "ru", "Звичайний": "uk",
}  # fmt: skip
# The language of a format ([$€-407], [$-40C]); the currencies that comma languages write behind the number.
_LANGUAGE = re.compile(r"\[\$[^\]-]*-(?:[0-9A-F]*)([0-9A-F]{3})\]", re.IGNORECASE)
_CURRENCY_BEHIND = re.compile(r"[0#?%](?:\\? |[_*].|\"\s?)*(?:\[\$)?\"?(€|kr|zł|Kč|Ft|lei|₽)")
_SPACE_CURRENCIES = {"kr", "zł", "Kč", "Ft", "₽"}
# The language numbers of Windows of languages with a decimal comma, with a point and with a space between
# thousands: German, Spanish, Italian, Dutch, Portuguese, Danish, Turkish; French, Finnish, and Slavic ones.
_GROUPED_BY_POINT = {"407", "c07", "40a", "c0a", "410", "413", "813", "416", "816", "406", "41f"}
_GROUPED_BY_SPACE = {"40c", "80c", "c0c", "40b", "405", "415", "419", "41d", "414", "422", "41b", "40e"}
_SWISS = {"807", "100c", "810"}
_WORD = re.compile(r"[^\W\d_]+")
_LETTER = re.compile(r"[ß-öø-ÿāăąćčďęěğīłńňőœřśşšťūůűźżž]", re.IGNORECASE)
# So many words have such letters, and so large a share of those that begin with a small letter.
_COMMA_WORDS, _COMMA_SHARE = 3, 0.05
# So many different words tell the language, many if so many and such a share are its function words.
_SAMPLE, _FUNCTION_WORDS, _FUNCTION_SHARE = 250, 5, 0.1
_PARTS_WITH_LANGUAGE = re.compile(r".*/(?:document|styles|slide|chart)\d*\.xml", re.IGNORECASE)
_TAG = re.compile(rb'\blang(?: (?:\w+:)?val)?="([a-z]{2,3}(?:-[A-Z]{2})?)"')
_TEXT = re.compile(rb"<\w+:t(?: [^>]*)?>([^<]*)<")


def separators_of(codes: Iterable[str], texts: Iterable[str], tags: Iterable[str] = ()) -> Separators:
    """The separators that the file's users see in numbers. `codes`: of its formats; `tags`: the languages
    that the file states, such as de-DE, once for each place. The language of the words decides, where the
    file or its formats agree or there are many words. Numbers are PLAIN where the signs disagree."""
    of_formats, is_swiss = _of_formats([*codes])
    stated = Counter(tags).most_common(1)
    of_file = _of_tag(stated[0][0]) if stated else UNKNOWN
    words = {word: None for text in texts for word in _WORD.findall(text)}
    language, count = _language_of([*islice(words, _SAMPLE)])
    own = _OF_LANGUAGE.get(language)
    if language == "en":
        return PLAIN if of_file not in (ENGLISH, UNKNOWN) else ENGLISH
    if is_swiss or of_file == PLAIN:
        return PLAIN
    if of_file not in (ENGLISH, UNKNOWN) and own in (of_file, None):
        return of_file
    agrees = of_formats in (own, _BEHIND)
    # Some of the countries that speak Spanish have a decimal point. A single word may be part of a name.
    if own and ((agrees and count > 1) or (count >= _FUNCTION_WORDS and language != "es")):
        return own
    with_letters = {word.lower() for word in words if _LETTER.search(word)}
    small = [word for word in words if word[0].islower()]
    share = sum(word in with_letters for word in small)
    has_letters = len(with_letters) >= _COMMA_WORDS and small and share >= _COMMA_SHARE * len(small)
    if has_letters and of_formats == _BEHIND:
        return _SPACE if all(map(set("äöüßñ").isdisjoint, with_letters)) else _POINT
    if has_letters and of_formats:
        return of_formats
    return PLAIN if own or has_letters else of_file


def separators_of_package(package: Package) -> Separators:
    """The separators in the charts of a Word or PowerPoint file."""
    names = package.archive.namelist()
    if not any("/charts/" in name for name in names):
        return ENGLISH
    tags, texts = list[str](), list[str]()
    for name in filter(_PARTS_WITH_LANGUAGE.fullmatch, names):
        part = read_member(package.archive, name)
        # Libraries and LibreOffice state English in all charts.
        default = "en" if "/charts/" in name else "-"
        tags += [tag for one in _TAG.findall(part) if not (tag := one.decode()).startswith(default)]
        texts += [text.decode(errors="replace") for text in _TEXT.findall(part)]
    return separators_of((), texts, tags)


def _of_tag(tag: str) -> Separators:
    return _OF_REGION.get(tag) or _OF_LANGUAGE.get(tag.partition("-")[0], ENGLISH)


def _of_formats(codes: list[str]) -> tuple[Separators | None, bool]:
    """The separators of the languages of formats, _BEHIND for those of several languages, and whether a
    format is Swiss."""
    languages = {match[1].lower() for code in codes for match in _LANGUAGE.finditer(code)}
    behind = {match[1] for code in codes for match in _CURRENCY_BEHIND.finditer(code)}
    is_swiss = not languages.isdisjoint(_SWISS)
    if languages & _GROUPED_BY_SPACE or behind & _SPACE_CURRENCIES:
        return _SPACE, is_swiss
    return (_BEHIND if languages & _GROUPED_BY_POINT or behind else None), is_swiss


def _language_of(words: list[str]) -> tuple[str, int]:
    """The language of the words, "" for unknown, and how many tell it: 1, 2, or _FUNCTION_WORDS for many."""
    # The word lists take time, which most files need not.
    from shared.text.language_detection import clear_language_of

    text = " ".join(dict.fromkeys(map(str.casefold, words)))
    many = max(_FUNCTION_WORDS, round(_FUNCTION_SHARE * len(words)))
    for least, count in ((many, _FUNCTION_WORDS), (2, 2), (1, 1)):
        if language := clear_language_of(text, least):
            return language, count
    return "", 0
