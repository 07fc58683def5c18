"""Parser of texts in encodings other than UTF-8, which are detected."""

import re

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.parsed_file import BINARY, ParsedFile, decode_text, encoding_by_mark

_BINARY_BYTES = re.compile(BINARY.pattern.encode())
_WORDS = re.compile(rb"[A-Za-z\x80-\xff]+")
# Of the detection: a word of German has 0.03, a sentence 0.1, random bytes at most 0.02.
MIN_CERTAINTY = 0.02
# Preferred to an encoding that is about as certain. For texts in cp1250 it has at most 0.42 of the certainty.
COMMON_ENCODING = "cp1252"


def text(data: bytes) -> ParsedFile:
    """A text in an encoding other than UTF-8."""
    decoded, notes = text_and_notes(data)
    return ParsedFile([(None, decoded)], notes=notes)


def text_and_notes(data: bytes) -> tuple[str, list[str]]:
    """As decode_text, and a text in an encoding by detection, with a note. Raises UnreadableDocument."""
    try:
        return decode_text(data), []
    except UnreadableDocument:
        encoding = detected_encoding(data)
        if encoding is None:
            raise
        note = f"The file is not in UTF-8. Its encoding was detected as {encoding}."
        return data.decode(encoding), [note]


def detected_encoding(data: bytes) -> str | None:
    """The encoding of a text that is not in UTF-8; None if it is uncertain."""
    # The import takes 0.2 s, and most files need none.
    from chardet import EncodingEra, detect_all

    if encoding_by_mark(data) or _BINARY_BYTES.search(data):
        return None
    era = EncodingEra.MODERN_WEB
    parts = [data]
    if len(data) > 4 * len(data.translate(None, bytes(range(128)))):
        # A table of numbers has few words: these alone. In random bytes most are no ASCII.
        parts.append(b" ".join(_WORDS.findall(data)))
    for part in parts:
        candidates = detect_all(part, True, encoding_era=era, prefer_superset=True, compat_names=False)
        certainty = {
            one["encoding"]: one["confidence"] for one in candidates if _decodes(data, one["encoding"])
        }
        best = max(certainty, key=certainty.__getitem__, default=None)
        if best and certainty[best] >= MIN_CERTAINTY:
            return COMMON_ENCODING if certainty.get(COMMON_ENCODING, 0) > 0.7 * certainty[best] else best
    return None


def _decodes(data: bytes, encoding: str | None) -> bool:
    try:
        data.decode(encoding or "")
    except (UnicodeDecodeError, LookupError):
        return False
    return True
