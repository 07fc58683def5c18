"""Lines of a PDF's page: words with their places, exponents, and cells between large gaps."""

import ctypes
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from pypdfium2 import raw

from shared.ingestion.parsers.parsed_file import clause_number
from shared.ingestion.parsers.pdf_columns import GUTTER, Box, Word, WordLine, by_columns, from_top
from shared.ingestion.parsers.pdf_grids import with_grids
from shared.ingestion.parsers.pdf_tables import BOLD, ITEM, Cell, Line
from shared.text.superscripts import script

# The least gap of two cells, relative to the line's height.
CELL_GAP = 1.0
# The sizes of an exponent or index, how far it is raised or lowered, and the greatest gap before it, relative
# to the size of the letters beside it. The initial of a chapter is larger, and small capitals are not raised.
SCRIPT_SIZES, RAISED, LOWERED, SCRIPT_GAP = (0.4, 0.85), (0.15, 0.65), (-0.5, -0.06), 0.25
# The least width of a space.
SPACE = 0.15
_WORD = re.compile(r"\S+")
# Digits that may be an exponent or index: their size decides.
_FUSED = re.compile(r"[^\W_]\d|[)\]]\d")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
# Characters for private use, control characters, and the one in the place of an unknown one.
_UNKNOWN = re.compile("[\x01\x03-\x08\x0e-\x1f\ue000-\uf8ff\ufffd]{2,}")
_LEGIBLE = re.compile(r"\W?[A-Za-z]?[a-z]+\W{0,2}")
# Boxes in the direction of reading, by the quarters by which their letters are turned.
_TURNS = (
    lambda box: box,
    lambda box: (-box[3], box[0], -box[1], box[2]),
    lambda box: (-box[2], -box[3], -box[0], -box[1]),
    lambda box: (box[1], -box[2], box[3], -box[0]),
)


def lines_of(page: Any, rulings: Sequence[Box]) -> tuple[list[Line], float]:
    """The lines of a page in reading order, and the share of its words without a Unicode map. `rulings`: the
    boxes of drawn lines, which may divide the cells of tables."""
    textpage = page.get_textpage()
    text = textpage.get_text_range()
    count = textpage.count_chars()
    # pdfium leaves out unknown characters, and counts those beyond 16 bits twice.
    is_other = len(text) != count
    if is_other:
        text = "".join(chr(raw.FPDFText_GetUnicode(textpage.raw, index) or 0xFFFD) for index in range(count))
    characters = _Characters(textpage.raw)
    word_lines, tables = with_grids(from_top(characters.lines(text)), rulings)
    lines = [
        characters.cells(line) if line.words[0].first >= 0 else _table(line, tables)
        for line in by_columns(word_lines)
    ]
    if is_other:
        lines = [_with_pairs(line) for line in lines]
    unreadable = max(_unreadable(characters.without_map), len(_UNKNOWN.findall(text)))
    textpage.close()
    words = sum(line.text.count(" ") + 1 for line in lines)
    return lines, unreadable / max(words, 1)


