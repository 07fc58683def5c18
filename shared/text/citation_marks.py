"""Citation marks and headings: the only module that writes them beside text of documents.

A mark says where text is from. Documents are data: their texts and titles must not look like a mark of ours.
Text that does is replaced by text of the same length, so that spans into it stay valid.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from shared.text.normalize import one_line
from shared.text.prompt_fence import Fence

_QUOTES = '"“”„‟«»＂〝〞〟❝❞″'
# Anything that a reader or a client may take for a mark, in any brackets: [3], [1, 2], [4-6], [3.].
_MARK = re.compile(r"[\[［【〔⟦](?=[^\w\[\]]*[\d¹²³⁰⁴-⁹₀-₉])([^A-Za-z\[\]］】〕⟧]{0,40})[\]］】〕⟧]")
# The heading of a paragraph: "Title": at the start of a line, and the end of "Title" (2026-01-01):
_HEADING = re.compile(rf"^([^\S\n]*)[{_QUOTES}](?=[^\n]{{0,300}}?[{_QUOTES}][^\S\n]*[:：])", re.MULTILINE)
_HEADING_ENDS = re.compile(rf"[{_QUOTES}](?=\s*[(（]\s*\d{{4}}-\d{{2}}-\d{{2}}\s*[)）]\s*[:：])")
_LINE_ENDS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_QUOTE = re.compile(f"[{_QUOTES}]")
# In a text for a prompt: the heading of a document, and a gap between two of its passages.
GAP = "[…]"
_DOCUMENT_HEADING = re.compile(r"^([ \t]{0,3})#(?=[^\S\n])", re.MULTILINE)
# A line that makes the line above a heading of the first level; of hyphens it makes one of the second.
_UNDERLINE = re.compile(r"^[^\S\n]{0,3}=+[^\S\n]*$", re.MULTILINE)


def mark(number: int) -> str:
    """The mark of a citation, counted from 1."""
    return f"[{number}]"


def escape_marks(text: str) -> str:
    """The text of a document without anything that looks like a mark or a heading of an answer: brackets
    around numbers are round, the quotation mark before a date single. As long as before."""
    return _HEADING_ENDS.sub("'", _MARK.sub(r"(\1)", _LINE_ENDS.sub(" ", text)))


def title_line(title: str) -> str:
    """A title on one line, without anything that looks like a mark or ends its quotation marks."""
    return _QUOTE.sub("'", escape_marks(one_line(title)))


def paragraph(title: str | None, occurred_at: datetime | None, texts: Sequence[str], number: int) -> str:
    """A paragraph of an answer in any language: "Title" (date): text text [n], or (date): text text [n] where
    the title would repeat the text; the date only if there is one. It holds no empty line, and no line of it
    but the first begins as a heading does; in blocks of code any line may."""
    # Escaped together: two sentences may form a mark.
    parts = re.sub(r"\s*\n\s*", "\n", escape_marks(" ".join(texts))).split("```")
    parts[::2] = [_HEADING.sub(r"\1'", part) for part in parts[::2]]
    text = "```".join(parts)
    heading = _dated(title, occurred_at)
    return f"{heading}: {text} {mark(number)}" if heading else f"{text} {mark(number)}"


def contradiction(title: str, occurred_at: datetime | None, otherwise: str, text: str) -> str:
    """A note on a document that contradicts the answer: "Title" (date) says otherwise: "text"."""
    return f'{_dated(title, occurred_at)} {otherwise}: "{title_line(text)}"'


def _dated(title: str | None, occurred_at: datetime | None) -> str:
    # The date lets a reader see which of two documents that contradict each other is the newer.
    date = f"({occurred_at:%Y-%m-%d})" if occurred_at else ""
    return date if title is None else f'"{title_line(title)}" {date}'.rstrip()


def with_marks(text: str, numbers: Sequence[int]) -> tuple[str, str]:
    """The text, and its end with the marks: in the last cell of a row, under a block of code."""
    if not numbers:
        return text, ""
    marks = " ".join(map(mark, numbers))
    if text.startswith(("```", "~~~")):
        return text, f"\n{marks}"
    if text.startswith("|") and text.endswith("|"):
        return text[:-1].rstrip(), f" {marks} |"
    return text, f" {marks}"


def excerpt(title: str, text: str, fence: Fence, number: int | None = None) -> str:
    """A passage for a model. The number stands on a line of the fence, which no document can write, so the
    text needs no escaping."""
    note = f" {mark(number)}" if number else ""
    return fence.wrap("source", f"Title: {one_line(title)}\n{text}", note) + "\n"


def tool_passage(source: str | None, text: str, score: float, fence: Fence, number: int | None) -> str:
    """A passage in the result of an agent's tool. With a number, by which the model cites it, the passage has
    no text that looks like a mark."""
    body = "\n".join([*([f"Source: {one_line(source)}"] if source else []), text])
    label = ""
    if number is not None:
        body, label = escape_marks(body), f"{mark(number)} "
    return f"\n{label}score {score:.2f}\n{fence.wrap('passage', body)}"


def under_heading(title: str, uri: str | None, text: str) -> str:
    """Text of a document under its title, for a caller's own prompt. Only the title is a heading of the first
    level (escape_headings)."""
    heading = f"# {one_line(title)}" + (f" ({one_line(uri)})" if uri else "")
    return f"{heading}\n{text}"


def escape_headings(text: str) -> str:
    """The text of a document without anything that looks like the heading of another one, or like a gap."""
    text = _LINE_ENDS.sub("\n", text).replace(GAP, "(…)")
    text = _UNDERLINE.sub(lambda line: line[0].replace("=", "-"), text)
    return _DOCUMENT_HEADING.sub(r"\1##", text)
