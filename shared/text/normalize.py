"""Normalization of text: line ends, invisible characters, white space."""

import re
import unicodedata

from shared.errors import InvalidRequest

# Zero-width and bidirectional controls, tags, variation selectors beyond the common ones, and the control
# characters besides tab and line feed.
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
# Ligatures, and the forms of Hebrew and Arabic letters within words, which fonts and old PDFs have.
_PRESENTATION_FORMS = re.compile("[\ufb00-\ufdff\ufe70-\ufefc]")
_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u0652]+")
# Joiners and variation selectors remain, since scripts and emoji need them.
_SHOWS_NOTHING = re.compile("[\\s\u034f\u200c\u200d\ufe00-\ufe0f]*")


def clean(text: str) -> str:
    """The text with Unix line ends and composed letters, without ligatures and invisible characters, which a
    model would read. Raises InvalidRequest for a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("The text is not valid Unicode. Remove its lone surrogates.") from None
    return composed(_INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def composed(text: str) -> str:
    """The text in the form NFC, with letters for presentation forms. Other compatible characters, such as ²
    and ½, remain."""
    # The forms of vowel marks alone have a space.
    letters = _PRESENTATION_FORMS.sub(lambda form: unicodedata.normalize("NFKC", form[0]).strip(), text)
    return unicodedata.normalize("NFC", letters)


def clean_line(text: str) -> str:
    """The cleaned text on one line, for titles, names and headers."""
    return one_line(clean(text))


def storable(text: str) -> str:
    """Postgres stores no NUL and no lone surrogate."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def without_accents(text: str) -> str:
    """The text in lower case without accents. Signs of Indic scripts are vowels, and signs of kana make
    other letters."""
    if text.isascii():
        return text.lower()
    parted = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", parted).casefold()


def one_line(text: str) -> str:
    return " ".join(text.split())


def is_blank(text: str) -> bool:
    return _SHOWS_NOTHING.fullmatch(text) is not None


def has_invisible(text: str) -> bool:
    return _INVISIBLE.search(text) is not None


def is_one_line(reply: str, max_characters: int) -> bool:
    """Whether a model's reply is one short line of words, without a mark of a fence or of code."""
    return (
        len(reply) <= max_characters
        and len(reply.splitlines()) == 1
        and re.search(r"[^\W_]", reply) is not None
        and not re.search(r"<<|```", reply)
        and not has_invisible(reply)
    )