class _Characters:
    """The characters of a page by their indexes in its text."""

    def __init__(self, textpage: Any) -> None:
        self.textpage = textpage
        self.without_map: list[str] = []
        self._box = tuple(ctypes.c_double() for _ in range(4))
        self._box_pointers = tuple(map(ctypes.byref, self._box))
        self._loose_box, self._matrix = raw.FS_RECTF(), raw.FS_MATRIX()

    def lines(self, text: str) -> list[WordLine]:
        lines: list[WordLine] = []
        start = 0
        for part in text.split("\r\n"):
            if part.strip():
                line = self._line(part, start)
                if lines and (joined := self._joined(lines[-1], line, part.split(None, 1)[0])):
                    lines[-1] = joined
                else:
                    lines.append(line)
            start += len(part) + 2
        return lines

    def _line(self, text: str, start: int) -> WordLine:
        """The words of the text, whose first character has the index `start`."""
        first = start + len(text) - len(text.lstrip())
        turn = _TURNS[round(raw.FPDFText_GetCharAngle(self.textpage, first) / (math.pi / 2)) % 4]
        size = raw.FPDFText_GetFontSize(self.textpage, first)
        bottom, height = self._bottom_and_height(first, turn)
        is_right_to_left, is_fused = _RIGHT_TO_LEFT.search(text), _FUSED.search(text)
        has_map_error, size_of = raw.FPDFText_HasUnicodeMapError, raw.FPDFText_GetFontSize
        words: list[Word] = []
        least, end = GUTTER * height, math.inf
        is_raised = has_gaps = False
        for match in _WORD.finditer(text):
            word, index, last = match.group(), start + match.start(), start + match.end() - 1
            left, right = self._interval(index, last, turn)
            if left - end >= least:
                has_gaps = True
            end = right
            if index != last and has_map_error(self.textpage, index):
                self.without_map.append(word)
            is_raised = False
            # A size of 1 is scaled by a matrix.
            if (
                size_of(self.textpage, last) != size
                or (size <= 1 and self._bottom_and_height(last, turn)[1] < SCRIPT_SIZES[1] * height)
                or (is_fused and _FUSED.search(word))
            ):
                before = words[-1] if words else None
                word, is_part, is_raised = self._with_scripts(word, index, before, left, turn)
                if is_part and before:
                    words[-1] = before._replace(text=before.text + word, right=right)
                    continue
            elif is_right_to_left:
                word = self._with_ligatures(word, index)
            words.append(Word(word, left, right, index))
        # pdfium has the words of turned lines in the order of drawing. Mirrored ones begin at the right.
        if turn is not _TURNS[0] and all(word.left <= word.right for word in words):
            words.sort(key=itemgetter(1))
            has_gaps = True
        return WordLine(words, round(size, 1), bottom, height, turn, is_raised, has_gaps)

    def _joined(self, before: WordLine, line: WordLine, word: str) -> WordLine | None:
        """The line before with this one, if pdfium broke the line beside an exponent or index. `word`: this
        line's first one in the file."""
        last, first = before.words[-1], line.words[0]
        gap = first.left - last.right
        words: list[Word] | None = None
        if before.ends_raised and abs(before.bottom - line.bottom) < 0.3 * line.height:
            if abs(gap) < SPACE * line.height:
                words = [last._replace(text=last.text + first.text, right=first.right)]
            elif 0 <= gap < CELL_GAP * line.height:
                words = [last, first]
        elif line.height < before.height and abs(gap) < SCRIPT_GAP * before.height:
            written, is_part, is_raised = self._with_scripts(word, first.first, last, first.left, line.turn)
            if is_part:
                words = [last._replace(text=last.text + written, right=first.right)]
                line = line._replace(ends_raised=is_raised if len(line.words) == 1 else line.ends_raised)
        if words is None:
            return None
        words = [*before.words[:-1], *words, *line.words[1:]]
        return before._replace(words=words, ends_raised=line.ends_raised, has_gaps=True)

    def cells(self, line: WordLine) -> Line:
        """The line with its words joined to cells."""
        text = " ".join([word.text for word in line.words])
        if not line.has_gaps:
            cell = _cell(line.words)
            font, clause = self._font(line.words[0].first), self._clause(text, line)
            return Line(text, line.size or None, (cell,), line.bottom, line.height, font, clause=clause)
        item = ITEM.match(text)
        gap = CELL_GAP * line.height
        groups: list[list[Word]] = []
        right = 0.0
        for word in line.words:
            # The text of an item of a list is no cell.
            is_item = item and len(groups) == 1 and " ".join([word.text for word in groups[0]]) == item[1]
            if groups and (word.left - right < gap or is_item):
                groups[-1].append(word)
            else:
                groups.append([word])
            right = word.right
        cells = [*map(_cell, groups)]
        font, clause = self._font(groups[-1][0].first), self._clause(text, line) if len(cells) == 1 else ""
        mark = self._font(line.words[0].first) if len(cells[0].text) == 1 and cells[0].text.isalpha() else ""
        return Line(
            text, line.size or None, tuple(cells), line.bottom, line.height, font, mark, clause=clause
        )

    def _clause(self, text: str, line: WordLine) -> str:
        clause = clause_number(text)
        ends = (line.words[0].first, line.words[-1].first)
        return clause if clause and all(BOLD.search(self._font(index)) for index in ends) else ""

    def _interval(self, first: int, last: int, turn: Any) -> tuple[float, float]:
        """The horizontal interval of the word with these characters."""
        if turn is not _TURNS[0]:
            return turn(self._tight(first))[0], turn(self._tight(last))[2]
        left, right, *_ = self._box
        raw.FPDFText_GetCharBox(self.textpage, first, *self._box_pointers)
        begin = left.value
        if last != first:
            raw.FPDFText_GetCharBox(self.textpage, last, *self._box_pointers)
        return begin, right.value

    def _tight(self, index: int) -> Box:
        left, right, bottom, top = self._box
        raw.FPDFText_GetCharBox(self.textpage, index, *self._box_pointers)
        return left.value, bottom.value, right.value, top.value

    def _bottom_and_height(self, index: int, turn: Any) -> tuple[float, float]:
        box = self._loose_box
        raw.FPDFText_GetLooseCharBox(self.textpage, index, box)
        _, bottom, _, top = turn((box.left, box.bottom, box.right, box.top))
        return bottom, top - bottom

    def _font(self, index: int) -> str:
        name = ctypes.create_string_buffer(128)
        raw.FPDFText_GetFontInfo(self.textpage, index, name, len(name), ctypes.c_int())
        return name.value.decode(errors="replace")

    def _size_and_base(self, index: int, turn: Any) -> tuple[float, float]:
        """The size of a letter on the page, and the height of its base line."""
        matrix = self._matrix
        raw.FPDFText_GetMatrix(self.textpage, index, matrix)
        x, y = self._box[:2]
        raw.FPDFText_GetCharOrigin(self.textpage, index, *self._box_pointers[:2])
        _, base, _, _ = turn((x.value, y.value, x.value, y.value))
        size = raw.FPDFText_GetFontSize(self.textpage, index) * math.hypot(matrix.c, matrix.d)
        return size, base

    def _with_scripts(
        self, word: str, index: int, before: Word | None, left: float, turn: Any
    ) -> tuple[str, bool, bool]:
        """The word with its exponents and indices in plain text, whether it belongs to the word before, and
        whether it ends with one."""
        letters = [self._size_and_base(index + offset, turn) for offset in range(len(word))]
        size, base = max(letters, key=lambda letter: letter[0])
        is_part = False
        if before:
            other, base_before = self._size_and_base(before.first, turn)
            if _kind(size, base, other, base_before):
                is_part = left - before.right < SCRIPT_GAP * other
                size, base = other, base_before
        kinds = [_kind(*letter, size, base) for letter in letters]
        text = before.text[-3:] if is_part and before else ""
        length_before = len(text)
        for kind, group in groupby(zip(kinds, word, strict=True), key=lambda pair: pair[0]):
            content = "".join(letter for _, letter in group)
            text += script(kind, content, text) if kind else content
        return text[length_before:], is_part, bool(kinds[-1])

    def _with_ligatures(self, word: str, index: int) -> str:
        """The word with the letters of its ligatures in their order, which pdfium reverses. The letters of a
        ligature have the same box."""
        boxes = [self._tight(index + offset) for offset in range(len(word))]
        groups = groupby(zip(boxes, word, strict=True), key=lambda pair: pair[0])
        parts = ["".join(letter for _, letter in group) for _, group in groups]
        return "".join(
            part[::-1] if part.isalpha() and _RIGHT_TO_LEFT.match(part) else part for part in parts
        )


