"""Messages and archives of messages, written by the standard library, and broken ones."""

import mailbox
import re
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from time import thread_time

import pytest

from shared.errors import UnreadableDocument
from shared.ingestion.file_to_markdown import convert
from shared.ingestion.parsers.mail import eml, mbox


def message(subject: str = "Kiln 7 is hot – späte Schicht", *files: tuple[str, str | bytes]) -> EmailMessage:
    """A message in two forms, with files by name: texts by their type, others as bytes."""
    letter = EmailMessage()
    letter["Subject"] = subject
    letter["From"] = "Ada Lovelace <ada@acme.example>"
    letter["To"] = "ann@acme.example"
    letter["Date"] = "Mon, 05 Jan 2026 10:00:00 +0100"
    letter.set_content("The kiln is hot.\nFrom tomorrow on it cools. Zürich.")
    letter.add_alternative("<p>The kiln is <b>hot</b> in HTML.</p>", subtype="html")
    for name, data in files:
        if isinstance(data, str):
            letter.add_attachment(data, subtype=name.rpartition(".")[2], filename=name)
        else:
            letter.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return letter


def text_of(data: bytes | EmailMessage) -> str:
    return eml(bytes(data)).parts[0][1]


def assert_in_order(text: str, *parts: str) -> None:
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_a_message_is_its_body_its_headers_and_its_attachments():
    files = ("limits.csv", "code,limit\nE-42,900"), ("all.zip", b"PK\x03\x04 no archive")
    converted = convert(bytes(message("Kiln 7 is hot – späte Schicht", *files)), "letter.eml", None)
    assert converted.title == "Kiln 7 is hot – späte Schicht"
    assert converted.metadata == {
        "source_type": "email", "subject": "Kiln 7 is hot – späte Schicht",
        "from": "Ada Lovelace <ada@acme.example>", "author": "Ada Lovelace <ada@acme.example>",
        "date": "2026-01-05T10:00:00+01:00",
    }  # fmt: skip
    parts = ("To: ann@acme.example", "The kiln is hot.", "Zürich", "## limits.csv", "E-42", "## all.zip")
    assert_in_order(converted.text, *parts)
    # The same text in another form.
    assert "in HTML" not in converted.text


def test_a_forwarded_message_is_part_of_the_text():
    letter = EmailMessage()
    letter.set_content("See below.")
    letter.add_attachment(message("Kiln 8", ("more.csv", "code,limit\nE-43,700")))
    parts = ("See below.", "## Kiln 8", "Ada Lovelace", "Zürich", "### more.csv", "E-43")
    assert_in_order(text_of(letter), *parts)


