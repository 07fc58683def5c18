"""Messages and archives of messages, written by the standard library, and broken ones."""

import mailbox
from email.message import EmailMessage
from pathlib import Path

import pytest

from shared.errors import UnreadableDocument
from shared.ingestion.file_to_markdown import convert


def message(subject: str = "Kiln 7 is hot – späte Schicht") -> EmailMessage:
    letter = EmailMessage()
    letter["Subject"] = subject
    letter["From"] = "Ada Lovelace <ada@acme.example>"
    letter["To"] = "ann@acme.example"
    letter["Date"] = "Mon, 05 Jan 2026 10:00:00 +0100"
    letter.set_content("The kiln is hot.\nFrom tomorrow on it cools. Zürich.")
    letter.add_alternative("<p>The kiln is <b>hot</b> in HTML.</p>", subtype="html")
    return letter


def test_a_message_is_its_body_its_headers_and_its_attachments():
    letter = message()
    letter.add_attachment("code,limit\nE-42,900", subtype="csv", filename="limits.csv")
    letter.add_attachment(b"PK\x03\x04 no archive", maintype="application", subtype="zip", filename="all.zip")
    converted = convert(letter.as_bytes(), "letter.eml", None)
    assert converted.title == "Kiln 7 is hot – späte Schicht"
    assert converted.metadata == {
        "source_type": "email", "subject": "Kiln 7 is hot – späte Schicht",
        "from": "Ada Lovelace <ada@acme.example>", "author": "Ada Lovelace <ada@acme.example>",
        "date": "2026-01-05T10:00:00+01:00",
    }  # fmt: skip
    for part in ("The kiln is hot.", "Zürich", "To: ann@acme.example", "## limits.csv", "E-42", "## all.zip"):
        assert part in converted.text, part
    # The same text in another form.
    assert "in HTML" not in converted.text


def test_an_archive_has_a_section_for_each_message(tmp_path: Path):
    archive = mailbox.mbox(tmp_path / "team.mbox")
    for number in range(3):
        archive.add(message(f"Letter {number}"))
    archive.close()
    converted = convert((tmp_path / "team.mbox").read_bytes(), "team.mbox", None)
    assert converted.text.count("# Letter ") == 3
    # The archive quotes the line, which looks like the beginning of a message.
    assert converted.text.count("\nFrom tomorrow on it cools.") == 3


def nested() -> bytes:
    letter = b"Subject: innermost\n\nthe end\n"
    for _ in range(3000):
        letter = b"Content-Type: message/rfc822\n\n" + letter
    return letter


BROKEN = {
    "no message": ("a.eml", b"\n\nno headers"),
    "no archive": ("a.mbox", b"Subject: a\n\ntext"),
    "messages in messages": ("a.eml", nested()),
    "too many messages": ("a.mbox", b"From a\nSubject: a\n\ntext\n\n" * 10_001),
}


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_file_is_refused(why: str):
    name, data = BROKEN[why]
    with pytest.raises(UnreadableDocument):
        convert(data, name, None)


def test_malformed_headers_cost_only_themselves():
    data = b"Subject: =?utf-8?q?kiln\nDate: never\nFrom: <<\nContent-Type: text/plain; charset=none\n\nhot\n"
    converted = convert(data, "a.eml", "message/rfc822")
    assert "hot" in converted.text
    assert "date" not in converted.metadata
