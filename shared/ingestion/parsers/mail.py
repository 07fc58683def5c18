"""Parsers of mail: a message (EML), or an archive of messages (mbox), with their attachments."""

import re
from collections.abc import Iterator
from contextlib import suppress
from email import message_from_bytes
from email.message import EmailMessage, MIMEPart
from email.policy import EmailPolicy
from email.utils import parsedate_to_datetime
from itertools import islice

from shared.errors import UnreadableDocument
from shared.ingestion.file_type import SIGNED_KINDS, TEXTS, file_kind
from shared.ingestion.parsers.html_xml import markdown
from shared.ingestion.parsers.parsed_file import ParsedFile, decode_text, parser_of, size_error
from shared.text.normalize import one_line

MAX_MESSAGES, MAX_PARTS = 10_000, 1000
# The library's time grows with the square of a header's length: 0.1 s for these, 100 s for a megabyte.
MAX_HEADER = 10_000
# Messages in messages.
MAX_DEPTH = 5
NOT_READ = "(This file was not read.)"
HEADERS = ("From", "To", "Cc", "Date")
# The kinds of attachments that are parsed, besides texts.
PARSED = SIGNED_KINDS | {"html", "xml", "csv", "json"}
# The line before a message, which a blank line precedes.
_SEPARATOR = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\n")
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


def eml(data: bytes) -> ParsedFile:
    """The metadata are subject, from and date, as the filters of a search use them."""
    message = _parsed(data)
    return ParsedFile([(None, _text(message))], _header(message, "Subject"), _metadata(message))


def mbox(data: bytes) -> ParsedFile:
    """One part for each message."""
    separators = list(_SEPARATOR.finditer(data))
    starts = [separator.end() for separator in separators]
    ends = [*(separator.start() for separator in separators[1:]), len(data)]
    if not starts:
        raise UnreadableDocument("The file is no mbox: its first line must begin with From and a space.")
    if len(starts) > MAX_MESSAGES:
        raise size_error()
    messages = [data[start:end] for start, end in zip(starts, ends, strict=True)]
    return ParsedFile([(None, _text(_parsed(_QUOTED.sub(rb"\1", message)))) for message in messages])


class _BoundedHeaders(EmailPolicy):
    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        if len(value) <= MAX_HEADER:
            return name, value
        # A list of addresses ends with a whole one.
        return name, f"{value[:MAX_HEADER].rpartition(',')[0] or value[:MAX_HEADER]}, \u2026"


def _parsed(data: bytes) -> EmailMessage:
    message = message_from_bytes(data, policy=_BoundedHeaders())
    if not isinstance(message, EmailMessage) or not message.keys():
        raise UnreadableDocument("The file is no message: it has no headers.")
    return message


def _header(message: EmailMessage, name: str) -> str | None:
    try:
        return one_line(str(message[name] or "")) or None
    except (ValueError, IndexError, AttributeError, RecursionError):
        # The library fails for some malformed headers.
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


def _text(message: EmailMessage, depth: int = 0) -> str:
    """The subject, the sender and so on, the texts, and each attachment under its name. The headings of a
    message in a message are deeper."""
    lines = [f"{'#' * (depth + 1)} {_header(message, 'Subject') or 'No subject'}"]
    lines += [f"{name}: {value}" for name in HEADERS if (value := _header(message, name))]
    parts = list(islice(_leaves(message), MAX_PARTS + 1))
    if len(parts) > MAX_PARTS:
        raise size_error()
    return "\n\n".join([lines[0], "\n".join(lines[1:]), *(_part(part, depth) for part in parts)])


def _leaves(part: MIMEPart) -> Iterator[MIMEPart]:
    """The texts and attachments of a message in order: of alternatives the plain one, or else HTML."""
    if part.get_content_type() == "multipart/alternative" and (body := part.get_body(("plain", "html"))):
        yield body
    elif part.get_content_maintype() == "multipart":
        for child in part.iter_parts():
            yield from _leaves(child)
    else:
        yield part


def _part(part: MIMEPart, depth: int) -> str:
    name = one_line(str(part.get_filename() or ""))
    kind = part.get_content_type()
    if kind in ("text/plain", "text/html") and not name:
        return markdown(_decoded(part)) if kind == "text/html" else _decoded(part)
    if kind == "message/rfc822" and depth < MAX_DEPTH:
        forwarded = [message for message in part.iter_parts() if isinstance(message, EmailMessage)]
        return "\n\n".join(_text(message, depth + 1) for message in forwarded)
    return f"{'#' * (depth + 2)} {name or 'Attachment'}\n\n{_attachment(part, name)}".rstrip()


def _attachment(part: MIMEPart, name: str) -> str:
    """The text; empty for an empty file. A file that is not read says so, and the message remains."""
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes) or not data.strip():
        return ""
    try:
        kind = file_kind(data, name or None, part.get_content_type())
        if kind in TEXTS:
            return decode_text(data)
        if kind in PARSED:
            return "\n\n".join(text for _, text in parser_of(kind)(data).parts)
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
    try:
        return data.decode(part.get_content_charset("utf-8"), errors="replace")
    except LookupError:
        return data.decode(errors="replace")
