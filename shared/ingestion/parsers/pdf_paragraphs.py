"""Headings, paragraphs and tables of a PDF's lines as Markdown."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from statistics import quantiles

from shared.ingestion.parsers.pdf_halves import by_halves, with_headers_below_titles
from shared.ingestion.parsers.pdf_headers import with_divided_rows
from shared.ingestion.parsers.pdf_tables import BOLD, ITEM, Line, has_undivided_table, tables_in
from shared.text.line_breaks import LABEL

# The least size of a heading relative to the text, and its greatest length; a title in the largest letters
# may be longer.
HEADING_SIZE, HEADING_LENGTH, TITLE_LENGTH = 1.15, 150, 300
# The greatest length of headings of one level that follow one another without a text.
SPACED_LENGTH = 600
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)")
# A line with as many cells is the row of a table.
ROW_CELLS = 3
# The share of the page's long lines from which on a line continues in the next one.
FULL_LINE = 0.75
# The greatest distance of two lines of a heading, relative to their height.
HEADING_LEADING = 1.2
# pdfium's marks for a hyphen at a line break.
_SOFT_BREAKS = "\ufffe\u0002"
_SOFT_BREAK = re.compile(rf"(\w{{0,60}})[{_SOFT_BREAKS}](\w{{0,60}})")
_HYPHEN = re.compile(r"(?<=[a-z])-$")
_COMPOUND = re.compile(r"(?=(\b\w{1,60}-\w{1,60}))")


def heading_levels(lines: Iterable[Line]) -> dict[float, int]:
    """The level of a heading by the size of its letters; the largest has level 1."""
    letters: Counter[float] = Counter()
    for line in lines:
        if line.size:
            letters[line.size] += len(line.text)
    if not letters:
        return {}
    usual = letters.most_common(1)[0][0]
    larger = sorted((size for size in letters if size >= HEADING_SIZE * usual), reverse=True)
    return {size: min(position, 6) for position, size in enumerate(larger, 1)}


def _without_soft_breaks(text: str, compounds: frozenset[str]) -> str:
    """The text, where a word that the end of a line divides is one word, or has the hyphen that it has
    elsewhere on the page."""

    def joined(parts: re.Match[str]) -> str:
        compound = f"{parts[1]}-{parts[2]}"
        return compound if compound.casefold() in compounds else f"{parts[1]}{parts[2]}"

    return _SOFT_BREAK.sub(joined, text)


def paragraphs_of(lines: list[Line], levels: dict[float, int]) -> tuple[str, bool]:
    """The text with lines joined that the page's width had broken, and with tables as Markdown; and whether
    the page has a table that is not divided into columns."""
    lines = with_divided_rows(by_halves(lines))
    lengths = [len(line.text) for line in lines if not line.is_table]
    full = FULL_LINE * (quantiles(lengths, n=10)[-1] if len(lengths) > 1 else sum(lengths))
    headings = _heading_levels(lines, levels)
    arranged = [*with_headers_below_titles(lines, headings)]
    lines, headings = [line for line, _ in arranged], [level for _, level in arranged]
    tables = tables_in(
        [
            line if level is None and not line.is_whole else Line("")
            for line, level in zip(lines, headings, strict=True)
        ]
    )
    in_tables = {position for positions, _ in tables for position in positions}
    is_undivided = has_undivided_table(
        [Line("") if position in in_tables else line for position, line in enumerate(lines)]
    )
    starts = {positions.start: markdown for positions, markdown in tables}
    joined = "\n".join(_paragraphs(lines, headings, starts, in_tables, full))
    if not any(mark in joined for mark in _SOFT_BREAKS):
        return joined, is_undivided
    compounds = frozenset(_COMPOUND.findall(" ".join(line.text for line in lines).casefold()))
    return _without_soft_breaks(joined, compounds), is_undivided


def _heading_levels(lines: Sequence[Line], levels: Mapping[float, int]) -> list[int | None]:
    """The level of each heading by the size of its letters, or by its number."""
    headings = [
        levels.get(line.size or 0)
        if len(line.text) <= HEADING_LENGTH and len(line.cells) < ROW_CELLS and not line.is_table
        else None
        for line in lines
    ]
    neighbours = zip([Line(""), *lines], lines, lines[1:], strict=False)
    for position, (above, line, following) in enumerate(neighbours):
        # Another bold line below continues it, or both are items of a list, as is one above.
        is_deeper = following.clause.count(".") > line.clause.count(".")
        is_item = above.clause and above.clause.count(".") == line.clause.count(".")
        is_last = is_deeper or not BOLD.search(following.font)
        if line.clause and is_last and not is_item and headings[position] is None:
            headings[position] = min(max(levels.values(), default=1) + line.clause.count(".") + 1, 6)
    _remove_paragraphs(lines, headings)
    return headings


def _paragraphs(
    lines: Sequence[Line],
    headings: Sequence[int | None],
    tables: Mapping[int, str],
    in_tables: Container[int],
    full: float,
) -> list[str]:
    """`tables`: Markdown by the position of a table's first line; `full`: the least length of a line that the
    page's width broke."""
    paragraphs: list[str] = []
    continues = False
    before: Line | None = None
    for position, (line, level) in enumerate(zip(lines, headings, strict=True)):
        text = line.text.lstrip(_SOFT_BREAKS)
        if position in in_tables:
            paragraphs += [f"\n{tables[position]}\n"] if position in tables else []
        elif level and before and _is_one_heading(before, line, level, f"{paragraphs[-1]}{text}"):
            paragraphs[-1] = f"{paragraphs[-1].rstrip()} {text}\n"
        elif level:
            paragraphs.append(f"\n{'#' * level} {text}\n")
        elif continues and not (
            line.is_whole or ITEM.match(text) or _are_labelled(lines[position - 1], line)
        ):
            last = paragraphs[-1]
            is_divided = _HYPHEN.search(last[-2:]) and text[:1].islower()
            paragraphs[-1] = f"{last[:-1]}{_SOFT_BREAKS[0]}{text}" if is_divided else f"{last} {text}"
        else:
            paragraphs.append(text)
        is_text = not (level or line.is_whole or position in in_tables)
        continues = is_text and len(line.text) >= full
        before = line if level and not line.clause else None
    return paragraphs


