"""What files are read as, and how those are refused that are not what they seem."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from pptx import Presentation

from local import ROOT
from shared.errors import (
    InvalidRequest,
    RagError,
    TranscriptionFailed,
    UnreadableDocument,
    UnsupportedFileType,
)
from shared.ingestion.file_to_markdown import Converted, convert
from shared.ingestion.file_type import file_kind
from shared.ingestion.parser_sandbox import parse_in_subprocess
from shared.ingestion.parsers import html_xml, ocr
from shared.ingestion.parsers.excel import xlsx
from shared.ingestion.parsers.parsed_file import own_title
from shared.ingestion.parsers.word import docx
from shared.models.transcription import transcriber_for
from tests.shared import sample_files
from tests.shared.examples import BIDIRECTIONAL, ZERO_WIDTH, settings
from tests.shared.sample_files import archive
from tests.stand_in_server import Reply, StandIn

# -- texts --------------------------------------------------------------------------------------------


def test_texts_are_parsed(subtests: pytest.Subtests):
    cases: list[tuple[bytes, str | None, str | None, str, str]] = [
        (b"plain", "a.txt", None, "plain", "text"),
        (b"# Title\n\nwords", "A.MD", "application/octet-stream", "# Title\n\nwords", "markdown"),
        (b"a,b\n1,2\n", None, "text/csv; charset=utf-8", "| a | b |\n| --- | --- |\n| 1 | 2 |", "csv"),
        ("Größe".encode("utf-16"), "a.txt", None, "Größe", "text"),
        (b"\xfe\xff" + "Größe".encode("utf-16-be"), "a.txt", None, "Größe", "text"),
        (b"\xef\xbb\xbfwith a mark", "a.txt", None, "with a mark", "text"),
        (b'{"a": [1, "\xc3\xa9"]}', "a.json", None, '{\n "a": [\n  1,\n  "é"\n ]\n}', "json"),
        (b"{}", "a.txt", "application/json", "{}", "text"),
        (b"def f():\n    pass", "a.py", "text/plain", "def f():\n    pass", "code"),
        (b"select 1;", "a.sql", None, "select 1;", "text"),
        (b"<svg><title>Kiln</title></svg>", "a.svg", None, "svg:\n  title: Kiln", "xml"),
        (b'<o:list xmlns:o="urn:x"><item id="1"><name>Clay</name></item><p>A <b>hot</b> kiln.</p><!-- no -->'
         b"</o:list>", "a.xml", None, "list:\n  item id=1:\n    name: Clay\n  p: A hot kiln.", "xml"),
        (b'{"cells": []}', "a.ipynb", None, '{\n "cells": []\n}', "json"),
        (b"<!DOCTYPE html>\n<p>Kiln \xe9", None, None, "Kiln \u00e9", "html"),
        (f"Ket{ZERO_WIDTH}tle{BIDIRECTIONAL}\r\n".encode(), "a.txt", None, "Kettle", "text"),
    ]  # fmt: skip
    for data, name, sent_as, text, kind in cases:
        with subtests.test(data=data, name=name, sent_as=sent_as):
            document = convert(data, name, sent_as)
            assert (document.text, document.kind, document.pages) == (text, kind, ())


def test_plain_text_is_parsed_whatever_its_name(subtests: pytest.Subtests):
    text = "degrees: 1280 °C\n\tclay: yes\f"
    for name, sent_as in (
        ("a.yaml", None), ("a.nobody", None), ("Makefile", "application/octet-stream"), (None, None),
        ("a.mp4", "video/mp4"),
    ):  # fmt: skip
        for encoding in ("utf-8", "utf-16"):
            with subtests.test(name=name, encoding=encoding):
                document = convert(text.encode(encoding), name, sent_as)
                assert (document.text, document.kind) == (text.rstrip("\f"), "text")


def test_numbers_of_json_stay_as_they_are_written():
    numbers = ["1.10", "-0", "1e3", "1E400", "0.1000", "9" * 5000]
    text = convert(f"[{','.join(numbers)}]".encode(), "a.json", None).text
    assert text == "[\n " + ",\n ".join(numbers) + "\n]"


PICTURE = "iVBORw0KGgo+/" * 100 + "=="
# The names of files, what stands before and after a picture, and between its lines.
ENCODED = [
    ("a.ipynb", '{\n "image/png": "', '"\n}', ""),
    ("a.md", "A kiln ![plan](", ") and an oven", ""),
    ("wrapped.ipynb", '{\n "image/png": "', '\\n"\n}', "\\n"),
    ("lines.json", '{\n "image": [\n  "', '"\n ]\n}', '",\n  "'),
    ("ended_lines.json", '{\n "image": [\n  "', '\\n"\n ]\n}', '\\n",\n  "'),
]


def test_files_in_base64_are_left_out_with_a_note(subtests: pytest.Subtests):
    lines = [PICTURE[at : at + 76] for at in range(0, len(PICTURE), 76)]
    for name, before, after, between in ENCODED:
        with subtests.test(name):
            prefix = "data:image/png;base64," if name == "a.md" else ""
            converted = convert(f"{before}{prefix}{between.join(lines)}{after}".encode(), name, None)
            assert converted.text == before + after
            assert converted.notes == ("Pictures or files in base64 were not read.",)
    for before, after in (('{\n "a": "', '",\n "name": "Ann"\n}'), ('[\n "', '",\n "Ann",\n "Bob"\n]')):
        unpadded = f"{before}{PICTURE.rstrip('=')}{after}".encode()
        assert convert(unpadded, "a.json", None).text == before + after
    genome = "ACGTacgt" * 9
    rows = ",\n".join([f' "{genome}"'] * 20)
    for name, text in (("a.txt", PICTURE), ("a.json", f'"{genome * 20}"'), ("b.json", f"[\n{rows}\n]")):
        assert convert(text.encode(), name, None).text == text


def test_the_lines_of_a_markdown_table_begin_with_a_bar(subtests: pytest.Subtests):
    for text, framed in (
        ("Port | Fee\n--- | :-:\nSkar | 10\n\nEnd", "| Port | Fee |\n| --- | :-: |\n| Skar | 10 |\n\nEnd"),
        ("```\na | b\n--- | ---\n```", ""),
        ("a | b\n- | - \nc | d\n```\na | b\n- | -", "| a | b |\n| - | - |\n| c | d |\n```\na | b\n- | -"),
        ("a | b\r\n- | -\r\nc | d", "| a | b |\n| - | - |\n| c | d |"),
        ("a title\n--- | ---", ""),
        ("| Port | Fee |\n|---|---|\n| Skar | 10 |", ""),
    ):  # fmt: skip
        with subtests.test(text):
            assert convert(text.encode(), "a.md", None).text == (framed or text)


def test_the_time_of_markdown_grows_with_its_length():
    blanks, levels = " " * 100_000, 20_000
    for text in (
        "`" * 2000 + "\n" + "aaaa bbbb\n" * 50_000,
        f"a | b\n- | -{blanks}x\n",
        f"a | b\n-{blanks}x\n",
        "Port\n" + "<sup>" * levels + "</sup>" * levels,
    ):
        started = time.process_time()
        convert(text.encode(), "a.md", None)
        assert time.process_time() - started < 5


HTML_OBJECT = "<IPython.core.display.HTML object>"


def shown(**data: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data}


def test_a_notebook_is_its_texts_code_and_outputs():
    table = "<table><tr><th>Port</th></tr><tr><td>Skar</td></tr></table>"
    outputs = [
        {"output_type": "stream", "text": ["\x1b[31mread\x1b[0m\n", "two ports\n"]},
        {"output_type": "execute_result", "data": {"text/html": [table], "text/plain": ["Port"]}},
        shown(**{"image/png": "iVBORw0KGgo+", "text/plain": "<Figure>"}),
        {"output_type": "error", "ename": "ValueError", "evalue": "no ship", "traceback": ["\x1b[0;31m"]},
        shown(**{"text/html": "<b>3 <i>ships</i></b>", "text/plain": HTML_OBJECT}),
        shown(**{"text/html": "<pre>{'a': 1}</pre>", "text/plain": "{'a': 1}"}),
        {"output_type": "stream", "text": "```\ncode\n```\n~~~~\n"},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Catch of 2027\n", "\n", "By port."]},
        {"cell_type": "code", "source": "print(ports)", "outputs": outputs},
    ]
    book = {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}
    converted = convert(json.dumps(book).encode(), "a.ipynb", None)
    assert converted.text.split("\n\n") == [
        "# Catch of 2027",
        "By port.",
        "```python\nprint(ports)\n```",
        "```\nread\ntwo ports\n```",
        "| Port |\n| --- |\n| Skar |",
        "ValueError: no ship",
        "3 ships",
        "```\n{'a': 1}\n```",
        "````\n```\ncode\n```\n~~~~\n````",
    ]
    assert (converted.title, converted.notes) == ("Catch of 2027", ("1 picture was not read.",))
    # Other versions.
    assert '"nbformat": 3' in convert(b'{"worksheets": [], "nbformat": 3}', "a.ipynb", None).text


# -- files --------------------------------------------------------------------------------------------


def test_a_pdf_keeps_its_pages_headings_and_paragraphs():
    document = convert(sample_files.pdf(3), "a.pdf", None)
    assert (document.kind, document.title) == ("pdf", "Kiln handbook")
    assert [number for _, number in document.pages] == [1, 2, 3]
    for start, number in document.pages:
        paragraph = f"Page {number} begins. " + " ".join([sample_files.FIRING] * 8)
        assert document.text[start:].startswith(f"# Chapter {number}: Firing\n\n{paragraph}")


SLIDES = [
    "# Slide 1\n\n- First point\n  - Second point\n\nNotes: Said on slide 1",
    "# Slide 2\n\n- First point\n  - Second point\n\n| r0c0 | r0c1 |\n| --- | --- |\n| r1c0 | r1c1 |\n\n"
    "Notes: Said on slide 2",
]
SHEETS = [
    "# Stock\n\n| Item | Quantity | When |\n| --- | --- | --- |\n| Clay | 2 | 2026-01-02 |\n"
    "| Glaze\\|s | 1.5 |  |",
    "# Empty",
    "# Notes\n\n| two lines |\n| --- |",
]
WORDS = [
    f"on every page\n\n# Firing\n\n{sample_files.FIRING}\n\n- Wear gloves\n\n## Costs\n\n"
    "| Item | Price \\| net |\n| --- | --- |\n| Clay | 3.50 |"
]
# In the order of its spine.
BOOK = ["# Firing\n\nAbout Firing.\n\n# Cooling\n\nAbout Cooling."]


@pytest.mark.parametrize(
    ("make", "name", "pages", "kind", "title"),
    [
        (sample_files.docx, None, WORDS, "docx", "Kiln handbook"),
        (sample_files.pptx, "a.pptx", SLIDES, "pptx", "Slide 1"),
        (sample_files.xlsx, "a.xlsx", SHEETS, "xlsx", None),
        (sample_files.epub, None, BOOK, "epub", "Kiln book"),
    ],
)
def test_a_file_keeps_its_headings_lists_tables_and_pages(
    make: Callable[[], bytes], name: str | None, pages: list[str], kind: str, title: str | None
):
    document = convert(make(), name, None)
    assert (document.text, document.kind) == ("\n\n".join(pages), kind)
    starts = [len("\n\n".join([*pages[:at], ""])) for at in range(len(pages))]
    assert document.pages == (tuple(zip(starts, (1, 2, 3), strict=False)) if kind in ("pptx", "xlsx") else ())
    assert document.title == title


PAGE = """<!doctype html><html><head><title>Kilns &amp; more</title><style>p {color: red}</style>
<script>alert("no")</script></head><body><nav><a href="/">Home</a></nav><h1>Kilns</h1>
<p>A <b>hot</b> <a href="javascript:no()">kiln</a>.</p><p style="display:none">hidden</p><!-- a note -->
<template>no</template><iframe src="//no.example"></iframe><img src=x onerror="no()">
<table><tr><th>a</th></tr><tr><td>1</td></tr></table><pre><code>x = 1
</code></pre></body></html>"""


def test_only_the_visible_text_of_a_page_is_parsed():
    assert convert(PAGE.encode(), "a.html", None) == Converted(
        "# Kilns\n\nA hot kiln.\n\n| a |\n| --- |\n| 1 |\n\n```\nx = 1\n```",
        "html",
        "Kilns & more",
        notes=("1 picture was not read.", "1 embedded page was not read."),
    )


def test_a_page_is_decoded_by_its_declared_charset(subtests: pytest.Subtests):
    pages = {
        "UTF-8": "<p>größer</p>".encode(),
        "declared": b'<meta charset="iso-8859-1"><p>gr\xf6\xdfer</p>',
        "declared with spaces": b'<meta content="text/html; charset = macintosh"><p>gr\x9a\xa7er</p>',
        "undeclared": b"<p>gr\xf6\xdfer</p>",
        "marked": "<p>größer</p>".encode("utf-16"),
        "unknown": b'<meta charset="no-such"><p>gr\xc3\xb6\xc3\x9fer</p>',
    }
    for case, data in pages.items():
        with subtests.test(case):
            assert html_xml.html(data).parts[0][1].strip() == "größer"


def test_a_file_s_type_is_decided_by_its_bytes():
    cases = (
        (sample_files.pdf(1), "lies.txt", "pdf"),
        (sample_files.docx(), "lies.pdf", "docx"),
        (sample_files.epub(), "lies.docx", "epub"),
        (b"\n\n" + sample_files.pdf(1), "late.pdf", "pdf"),
    )
    assert tuple((data, name, file_kind(data, name, "text/plain")) for data, name, _ in cases) == cases


# -- refused files ----------------------------------------------------------------------------------


def test_an_unsupported_type_is_refused_with_the_supported_ones(subtests: pytest.Subtests):
    for data, name in (
        # Office of old, RTF, an archive, a program.
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "a.doc"), (b"{\\rtf1", "a.rtf"), (archive({"a.txt": "words"}), "a.zip"),
        (archive({"mimetype": "application/vnd.oasis.opendocument.text"}), "a.zip"), (b"words", "a.ods"),
        (b"words", "a.exe"), (b"\x7fELF\2\1", None),
        # Bytes, Latin-1, a terminal's controls.
        (b"\0asm\1", "a.wasm"), (b"caf\xe9", "a.yaml"), (b"words\x1b[0m", "a.cfg"),
    ):  # fmt: skip
        with (
            subtests.test(name=name),
            pytest.raises(UnsupportedFileType, match="PDF, DOCX, PPTX, XLSX, EPUB"),
        ):
            convert(data, name, None)


def test_an_unreadable_file_is_refused_with_the_reason(subtests: pytest.Subtests):
    broken: dict[str, tuple[bytes, str, str]] = {
        "nothing": (b"", "a.txt", "empty_file"),
        "nothing that shows": ("\u200b\u00ad".encode(), "a.txt", "empty_file"),
        "a page without text": (b"<p><script>x</script></p>", "a.html", "empty_file"),
        "not UTF-8": (b"caf\xe9", "a.txt", "not_text"),
        "a NUL byte": (b"a\0b", "a.txt", "not_text"),
        "half of UTF-16": (b"\xff\xfea", "a.txt", "not_text"),
        "half of JSON": (b"{", "a.json", "not_json"),
        "deep JSON": (b"[" * 10_000 + b"]" * 10_000, "a.json", "not_json"),
        "rather deep JSON": (b"[" * 40 + b"]" * 40, "a.json", "not_json"),
        "a table of one long row": (b"a," * 40_000 + b"a\n" + b"b\n" * 20_000, "a.csv", "file_too_large"),
        "JSON that indents": (b"[" * 31 + b"0," * 700_000 + b"0" + b"]" * 31, "a.json", "file_too_large"),
        "too much text": (b"a " * 10_500_000, "a.txt", "file_too_large"),
        "half of XML": (b"<a><b></a>", "a.xml", "processing_failed"),
        "a billion laughs": (sample_files.BILLION_LAUGHS, "a.xml", "processing_failed"),
        "deep XML": (b"<a>" * 100_000 + b"</a>" * 100_000, "a.xml", "processing_failed"),
        "many members": (sample_files.docx_of_many_members(), "a.docx", "file_too_large"),
        "a password": (sample_files.pdf(password="secret"), "a.pdf", "password_protected"),
        "half a PDF": (sample_files.pdf()[:600], "a.pdf", "processing_failed"),
        "a PDF that is text": (b"just words", "a.pdf", "processing_failed"),
        "half a DOCX": (sample_files.docx()[:9000], "a.docx", "processing_failed"),
        "a book of nonsense": (archive({"META-INF/container.xml": "<x/>"}), "a.epub", "processing_failed"),
        "a zip bomb": (sample_files.zip_bomb(), "a.docx", "file_too_large"),
    }
    for case, (data, name, code) in broken.items():
        with subtests.test(case):
            with pytest.raises(UnreadableDocument) as refused:
                convert(data, name, None)
            assert refused.value.code == code
            assert isinstance(refused.value, InvalidRequest)


def test_an_external_entity_is_not_loaded():
    assert convert(sample_files.READS_A_FILE, "a.xml", None).text == "x: secret: &e;"


def test_a_title_is_searched_only_at_the_start_of_a_page(monkeypatch: pytest.MonkeyPatch):
    """The search takes the square of the number of titles: 14 seconds for all of these."""
    monkeypatch.setattr(html_xml, "TITLE_CHARACTERS", 10_000)
    started = time.process_time()
    assert html_xml.html(b"<title>" * 20_000).parts
    assert time.process_time() - started < 5


def test_a_sheet_s_declared_width_is_ignored():
    book = Workbook()
    for row in range(9):
        book.active.append([row])
    book.active["XFD1"] = "far out"
    text = xlsx(sample_files.save(book)).parts[0][1]
    assert text.startswith("# Sheet\n\n|  |  |\n| --- | --- |\n| 0 | far out |\n| 1 |  |\n")


# -- pictures and sound -------------------------------------------------------------------------------

SOUNDS = [b"ID3\x04", b"\xff\xfb\x90", b"OggS\0", b"RIFF....WAVEfmt", b"\0\0\0\x18ftypmp42", b"\x1aE\xdf\xa3"]
PICTURES = [b"\x89PNG\r\n", b"\xff\xd8\xff\xe0", b"II*\0", b"RIFF....WEBP", b"\0\0\0\x18ftypheic"]


def test_a_program_s_default_title_is_not_a_title():
    cases: list[tuple[str, str | None]] = [
        ("untitled", None), ("(untitled)", None), ("unknown", None), ("PowerPoint Presentation", None),
        ("Untitled-1", None), ("Document1", None), ("Microsoft Word - kiln.docx", None),
        ("scan.html", None), ("news.pub", None), ("Node.js handbook", "Node.js handbook"),
        ("Microsoft Word - Document1", None), ("Unknown kilns", "Unknown kilns"),
        ("Kilns (untitled)", "Kilns (untitled)"),
    ]  # fmt: skip
    assert [(title, own_title(title)) for title, _ in cases] == cases


def test_the_main_part_of_a_docx_may_have_another_name():
    """As SharePoint writes it."""
    renamed: dict[str, str | bytes] = {}
    for name, content in sample_files.members(sample_files.docx()).items():
        other = name.replace("word/document.xml", "word/document2.xml").replace("t.xml.rels", "t2.xml.rels")
        renamed[other] = content
        if isinstance(content, bytes) and name in ("_rels/.rels", "[Content_Types].xml"):
            renamed[other] = content.replace(b"d/document.", b"d/document2.")
    assert docx(archive(renamed)).parts == docx(sample_files.docx()).parts


REPORT = "Chapter on firing, annual report, financial statements"
LECTURE = "Introduction to machine learning for clinicians"
TITLES: list[tuple[Callable[[], bytes], str | None]] = [
    # A program's default, and the title of another file.
    (lambda: sample_files.pdf(1, title="Microsoft Word - Document1"), "Chapter 1: Firing"),
    (lambda: sample_files.docx(title="Microsoft Word - Document1"), None),
    (lambda: b"<title>Microsoft Word - Document1</title>x", None),
    (lambda: sample_files.pdf(1, title="Agenda of the harbour board, November 2008"), "Chapter 1: Firing"),
    (lambda: b"<body><h1>Board of the harbour</h1><p>Of 3 May.</p></body>", "Board of the harbour"),
    (lambda: b"<body><h1>Invoice</h1><p>Of 3 May.</p></body>", None),
    # Titles of the file itself.
    (lambda: sample_files.pdf(1, title="Chapter 1: Firing of stoneware"), "Chapter 1: Firing of stoneware"),
    (lambda: sample_files.pdf(1, title=REPORT), REPORT),
    (lambda: sample_files.docx(title="Kilns (untitled)"), "Kilns (untitled)"),
    # The words of a title may stand on the second page alone.
    (lambda: slides(LECTURE, "Welcome everyone", LECTURE), LECTURE),
]


def slides(title: str, *headings: str) -> bytes:
    deck = Presentation()
    deck.core_properties.title = title
    for text in headings:
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = text
    return sample_files.save(deck)


@pytest.mark.parametrize(("make", "title"), TITLES)
def test_a_file_without_a_title_of_its_own_has_its_first_heading(
    make: Callable[[], bytes], title: str | None
):
    assert convert(make(), "a.html", None).title == title


def test_a_page_that_would_be_parsed_incompletely_is_refused(subtests: pytest.Subtests):
    for begin, end in (("<div>", "</div>"), ("<ul><li>", "</ul>"), ("<b>", "")):
        with subtests.test(begin=begin):
            page = f"<p>top</p>{begin * 1_050}deep{end * 1_050}"
            with pytest.raises(UnreadableDocument, match="levels of nested elements") as refused:
                html_xml.markdown(page)
            assert refused.value.code == "nested_too_deeply"
    # A deeper page may end the process.
    with pytest.raises(UnreadableDocument, match="levels of nested elements"):
        convert(b"<div>" * 50_000 + b"deep", "a.html", None)


def test_unclosed_elements_do_not_count_as_depth(subtests: pytest.Subtests):
    for within in ("<ul>", "<table>"):
        for many in ("<p>x", "<li>x", "<tr><td>x", "<dt>x<dd>y", "<br>x", "<img src=a>x"):
            with subtests.test(within=within, many=many):
                assert "the end" in html_xml.markdown(f"{within}{many * 3000}<p>the end")[0]


def test_pages_of_common_depth_are_parsed_completely():
    text = html_xml.markdown("<div>" * 900 + "deep" + "</div>" * 900 + "<p>after")[0]
    assert "deep" in text
    assert "after" in text


def test_a_deployment_without_a_key_or_tesseract_says_what_reads_sound_and_pictures(
    subtests: pytest.Subtests,
):
    assert transcriber_for(settings()) is None
    for files, reason in ((SOUNDS, "RAG_TRANSCRIPTION_KEY"), (PICTURES, "tesseract")):
        for data in files:
            with subtests.test(data=data), pytest.raises(UnsupportedFileType, match=reason):
                convert(data, "lies.txt", "text/plain")
    with pytest.raises(UnreadableDocument, match="tesseract") as refused:
        convert(sample_files.pdf_of_pictures(), "a.pdf", None)
    assert refused.value.code == "no_text"
    texts = ["ID3 tags", "GIF8 it is", "The ftyp box", "RIFF", "MM", "OggS or not"]
    assert [convert(text.encode(), "a.txt", None).text for text in texts] == texts


TESSERACT = """#!/bin/sh
[ "$1 $2" = "stdin stdout" ] || exit 2
case "$(head -c 4)" in ?PNG | P5*) ;; *) exit 1 ;; esac
echo "Seen: a kiln."
"""


@pytest.fixture
def tesseract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name which knows one format and sees one thing."""
    program = tmp_path / "tesseract"
    program.write_text(TESSERACT)
    program.chmod(0o755)
    monkeypatch.setattr(ocr, "PROGRAM", str(program))


