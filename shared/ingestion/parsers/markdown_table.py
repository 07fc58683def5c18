"""Markdown tables of rows of cells."""

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise, zip_longest

from shared.ingestion.parsers.parsed_file import size_error
from shared.text.normalize import one_line

MAX_CELLS, MAX_HEADER_ROWS, SAMPLE_ROWS = 2_000_000, 3, 200
_HEADING = re.compile(r".{0,100}[^.:;,]")
_VALUE = re.compile(r"[^\W\d]{0,3}[\W_]*\d[\d\W_]*(?:[^\W\d_]{1,3}\W*)?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
# The header of a table whose lines do not begin with |, and the line below it.
_HEADER = re.compile(r" {0,3}[^\s|]")
_RULE = re.compile(r" {0,3}:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)++\|?\s*")
_CELL_END = re.compile(r"(?<!\\)\|")
_DIGITS, _YEAR = re.compile(r"\d+"), re.compile(r"(?:19|20)\d\d")
_NUMBER = re.compile(r"\d+(?:[.,]\d{3})*(?:[.,]\d+)?")
_CURRENCY = r"(?:in )?(?:T?€|T?EUR|[$£¥]|USD|GBP|CHF|JPY)"
# A date, a year or a currency as the name of a column.
_PERIOD = re.compile(
    rf"(?:{_CURRENCY} ?)?(?:[\d./-]*(?:19|20)\d\d[\d./-]*|\d\d?\.\d\d?\.\d\d)(?: ?{_CURRENCY})?|{_CURRENCY}"
)


def table(rows: Iterable[Iterable[str]], *, has_header: bool = True) -> str:
    """Rows of cells as a Markdown table whose header is the first row, or is empty, without empty rows and
    columns. Raises UnreadableDocument for too many cells."""
    filled = [cells for row in rows if any(cells := [one_line(cell).replace("|", "\\|") for cell in row])]
    used = sorted({column for row in filled for column, cell in enumerate(row) if cell})
    # All rows have the width of the widest.
    if len(filled) * len(used) > MAX_CELLS:
        raise size_error()
    lines = [f"| {' | '.join(row[at] if at < len(row) else '' for at in used)} |" for row in filled]
    if lines and not has_header:
        lines.insert(0, f"|{'  |' * len(used)}")
    return "\n".join([lines[0], f"|{' --- |' * len(used)}", *lines[1:]]) if lines else ""


def with_framed_tables(text: str) -> str:
    """The Markdown, where the lines of all tables begin and end with |."""

    lines, fence, is_table = text.split("\n"), "", False
    for index, (line, below) in enumerate(zip(lines, [*lines[1:], ""], strict=True)):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence, is_table = mark[1], False
        else:
            is_table = (is_table and "|" in line) or _is_header(line, below)
            lines[index] = f"| {line.strip().strip('|').strip()} |" if is_table else line
    return "\n".join(lines)


def _is_header(line: str, below: str) -> bool:
    if not (_RULE.fullmatch(below) and _HEADER.match(line)):
        return False
    widths = {len(_CELL_END.findall(one.strip().strip("|"))) for one in (line, below)}
    return len(widths) == 1


def titled_table(
    rows: Sequence[Sequence[str]],
    grouped: Collection[int] = (),
    mark: str = "",
    *,
    is_named: bool | None = None,
) -> str:
    """A table with the rows above its header as text. Merged cells repeat their value. `grouped`: the indices
    of rows with cells that span some columns, whose names are joined to those of the row below. `mark`: that
    of a heading, for a title of one cell at the top. `is_named`: whether the first row names the columns, as
    the file states; None for unknown."""
    titles, header, body = divided(rows, grouped)
    texts = [": ".join(dict.fromkeys(filter(None, map(one_line, rows[index])))) for index in titles]
    if texts and len({*filter(None, rows[titles[0]])}) == 1:
        texts[0] = with_mark(texts[0], mark)
    names = [names_of_columns([rows[index] for index in header])] if header else []
    rows_of_table = [*names, *(_once(rows[index]) if index in grouped else rows[index] for index in body)]
    if is_named is None:
        is_named = len(header) > 1 or has_header(rows_of_table[:SAMPLE_ROWS])
    parts = _halves(rows_of_table) if is_named else [rows_of_table]
    tables = [table(part, has_header=is_named) for part in parts]
    return "\n\n".join([*texts, *filter(None, tables)])


def _once(row: Sequence[str]) -> Sequence[str]:
    """The row, where a title over all columns stands in the first one alone."""
    return [row[0], *("" for _ in row[1:])] if len({*row}) == 1 else row


def _halves(rows: Sequence[Sequence[str]]) -> list[Sequence[Sequence[str]]]:
    """The rows; of a balance sheet those of its left and of its right half, whose columns of values have the
    same dates, years or currencies as names. With one column of values one half has more rows, too."""
    half = len(rows[0]) // 2 if rows else 0
    names = [*map(str.strip, rows[0])] if rows else []
    values = names[1:half]
    if (
        half < 2
        or len(names) != 2 * half
        or values != names[half + 1 :]
        or not all(map(_PERIOD.fullmatch, values))
    ):
        return [rows]
    left, right = ([row[part] for row in rows] for part in (slice(half), slice(half, None)))
    pairs = [[any(map(str.strip, part)) for part in pair] for pair in zip(left, right, strict=True)]
    if half == 2 and names[0] != names[2] and all(map(all, pairs)):
        return [rows]
    return [left, right]


def with_mark(title: str, mark: str) -> str:
    """The title as a heading, if it is short and no sentence."""
    return f"{mark}{title}" if _HEADING.fullmatch(title) else title


def divided(
    rows: Sequence[Sequence[str]], grouped: Collection[int], headers: Collection[int] = ()
) -> tuple[list[int], list[int], list[int]]:
    """The indices of the titles, of the rows of the header and of the other rows, without empty rows.
    `headers`: the indices of rows that the file states to be headers."""
    numbers = [index for index, row in enumerate(rows) if any(map(str.strip, row))]
    titles = 0
    while titles < len(numbers) and (
        _is_title(rows[numbers[titles]], is_merged=numbers[titles] in grouped)
        or _is_field_above(rows, numbers[titles:])
    ):
        titles += 1
    end = titles + 1
    while end + 1 < len(numbers) and end - titles < MAX_HEADER_ROWS:
        above, below = numbers[end - 1], numbers[end]
        is_divided = above in grouped and below == above + 1 and _is_divided(rows[above], rows[below])
        if not (below in headers or is_divided) or _has_value(rows[below]):
            break
        end += 1
    return numbers[:titles], numbers[titles:end], numbers[end:]


def _has_value(row: Sequence[str]) -> bool:
    return any(_VALUE.fullmatch(cell) and not _YEAR.fullmatch(cell.strip()) for cell in row)


def _is_divided(above: Sequence[str], below: Sequence[str]) -> bool:
    """Whether the row below names the columns under a cell that spans some."""
    return any(
        one.strip() and one == other and left != right
        for (one, other), (left, right) in zip(pairwise(above), pairwise(below), strict=False)
    )


def _is_title(row: Sequence[str], *, is_merged: bool) -> bool:
    """Whether a row of several columns has one value, in one cell or in a cell over several columns. The
    second of two columns may have a header alone."""
    filled = [index for index, cell in enumerate(row) if cell.strip()]
    if len(row) < 2 or (len(filled) > 1 and not is_merged) or filled == [1] == [len(row) - 1]:
        return False
    return len({row[index] for index in filled}) == 1


def _is_field_above(rows: Sequence[Sequence[str]], numbers: Sequence[int]) -> bool:
    """Whether the first row has a name and a value, as all rows before the empty one above a wider header."""
    end = next((at for at, (one, other) in enumerate(pairwise(numbers), 1) if other > one + 1), len(numbers))
    widths = [sum(1 for cell in rows[number] if cell.strip()) for number in numbers]
    return end + 1 < len(numbers) and max(widths[:end]) == widths[0] == 2 < widths[end]


# Letters, or the colon of a time.
_UNIT = re.compile(r"[^\W\d_]|:")


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: no cell has a number in the form of most cells below it, other
    than a year, and unless the numbers are a count, or a scale beside a name; and it is no name and value."""
    if len(rows) < 2:
        return True
    if _is_pair(rows[0]) and 2 * sum(map(_is_pair, rows[1:])) > len(rows) - 1 and _has_form_of_value(rows):
        return False
    first, *below = [[_DIGITS.sub("0", cell.strip()) for cell in row] for row in rows]
    numbers = [int(cell[:18]) for cell in map(str.strip, rows[0]) if cell.isdecimal()]
    is_count = len(numbers) > 2 and all(other == one + 1 for one, other in pairwise(numbers))
    return (
        is_count
        or _is_scale(rows[0], [row[0] if row else "" for row in rows[1:]])
        or not any(
            "0" in form
            and not _YEAR.fullmatch(rows[0][at].strip())
            and 2 * sum(at < len(row) and row[at] == form for row in below) > len(below)
            for at, form in enumerate(first)
        )
    )


def _is_pair(row: Sequence[str]) -> bool:
    """Whether a row of two cells is a name and a value, or has a colon."""
    name, value = map(str.strip, row) if len(row) == 2 else ("", "")
    return bool(name) and (name.endswith(":") or bool(_VALUE.fullmatch(value) and not value[0].isalpha()))


def _has_form_of_value(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first of these pairs has no year, and the form of a value below it; or a colon."""
    name, value = map(str.strip, rows[0])
    forms = {_NUMBER.sub("0", row[1].strip()) for row in rows[1:] if len(row) == 2}
    return name.endswith(":") or (not _YEAR.search(value) and _NUMBER.sub("0", value) in forms)


def _is_scale(header: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the header has rising numbers of one form, three or with a unit, behind a name, or none, that
    most names below are not like: "Size", "36", "38", "40"; "Plan", "10 GB", "50 GB"."""
    name, *scale = map(str.strip, header)
    numbers = [[int(part[:18]) for part in _DIGITS.findall(cell)] for cell in scale]
    forms = {_DIGITS.sub("0", cell) for cell in scale}
    return (
        len(forms) == 1
        and (len(scale) > 2 or (len(scale) == 2 and _UNIT.search("".join(forms)) is not None))
        and all(one < other for one, other in pairwise(numbers))
        and not _DIGITS.search(name)
        and 2 * sum(_shape(other) == _shape(name) for other in names) <= len(names)
    )


def _shape(text: str) -> str:
    return "".join("A" if one.isupper() else "a" if one.islower() else one for one in text.strip())


def names_of_columns(header: Iterable[Sequence[str]]) -> list[str]:
    """The names of each column in the rows of the header, each once."""
    columns = zip_longest(*header, fillvalue="")
    return [" ".join(dict.fromkeys(filter(None, map(one_line, names)))) for names in columns]
