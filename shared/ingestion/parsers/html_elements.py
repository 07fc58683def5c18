"""Elements of HTML without a form in Markdown: scripts, formulas, fields of forms, merged cells."""

import re
from copy import deepcopy
from typing import Any

from lxml import etree

from shared.ingestion.parsers.markdown_table import MAX_CELLS, joined_names
from shared.ingestion.parsers.parsed_file import size_error
from shared.text.normalize import one_line
from shared.text.superscripts import script

# The limit of HTML.
MAX_SPAN = 1000
# Smaller pictures are icons and signs of visits, in pixels.
MIN_PICTURE = 48
_REWRITTEN = re.compile(
    r"<(?:su[pb]|math|input|select|textarea|button|table|img|del|s|strike)\b", re.IGNORECASE
)
_TITLES = {"h1", "h2", "h3", "h4", "h5", "h6", "summary", "dt"}
_NO_VALUE = {"hidden", "submit", "button", "reset", "image", "file", "password"}
_FRAMES = {"a", "button", "nav", "header", "footer"}


def rewritten(text: str) -> tuple[str, list[str]]:
    """HTML whose Markdown has what a reader sees, and notes on pictures without a text."""
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True)
    root = etree.HTML(text.encode(errors="replace"), parser) if _REWRITTEN.search(text) else None
    if root is None:
        return text, []
    for math in list(root.iter("math")):
        _replace(math, _formula(math))
    for element in reversed(list(root.iter("sup", "sub"))):
        _replace(element, script(element.tag, _text(element), _before(element)))
    labels = {label.get("for"): label for label in root.iter("label")}
    for control in list(root.iter("input", "select", "textarea", "button")):
        if control.tag == "button" and any(each.tag in _TITLES for each in control.iterancestors()):
            # The title of a text that a reader opens.
            control.tag = "span"
        else:
            _write_control(control, labels)
    for struck in root.iter("del", "s", "strike"):
        if not struck.tail and struck.getnext() is not None:
            struck.tail = " "
    for table in list(root.iter("table")):
        _write_table(table)
    pictures = [picture for picture in root.iter("img") if _is_content(picture)]
    for picture in pictures:
        if alt := one_line(picture.get("alt") or ""):
            _replace(picture, f" {alt} ")
    count = sum(not one_line(picture.get("alt") or "") for picture in pictures)
    notes = [f"{count} pictures were not read." if count > 1 else "1 picture was not read."] if count else []
    return etree.tostring(root, encoding="unicode", method="html"), notes


def _text(element: Any) -> str:
    return "".join(element.itertext())


def _before(element: Any) -> str:
    """The end of the text before the element, within its parent."""
    previous = element.getprevious()
    if previous is None:
        return (element.getparent().text or "")[-3:]
    return (previous.tail or _text(previous))[-3:]


def _replace(element: Any, text: str) -> None:
    """The text instead of the element's content."""
    _clear(element)
    element.tag, element.text = "span", text


def _formula(element: Any) -> str:
    """MathML as its LaTeX, if it has it, or as one line."""
    tex = next((_text(note) for note in element.iter("annotation") if "tex" in note.get("encoding", "")), "")
    tex = (tex or element.get("alttext") or "").strip().removeprefix("{\\displaystyle").strip()
    if tex:
        return f"${tex.removesuffix('}').rstrip() if tex.count('}') > tex.count('{') else tex}$"
    return one_line(_line(element))


def _line(element: Any) -> str:
    parts = [_line(child) for child in element if isinstance(child.tag, str)]
    match element.tag, parts:
        case "mfrac", [above, below]:
            return f"{_group(above)}/{_group(below)}"
        case "msqrt", _:
            return f"√{_group(''.join(parts))}"
        case "mroot", [base, degree]:
            return f"{script('sup', degree, '')}√{_group(base)}"
        case "msub" | "munder", [base, index]:
            return base + script("sub", index, base)
        case "msup" | "mover", [base, exponent]:
            return base + script("sup", exponent, base)
        case "msubsup" | "munderover", [base, index, exponent]:
            return base + script("sub", index, base) + script("sup", exponent, base)
        case "mtr", _:
            return f"{', '.join(parts)}; "
        case "mo", _:
            sign = (element.text or "").strip()
            return f" {sign} " if sign in "=<>≤≥≈≠→+−-±×·" else sign
    return "".join(parts) or (element.text or "").strip()


def _group(text: str) -> str:
    return text if text.isalnum() else f"({text.strip()})"


def _write_control(control: Any, labels: dict[str | None, Any]) -> None:
    """`label: value` instead of a field of a form and its label. A field without a value leaves its label."""
    value, kind = "", (control.get("type") or "text").lower()
    if control.tag == "textarea":
        value = _text(control)
    elif control.tag == "select":
        options = list(control.iter("option"))
        chosen = [option for option in options if option.get("selected") is not None] or options[:1]
        value = "; ".join(map(_text, chosen))
    elif control.tag == "input" and kind in ("checkbox", "radio"):
        value = "no" if control.get("checked") is None else "yes"
    elif control.tag == "input" and kind not in _NO_VALUE:
        value = control.get("value") or ""
    around = next(control.iterancestors("label"), None)
    label = labels.get(control.get("id")) if around is None and control.get("id") else around
    has_others = around is not None and sum(1 for _ in around.iter("input", "select", "textarea")) > 1
    _replace(control, one_line(value) if has_others else "")
    if not value.strip() or has_others:
        return
    name = control.get("aria-label") or "" if label is None else _text(label)
    name = one_line(name).rstrip(": ")
    if label is not None:
        _replace(label, "")
    field = control if around is None else around
    field.tag, field.text = "div", f"{name}: {one_line(value)}" if name else one_line(value)