@pytest.mark.usefixtures("tesseract")
def test_images_and_scanned_pages_are_parsed_with_ocr():
    assert convert(b"\x89PNG....", "a.png", None) == Converted("Seen: a kiln.", "picture")
    with pytest.raises(UnreadableDocument):
        convert(b"GIF89a", "a.gif", None)
    document = convert(sample_files.pdf_of_pictures(), "a.pdf", None)
    assert (document.text, document.pages) == ("Seen: a kiln.", ((0, 1),))


def transcribed(service: StandIn) -> Converted:
    own = settings(rag_transcription_key="sk-none", rag_transcription_url=f"{service.url}/v1")
    transcriber = transcriber_for(own)
    assert transcriber
    with closing(transcriber):
        return convert(b"ID3\x04....", "talk.mp3", None, transcriber)


def test_audio_is_transcribed_with_a_key(service: StandIn):
    service.replies(Reply(json={"text": "The kiln is hot."}))
    assert transcribed(service) == Converted("The kiln is hot.", "sound")
    (request,) = service.requests
    assert request.path == "/v1/audio/transcriptions"
    assert request.headers["authorization"] == "Bearer sk-none"
    for part in (b'filename="talk.mp3"', b"ID3\x04....", b"whisper-1"):
        assert part in request.body


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(status=400, json={"error": {"message": "no"}}), UnreadableDocument),
        (Reply(status=401, json={"error": {"message": "wrong key"}}), TranscriptionFailed),
        (Reply(status=503, json={}), TranscriptionFailed),
        (Reply(body=b"nonsense"), TranscriptionFailed),
        (Reply(drop=True), TranscriptionFailed),
        # Silence.
        (Reply(json={"text": ""}), UnreadableDocument),
    ],
)
def test_a_failed_transcription_says_whether_a_retry_helps(
    service: StandIn, reply: Reply, kind: type[Exception]
):
    service.replies(reply)
    with pytest.raises(kind):
        transcribed(service)


