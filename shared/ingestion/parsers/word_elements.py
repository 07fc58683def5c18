"""Elements of Word files that have content, in their order, without deletions."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from shared.ingestion.parsers.office_xml import attribute, child, is_on, local, value
from shared.ingestion.parsers.symbol_fonts import symbols

# Elements with content of their own in a paragraph, and around blocks.
_WRAPPERS = {"ins", "moveTo", "hyperlink", "smartTag", "customXml", "fldSimple", "bdo", "dir", "sdt",
             "sdtContent", "oMathPara"}  # fmt: skip
_SYMBOL_CODE = re.compile(
    r'\s*SYMBOL\s+(?P<number>0x[0-9a-f]{1,4}|[1-9]\d{1,4})(?!\d)(?:.*?\\f\s+"?(?P<font>[^"\\]*[^"\\\s]))?',
    re.IGNORECASE,
)
EQUATION_CHARACTERS = 1000
# Innermost parts of a field EQ, in LaTeX. The separator is ; where the comma is a decimal mark.
_EQUATION_PARTS = {
    r"\\f ?\(([^();]*);([^();]*)\)": r"\\frac{\1}{\2}",
    r"\\f ?\(([^(),;]*),([^(),;]*)\)": r"\\frac{\1}{\2}",
    r"\\r ?\([,;]?([^(),;]*)\)": r"\\sqrt{\1}",
    r"\\r ?\(([^(),;]+)[,;]([^(),;]*)\)": r"\\sqrt[\1]{\2}",
    r"\\s ?\\up ?\d*\(([^()]*)\)": r"^{\1}",
    r"\\s ?\\do ?\d*\(([^()]*)\)": r"_{\1}",
}
_CONTENT = {"txbxContent", "txBody", "relIds", "blip", "imagedata", "textpath", "contentPart"}


def elements(parent: Any) -> Iterator[Any]:
    """Paragraphs, tables and other blocks, those in content controls and insertions included."""
    for element in parent:
        name = local(element)
        if name in _WRAPPERS:
            yield from elements(element)
        elif name:
            yield element


def rows(table: Any) -> Iterator[Any]:
    for row in elements(table):
        if local(row) == "tr" and child(child(row, "trPr"), "del") is None:
            yield row


def cells(row: Any) -> Iterator[Any]:
    for cell in elements(row):
        if local(cell) == "tc" and child(child(cell, "tcPr"), "cellDel") is None:
            yield cell


def joins_next(properties: Any) -> bool:
    """Whether the paragraph is one with the next: its mark is deleted, or it is a large initial letter."""
    mark = child(properties, "rPr")
    is_initial = attribute(child(properties, "framePr"), "dropCap", "none") != "none"
    return is_initial or child(mark, "del") is not None or child(mark, "moveFrom") is not None


def inlines(paragraph: Any) -> Iterator[Any]:
    """Runs and equations of a paragraph, without deletions and without fields in the code of a field."""
    kinds = [attribute(mark, "fldCharType") for mark in paragraph.iter("{*}fldChar")]
    if not kinds:
        yield from _inlines(paragraph)
        return
    is_complete = kinds.count("begin") == kinds.count("end")
    # For each open field, whether its result is still to come.
    fields: list[bool] = []
    for element in _inlines(paragraph):
        for mark in element.iterchildren("{*}fldChar"):
            kind = attribute(mark, "fldCharType")
            if kind == "begin":
                fields.append(True)
            elif fields and kind == "separate":
                fields[-1] = False
            elif fields:
                fields.pop()
        if not (is_complete and any(fields[:-1])):
            yield element


def _inlines(parent: Any) -> Iterator[Any]:
    for element in parent:
        name = local(element)
        if name in ("r", "oMath"):
            # A run within ruby text is a run of its base.
            base = element.find("{*}ruby/{*}rubyBase") if name == "r" else None
            if base is not None:
                yield from _inlines(base)
            else:
                yield element
        elif name in _WRAPPERS:
            yield from _inlines(element)


def drawn_elements(element: Any) -> Iterator[Any]:
    """The elements in a drawing that have content."""
    for inner in element:
        name = local(inner)
        if name in _CONTENT or (name == "chart" and attribute(inner, "id")):
            yield inner
        elif name:
            yield from drawn_elements(inner)


def form_value(field: Any) -> str:
    """The value of an old form's tick or choice, which has no text of its own."""
    data = child(field, "ffData")
    if (box := child(data, "checkBox")) is not None:
        return "☒" if is_on(box, "checked" if child(box, "checked") is not None else "default") else "☐"
    if (choice := child(data, "ddList")) is not None:
        entries = [attribute(entry, "val") or "" for entry in choice.iter("{*}listEntry")]
        with suppress(ValueError, IndexError):
            return entries[int(value(choice, "result") or value(choice, "default") or 0)]
    return ""


@dataclass(slots=True)
class _Field:
    """An open field. `last`: the last element of its code; `is_written`: whether the code has a text."""

    code: str = ""
    last: Any = None
    is_written: bool = False


def texts_of_fields(paragraph: Any) -> dict[Any, str]:
    """The character or equation of each field SYMBOL and EQ at the last element of its code, "" for an
    equation that cannot be read; and "" at each text of a result that Word stores beside it."""
    written: dict[Any, str] = {}
    # The open fields, those of them in whose code the element is, and the number of those that are written.
    fields: list[_Field] = []
    codes: list[_Field] = []
    open_written = 0
    for element in paragraph.iter("{*}fldChar", "{*}instrText", "{*}t"):
        kind = attribute(element, "fldCharType")
        if kind == "begin":
            fields.append(_Field())
            codes.append(fields[-1])
        elif kind and fields:
            field, ends = fields[-1], kind != "separate"
            if codes and codes[-1] is field:
                codes.pop()
                text = _text_of_code(field.code)
                if text is not None:
                    written[field.last] = text
                    field.is_written = bool(text)
                    open_written += field.is_written
            if ends:
                open_written -= fields.pop().is_written
        elif codes:
            owner = codes[-1]
            # The result of a field in the code is part of the code.
            if local(element) == "instrText":
                owner.last = element
            if len(owner.code) <= EQUATION_CHARACTERS and (element is owner.last or owner is not fields[-1]):
                owner.code += element.text or ""
        elif open_written:
            written[element] = ""
    return written


def _text_of_code(code: str) -> str | None:
    """The character of a field SYMBOL; the LaTeX of a field EQ of fractions, roots, raised and lowered text,
    "" for one with other parts; None for another field."""
    if symbol := _SYMBOL_CODE.match(code[:EQUATION_CHARACTERS]):
        return symbols(chr(int(symbol["number"], 0)), symbol["font"])
    kind, rest = [*code.split(maxsplit=1), "", ""][:2]
    if kind.upper() != "EQ":
        return None
    # The time grows with the square of the length.
    text, before = rest.strip() if len(code) <= EQUATION_CHARACTERS else "(", ""
    while text != before:
        before = text
        for part, latex in _EQUATION_PARTS.items():
            text = re.sub(part, latex, text)
    return "" if not text or re.search(r"\\(?!frac|sqrt)|[()]", text) else f"${text}$"
