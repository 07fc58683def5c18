"""Headers and footers, form controls and rich values of Excel sheets."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from lxml import etree

from shared.ingestion.parsers.office_xml import Package, child, is_page_number
from shared.ingestion.parsers.parsed_file import read_member
from shared.text.normalize import one_line

# Codes in headers and footers: fonts, sizes, colours; sections and fields, such as the page number.
_CODE = re.compile(
    r'&(?:"[^"]*"|K[0-9A-F]{6}|K\d\d[+-]\d{3}|\d+|(?P<page>[PN])(?:[+-]\d+)?|(?P<other>.))',
    re.IGNORECASE | re.DOTALL,
)
_PAGE = "\0"
_TICKS = {"Checkbox", "Radio"}


def headers_and_footers(element: Any) -> Iterator[str]:
    """The text of each header and footer that Excel prints, except page numbers and names of the file."""
    kinds = ["odd", *(["even"] if element.get("differentOddEven") in ("1", "true") else [])]
    kinds += ["first"] if element.get("differentFirst") in ("1", "true") else []
    for kind in kinds:
        for place in ("Header", "Footer"):
            stored = child(element, f"{kind}{place}")
            text = _CODE.sub(_shown_code, (stored.text if stored is not None else None) or "")
            lines = [one_line(line.replace(_PAGE, "")) for line in text.splitlines() if not _is_page(line)]
            if lines := list(filter(None, lines)):
                yield f"{place}: {' '.join(lines)}"


def _shown_code(code: re.Match[str]) -> str:
    sign = (code["other"] or "").upper()
    return _PAGE if code["page"] else sign if sign == "&" else "\n" if sign in ("L", "C", "R") else ""


def _is_page(line: str) -> bool:
    """Whether a line has the number of the page or of all pages, and no words but theirs."""
    return _PAGE in line and is_page_number(line.replace(_PAGE, ""))


def form_controls(package: Package, part: str) -> Iterator[str]:
    """The labels of form controls, those of check boxes and option buttons with their state."""
    # The drawings of controls have a format that HTML resembles; Excel does not close all elements.
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=False)
    root = etree.fromstring(read_member(package.archive, package.name(part)), parser)
    for shape in () if root is None else root.iter("{*}shape"):
        data, box = child(shape, "ClientData"), child(shape, "textbox")
        kind = "" if data is None else data.get("ObjectType", "")
        label = one_line("".join(box.itertext())) if box is not None else ""
        if kind in _TICKS:
            checked = child(data, "Checked")
            is_checked = checked is not None and (checked.text or "").strip() == "1"
            yield f"{'☒' if is_checked else '☐'} {label or _place(data)}"
        elif label and kind != "Note":
            yield label


def _place(data: Any) -> str:
    """The place of a control without a label. An anchor has columns, rows and offsets in turn."""
    anchor = child(data, "Anchor")
    numbers = re.findall(r"\d+", (anchor.text if anchor is not None else None) or "")
    return f"(row {int(numbers[2]) + 1}, column {int(numbers[0]) + 1})" if len(numbers) == 8 else ""


def rich_values(package: Package, workbook: str) -> list[tuple[str, dict[str, str]]]:
    """The kinds and the fields of cell values that older programs do not show, such as pictures."""
    parts = [
        package.target(workbook, kind) for kind in ("sheetMetadata", "rdRichValue", "rdRichValueStructure")
    ]
    if not all(part and package.has(part) for part in parts):
        return []
    metadata, values, structures = (package.tree(part or "") for part in parts)
    of_cells = child(metadata, "valueMetadata")
    with suppress(ValueError, IndexError):
        kinds = [
            (structure.get("t", ""), [key.get("n", "") for key in structure.iterchildren("{*}k")])
            for structure in structures.iterchildren("{*}s")
        ]
        rich = [
            (
                kinds[int(value.get("s", ""))],
                [one_line(field.text or "") for field in value.iterchildren("{*}v")],
            )
            for value in values.iterchildren("{*}rv")
        ]
        blocks = [rich[int(block.get("i", ""))] for block in metadata.iter("{*}rvb")]
        of_blocks = [blocks[int(entry.get("v", ""))] for entry in of_cells.iter("{*}rc")]
        return [(kind, dict(zip(names, fields, strict=False))) for (kind, names), fields in of_blocks]
    return []
