"""Result of a parser, and the limits of files: sizes, archives, encodings."""

import codecs
import io
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from shared.errors import UnreadableDocument
from shared.text.normalize import one_line

# The module of each kind's parser.
PARSERS = {
    "pdf": "pdf", "docx": "office", "pptx": "office", "xlsx": "office",
    "picture": "ocr", "html": "html_xml", "xml": "html_xml", "epub": "html_xml", "code": "code_functions",
    "text": "parsed_file", "csv": "csv_json", "json": "csv_json",
    "eml": "mail", "mbox": "mail", "page": "web_pages", "sitemap": "web_pages", "robots": "web_pages",
}  # fmt: skip
# The first output of a parser's process. An end after it is due to the file.
READY = "reading\n"
MAX_UNPACKED = 300_000_000
MAX_CHARACTERS = 20_000_000
MAX_MEMBERS = 10_000
BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
# Control characters other than tabs, line ends and form feeds.
_BINARY = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f]")
_BINARY_BYTES = re.compile(_BINARY.pattern.encode())
# Of the detection: a word of German has 0.03, a sentence 0.1, random bytes at most 0.02.
MIN_CERTAINTY = 0.02
# Preferred to an encoding that is about as certain. For texts in cp1250 it has at most 0.42 of the certainty.
COMMON_ENCODING = "cp1252"
# Charsets that programs call by the name of a part of them.
SUPERSETS = {
    "iso8859-1": COMMON_ENCODING, "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932",
    "euc_kr": "cp949", "big5": "big5hkscs", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
}  # fmt: skip
# Names that Python does not know.
ALIASES = {
    "x-sjis": "cp932",
    "x-gbk": "gb18030",
    "x-euc-jp": "euc_jp",
    "ks_c_5601": "cp949",
    "unicode": "utf-16",
}
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:+-]{2,40})", re.IGNORECASE)
# Titles that programs give to untitled documents, and the prefix of their titles.
_NO_TITLE = re.compile(
    r"|[(\[]?(untitled|no title|unknown|anonymous|unspecified)( (document|page|presentation))?[)\]]?"
    r"|untitled[ -]?\d+|(document|presentation|book)\d+|(powerpoint|microsoft powerpoint) presentation",
    re.IGNORECASE,
)
_PROGRAM = re.compile(r"^Microsoft (Office )?(Word|PowerPoint|Excel) - ")


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """The parts of a document in reading order, each with the number of its page, slide or sheet, if any; the
    title and the metadata in the file; and notes: sentences about what of the file is not in the parts."""

    parts: list[tuple[int | None, str]]
    title: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


def parser_of(kind: str) -> Callable[[bytes], ParsedFile]:
    """The parser of a kind, which has its name."""
    module = import_module(f"shared.ingestion.parsers.{PARSERS[kind]}")
    parser: Callable[[bytes], ParsedFile] = getattr(module, kind)
    return parser


def open_archive(data: bytes) -> zipfile.ZipFile:
    """The archive. Its declared sizes, which bound reading, are within the limits."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile:
        raise UnreadableDocument from None
    members = archive.infolist()
    if sum(member.file_size for member in members) > MAX_UNPACKED or len(members) > MAX_MEMBERS:
        raise size_error()
    # With other compressions zipfile unpacks more than the declared size.
    if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
        raise UnreadableDocument(
            "The compression of the file is not supported. Save the file again, and upload it."
        )
    if any(member.flag_bits & 1 for member in members):
        raise password_error()
    return archive


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except (KeyError, zipfile.BadZipFile, zipfile.error, EOFError):
        raise UnreadableDocument from None


def own_title(text: str) -> str | None:
    """The title in a file; None for a program's default title."""
    title = _PROGRAM.sub("", one_line(text))
    return None if _NO_TITLE.fullmatch(title) else title


def password_error() -> UnreadableDocument:
    return UnreadableDocument("The file has a password: upload it without one.", code="password_protected")


def size_error() -> UnreadableDocument:
    return UnreadableDocument(
        "The file is too large after unpacking. Divide it, and upload the parts.", code="file_too_large"
    )


def encoding_by_mark(data: bytes) -> str | None:
    return next((name for mark, name in BYTE_ORDER_MARKS.items() if data.startswith(mark)), None)


def encoding_of(charset: str | None) -> str | None:
    """Python's name of the encoding that a charset means; None for an unknown one."""
    name = (charset or "").strip().lower()
    try:
        name = codecs.lookup(ALIASES.get(name, name)).name
    except (LookupError, ValueError):
        return None
    return SUPERSETS.get(name, name)


def by_content_type(data: bytes, content_type: str | None) -> bytes:
    """The text in UTF-8 with a byte-order mark, if the content type names its charset and it has no mark.
    A wrong charset changes nothing: servers name one for all files."""
    charset = _CHARSET.search(content_type or "")
    encoding = encoding_of(charset[1]) if charset else None
    if encoding is None or encoding_by_mark(data) or (encoding == COMMON_ENCODING and is_text(data)):
        return data
    try:
        return codecs.BOM_UTF8 + data.decode(encoding).encode()
    except (UnicodeError, LookupError):
        return data


def is_text(data: bytes, *, whole: bool = True) -> bool:
    """Whether the bytes are text in UTF-8, or in UTF-16 with a byte-order mark, without binary control
    characters. `whole`: whether they are a complete file."""
    decoder = codecs.getincrementaldecoder(encoding_by_mark(data) or "utf-8")()
    try:
        return not _BINARY.search(decoder.decode(data, final=whole))
    except UnicodeDecodeError:
        return False


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
    from chardet import EncodingEra, detect_all

    if encoding_by_mark(data) or _BINARY_BYTES.search(data):
        return None
    era = EncodingEra.MODERN_WEB
    found = detect_all(data, True, encoding_era=era, prefer_superset=True, compat_names=False)
    certainty = {one["encoding"]: one["confidence"] for one in found if _decodes(data, one["encoding"])}
    best = max(certainty, key=certainty.__getitem__, default=None)
    if best is None or certainty[best] < MIN_CERTAINTY:
        return None
    return COMMON_ENCODING if certainty.get(COMMON_ENCODING, 0) > 0.7 * certainty[best] else best


def _decodes(data: bytes, encoding: str | None) -> bool:
    try:
        data.decode(encoding or "")
    except (UnicodeDecodeError, LookupError):
        return False
    return True


def decode_text(data: bytes) -> str:
    """A text by its byte-order mark, or as UTF-8. Raises UnreadableDocument."""
    try:
        text = data.decode(encoding_by_mark(data) or "utf-8")
    except UnicodeDecodeError:
        raise UnreadableDocument(
            "The file is not text in UTF-8 or UTF-16: save it as UTF-8.", code="not_text"
        ) from None
    if "\0" in text:
        raise UnreadableDocument(
            "The file has NUL bytes, so it is not text. Check its type.", code="not_text"
        )
    return text
