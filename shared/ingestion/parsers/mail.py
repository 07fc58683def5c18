"""Parsers of mail: a message (EML), or an archive of messages (mbox), with their attachments."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage, MIMEPart
from email.policy import EmailPolicy
from email.utils import parsedate_to_datetime
from itertools import islice

from shared.errors import UnreadableDocument
from shared.ingestion.file_type import SIGNED_KINDS, TEXTS, file_kind
from shared.ingestion.parsers.charsets import by_content_type, encoding_of
from shared.ingestion.parsers.html_elements import notes_on
from shared.ingestion.parsers.html_xml import decoded, markdown
from shared.ingestion.parsers.mail_threads import with_headings
from shared.ingestion.parsers.parsed_file import (
    BINARY,
    ParsedFile,
    decode_text,
    encoding_by_mark,
    is_text,
    parser_of,
    size_error,
)
from shared.ingestion.parsers.text_encodings import COMMON_ENCODING, detected_encoding
from shared.text.language_detection import UNSPACED_SCRIPTS
from shared.text.normalize import one_line

MAX_MESSAGES, MAX_PARTS = 10_000, 1000
# The library's time grows with the square of a header's length: 0.1 s for these, 100 s for a megabyte.
MAX_HEADER = 10_000
# Of a part, for example Content-Disposition: a file name of 255 characters has up to 2,300 octets there.
MAX_PART_HEADER = 3_000
# The library reads a comment in a comment by recursion.
MAX_COMMENTS = 100
# What it raises for some malformed headers.
MALFORMED = (ValueError, IndexError, AttributeError)
# Messages in messages.
MAX_DEPTH = 5
NOT_READ = "(This file was not read.)"
HEADERS = ("From", "To", "Cc", "Date")
# Signatures are no content.
SIGNATURES = {"application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature"}
ENCRYPTED = {"application/pkcs7-mime", "application/x-pkcs7-mime", "application/pgp-encrypted"}
# Properties of an event, and their labels.
EVENT = {
    "SUMMARY": "Event", "DTSTART": "Start", "DTEND": "End", "LOCATION": "Location", "RRULE": "Repeats",
    "STATUS": "Status", "DESCRIPTION": "Description", "DURATION": "Duration", "EXDATE": "Except",
}  # fmt: skip
# The kinds of attachments that are parsed, besides texts.
PARSED = SIGNED_KINDS | {"html", "xml", "csv", "json", "eml", "mbox"}
# The line before a message, which a blank line precedes.
_SEPARATOR = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\n")
_WORDS = re.compile(rf"[{UNSPACED_SCRIPTS}]|[^\W_]+")
_PROPERTY = re.compile(
    rf"(?P<name>{'|'.join(EVENT)})(?:;TZID=\"?(?P<zone>[^;:\"]+)\"?|;(?!TZID=)[^:;]*)*:(?P<value>.*\S)",
    re.IGNORECASE,
)
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?(?=,|$)")
_TIMES = {"DTSTART", "DTEND", "EXDATE"}
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


def eml(data: bytes) -> ParsedFile:
    """Mail: subject, sender, recipients and date; the plain text, or the HTML if the plain text lacks one of
    its numbers or half of its words; earlier messages that it quotes, below their author and date, if a
    program in English, German, French, Spanish, Italian, Dutch, Portuguese or a language of Scandinavia
    introduces each of them; attachments and messages, forwarded or attached; invitations

    Noted: attachments that cannot be read, pictures and sound among them; encrypted messages; pictures, sound
    and embedded pages of HTML, also where the plain text is read; HTML beside it that cannot be read
    Not read: digital signatures"""
    message, unread = _parsed(data), _Unread()
    text = _text(message, unread)
    return ParsedFile([(None, text)], _header(message, "Subject"), _metadata(message), unread.all_notes())


def mbox(data: bytes) -> ParsedFile:
    """mbox: a section for each message, as mail

    Noted: as mail"""
    separators = list(_SEPARATOR.finditer(data))
    starts = [separator.end() for separator in separators]
    ends = [*(separator.start() for separator in separators[1:]), len(data)]
    if not starts:
        raise UnreadableDocument("The file is no mbox: its first line must begin with From and a space.")
    if len(starts) > MAX_MESSAGES:
        raise size_error()
    messages = [data[start:end] for start, end in zip(starts, ends, strict=True)]
    unread = _Unread()
    texts = [_text(_parsed(_QUOTED.sub(rb"\1", message)), unread) for message in messages]
    return ParsedFile([(None, text) for text in texts], notes=unread.all_notes())


@dataclass(slots=True)
class _Unread:
    """`elements`: the numbers of elements of HTML by their kind."""

    notes: list[str] = field(default_factory=list)
    elements: Counter[str] = field(default_factory=Counter)

    def all_notes(self) -> list[str]:
        return [*self.notes, *notes_on(self.elements)]


class _BoundedHeaders(EmailPolicy):
    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        if not value.isascii():
            # Bytes without an encoded word.
            value = _by_charset(value.encode("ascii", "surrogateescape"), None)
        if name.lower().startswith("content-"):
            # A parsed header: the library would parse a text at each of some ten accesses.
            value = re.sub(r"[\r\n]+", "", value)[:MAX_PART_HEADER]
            if value.count("(") > MAX_COMMENTS:
                value = value.partition("(")[0]
            try:
                return name, self.header_factory(name, value)
            except MALFORMED:
                return name, ""
        if len(value) <= MAX_HEADER:
            return name, value
        # A list of addresses ends with a whole one.
        return name, f"{value[:MAX_HEADER].rpartition(',')[0] or value[:MAX_HEADER]}, \u2026"


def _parsed(data: bytes) -> EmailMessage:
    if encoding_by_mark(data):
        data = decode_text(data).encode()
    message = message_from_bytes(data, policy=_BoundedHeaders())
    if not isinstance(message, EmailMessage) or not message.keys():
        raise UnreadableDocument("The file is no message: it has no headers.")
    return message


def _header(message: EmailMessage, name: str) -> str | None:
    try:
        return one_line(str(message[name] or "")) or None
    except (*MALFORMED, RecursionError):
        return None


def _metadata(message: EmailMessage) -> dict[str, str]:
    sender = _header(message, "From")
    values = {
        "source_type": "email",
        "subject": _header(message, "Subject"),
        "from": sender,
        "author": sender,
    }
    with suppress(ValueError, TypeError, IndexError):
        values["date"] = parsedate_to_datetime(_header(message, "Date") or "").isoformat()
    return {name: value[:200] for name, value in values.items() if value}


def _text(message: EmailMessage, unread: _Unread, depth: int = 0) -> str:
    """The subject, the sender and so on, the texts, and each attachment under its name. The headings of a
    message in a message are deeper. `unread` gets a note for each part that is not read."""
    lines = [f"{'#' * (depth + 1)} {_header(message, 'Subject') or 'No subject'}"]
    lines += [f"{name}: {value}" for name in HEADERS if (value := _header(message, name))]
    parts = list(islice(_leaves(message, unread), MAX_PARTS + 1))
    if len(parts) > MAX_PARTS:
        raise size_error()
    author = ", ".join(filter(None, (_header(message, name) for name in ("From", "Date"))))
    texts = (_part(part, unread, depth, author) for part in parts)
    return "\n\n".join([lines[0], "\n".join(lines[1:]), *filter(None, texts)])


def _leaves(part: MIMEPart, unread: _Unread) -> Iterator[MIMEPart]:
    """The texts and attachments of a message in order, and one of alternative texts. `unread` gets those on
    HTML that is omitted."""
    if part.get_content_type() == "multipart/alternative":
        leaves = [leaf for child in part.iter_parts() for leaf in _leaves(child, unread)]
        plain = [leaf for leaf in leaves if _is_body(leaf, "text/plain")]
        html = [leaf for leaf in leaves if _is_body(leaf, "text/html")]
        of_html = _Unread()
        other = []
        if plain and html:
            other = html if _says_as_much(plain, html, of_html) else plain
        if other is html:
            unread.notes += of_html.notes
            unread.elements += of_html.elements
        # Apple Mail has attachments within an alternative.
        yield from (leaf for leaf in leaves if leaf not in other)
    elif part.get_content_type() == "multipart/encrypted":
        # The second part has the bytes.
        yield from islice(part.iter_parts(), 1)
    elif part.get_content_maintype() == "multipart":
        for child in part.iter_parts():
            yield from _leaves(child, unread)
    else:
        yield part


def _is_body(part: MIMEPart, kind: str) -> bool:
    return part.get_content_type() == kind and not part.is_attachment() and not part.get_filename()


def _says_as_much(plain: list[MIMEPart], html: list[MIMEPart], unread: _Unread) -> bool:
    """Whether the plain text has half of the words of the HTML and all of its numbers, or the HTML cannot be
    read. `unread` gets what of the HTML is not read."""
    words = _words(plain, unread)
    try:
        of_html = _words(html, unread)
    except UnreadableDocument:
        unread.notes.append("The HTML of the message was not read.")
        return bool(words)
    has_numbers = all(word in words for word in of_html if any(map(str.isdigit, word)))
    return has_numbers and (words & of_html).total() >= of_html.total() / 2


def _words(bodies: list[MIMEPart], unread: _Unread) -> Counter[str]:
    return Counter(_WORDS.findall(" ".join(_body(leaf, unread) for leaf in bodies).casefold()))


def _part(part: MIMEPart, unread: _Unread, depth: int, author: str) -> str:
    name = one_line(str(part.get_filename() or ""))
    kind = part.get_content_type()
    if kind in ("text/plain", "text/html") and not name:
        return with_headings(_body(part, unread), "#" * (depth + 2), author)
    if kind == "text/calendar":
        return _events(_decoded(part))
    if kind in SIGNATURES:
        return ""
    if kind == "message/rfc822" and depth < MAX_DEPTH:
        forwarded = [message for message in part.iter_parts() if isinstance(message, EmailMessage)]
        return "\n\n".join(_text(message, unread, depth + 1) for message in forwarded)
    text = NOT_READ if kind in ENCRYPTED else _attachment(part, name, unread)
    if kind in ENCRYPTED:
        unread.notes.append("The message is encrypted, and was not read.")
    elif text == NOT_READ:
        unread.notes.append(f"The attachment {name or kind} was not read.")
    return f"{'#' * (depth + 2)} {name or 'Attachment'}\n\n{text}".rstrip()


def _body(part: MIMEPart, unread: _Unread) -> str:
    if part.get_content_type() != "text/html":
        # Apple Mail breaks lines within words.
        is_broken = str(part.get_param("delsp")).lower() == "yes"
        return _joined(_decoded(part)) if is_broken else _decoded(part)
    text, elements = markdown(_decoded(part))
    unread.elements += elements
    return text


def _joined(text: str) -> str:
    """The text of lines that a space at their end joins with the next line (RFC 3676), without that space.
    Lines of another depth of quotation, empty lines and the line above a signature begin a new line."""
    made, flows = list[list[str]](), None
    for line in re.split(r"\r?\n", text):
        marks = line[: len(line) - len(line.lstrip(">"))]
        # A space may be added in front of the content.
        content = line[len(marks) :].removeprefix(" ")
        is_broken = content.endswith(" ") and content != "-- "
        own = content[:-1] if is_broken else content
        if flows == marks and content not in ("", "-- "):
            made[-1].append(own)
        else:
            made.append([f"{marks} {own}" if marks else own])
        flows = marks if is_broken else None
    return "\n".join(map("".join, made))


def _events(calendar: str) -> str:
    """What a reader sees of the events of iCalendar (RFC 5545)."""
    events: list[list[str]] = []
    for line in re.sub(r"\r?\n[ \t]", "", calendar).splitlines():
        if line.upper() == "BEGIN:VEVENT":
            events.append([])
        elif events and (parts := _PROPERTY.match(line)):
            value, name = parts["value"], parts["name"].upper()
            value = _TIME.sub(_written_time, value) if name in _TIMES else value
            value = re.sub(r"\\(.)", lambda escape: "\n" if escape[1] in "nN" else escape[1], value)
            zone = f" ({parts['zone']})" if parts["zone"] else ""
            events[-1].append(f"{EVENT[name]}: {value}{zone}")
    return "\n\n".join("\n".join(event) for event in events)


def _written_time(time: re.Match[str]) -> str:
    clock = f" {time[4]}:{time[5]}" if time[4] else ""
    return f"{time[1]}-{time[2]}-{time[3]}{clock}{' UTC' if time[6] else ''}"


def _attachment(part: MIMEPart, name: str, unread: _Unread) -> str:
    """The text; empty for an empty file. A file that is not read says so, and the message remains."""
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return NOT_READ
    if not data.strip():
        return ""
    try:
        kind = file_kind(data, name or None, part.get_content_type())
        if kind in TEXTS:
            text = _by_charset(data, part.get_content_charset())
            return NOT_READ if "\0" in text else text
        if kind in PARSED:
            if kind in ("csv", "html"):
                data = by_content_type(data, f"{kind}; charset={part.get_content_charset()}")
            if kind == "csv" and not is_text(data) and detected_encoding(data) is None:
                # Of few words. The encoding of a text is COMMON_ENCODING then.
                text = _by_charset(data, None)
                data = data if BINARY.search(text) else text.encode()
            parsed = parser_of(kind)(data)
            unread.notes.extend(f"{name or kind}: {note}" for note in parsed.notes)
            return "\n\n".join(text for _, text in parsed.parts)
    except MemoryError:
        raise
    except Exception:  # noqa: S110
        # The libraries raise errors of many kinds for broken files.
        pass
    return NOT_READ


def _decoded(part: MIMEPart) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    charset = part.get_content_charset()
    if charset is None and part.get_content_type() == "text/html":
        return decoded(data)
    return _by_charset(data, charset)


def _by_charset(data: bytes, charset: str | None) -> str:
    """The text in its charset, or the superset that programs mean by it. Programs also name a wrong one."""
    name = encoding_of(charset) or "utf-8"
    # Text that is not in UTF-8 hardly ever decodes as such.
    encodings = ["utf-8", name] if name in ("ascii", COMMON_ENCODING) else [name, "utf-8"]
    for encoding in filter(None, (encoding_by_mark(data), *encodings)):
        with suppress(UnicodeDecodeError):
            return data.decode(encoding)
    text = data.decode("utf-8" if name == "ascii" else name, errors="replace")
    if text.count("\ufffd") * 10 <= sum(not character.isascii() for character in text):
        # Some bytes are broken.
        return text
    return data.decode(detected_encoding(data) or COMMON_ENCODING, errors="replace")