# -- the reader's own process -------------------------------------------------------------------------


def test_a_parser_over_the_time_limit_is_stopped():
    with pytest.raises(UnreadableDocument):
        parse_in_subprocess("csv", b"kiln,oven\n" * 1_000_000, seconds=0)


def test_a_parser_over_the_memory_limit_is_stopped():
    with pytest.raises(UnreadableDocument):
        parse_in_subprocess("xml", b"<a>" + b"<b/>" * 2_000_000 + b"</a>", megabytes=256)


def instead_of_readers(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str) -> None:
    """What the process of a reader would be is this."""
    package = folder / "shared" / "ingestion" / "parsers"
    package.mkdir(parents=True)
    for path in (package, package.parent, package.parent.parent):
        (path / "__init__.py").touch()
    (package / "__main__.py").write_text(program)
    monkeypatch.syspath_prepend(str(folder))


def test_a_parser_has_no_secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """It tells its environment."""
    spy = "import json, os; print('reading'); print(json.dumps({'parts': [[None, ' '.join(os.environ)]]}))"
    instead_of_readers(monkeypatch, tmp_path, spy)
    monkeypatch.setenv("RAG_SIGNING_KEY", "secret")
    ((_, names),) = parse_in_subprocess("pdf", b"").parts
    assert set(names.split()) <= {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PATH", "LC_CTYPE"}
    assert "RAG_SIGNING_KEY" in os.environ


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("raise SystemExit(1)", RagError),
        ("import no_such_module", RagError),
        ("print('reading', flush=True); import os; os.abort()", UnreadableDocument),
        ("print('reading', flush=True); print('nonsense')", UnreadableDocument),
    ],
)
def test_a_parser_that_did_not_start_is_not_the_file_s_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, kind: type[RagError]
):
    instead_of_readers(monkeypatch, tmp_path, program)
    with pytest.raises(RagError) as refused:
        parse_in_subprocess("pdf", b"")
    assert type(refused.value) is kind


def test_a_parser_writes_no_file(tmp_path: Path):
    target = tmp_path / "written"
    writing = f"os.write(os.open({str(target)!r}, os.O_CREAT | os.O_WRONLY), b'x')"
    program = f"import os, shared.ingestion.parsers.__main__ as m; m.confine(5, 512); {writing}"
    process = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=False)
    assert b"File too large" in process.stderr
    assert target.read_bytes() == b""
