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


def test_a_forwarded_message_is_part_of_the_text():
    inner = message("Kiln 8")
    inner.add_attachment("code,limit\nE-43,700", subtype="csv", filename="more.csv")
    letter = EmailMessage()
    letter["Subject"] = "Forwarded: Kiln 8"
    letter["From"] = "ann@acme.example"
    letter.set_content("See below.")
    letter.add_attachment(inner)
    text = convert(letter.as_bytes(), "letter.eml", None).text
    places = [
        text.index(part)
        for part in ("See below.", "## Kiln 8", "Ada Lovelace", "Zürich", "### more.csv", "E-43")
    ]
    assert places == sorted(places)


def test_texts_around_an_attachment_are_all_read():
    letter = EmailMessage()
    letter["Subject"] = "Three"
    letter["From"] = "ann@acme.example"
    letter.set_content("Before the table.")
    letter.add_attachment("a,b\n1,2", subtype="csv", filename="t.csv")
    after = EmailMessage()
    after.set_content("After the table.")
    letter.attach(after)
    text = convert(letter.as_bytes(), "letter.eml", None).text
    assert text.index("Before the table.") < text.index("t.csv") < text.index("After the table.")


@pytest.mark.parametrize("kind", ["pdf", "docx", "xlsx", "csv", "html"])
def test_a_broken_attachment_costs_only_itself(kind: str):
    letter = message()
    heads = {"pdf": b"%PDF-1.7 broken", "docx": b"PK\x03\x04 broken", "xlsx": b"PK\x03\x04 broken"}
    data = heads.get(kind, b"\x00\xff\xfe broken \x00")
    letter.add_attachment(data, maintype="application", subtype="octet-stream", filename=f"broken.{kind}")
    letter.add_attachment("E-42 is fine", filename="fine.txt")
    text = convert(letter.as_bytes(), "letter.eml", None).text
    assert f"## broken.{kind}" in text
    assert "E-42 is fine" in text
    assert "The kiln is hot." in text


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


def test_a_long_header_is_cut_and_a_malformed_one_loses_no_text():
    """100,000 recipients took the library minutes."""
    recipients = ", ".join(f"Person {number} <p{number}@example.org>" for number in range(100_000))
    data = f"From: {'(' * 5_000}\nTo: {recipients}\nSubject: Kiln\n\nThe kiln is hot.\n".encode()
    text = convert(data, "letter.eml", None).text
    assert text.startswith("# Kiln\n\nTo: Person 0 <p0@example.org>, Person 1 <p1@example.org>")
    assert text.endswith(">, \u2026\n\nThe kiln is hot.")
    assert len(text) < 11_000
