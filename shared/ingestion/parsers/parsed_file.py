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
    "pdf": "pdf", "docx": "word", "pptx": "powerpoint", "xlsx": "excel",
    "picture": "ocr", "html": "html_xml", "xml": "html_xml", "epub": "html_xml", "code": "code_functions",
    "text": "text_encodings", "csv": "csv_json", "json": "csv_json",
    "eml": "mail", "mbox": "mail", "page": "web_pages", "sitemap": "web_pages", "robots": "web_pages",
}  # fmt: skip
# The first output of a parser's process. An end after it is due to the file.
READY = "reading\n"
MAX_UNPACKED = 300_000_000
MAX_CHARACTERS = 20_000_000
MAX_MEMBERS = 10_000
# A longer title is text, and one that ends as a sentence from so many words on.
TITLE_CHARACTERS, TITLE_WORDS = 200, 10
BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
# Control characters other than tabs, line ends and form feeds.
BINARY = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f]")
# Titles that programs give to untitled documents, and the prefix of their titles.
_NO_TITLE = re.compile(
    r"|[(\[]?(untitled|no title|unknown|anonymous|unspecified)( (document|page|presentation))?[)\]]?"
    r"|.*\.(?:html?|pdf|docx?|xlsx?|pptx?|rtf|odt|txt|tex|dvi|ps|indd|pub|qxd|tiff?|jpe?g|png)"
    r"|untitled[ -]?\d+|(document|presentation|book)\d+|(powerpoint|microsoft powerpoint) presentation",
    re.IGNORECASE,
)
# Descriptions of pictures by programs: all before the sentence that says so, file names, addresses.
_BY_PROGRAM = re.compile(
    r"^.*\b(?:Description automatically generated(?: with \w+ confidence)?"
    r"|AI-generated content may be incorrect"
    r"|Automatisch generierte Beschreibung(?: mit \w+ \w+)?|KI-generierte Inhalte können fehlerhaft sein"
    r"|Description générée automatiquement(?: avec \w+ \w+)?|Le contenu généré par l.IA peut être incorrect"
    r"|Descripción generada automáticamente(?: con \w+ \w+)?"
    r"|El contenido generado por IA puede ser incorrecto"
    r")(?:\.\s*|$)|^(?:picture|clip_image|image|imagen|immagine|grafik|bild)\s?\d+$|^https?:\S+$"
    r"|^\S+\.(?:png|jpe?g|jfif|gif|bmp|tiff?|webp|avif|heic|svg|emf|wmf|eps|ico|pdf|psd)$",
    re.IGNORECASE,
)
# A numbered line that is short and no sentence: a heading, where it is bold and text follows. A number alone
# begins a date or an amount.
_CLAUSE = re.compile(
    r"(?=.{3,100}$)(?=§|\d+[.)])(?:§ ?)?(?P<number>\d{1,3}(?:\.\d{1,3})*)[.)]? +"
    r"(?P<word>[^\W\d]\w*+)(?P<rest>.*[^\s.;:,]|(?<=\w\w))"
)
# The end of a date behind its month.
_END_OF_DATE = re.compile(r"[.,]?(?: +(?:19|20)\d\d\b|$)")
# A heading may end with one of these.
_ABBREVIATIONS = (" etc.", " usw.", " Ltd.", " Inc.", " Co.")
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


def description(text: str) -> str:
    """The description of a picture, without that of a program."""
    return _BY_PROGRAM.sub("", one_line(text))


def clause_number(text: str) -> str:
    """The number of a line that may be a numbered heading, such as "4.1"; empty for "12. Mai 2026"."""
    if not (clause := _CLAUSE.fullmatch(text)):
        return ""
    # The word list takes time, which most files need not.
    from shared.text.language_detection import MONTHS

    is_date = clause["word"].casefold() in MONTHS and _END_OF_DATE.match(clause["rest"])
    return "" if is_date else clause["number"]


def is_sentence(title: str) -> bool:
    """Whether a line in the style of a heading is text: long, or with the end and the words of a sentence."""
    return len(title) > TITLE_CHARACTERS or (
        title.endswith((".", ";", ","))
        and title.count(" ") >= TITLE_WORDS
        and not title.endswith(_ABBREVIATIONS)
    )


def counted(number: int, one: str, many: str, rest: str) -> list[str]:
    """A note about so many parts; none for none."""
    return [f"{number} {one if number == 1 else many} {rest}"] if number else []


def password_error() -> UnreadableDocument:
    return UnreadableDocument("The file has a password: upload it without one.", code="password_protected")


def size_error() -> UnreadableDocument:
    return UnreadableDocument(
        "The file is too large after unpacking. Divide it, and upload the parts.", code="file_too_large"
    )


def encoding_by_mark(data: bytes) -> str | None:
    return next((name for mark, name in BYTE_ORDER_MARKS.items() if data.startswith(mark)), None)


def is_text(data: bytes, *, whole: bool = True) -> bool:
    """Whether the bytes are text in UTF-8, or in UTF-16 with a byte-order mark, without binary control
    characters. `whole`: whether they are a complete file."""
    decoder = codecs.getincrementaldecoder(encoding_by_mark(data) or "utf-8")()
    try:
        return not BINARY.search(decoder.decode(data, final=whole))
    except UnicodeDecodeError:
        return False


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
