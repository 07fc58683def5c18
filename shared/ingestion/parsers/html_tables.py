"""HTML tables with a form in Markdown: single cells of one line under one header."""

from copy import deepcopy
from typing import Any

from lxml import etree

from shared.ingestion.parsers.html_lists import write_numbers
from shared.ingestion.parsers.html_text import line_of, replace
from shared.ingestion.parsers.markdown_table import MAX_CELLS, divided, names_of_columns
from shared.ingestion.parsers.parsed_file import size_error

# The limits of HTML.
MAX_SPANS = {"colspan": 1000, "rowspan": 65_534}
_PARTS = {"thead", "tbody", "tfoot", "tr", "td", "th", "caption", "colgroup", "col"}


def write_table(table: Any) -> None:
    """The caption and the titles of the table become elements above it, and tables and lists in its cells
    lines."""
    # Browsers show it below the other rows.
    table.extend(table.findall("tfoot"))
    rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
    cells = [cell for row in rows for cell in row.iterchildren("td", "th")]
    inner = list(table.iterdescendants("table"))
    if inner and _is_layout(rows, cells):
        for element in (table, *table.iterchildren("thead", "tbody", "tfoot"), *rows, *cells):
            element.tag = "div"
        return
    for other in reversed(inner):
        lines = (", ".join(map(line_of, row.iter("td", "th"))) for row in other.iter("tr"))
        replace(other, f" {'; '.join(lines)} ")
    for cell in cells:
        for items in reversed(list(cell.iter("ul", "ol"))):
            if items.tag == "ol":
                write_numbers(items, is_in_cell=True)
            replace(items, f" {'; '.join(map(line_of, items.iterchildren('li')))} ")
    for caption in table.findall("caption"):
        _put_above(table, caption)
    grid, grouped = _grid(rows)
    width = max(map(len, grid), default=0)
    texts = [[*map(line_of, cells_of_row)] + [""] * (width - len(cells_of_row)) for cells_of_row in grid]
    headers = {
        index
        for index, row in enumerate(rows)
        if (row.getparent().tag == "thead" or row.find("td") is None)
        and (width == 1 or sum(map(bool, texts[index])) > 1)
    }
    titles, header, body = divided(texts, grouped, headers if len(headers) < len(rows) else ())
    for index in titles:
        _put_above(table, next(cell for cell in grid[index] if line_of(cell)))
    _put_rest_above(table, rows)
    for child in list(table):
        table.remove(child)
    used = [at for at in range(width) if any(texts[index][at] for index in (*header, *body))]
    if header:
        names = names_of_columns([texts[index] for index in header])
        _append_row(table, [_cell(names[at]) for at in used])
    for index in body:
        _append_row(table, [grid[index][at] if at < len(grid[index]) else _cell("") for at in used])


def _is_layout(rows: list[Any], cells: list[Any]) -> bool:
    """Whether a table with tables in it only places them."""
    if any(cell.tag == "th" for cell in cells):
        return False
    whole = sum(1 for cell in cells if cell.find(".//table") is None and line_of(cell))
    return whole <= len(cells) / 2 or any(
        len(row) == 1 and row[0].find(".//table") is not None for row in rows
    )


def _grid(rows: list[Any]) -> tuple[list[list[Any]], set[int]]:
    """The cells of each row, those of several rows and columns repeated, and the indices of rows with cells
    of several columns. A cell over a whole row is alone."""
    spans = [[_span(cell, "colspan") for cell in row.iterchildren("td", "th")] for row in rows]
    width = max(map(sum, spans), default=0)
    below: dict[int, tuple[Any, int]] = {}
    grid: list[list[Any]] = []
    grouped: set[int] = set()
    count, group = 0, None
    for index, row in enumerate(rows):
        if row.getparent() is not group:
            # No cell reaches into another group of rows.
            below, group = {}, row.getparent()
        line: dict[int, Any] = {}
        for at, (cell, left) in list(below.items()):
            line[at] = deepcopy(cell)
            below[at] = (cell, left - 1)
            if left == 1:
                del below[at]
        at = 0
        for cell, across in zip(row.iterchildren("td", "th"), spans[index], strict=True):
            down = _span(cell, "rowspan")
            if across > 1:
                grouped.add(index)
            cell.tail = None
            for copy in range(1 if across == width else across):
                while at in line:
                    at += 1
                line[at] = deepcopy(cell) if copy else cell
                if down > 1:
                    below[at] = (cell, down - 1)
        grid.append([line[at] if at in line else _cell("") for at in range(max(line, default=-1) + 1)])
        count += len(grid[-1])
        if count > MAX_CELLS:
            raise size_error()
    return grid, grouped


def _span(cell: Any, name: str) -> int:
    value = (cell.get(name) or "").strip()
    span = min(int(value), MAX_SPANS[name]) if value.isdecimal() else 1
    # A rowspan of 0 reaches to the end of the group.
    return span or (MAX_SPANS[name] if name == "rowspan" else 1)


def _put_above(table: Any, element: Any) -> None:
    element.tag, element.tail = "div", None
    table.addprevious(element)


def _put_rest_above(table: Any, rows: list[Any]) -> None:
    """Put what stands between the rows and cells above the table, as browsers do."""
    for element in (table, *table.iterchildren("thead", "tbody", "tfoot"), *rows):
        rest = etree.Element("div")
        rest.text, element.text = element.text, None
        for child in list(element):
            if child.tag not in _PARTS:
                rest.append(child)
            elif (child.tail or "").strip():
                etree.SubElement(rest, "span").text = child.tail
        if len(rest) or (rest.text or "").strip():
            _put_above(table, rest)


def _append_row(table: Any, cells: list[Any]) -> None:
    row = etree.SubElement(table, "tr")
    row.extend(cells)
    for cell in cells:
        cell.attrib.clear()


def _cell(text: str) -> Any:
    cell = etree.Element("td")
    cell.text = text
    return cell