ADA = "Ada Lovelace <ada@acme.example>, Mon, 05 Jan 2026 10:00:00 +0100"
THREADS = [
    # Below the answer, with the headers of the earlier message.
    ("It costs:\n  9\n\n-----Original Message-----\nFrom: Ben\nSent: May 3, 9:12 AM\nTo: Ada\n\nIs it 8?",
     "It costs:\n  9\n\n\n## Ben, May 3, 9:12 AM\n\nTo: Ada\n\nIs it 8?"),
    ("Neun.\n____________________\n*Von:* Jens <j@a.example>\n*Gesendet:* 4. Mai 2027\n\nAcht?",
     "Neun.\n\n## Jens <j@a.example>, 4. Mai 2027\n\n\nAcht?"),
    # Behind a line that introduces it, nested and broken in two; above the answer.
    ("Nine.\n\nOn 4 May Ben\n<b@a.example> wrote:\n\n> Eight?\n> Le 3 mai Luc a écrit :\n>> Sept ?",
     "Nine.\n\n\n## On 4 May Ben <b@a.example> wrote\n\n\nEight?\n\n## Le 3 mai Luc a écrit\n\nSept ?"),
    ("Am 4.5.2027 um 9 schrieb Jens:\n> Acht?\n\nNeun.",
     f"\n## Am 4.5.2027 um 9 schrieb Jens\n\nAcht?\n\n\n## {ADA}\n\nNeun."),
    # The author of each depth, whose heading is repeated.
    ("Nine.\n\nOn 4 May Ben wrote:\n> On 3 May Luc wrote:\n>> Seven?\n>\n> Eight.",
     "Nine.\n\n\n## On 4 May Ben wrote\n\n\n## On 3 May Luc wrote\n\nSeven?\n\n"
     "\n## On 4 May Ben wrote\n\nEight."),
    ("On 4 May Ben wrote:\n> On 3 May Luc wrote:\n>> 7?\n>> Or?\n\n_____\nNine.",
     "\n## On 4 May Ben wrote\n\n\n## On 3 May Luc wrote\n\n7?\nOr?\n\n\n"
     f"## {ADA}\n\n_____\nNine."),
    # Apple quotes the introduction, Outlook the text alone, Gmail forwards below a divider.
    ("Nine.\n\n> On 4 May Ben wrote:\n> \n> Eight?", "Nine.\n\n\n## On 4 May Ben wrote\n\n\nEight?"),
    ("From: Ben\nTo: Ada\nSent: May 3\n\n> Eight?\n\nNine.",
     f"\n## Ben, May 3\n\nTo: Ada\n\nEight?\n\n\n## {ADA}\n\nNine."),
    ("---------- Forwarded message ---------\nFrom: B 7 <b@a.example>\nDate: 4 May\nSubject: Kiln\nTo: Ada"
     "\n\nHot.", "\n## B 7 <b@a.example>, 4 May\n\nSubject: Kiln\nTo: Ada\n\nHot."),
    ("On 4 May Ben <b@a.example> wrote:\n\nEight?", "\n## On 4 May Ben <b@a.example> wrote\n\n\nEight?"),
    ("Nine.\n> From: Ben\n> Sent: May 3\n> \n> Eight?", "Nine.\n\n## Ben, May 3\n\n\nEight?"),
    # A line with a text is no divider.
    ("--- Total: 12,400 EUR ---\n\nOn 4 May Ben wrote:\n> Total?",
     "--- Total: 12,400 EUR ---\n\n\n## On 4 May Ben wrote\n\nTotal?"),
    # Signs of comparison.
    ("From: Ben\nSent: May 3\nTo: Ada\n\nThe load is\n>= 5 t\nor\n> 5 t here.",
     "\n## Ben, May 3\n\nTo: Ada\n\nThe load is\n>= 5 t\nor\n> 5 t here."),
    ("On 4 May Ben wrote:\n> 5 t or\n> 6 t\n> of ore?", "\n## On 4 May Ben wrote\n\n5 t or\n6 t\nof ore?"),
    ("On 4 May Ben wrote:\n> Eight?\n\n> 5 t of ore?\n\nNine.",
     f"\n## On 4 May Ben wrote\n\nEight?\n\n5 t of ore?\n\n\n## {ADA}\n\nNine."),
    # A line above a signature begins no code, nor does code that has no end.
    *[(f"Nine.\n\nOn 4 May Ben wrote:\n> Eight?\n> {line}\n> On 3 May Luc wrote:\n>> Seven?",
       f"Nine.\n\n\n## On 4 May Ben wrote\n\nEight?\n{line}\n\n## On 3 May Luc wrote\n\nSeven?")
      for line in ("~~~~~~~~", "```")],
    # Code is no header, and its marks stay.
    ("On 4 May Ben wrote:\n> ```\n> From: Ben\n> Sent: May 3\n> > x\n> ```\n> On?",
     "\n## On 4 May Ben wrote\n\n```\nFrom: Ben\nSent: May 3\n> x\n```\nOn?"),
    *[(text, text) for text in (
        # Answers between quoted lines, at any depth, and quotations without an introduction.
        "On 4 May Ben wrote:\n> Eight?\nNine.\n> Red?\nBlue.", "> Eight?\nNine.",
        ">> Is it red?\n> No.\n>> Is it blue?\n> Yes.",
        "On 4 May Ben wrote:\n> On 3 May Luc wrote:\n>> Red?\n> No.\n>> Blue?\n> Yes.",
        "On 4 May Ben wrote:\n>> Seven?\n> Eight.", "From: Ben\nSent: May 3\n\nEight.\n> Red?",
        # Texts that resemble introductions and headers.
        "From: Skar\nTo: Oster", "On 4 May Ben wrote: nine.", "On 4 May Ben wrote:\n\nNine.",
        "On May Ben Miller wrote:\n> Eight?", "On 4 May Ben wrote:", "From: Ben\nSent: May 3",
        "On 4 May 2027 the board wrote to all tenants as follows:\n> 5 kg is refused.",
        "On 4 May Ben <b@a.example> wrote:\n\n> 5 kg?\n\nNine.",
        "From: Hamburg\nTo: Oslo\nDate: 4 May 2027\nWeight: 5 t\n\nOn Friday.",
        "From: 8\nTo: 12\nSent: 4.5.2027\n\nOn Friday.", "From: 10.0.0.1\nData: 12 MB\n\nOn Friday.",
        "Trains.\nFrom: Oslo\nSent: May 3\nTo: Ada\n\nOn Friday.",
        "From: Oslo\n\nSent: May 3\n\nOn Friday.", "| From: | Oslo |\n| Sent: | May 3 |\n\nOn Friday.",
        "```\n\nFrom: Ben\nSent: May 3\n\nEight?\n```\nNine.", "To: Ada\nSent: May 3\n\nOn Friday.",
        "From: Ben | Oslo\nSent: May 3\n\nOn Friday.",
    )],
]  # fmt: skip


