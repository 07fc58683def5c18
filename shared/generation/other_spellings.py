"""Names and numbers in another spelling: PPR 9087 and PPR-9087, Wi-Fi and WiFi, São Paulo and Sao Paulo, EU
and European Union."""

import re
import unicodedata

from shared.generation.grounding.numbers import UNITS
from shared.text.function_words import STOPWORDS

# "WiFi17" has three of them.
_PIECE = re.compile(r"\d+|[^\W\d_][^\W\d_A-ZÀ-Þ]+|[A-ZÀ-Þ]+(?![^\W\d_A-ZÀ-Þ])|[^\W\d_]")
_WORD = re.compile(r"[^\W_]+")
_ABBREVIATION = re.compile(r"[A-Z]{2,6}")
# A number that counts what the question asks for, as in "3 reasons" and "top 5".
_COUNTING = re.compile(r"(?<![\w.,])(\d{1,2})\s+([^\W\d_]+)|\btop\s+(\d{1,2})\b", re.IGNORECASE)


def folded(text: str) -> str:
    """The text in lower case without accents."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(one for one in decomposed if not unicodedata.combining(one))


def is_written(name: str, text: str) -> bool:
    """Whether the text has the name with other accents, capitals or separators, or its abbreviation, or the
    words that it abbreviates."""
    pieces = [re.escape(folded(piece)) for piece in _PIECE.findall(name)]
    if not pieces:
        return False
    joined = r"[\W_]{0,2}".join(pieces)
    # The number 5 is not in 5.3.
    pattern = rf"(?<![^\W_])(?<!\d[.,]){joined}(?![^\W_])(?![.,]\d)"
    return re.search(pattern, folded(text)) is not None or _abbreviates(name, text)


def counts(number: str, question: str) -> bool:
    """Whether the number counts what the question asks for: no text need repeat it."""
    return any(
        number == (found[1] or found[3]) and (found[2] or "").casefold() not in UNITS
        for found in _COUNTING.finditer(question)
        if found[3] or found[2].endswith("s")
    )


def _abbreviates(name: str, text: str) -> bool:
    if _ABBREVIATION.fullmatch(name):
        return name in _initials_of(text, len(name))
    initials = "".join(word[0] for word in _WORD.findall(name) if word.casefold() not in STOPWORDS)
    return len(initials) > 1 and re.search(rf"(?<!\w){re.escape(initials)}A?(?!\w)", text) is not None


def _initials_of(text: str, length: int) -> set[str]:
    """The initials of so many words with capitals in a row; words such as "of" between them do not count."""
    initials = "".join(
        word[0] if word[0].isupper() else " "
        for word in _WORD.findall(text)
        if word[0].isupper() or word not in STOPWORDS
    )
    return {initials[at : at + length] for at in range(len(initials) - length + 1)}
