"""Conversion of files to Markdown.

Texts are decoded here, a service transcribes sound, and a subprocess (parser_sandbox.py) parses the rest.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shared.errors import UnreadableDocument, UnsupportedFileType
from shared.ingestion.file_type import TEXTS, file_kind
from shared.ingestion.parser_sandbox import parse_in_subprocess
from shared.ingestion.parsers.charsets import by_content_type
from shared.ingestion.parsers.markdown_table import with_framed_tables
from shared.ingestion.parsers.ocr import is_installed
from shared.ingestion.parsers.parsed_file import MAX_CHARACTERS, decode_text, size_error
from shared.ingestion.title_or_first_heading import title_or_first_heading
from shared.models.transcription import Transcriber
from shared.text.normalize import clean, clean_line, is_blank
from shared.text.superscripts import markdown_with_scripts

NO_TRANSCRIPTION = (
    "This deployment cannot transcribe sound and video. Set RAG_TRANSCRIPTION_KEY, or upload a text."
)
NO_OCR = "This deployment cannot read pictures. Install tesseract, or upload a text."
BETWEEN_PARTS = "\n\n"
MAX_NOTES, NOTE_CHARACTERS, MIN_BASE64 = 10, 200, 1000
# Base64 on one line or wrapped, also as a JSON array of its lines; its last line is shorter.
_LETTER, _LINE_END = "[A-Za-z0-9+/]", r"(?:(?:\\r)?\\n|\s{1,40})"
_ITEM_END = r"(?:(?:\\r)?\\n)?\",\s{1,40}\""
_BASE64 = re.compile(
    rf"(?P<address>data:[\w/.+;=-]{{0,100}};base64,)?(?<!{_LETTER})(?P<content>{_LETTER}{{60,}}+(?:"
    rf"(?:{_ITEM_END}{_LETTER}{{60,}}+)++(?:{_ITEM_END}{_LETTER}{{1,75}}+(?=={{0,2}}(?:\\n)?\"\s{{0,40}}\]))?|"
    rf"(?:{_LINE_END}{_LETTER}{{60,}}+)*+(?:{_LINE_END}{_LETTER}{{1,75}}+(?:=|(?=[\\)'\"<]|$)))?)={{0,2}})",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Converted:
    """A document's normalized text, its kind (file_type.py), the title in the file, (first character, number)
    of each page, the metadata in the file, and notes on what of the file is not in the text."""

    text: str
    kind: str
    title: str | None = None
    pages: tuple[tuple[int, int], ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def convert(
    data: bytes, filename: str | None, content_type: str | None, transcriber: Transcriber | None = None
) -> Converted:
    """Sound and film need a `transcriber`, pictures tesseract.

    Raises UnsupportedFileType, and UnreadableDocument for a broken file and for one without text."""
    if not data.strip():
        raise UnreadableDocument("The file is empty. Upload a file with text.", code="empty_file")
    kind = file_kind(data, filename, content_type)
    if kind in TEXTS | {"html", "csv"}:
        data = by_content_type(data, content_type)
    if kind in TEXTS:
        text, notes = _decoded(data)
        if len(text) > MAX_CHARACTERS:
            raise size_error()
        if kind == "markdown":
            text = with_framed_tables(markdown_with_scripts(text))
        return _joined(kind, [(None, text)], "", notes)
    if kind == "sound":
        if transcriber is None:
            raise _unsupported_here(NO_TRANSCRIPTION)
        return _joined(kind, [(None, transcriber.text(data, filename or "sound"))], "")
    if kind == "picture" and not is_installed():
        raise _unsupported_here(NO_OCR)
    parsed = parse_in_subprocess(kind, data)
    metadata = {name: text for name, value in parsed.metadata.items() if (text := clean_line(value))}
    converted = _joined(kind, parsed.parts, parsed.title or "", parsed.notes)
    return replace(converted, metadata=metadata)


def _decoded(data: bytes) -> tuple[str, Sequence[str]]:
    try:
        return decode_text(data), ()
    except UnreadableDocument:
        # The detection of encodings is a library of the parsers.
        parsed = parse_in_subprocess("text", data)
        return parsed.parts[0][1], parsed.notes


def bounded_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """Each note once, and no more than fit into a document's row."""
    different = [clean_line(note)[:NOTE_CHARACTERS] for note in dict.fromkeys(notes)]
    rest = len(different) - MAX_NOTES
    return (*different[:MAX_NOTES], *([f"There are {rest} more notes."] if rest > 0 else []))


def _unsupported_here(message: str) -> UnsupportedFileType:
    error = UnsupportedFileType(message)
    error.is_permanent = False
    return error


def _is_base64(text: str) -> bool:
    """Whether the text is long, and has letters of both cases, others than those of a genome."""
    is_genome = set(text) <= set('ACGTNacgtn\\r \n",')
    return len(text) >= MIN_BASE64 and not is_genome and text.lower() != text != text.upper()


def _joined(
    kind: str, parts: Iterable[tuple[int | None, str]], title: str, notes: Sequence[str] = ()
) -> Converted:
    texts, pages, length, encoded = [], [], 0, 0
    # Other files may have keys and hashes as content.
    is_data = kind in ("json", "xml")

    def shown(run: re.Match[str]) -> str:
        nonlocal encoded
        if not (is_data or run["address"]) or not _is_base64(run["content"]):
            return run[0]
        encoded += 1
        return ""

    for number, part in parts:
        text = clean(part).strip("\n")
        if is_data or ";base64," in text:
            text = _BASE64.sub(shown, text)
        if is_blank(text):
            continue
        if number is not None:
            pages.append((length, number))
        texts.append(text)
        length += len(text) + len(BETWEEN_PARTS)
    if not texts:
        raise UnreadableDocument("The file has no text. Upload a file with text.", code="empty_file")
    whole = BETWEEN_PARTS.join(texts)
    return Converted(
        whole,
        kind,
        title_or_first_heading(kind, title, whole),
        tuple(pages),
        notes=bounded_notes([*notes, *(["Pictures or files in base64 were not read."] if encoded else [])]),
    )