def _remove_paragraphs(lines: Sequence[Line], headings: list[int | None]) -> None:
    """Remove the levels of paragraphs in large letters, which are no headings, nor are several in a row."""
    for is_spaced in (False, True):
        start = 0
        for end in range(1, len(lines) + 1):
            is_next = end < len(lines) and headings[end] == headings[start]
            if is_next and (is_spaced or _are_near(lines[end - 1], lines[end])):
                continue
            text = " ".join(line.text for line in lines[start:end])
            if len(text) > (SPACED_LENGTH if is_spaced else _greatest_length(headings[start], text)):
                headings[start:end] = [None] * (end - start)
            start = end


def _are_labelled(before: Line, line: Line) -> bool:
    """Whether both lines begin with a label and a colon, as fields do."""
    return bool(LABEL.match(before.text) and LABEL.match(line.text) and line.text[:1].isupper())


def _are_near(before: Line, line: Line) -> bool:
    """Whether the lines, of a heading's size, are as near to each other as those of one heading."""
    distance = before.baseline - line.baseline
    return before.size == line.size and 0 < distance <= HEADING_LEADING * line.height


def _greatest_length(level: int | None, text: str) -> int:
    return TITLE_LENGTH if level == 1 and not _SENTENCE_END.search(text) else HEADING_LENGTH


def _is_one_heading(before: Line, line: Line, level: int, text: str) -> bool:
    """Whether the line, of a heading's size, continues the heading before it to this text."""
    return _are_near(before, line) and len(text) <= _greatest_length(level, text)
