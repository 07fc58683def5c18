"""A question made fit for searching, without a model: what is only polite goes, and names that are written
together, and well-known abbreviations, are looked for by their other forms too."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shared.retrieval.query import MAX_LENGTH
from shared.retrieval.query.abbreviations import ABBREVIATIONS, NAMES
from shared.retrieval.query.filler_phrases import unframed
from shared.text.identifiers import whole_word

RULES = "rules"
# What has more names in it is a text rather than a question.
MOST = 20


@dataclass(frozen=True, slots=True)
class Expanded:
    """`meaning` is what is embedded, `words` what is looked for by word: with what was `added`. `by`: the
    model that said it, or the rules below."""

    meaning: str
    words: str
    added: tuple[str, ...]
    by: str = RULES


# A word by itself: no part of a path, an address or a longer name.
_BEGIN, _END = r"(?<![\w./:@#+&=-])", r"(?![\w@#=]|[-./:+&]\w)"
_WORD = re.compile(rf"{_BEGIN}[^\W_]\w*{_END}")
_SEAM = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+")
# Under forms without hyphens, since some write them and some do not.
_OTHERS = {short.lower(): long for short, long in ABBREVIATIONS.items()} | {
    long.replace("-", " "): short for short, long in ABBREVIATIONS.items()
}
_CAPITALS = {short.lower() for short in ABBREVIATIONS if short.upper() == short and not short[0].isdigit()}
_FORMS = "|".join(
    re.escape(form).replace(r"\ ", r"[\s-]+") for form in sorted(_OTHERS, key=len, reverse=True)
)
_KNOWN = re.compile(rf"{_BEGIN}(?:{_FORMS}){_END}", re.IGNORECASE)


def expand(question: str, lang: str | None = None) -> Expanded:
    """The question without its frame, and with other forms of its words. In a language that is not English
    only names are taken apart. Its meaning, expanded again, gives the same. Empty only where the question is.
    """
    meaning = unframed(question)
    words, added = meaning, list[str]()
    for form in dict.fromkeys(_other_forms(meaning, lang is None or lang.lower().split("-")[0] == "en")):
        if len(added) == MOST:
            break
        if not _has(meaning, form) and len(words) + 1 + len(form) <= MAX_LENGTH:
            added.append(form)
            words = f"{words} {form}"
    return Expanded(meaning, words, tuple(added))


def _other_forms(text: str, english: bool) -> Iterator[str]:
    """In the text's order; those of names first."""
    for match in _WORD.finditer(text):
        if parts := parts_of(match.group()):
            yield parts
    if english:
        for match in _KNOWN.finditer(text):
            form = " ".join(re.split(r"[\s-]+", match.group().lower()))
            if form not in _CAPITALS or match.group().isupper():
                yield _OTHERS[form]


def parts_of(name: str) -> str | None:
    """billing service, of BillingService; None where it is one word."""
    if name.lower() in NAMES:
        return None
    parts = [part.lower() for part in _SEAM.split(name) if len(part) > 1 and not part.isdigit()]
    return " ".join(parts) if len(parts) > 1 else None


def _has(text: str, form: str) -> bool:
    return form.lower() in text.lower() and re.search(whole_word(form), text, re.IGNORECASE) is not None
