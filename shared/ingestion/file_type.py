"""Detection of file types: by the bytes, for kinds of text by name and content type."""

import re
from pathlib import PurePath

from shared.errors import UnreadableDocument, UnsupportedFileType
from shared.ingestion.parsers.parsed_file import is_text

_OFFICE = "application/vnd.openxmlformats-officedocument."
# The extensions and content types of each kind of file.
_KINDS = {
    "text": (".txt .text .log .sql .kt .swift .scala", "text/plain"),
    "markdown": (".md .markdown", "text/markdown text/x-markdown"),
    "csv": (".csv .tsv", "text/csv text/tab-separated-values"),
    "json": (".json .ipynb", "application/json"),
    "html": (".html .htm .xhtml", "text/html application/xhtml+xml"),
    "xml": (".xml .svg", "text/xml application/xml image/svg+xml application/rss+xml application/atom+xml"),
    "pdf": (".pdf", "application/pdf"),
    "docx": (".docx", f"{_OFFICE}wordprocessingml.document"),
    "pptx": (".pptx", f"{_OFFICE}presentationml.presentation"),
    "xlsx": (".xlsx", f"{_OFFICE}spreadsheetml.sheet"),
    "epub": (".epub", "application/epub+zip"),
    "eml": (".eml", "message/rfc822"),
    "mbox": (".mbox", "application/mbox"),
}
# Extensions of code with a grammar; code of other languages is text.
LANGUAGES = {
    ".py": "python", ".js": "javascript", ".mjs": "javascript", ".jsx": "javascript", ".ts": "typescript",
    ".tsx": "tsx", ".java": "java", ".go": "go", ".rs": "rust", ".c": "c", ".h": "c", ".cc": "cpp",
    ".cpp": "cpp", ".hpp": "cpp", ".cs": "csharp", ".rb": "ruby", ".php": "php", ".sh": "bash", ".css": "css",
}  # fmt: skip
EXTENSIONS = {end: kind for kind, (ends, _) in _KINDS.items() for end in ends.split()}
EXTENSIONS |= dict.fromkeys(LANGUAGES, "code")
CONTENT_TYPES = {name: kind for kind, (_, names) in _KINDS.items() for name in names.split()}
# Kinds without and with a signature in their bytes.
TEXTS = {"text", "code", "markdown"}
SIGNED_KINDS = {"pdf", "docx", "pptx", "xlsx", "epub"}
# A member of each kind of archive.
MEMBERS = {
    b"META-INF/container.xml": "epub",
    rb"word/document\d*\.xml": "docx",
    rb"ppt/presentation\d*\.xml": "pptx",
    rb"xl/workbook\d*\.xml": "xlsx",
}
# Unsupported files, with advice for the user: by their first bytes, and by extensions, which are refused
# before the upload.
_OLD = (
    "an old Office file, or one with a password: save it as DOCX, PPTX or XLSX without, "
    "and a message of Outlook as EML"
)
_ARCHIVE = "an archive: upload the files in it"
_RTF = "an RTF file: save it as DOCX"
_OPEN_DOCUMENT = "an OpenDocument file: save it as DOCX, XLSX or PPTX"
SIGNATURES = {b"\xd0\xcf\x11\xe0": _OLD, b"\x1f\x8b": _ARCHIVE, b"{\\rtf": _RTF}
UNREADABLE = (
    dict.fromkeys((".doc", ".xls", ".ppt", ".msg"), _OLD)
    | dict.fromkeys((".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".tar", ".7z", ".rar"), _ARCHIVE)
    | {".rtf": _RTF}
    | dict.fromkeys((".odt", ".ods", ".odp"), _OPEN_DOCUMENT)
    | dict.fromkeys((".exe", ".dll", ".iso", ".dmg", ".msi"), "no document")
)
# The first bytes of pictures, sound and film.
PICTURES = re.compile(
    rb"\x89PNG|\xff\xd8\xff|GIF8[79]a|II\*\0|MM\0\*|RIFF.{4}WEBP|\0\0.{2}ftyp(heic|mif1|avif)", re.DOTALL
)
SOUNDS = re.compile(
    rb"ID3[\x02-\x04]|\xff[\xfb\xf3\xf2]|OggS\0|fLaC\0|\x1aE\xdf\xa3|\0\0\x01\xba|RIFF.{4}(WAVE|AVI )"
    rb"|\0\0.{2}ftyp",
    re.DOTALL,
)
_PAGE = re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype html|html)[\s>]", re.IGNORECASE)
SUPPORTED = "PDF, DOCX, PPTX, XLSX, EPUB, HTML, XML, CSV, JSON, EML, mbox, Markdown, code and plain text"


def language_of_file(filename: str | None) -> str | None:
    return LANGUAGES.get(PurePath(filename or "").suffix.lower())


def require_readable(filename: str) -> None:
    """Raises UnsupportedFileType for an extension that is never supported."""
    if reason := UNREADABLE.get(PurePath(filename).suffix.lower()):
        raise _unsupported(reason)


def file_kind(data: bytes, filename: str | None, content_type: str | None) -> str:
    """A kind of EXTENSIONS, or `picture`, or `sound`. Raises UnsupportedFileType for every other kind,
    UnreadableDocument for bytes that contradict the name."""
    declared = (content_type or "").partition(";")[0].strip().lower()
    declared_kind = EXTENSIONS.get(PurePath(filename or "").suffix.lower()) or CONTENT_TYPES.get(declared)
    if data.startswith(b"%PDF-") or (declared_kind == "pdf" and b"%PDF-" in data[:1024]):
        return "pdf"
    if data.startswith(b"PK\x03\x04"):
        return _archive_kind(data)
    if PICTURES.match(data):
        return "picture"
    if SOUNDS.match(data):
        return "sound"
    for signature, name in SIGNATURES.items():
        if data.startswith(signature):
            raise _unsupported(name)
    if declared_kind in SIGNED_KINDS:
        raise UnreadableDocument(
            f"This is not a whole {declared_kind.upper()} file. Check that it opens, and upload it again."
        )
    return declared_kind or _kind_by_content(data, filename or "")


def _kind_by_content(data: bytes, filename: str) -> str:
    require_readable(filename)
    if _PAGE.match(data):
        return "html"
    if not is_text(data):
        raise UnsupportedFileType(f"The file is not text in UTF-8 or UTF-16. Supported are {SUPPORTED}.")
    return "text"


def _archive_kind(data: bytes) -> str:
    # Names of members are not compressed. Only the parser opens an archive, which may have half a million.
    kind = next((kind for member, kind in MEMBERS.items() if re.search(member, data)), None)
    if b"mimetypeapplication/vnd.oasis.opendocument" in data[:100]:
        raise _unsupported(_OPEN_DOCUMENT)
    if kind is None:
        raise _unsupported(_ARCHIVE)
    return kind


def _unsupported(what: str) -> UnsupportedFileType:
    return UnsupportedFileType(f"This is {what}. Supported are {SUPPORTED}.")