def test_earlier_messages_have_headings_of_their_own(subtests: pytest.Subtests):
    sender, sent = ADA.split(", ", 1)
    head = f"From: {sender}\nDate: {sent}\nContent-Type: text/plain; charset=utf-8\n\n"
    for text, shown in THREADS:
        with subtests.test(text=text):
            assert text_of(f"{head}{text}".encode()).partition("+0100\n\n")[2] == shown


def test_the_quotations_of_html_have_headings_by_their_depth():
    """As Gmail writes them."""
    quoted = (
        "<div>On 4 May Ben wrote:</div><blockquote>Eight.<div>On 3 May Luc wrote:</div>"
        "<blockquote>Seven?<p>&gt; 5 t</blockquote>Or ten.</blockquote>"
    )
    text = text_of(raw(("text/html", f"<div>Nine.</div>{quoted}".encode())))
    by_author = re.split(r"## |\n+", text.removeprefix("# Kiln"))
    assert [*filter(None, by_author)] == [
        "Nine.", "On 4 May Ben wrote", "Eight.", "On 3 May Luc wrote", "Seven?", "\\> 5 t",
        "On 4 May Ben wrote", "Or ten.",
    ]  # fmt: skip


def test_no_heading_lacks_its_author():
    thread = "On 4 May Ben wrote:\n> Eight?"
    assert text_of(f"Subject: Kiln\n\nNine.\n{thread}".encode()).endswith(
        "Nine.\n\n## On 4 May Ben wrote\n\nEight?"
    )
    assert text_of(f"Subject: Kiln\n\n{thread}\n\nNine.".encode()).endswith(f"{thread}\n\nNine.")


def test_a_message_attached_as_a_file_is_read(subtests: pytest.Subtests):
    inner = bytes(message("Kiln 8"))
    for name, data in (("inner.eml", inner), ("inner.mbox", b"From ada@acme.example Mon Jan  5\n" + inner)):
        with subtests.test(name):
            parsed = eml(bytes(message("Kiln 7", (name, data))))
            assert "Kiln 8" in parsed.parts[0][1]
            assert parsed.notes == []


def test_an_attachment_is_decoded_in_its_charset(subtests: pytest.Subtests):
    for kind, charset, text in (
        ("csv", "windows-1252", "Ort;Größe\nKöln;405\n"),
        ("html", "iso-8859-2", "<p>Łódź</p>"),
    ):
        with subtests.test(kind=kind, charset=charset):
            letter, data = message(), text.encode(charset)
            letter.add_attachment(data, "text", kind, filename=f"a.{kind}", params={"charset": charset})
            parsed = eml(bytes(letter))
            assert ("Köln" if charset == "windows-1252" else "Łódź") in parsed.parts[0][1]
            assert parsed.notes == []