def _cell(words: Sequence[Word]) -> Cell:
    own = tuple(Cell(word.text, word.left, word.right) for word in words) if len(words) > 1 else ()
    return Cell(" ".join([word.text for word in words]), words[0].left, words[-1].right, own)


def _table(place: WordLine, tables: Sequence[str]) -> Line:
    word = place.words[0]
    text = f"\n{tables[-word.first - 1]}\n"
    cells = (Cell(text, word.left, word.right),)
    return Line(text, place.size, cells, place.bottom, place.height, is_whole=True, is_table=True)


def _with_pairs(line: Line) -> Line:
    """The line with one character for each pair of surrogates."""

    def paired(text: str) -> str:
        return text.encode("utf-16-le", errors="surrogatepass").decode("utf-16-le", errors="replace")

    return replace(
        line,
        text=paired(line.text),
        cells=tuple(replace(cell, text=paired(cell.text)) for cell in line.cells),
    )


def _unreadable(words: Sequence[str]) -> int:
    """How many of the words without a Unicode map are unreadable: none if most are words of letters, as in
    fonts whose codes are those of the letters."""
    written = sum(not word.isdigit() for word in words)
    legible = sum(map(bool, map(_LEGIBLE.fullmatch, words)))
    return 0 if words and 2 * legible > written else len(words)


def _kind(size: float, base: float, other: float, other_base: float) -> str:
    """Whether a letter is an exponent (sup) or an index (sub) of letters of another size and base line."""
    if other <= 0 or not SCRIPT_SIZES[0] <= size / other <= SCRIPT_SIZES[1]:
        return ""
    rise = (base - other_base) / other
    if RAISED[0] <= rise <= RAISED[1]:
        return "sup"
    return "sub" if LOWERED[0] <= rise <= LOWERED[1] else ""