def _write_table(table: Any) -> None:
    """A table whose cells are single and have one line; its caption and titles are paragraphs above it."""
    rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
    cells = [cell for row in rows for cell in row.iterchildren("td", "th")]
    inner = list(table.iterdescendants("table"))
    if inner and _is_layout(rows, cells):
        for element in (table, *table.iterchildren("thead", "tbody", "tfoot"), *rows, *cells):
            element.tag = "div"
        return
    for other in reversed(inner):
        lines = (
            ", ".join(one_line(_text(cell)) for cell in row.iter("td", "th")) for row in other.iter("tr")
        )
        _replace(other, f" {'; '.join(lines)} ")
    for cell in cells:
        for items in reversed(list(cell.iter("ul", "ol"))):
            _replace(items, f" {'; '.join(one_line(_text(item)) for item in items.iterchildren('li'))} ")
    for caption in list(table.iterchildren("caption")):
        _put_above(table, _text(caption))
        table.remove(caption)
    grid = _grid(rows)
    while grid and len(grid[0]) == 1 and len(grid) > 1 and len(grid[1]) > 1:
        _put_above(table, _text(grid.pop(0)[0]))
        rows[0].getparent().remove(rows.pop(0))
    header = _header_rows(rows)
    for column, cell in enumerate(grid[0] if header > 1 else ()):
        name = joined_names(_text(row[column]) for row in grid[:header] if column < len(row))
        _clear(cell)
        cell.text = name
    for index, (row, cells_of_row) in enumerate(zip(rows, grid, strict=True)):
        if 0 < index < header:
            row.getparent().remove(row)
        else:
            _clear(row)
            row.extend(cells_of_row)


def _is_layout(rows: list[Any], cells: list[Any]) -> bool:
    """Whether a table with tables in it only places them."""
    if any(cell.tag == "th" for cell in cells):
        return False
    whole = sum(1 for cell in cells if cell.find(".//table") is None and _text(cell).strip())
    return whole <= len(cells) / 2 or any(
        len(row) == 1 and row[0].find(".//table") is not None for row in rows
    )


def _grid(rows: list[Any]) -> list[list[Any]]:
    """The cells of each row, those of several rows and columns repeated; a cell over a whole row is alone."""
    spans = [[_span(cell, "colspan") for cell in row.iterchildren("td", "th")] for row in rows]
    width = max(map(sum, spans), default=0)
    below: dict[int, tuple[Any, int]] = {}
    grid: list[list[Any]] = []
    count = 0
    for row in rows:
        cells: list[Any] = []
        for cell in row.iterchildren("td", "th"):
            _fill(cells, below)
            across, down = _span(cell, "colspan"), _span(cell, "rowspan")
            across = 1 if across == width else across
            for name in ("colspan", "rowspan"):
                cell.attrib.pop(name, None)
            cell.tail = None
            for copy in range(across):
                if down > 1:
                    below[len(cells)] = (cell, down - 1)
                cells.append(deepcopy(cell) if copy else cell)
        _fill(cells, below)
        grid.append(cells)
        count += len(cells)
        if count > MAX_CELLS:
            raise size_error()
    return grid


def _fill(cells: list[Any], below: dict[int, tuple[Any, int]]) -> None:
    """Append the cells of rows above that reach into this one."""
    while len(cells) in below:
        cell, left = below.pop(len(cells))
        if left > 1:
            below[len(cells)] = (cell, left - 1)
        cells.append(deepcopy(cell))


def _span(cell: Any, name: str) -> int:
    value = (cell.get(name) or "").strip()
    return min(max(int(value), 1), MAX_SPAN) if value.isdecimal() else 1


def _header_rows(rows: list[Any]) -> int:
    """The number of rows at the start that have headers alone."""
    count = 0
    for row in rows:
        if row.getparent().tag != "thead" and any(cell.tag != "th" for cell in row):
            break
        count += 1
    return count if count < len(rows) else min(count, 1)


def _put_above(table: Any, text: str) -> None:
    paragraph = etree.Element("p")
    paragraph.text = one_line(text)
    table.addprevious(paragraph)


def _clear(element: Any) -> None:
    for child in list(element):
        element.remove(child)
    element.text = None


def _is_content(picture: Any) -> bool:
    """Whether a picture is no icon, ornament or part of a frame."""
    if picture.get("alt") == "" or picture.get("aria-hidden") == "true" or not picture.get("src"):
        return False
    sizes = [size for name in ("width", "height") if (size := re.match(r"\d+", picture.get(name) or ""))]
    return all(int(size[0]) >= MIN_PICTURE for size in sizes) and not any(
        ancestor.tag in _FRAMES for ancestor in picture.iterancestors()
    )