def test_a_message_with_a_byte_order_mark_is_read(subtests: pytest.Subtests):
    for encoding in ("utf-8-sig", "utf-16"):
        with subtests.test(encoding):
            assert eml(message().as_string().encode(encoding)).title == eml(bytes(message())).title


def test_a_table_of_few_words_is_read_without_its_charset(subtests: pytest.Subtests):
    data = "Réf;Libellé;Montant\nA-1;Été;12,50\nA-2;Hiver;8,00\n".encode("cp1252")
    for maintype, subtype in (("text", "csv"), ("application", "octet-stream")):
        letter = message()
        letter.add_attachment(data, maintype, subtype, filename="détail_devis.csv")
        with subtests.test(maintype):
            parsed = eml(bytes(letter))
            assert "## détail_devis.csv\n\n| Réf | Libellé | Montant |\n" in parsed.parts[0][1]
            note = "détail_devis.csv: The file is not in UTF-8. Its encoding was detected as cp1252."
            assert parsed.notes == [note]


def test_texts_around_an_attachment_are_all_read():
    letter, after = EmailMessage(), EmailMessage()
    letter.set_content("Before the table.")
    letter.add_attachment("a,b\n1,2", subtype="csv", filename="t.csv")
    after.set_content("After the table.")
    letter.attach(after)
    assert_in_order(text_of(letter), "Before the table.", "t.csv", "After the table.")


@pytest.mark.parametrize("kind", ["pdf", "docx", "csv"])
def test_a_broken_attachment_costs_only_itself(kind: str):
    heads = {"pdf": b"%PDF-1.7 broken", "docx": b"PK\x03\x04 broken"}
    data = heads.get(kind, b"\x00\xff\xfe broken \x00")
    letter = message("Kiln 7", (f"broken.{kind}", data), ("fine.txt", b"E-42 is fine"))
    assert_in_order(text_of(letter), "The kiln is hot.", f"## broken.{kind}", "E-42 is fine")


def test_an_archive_has_a_section_for_each_message(tmp_path: Path):
    archive = mailbox.mbox(tmp_path / "team.mbox")
    for number in range(3):
        archive.add(message(f"Letter {number}"))
    archive.close()
    texts = [text for _, text in mbox((tmp_path / "team.mbox").read_bytes()).parts]
    assert [text.startswith(f"# Letter {number}\n") for number, text in enumerate(texts)] == [True] * 3
    # The archive quotes the line, which looks like the beginning of a message.
    assert all("\nFrom tomorrow on it cools." in text for text in texts)


def raw(*parts: tuple[str, bytes], kind: str = "alternative") -> bytes:
    """A message of parts, each with its headers and bytes."""
    bodies = [b"--b1\nContent-Type: " + head.encode() + b"\n\n" + data + b"\n" for head, data in parts]
    head = f"Subject: Kiln\nMIME-Version: 1.0\nContent-Type: multipart/{kind}; boundary=b1\n\n"
    return head.encode() + b"".join(bodies) + b"--b1--\n"


PAYMENT = b"<h2>Payment</h2><table><tr><td>Invoice<td>R-77120<tr><td>Paid<td>9,50</table>"
PLACEHOLDERS = [
    "", " \n", "This message is in HTML.", "Your mail program does not show HTML. Open this in a browser.",
    "Ihr Programm zeigt kein HTML.", "Votre messagerie ne prend pas en charge le HTML.",
    "このメールはHTMLです。",
]  # fmt: skip


def test_a_placeholder_gives_way_to_the_html(subtests: pytest.Subtests):
    for text in PLACEHOLDERS:
        with subtests.test(text=text):
            parts = ("text/plain; charset=utf-8", text.encode()), ("text/html; charset=utf-8", PAYMENT)
            read = text_of(raw(*parts))
            assert "| Invoice | R-77120 |" in read
            assert not text.strip() or text not in read
    whole = raw(("text/plain", b"Payment of invoice R-77120: paid 9,50 in full"), ("text/html", PAYMENT))
    assert "| Invoice" not in text_of(whole)


