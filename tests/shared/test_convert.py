"""What files are read as, and how those are refused that are not what they seem."""

import json

import pytest

from shared.convert import convert
from shared.errors import InvalidRequest, UnreadableDocument, UnsupportedFileType


@pytest.mark.parametrize(
    ("data", "name", "sent_as", "text", "kind"),
    [
        (b"plain", "a.txt", None, "plain", "text"),
        (b"# Title\n\nwords", "A.MD", "application/octet-stream", "# Title\n\nwords", "markdown"),
        (b"a,b\n1,2\n", None, "text/csv; charset=utf-8", "a,b\n1,2\n", "csv"),
        ("Größe".encode("utf-16"), "a.txt", None, "Größe", "text"),
        (b"\xef\xbb\xbfwith a mark", "a.txt", None, "with a mark", "text"),
        (b'{"a": [1, "\xc3\xa9"]}', "a.json", None, '{\n "a": [\n  1,\n  "é"\n ]\n}', "json"),
        (b"{}", "a.txt", "application/json", "{}", "text"),
    ],
)
def test_texts_are_read(data: bytes, name: str | None, sent_as: str | None, text: str, kind: str):
    found = convert(data, name, sent_as)
    assert (found.text, found.kind) == (text, kind)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"%PDF-1.7 ...", "a.pdf"),
        (b"%PDF-1.7 ...", "lies.txt"),
        (b"PK\x03\x04...", "a.docx"),
        (b"PK\x03\x04...", "lies.md"),
        (b"\x89PNG\r\n", "a.png"),
        (b"words", "a.exe"),
        (b"words", None),
    ],
)
def test_what_is_not_read_here_is_named_with_what_is(data: bytes, name: str | None):
    with pytest.raises(UnsupportedFileType, match="plain text, Markdown, CSV and JSON"):
        convert(data, name, None)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_file"),
        (b" \n\t ", "empty_file"),
        (b"caf\xe9", "not_text"),
        (b"a\0b", "not_text"),
        (b"\xff\xfea", "not_text"),
    ],
)
def test_what_is_no_text_is_refused_by_what_is_wrong(data: bytes, code: str):
    with pytest.raises(UnreadableDocument) as refused:
        convert(data, "a.txt", None)
    assert refused.value.code == code
    assert isinstance(refused.value, InvalidRequest)


@pytest.mark.parametrize("data", [b"{", b"[" * 100_000 + b"]" * 100_000, b"[" * 40 + b"]" * 40, b"nonsense"])
def test_what_is_no_json_is_refused(data: bytes):
    with pytest.raises(UnreadableDocument) as refused:
        convert(data, "a.json", None)
    assert refused.value.code == "not_json"


def test_json_reads_back_as_what_it_was():
    value = {"name": "kiln", "hot": [1280, 1.5, None, True], "in": {"deep": "wörter"}}
    assert json.loads(convert(json.dumps(value).encode(), "a.json", None).text) == value


def test_a_text_without_end_is_refused():
    with pytest.raises(UnreadableDocument) as refused:
        convert(b"a " * 10_500_000, "a.txt", None)
    assert refused.value.code == "file_too_large"
