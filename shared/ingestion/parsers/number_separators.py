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
# The languages with a point between thousands, a space there, and English marks, as in the Unicode repository
# of locale data (CLDR).
_WITH_POINT = "az bs ca da de el es eu gl hr id is it lb mk nl pt ro sl sr tr vi"
_WITH_SPACE = "be bg cs et fi fr hu hy ka kk ky lt lv nb nn no pl ru sk sq sv uk uz"
_LIKE_ENGLISH = "am bn cy en fil ga gu he hi ja kn ko ml mn mr ms mt my ne pa si sw ta te th ur zh"
_OF_LANGUAGE = {
    **dict.fromkeys(_WITH_POINT.split(), _POINT),
    **dict.fromkeys(_WITH_SPACE.split(), _SPACE),
    **dict.fromkeys(_LIKE_ENGLISH.split(), ENGLISH),
}
# Regions that write other numbers than most of their language.
_PLAIN_REGIONS = "de-CH de-LI fr-CH it-CH en-AT en-BE en-CH en-DE en-NL en-ZA es-419"
_ENGLISH_REGIONS = "es-CU es-DO es-GT es-HN es-MX es-NI es-PA es-PE es-PR es-SV es-US"
_OF_REGION = {
    **dict.fromkeys(_PLAIN_REGIONS.split(), PLAIN),
    **dict.fromkeys(_ENGLISH_REGIONS.split(), ENGLISH),
    **dict.fromkeys(("ar-DZ", "ar-MA", "ar-TN"), _POINT),
}
# The names of Excel's normal style in other languages than English.
LANGUAGE_OF_STYLE = {
    "Standard": "de", "Standaard": "nl", "Normale": "it", "Normaali": "fi", "Normalny": "pl",
    "Normální": "cs", "Normál": "hu", "Обычный": "ru", "Звичайний": "uk",
}  # fmt: skip
# Formats that name a language with a decimal comma by its number in Windows ([$€-407], [$-40C]), or write its
# currency behind the number.
_COMMA_FORMAT = re.compile(
    r"\[\$[^\]-]{0,20}-[0-9A-Fa-f]{0,8}(?i:407|c07|40a|c0a|410|413|813|416|816|406|41f|40c|80c|c0c|40b|405|415|419|41d"
    r"|414|422|41b|40e)\]|[0#?%](?:\\? |[_*].|\"){0,20}(?:\[\$)?\"?(?:€|kr|zł|Kč|Ft|lei|₽)"
)
_SWISS_FORMAT = re.compile(r"-(?:807|100c|810)\]|CHF", re.IGNORECASE)
# Single letters are names of columns and units.
_WORD = re.compile(r"[^\W\d_]{2,}")
# So many words tell the language, many if so many and such a share of the different ones are function words.
_SAMPLE, _FUNCTION_WORDS, _FUNCTION_SHARE = 1000, 5, 0.1
_PARTS_WITH_LANGUAGE = re.compile(r".*/(?:document|styles|slide|chart)\d*\.xml", re.IGNORECASE)
_TAG = re.compile(rb'\blang(?: (?:\w+:)?val)?="([a-z]{2,3}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|\d{3}))?)"')
_TEXT = re.compile(rb"<\w+:t(?: [^<>]*)?>([^<]*)<")


def separators_of(codes: Iterable[str], texts: Iterable[str], tags: Iterable[str] = ()) -> Separators:
    """The separators that the file's users see in numbers. `codes`: of its formats; `tags`: the languages
    that the file states, such as de-DE, once for each place. The language of the words decides, where the
    file or its formats agree or there are many words. Numbers are PLAIN where the signs disagree."""
    formats = "\n".join(codes)
    stated = Counter(tags).most_common(1)
    of_file = _of_tag(stated[0][0]) if stated else UNKNOWN
    words = (word.casefold() for text in texts for word in _WORD.findall(text))
    language, count = _language_of([*dict.fromkeys(islice(words, _SAMPLE))])
    own = _OF_LANGUAGE.get(language) if language != "en" else None
    is_comma = of_file not in (ENGLISH, UNKNOWN)
    # A few English words may be names.
    if language == "en" and is_comma and count > 1:
        return PLAIN
    if language == "en" and not is_comma and count >= _FUNCTION_WORDS:
        return ENGLISH
    if _SWISS_FORMAT.search(formats) or of_file == PLAIN:
        return PLAIN
    if is_comma and own in (of_file, None):
        return of_file
    # Some of the countries that speak Spanish have a decimal point. A single word may be part of a name.
    is_plain = count >= _FUNCTION_WORDS and language != "es"
    if own and (is_plain or (count > 1 and _COMMA_FORMAT.search(formats))):
        return own
    return PLAIN if own else of_file


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
    """By the language and the region; the script may stand between them."""
    language, *parts = tag.split("-")
    of_region = _OF_REGION.get(f"{language}-{parts[-1]}") if parts else None
    return of_region or _OF_LANGUAGE.get(language, UNKNOWN)


def _language_of(words: list[str]) -> tuple[str, int]:
    """The language of the words, "" for unknown, and how many tell it: 1, 2, or _FUNCTION_WORDS for many."""
    # The word lists take time, which most files need not.
    from shared.text.language_detection import MAX_CHARACTERS, clear_language_of

    text = " ".join(words)[:MAX_CHARACTERS]
    many = max(_FUNCTION_WORDS, round(_FUNCTION_SHARE * len(text.split())))
    for least, count in ((many, _FUNCTION_WORDS), (2, 2), (1, 1)):
        if language := clear_language_of(text, least):
            return language, count
    return "", 0