def test_attachments_within_an_alternative_are_read():
    inner = raw(
        ("text/html", b"<p>See the table of kilns"),
        ("text/csv; name=limits.csv", b"code,limit\nE-42,900"),
        ("image/png; name=photo.png", b"\x89PNG\r\n"),
        kind="mixed",
    ).partition(b"\n\n")[2].replace(b"b1", b"b2")  # fmt: skip
    parts = ("text/plain", b"See the table of kilns"), ("multipart/mixed; boundary=b2", inner)
    parsed = eml(raw(*parts))
    text = parsed.parts[0][1]
    assert text.count("See the table of kilns") == 1
    assert "| E-42 | 900 |" in text
    assert "## photo.png\n\n(This file was not read.)" in text
    assert parsed.notes == ["The attachment photo.png was not read."]


JAPANESE = "こんにちは、会議は三時です。①"
CHARSETS = {
    "gb2312": ("窑炉很熱镕", "gb18030"), "iso-8859-1": ("Größe – 5 €", "cp1252"),
    "shift_jis": (JAPANESE, "cp932"), "us-ascii": ("Die Größe der Dichtung für Pumpe", "cp1252"),
    "ISO-8859-1": ("Größe", "utf-8"), "x-unknown": ("Größe", "utf-8"),
    "iso-2022-jp": (JAPANESE[:-1], "iso-2022-jp"),
    "utf-8": ("Die Größe der Dichtung für Pumpe", "cp1252"), "koi8-r": ("Печь", "koi8-r"),
    "windows-31j": (JAPANESE, "cp932"),
}  # fmt: skip


def test_a_text_is_decoded_in_the_charset_that_its_program_means(subtests: pytest.Subtests):
    for charset, (text, encoding) in CHARSETS.items():
        with subtests.test(charset=charset):
            head = f"Subject: a\nContent-Type: text/plain; charset={charset}\n\n"
            assert text_of(head.encode() + text.encode(encoding)).endswith(f"\n{text}")
    text = "Größe der Öfen, für Müller, übermäßig, Süd, schön"
    broken = f"Subject: a\nContent-Type: text/plain; charset=utf-8\n\n{text}".encode() + b"\xc3"
    assert text_of(broken).endswith(f"{text}\ufffd")
    no_charset = "Subject: Größe\n\nDie Größe der Dichtung für Pumpe"
    for encoding in ("utf-8", "cp1252"):
        assert text_of(no_charset.encode(encoding)).endswith("Die Größe der Dichtung für Pumpe")
    assert eml(no_charset.encode()).title == "Größe"


INVITATION = b"""BEGIN:VCALENDAR
BEGIN:VTIMEZONE
DTSTART:19701025T030000
END:VTIMEZONE
BEGIN:VEVENT
DTSTART;TZID=Europe/Berlin:20270504T090000
DTEND;TZID=UTC;X=1:20270504T083000Z
EXDATE:20270511T070000Z,20270518
DURATION:PT1H
SUMMARY:Kiln inspection\\, hall 20271234
LOCATION;LANGUAGE=en:Harbour
  street 4
UID:x
END:VEVENT
END:VCALENDAR"""


def test_an_invitation_is_text():
    parts = ("text/plain", b"You are invited"), ("text/calendar; method=REQUEST", INVITATION)
    assert text_of(raw(*parts)).endswith(
        "You are invited\n\nStart: 2027-05-04 09:00 (Europe/Berlin)\nEnd: 2027-05-04 08:30 UTC (UTC)\n"
        "Except: 2027-05-11 07:00 UTC,2027-05-18\nDuration: PT1H\n"
        "Event: Kiln inspection, hall 20271234\nLocation: Harbour street 4"
    )


FLOWED = [
    # Each line of a quotation has marks, and lines of another depth are other lines.
    ("> Ei \n> ght\r\n>> Sev \n>> en", "> Eight\n>> Seven"), ("> Eight?\n> \nNine.", "> Eight?\n> \nNine."),
    ("> Eight \nNine.", "> Eight\nNine."), (">> Seven?\n>> \n> Eight.", ">> Seven?\n>> \n> Eight."),
    ("> First.\n> \n> Second.", "> First.\n> \n> Second."), ("> -- \n> Jens", "> -- \n> Jens"),
    ("First. \n\nSecond.", "First.\n\nSecond."), ("Ann \n-- \nAda", "Ann\n-- \nAda"),
    (" From 9 \n0", "From 90"),
]  # fmt: skip


def test_lines_that_are_broken_within_words_are_joined(subtests: pytest.Subtests):
    head = "text/plain; charset=utf-8; format=flowed; delsp=yes"
    text = text_of(raw((head, b"Der Kran kostet 1 \n2 Euro.\nNeue Ze \nile\n-- \nAnn")))
    assert text.endswith("Der Kran kostet 12 Euro.\nNeue Zeile\n-- \nAnn")
    for stored, shown in FLOWED:
        with subtests.test(stored=stored):
            assert text_of(raw((head, stored.encode()))).removeprefix("# Kiln\n\n\n\n") == shown


def test_lines_are_joined_in_linear_time():
    started = thread_time()
    head = "text/plain; charset=utf-8; format=flowed; delsp=yes"
    assert len(text_of(raw((head, (b"x" * 1_000 + b" \n") * 10_000)))) > 10_000_000
    assert thread_time() - started < 10


def test_a_property_with_many_parameters_takes_no_time():
    """40 of these took 2^40 steps."""
    calendar = f"BEGIN:VEVENT\nDTSTART{';TZID=a' * 40}\nEND:VEVENT".encode()
    assert text_of(raw(("text/calendar", calendar))) == "# Kiln\n\n"


def test_a_header_of_a_part_is_cut_and_a_malformed_one_is_empty():
    late = f"text/plain; a={'x' * 4_000}; name=late.txt"
    assert text_of(raw((late, b"The kiln is hot."))) == "# Kiln\n\n\n\nThe kiln is hot."
    assert text_of(raw(("*;a*", b"The kiln is hot."))) == "# Kiln\n\n\n\nThe kiln is hot."


def test_file_names_are_decoded_in_the_encoding_of_their_bytes(subtests: pytest.Subtests):
    for name, encoding in (
        ("Prüfung.csv", "latin-1"), ("Prüfung.csv", "utf-8"), ("見積書一覧.csv", "shift_jis"),
        ("Смета расходов.csv", "cp1251"),
    ):  # fmt: skip
        head = b'Content-Type: text/csv\nContent-Disposition: attachment; filename="%s"\n\na,b\n1,2\n'
        parts = b"--b\n" + head % name.encode(encoding) + b"--b--\n"
        with subtests.test(name=name, encoding=encoding):
            text = text_of(b"Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n" + parts)
            assert f"## {name}\n" in text


UNREAD = {
    "application/ms-tnef; name=winmail.dat": "The attachment winmail.dat was not read.",
    "application/zip; name*=utf-8''Gr%C3%B6%C3%9Fe.zip": "The attachment Größe.zip was not read.",
    "application/pkcs7-mime; name=smime.p7m": "The message is encrypted, and was not read.",
    'image/x; name="=?utf-8?q?Gr=C3=B6=C3=9Fe=2Ebin?="': "The attachment Größe.bin was not read.",
}


def test_a_part_that_is_not_read_is_noted(subtests: pytest.Subtests):
    for head, note in UNREAD.items():
        with subtests.test(head=head):
            parsed = eml(raw(("text/plain", b"hot"), (head, b"\x00\xff\x01"), kind="mixed"))
            assert parsed.notes == [note]
            assert "(This file was not read.)" in parsed.parts[0][1]
    signed = raw(
        ("text/plain", b"hot"), ("application/pkcs7-signature; name=smime.p7s", b"\x30\x80"), kind="signed"
    )
    assert (eml(signed).notes, eml(signed).parts[0][1]) == ([], "# Kiln\n\n\n\nhot")
    armour = b"-----BEGIN PGP MESSAGE-----\nxyz"
    sealed = raw(
        ("application/pgp-encrypted", b"Version: 1"), ("application/octet-stream", armour), kind="encrypted"
    )
    assert eml(sealed).notes == ["The message is encrypted, and was not read."]
    assert "xyz" not in eml(sealed).parts[0][1]


def test_pictures_of_html_are_noted_once(subtests: pytest.Subtests):
    html = PAYMENT + b"<img src=https://a/plan.png><img src=https://a/b width=1 height=1><img src=cid:logo>"
    note = ["1 picture was not read."]
    plain = ("text/plain", eml(raw(("text/html", PAYMENT))).parts[0][1].encode())
    for name, parts in {"html": [("text/html", html)], "plain": [plain, ("text/html", html)]}.items():
        with subtests.test(name):
            assert eml(raw(*parts)).notes == note
    message = b"From - Mon May 3 2027\n" + raw(("text/html", html)) + b"\n\n"
    assert mbox(message * 12).notes == ["12 pictures were not read."]


def test_html_that_cannot_be_read_costs_no_plain_text():
    deep = ("text/html", b"<div>" * 1100 + b"Hello" + b"</div>" * 1100)
    parsed = eml(raw(("text/plain", b"Hello plain"), deep))
    assert "Hello plain" in parsed.parts[0][1]
    assert parsed.notes == ["The HTML of the message was not read."]
    with pytest.raises(UnreadableDocument):
        eml(raw(("text/plain", b""), deep))


def nested() -> bytes:
    letter = b"Subject: innermost\n\nthe end\n"
    for _ in range(3000):
        letter = b"Content-Type: message/rfc822\n\n" + letter
    return letter


def in_subprocess(data: bytes) -> object:
    """A message whose parser fails otherwise than with a refusal."""
    return convert(data, "a.eml", None)


@pytest.mark.parametrize(
    ("parse", "data"),
    [(eml, b"\n\nno headers"), (mbox, b"Subject: a\n\ntext"), (in_subprocess, nested()),
     (mbox, b"From a\nSubject: a\n\ntext\n\n" * 10_001)],
    ids=["no message", "no archive", "messages in messages", "too many messages"],
)  # fmt: skip
def test_a_broken_file_is_refused(parse: Callable[[bytes], object], data: bytes):
    with pytest.raises(UnreadableDocument):
        parse(data)


def test_malformed_headers_cost_only_themselves():
    data = b"Subject: =?utf-8?q?kiln\nDate: never\nFrom: <<\nContent-Type: text/plain; charset=none\n\nhot\n"
    parsed = eml(data)
    assert "hot" in parsed.parts[0][1]
    assert "date" not in parsed.metadata


def test_a_long_header_is_cut_and_a_malformed_one_loses_no_text():
    """100,000 recipients took the library minutes."""
    recipients = ", ".join(f"Person {number} <p{number}@example.org>" for number in range(100_000))
    data = f"From: {'(' * 5_000}\nTo: {recipients}\nSubject: Kiln\n\nThe kiln is hot.\n".encode()
    text = text_of(data).strip()
    assert text.startswith("# Kiln\n\nTo: Person 0 <p0@example.org>, Person 1 <p1@example.org>")
    assert text.endswith(">, \u2026\n\nThe kiln is hot.")
    assert len(text) < 11_000
    comments, parameters = "(" * 9_000, "".join(f"; a{number}*=utf-8''x" for number in range(2_000))
    part = (
        f"Content-Type: text/plain{parameters}\nContent-Disposition: inline {comments}\n\nThe kiln is hot.\n"
    )
    parts = f"--b\nContent-Transfer-Encoding: 8bit {comments}\n{part}" * 20
    data = f"Subject: Kiln\nContent-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n".encode()
    assert text_of(data).split() == ["#", "Kiln", *["The", "kiln", "is", "hot."] * 20]
