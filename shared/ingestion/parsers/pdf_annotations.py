"""Fields of a PDF's form, its comments, and the files attached to it."""

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pypdfium2 import raw

from shared.ingestion.parsers.pdf_tables import Cell, Line
from shared.text.normalize import one_line

TICKED, NOT_TICKED = "yes", "no"
# The options of a longer list box are not read.
MAX_OPTIONS = 20
# The greatest distance of a label above its field, of the text of an option, and of a label at the left where
# another one is above, in heights of a line; and of the left edges of a field and such a label, in points.
ABOVE, BESIDE, LEFT, NEAR = 1.6, 2.0, 3.0, 6.0
# A label, and a sentence of several words behind it; a shorter word may be an abbreviation.
_INSTRUCTION = re.compile(r"(.*?(?:[^\W\d_]{6}|\)))\. ([^\W\d_a-z]\S*(?: \S+){2,})")
# Annotations that are no comments: links, windows of comments, fields, and marks of the printer.
_NO_COMMENTS = {
    raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_PRINTERMARK,
    raw.FPDF_ANNOT_TRAPNET, raw.FPDF_ANNOT_WATERMARK,
}  # fmt: skip
_HIDDEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
_TICKS = {raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON}
_CHOICES = {raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form with its box in points. `description`: its tooltip."""

    kind: int
    name: str
    description: str
    value: str
    box: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Annotations:
    fields: Sequence[Field] = ()
    comments: Sequence[str] = ()
    files: Sequence[str] = ()


def annotations_of(document: Any, page: Any) -> Annotations:
    """The annotations of the page that a reader can see."""
    fields, comments, files = [], [], []
    for number in range(raw.FPDFPage_GetAnnotCount(page.raw)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, number)
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if annotation and not raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
            if kind == raw.FPDF_ANNOT_WIDGET:
                fields.append(_field(document.formenv and document.formenv.raw, annotation))
            elif kind == raw.FPDF_ANNOT_FILEATTACHMENT:
                files.append(_text(raw.FPDFAttachment_GetName, raw.FPDFAnnot_GetFileAttachment(annotation)))
            if kind not in _NO_COMMENTS and (text := _property(annotation, b"Contents")):
                author = "" if kind == raw.FPDF_ANNOT_FREETEXT else _property(annotation, b"T")
                comments.append(f"{author}: {text}" if author else text)
        raw.FPDFPage_CloseAnnot(annotation)
    return Annotations(fields, comments, files)


def attached_files(document: Any) -> list[str]:
    return [document.get_attachment(number).get_name() for number in range(document.count_attachments())]


def _text(function: Callable[..., int], *arguments: Any) -> str:
    """The text that a function of pdfium writes into a buffer."""
    if not (length := function(*arguments, None, 0)):
        return ""
    buffer = ctypes.create_string_buffer(length)
    function(*arguments, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), length)
    return one_line(buffer.raw.decode("utf-16-le", errors="replace").rstrip("\0"))


def _property(annotation: Any, key: bytes) -> str:
    return _text(raw.FPDFAnnot_GetStringValue, annotation, key)


def _field(form: Any, annotation: Any) -> Field:
    rectangle = raw.FS_RECTF()
    raw.FPDFAnnot_GetRect(annotation, rectangle)
    box = (rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation) if form else -1
    if kind < 0:
        # The page shows a field that the form lacks.
        names = (b"FT", b"AS", b"T", b"TU", b"V")
        of, state, name, description, value = (_property(annotation, key) for key in names)
        if of != "Btn":
            return Field(raw.FPDF_FORMFIELD_TEXTFIELD, name, description, value, box)
        value = NOT_TICKED if state == "Off" else TICKED if state else ""
        return Field(raw.FPDF_FORMFIELD_CHECKBOX, name, description, value, box)
    value = _text(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    if kind in _TICKS:
        is_ticked = raw.FPDFAnnot_IsChecked(form, annotation)
        value = TICKED if is_ticked else NOT_TICKED
        if kind == raw.FPDF_FORMFIELD_RADIOBUTTON:
            value = _text(raw.FPDFAnnot_GetFormFieldExportValue, form, annotation) if is_ticked else ""
    elif kind in _CHOICES:
        numbers = range(raw.FPDFAnnot_GetOptionCount(form, annotation))
        options = [_text(raw.FPDFAnnot_GetOptionLabel, form, annotation, number) for number in numbers]
        selected = [
            option
            for number, option in zip(numbers, options, strict=True)
            if raw.FPDFAnnot_IsOptionSelected(form, annotation, number)
        ]
        value = ", ".join(selected) or value
        if kind == raw.FPDF_FORMFIELD_LISTBOX and 0 < len(options) <= MAX_OPTIONS:
            # The page shows them all.
            value = f"{value} (of {', '.join(options)})".strip()
    elif kind != raw.FPDF_FORMFIELD_TEXTFIELD or raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & 2**13:
        # Buttons, signatures and passwords.
        value = ""
    name = _text(raw.FPDFAnnot_GetFormFieldName, form, annotation)
    return Field(kind, name, _text(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation), value, box)


def with_fields(lines: Sequence[Line], fields: Sequence[Field]) -> list[Line]:
    """The lines of the page with "label: value" for each field that has a value. The label is the text left
    of the field or above it, else its description or name."""
    values: dict[tuple[int, int], list[Field]] = {}
    unlabelled: list[tuple[int, Line]] = []
    radios = [field for field in fields if field.kind == raw.FPDF_FORMFIELD_RADIOBUTTON]
    for field in fields:
        if not field.value:
            continue
        value, place = field.value, None
        if field in radios:
            group = [other for other in radios if other.name == field.name]
            option = _beside(lines, field)
            value = lines[option[0]].cells[option[1]].text if option else value
            first = min(group, key=lambda other: (-round(other.box[3]), other.box[0]))
            place = _label(lines, fields, first)
            if place is None and option and not field.description:
                place, value = option, TICKED
        elif field.kind in _TICKS:
            place = _beside(lines, field) or _left_of(lines, fields, field)
        else:
            place = _label(lines, fields, field)
        if place:
            values.setdefault(place, []).append(replace(field, value=value))
        else:
            label = field.description or field.name
            after = max((at for at, line in enumerate(lines) if line.baseline >= field.box[1]), default=-1)
            text = _labelled(label, value) if label else value
            unlabelled.append((after, Line(text, baseline=field.box[1], is_whole=True)))
    return list(_filled(lines, values, unlabelled))


def _filled(
    lines: Sequence[Line], values: dict[tuple[int, int], list[Field]], unlabelled: list[tuple[int, Line]]
) -> Iterator[Line]:
    labelled = {at for at, _ in values}
    for at in range(-1, len(lines)):
        if at in labelled:
            for number, cell in enumerate(lines[at].cells):
                fields = values.get((at, number))
                text = _labelled(cell.text, _joined(lines, fields)) if fields else cell.text
                yield replace(lines[at], text=text, cells=(cell,), is_whole=True)
        elif at >= 0:
            yield lines[at]
        yield from (line for after, line in unlabelled if after == at)


def _joined(lines: Sequence[Line], fields: Sequence[Field]) -> str:
    """The values of fields with one label, with the hyphens that the page has between them."""
    text = fields[0].value
    for before, field in pairwise(fields):
        cells = _cells(lines, field.box[1], field.box[3])
        between = {cell.text for *_, cell in cells if before.box[2] - 3 <= cell.left <= field.box[0]}
        text += f"-{field.value}" if between & {"-", "–"} else f", {field.value}"
    return text


def _labelled(label: str, text: str) -> str:
    if instruction := _INSTRUCTION.fullmatch(label):
        return f"{instruction[1]}: {text}. {instruction[2]}"
    return f"{label.rstrip(' :._…▶►')}: {text}"


def _cells(lines: Sequence[Line], low: float, high: float) -> Iterator[tuple[int, int, Cell]]:
    """The cells of lines whose middle is between these heights, and their positions."""
    for at, line in enumerate(lines):
        if line.cells and low <= line.baseline + line.height / 2 <= high:
            yield from ((at, number, cell) for number, cell in enumerate(line.cells))


def _label(lines: Sequence[Line], fields: Sequence[Field], field: Field) -> tuple[int, int] | None:
    """The text left of the field or, if that is missing, above it; also if the text at the left is distant,
    and the one above begins where the field does and is not the header of a column of fields."""
    left, above = _left_of(lines, fields, field), _above(lines, field)
    if left and above:
        (at, number), (row, column) = left, above
        is_distant = field.box[0] - lines[at].cells[number].right > LEFT * lines[at].height
        begins_above = abs(field.box[0] - lines[row].cells[column].left) <= NEAR
        _, bottom, _, top = field.box
        heads_column = any(
            abs(other.box[0] - field.box[0]) <= NEAR
            and -NEAR <= bottom - other.box[3] <= top - bottom
            and not _above(lines, other)
            for other in fields
        )
        return above if is_distant and begins_above and not heads_column else left
    return left or above


def _left_of(lines: Sequence[Line], fields: Sequence[Field], field: Field) -> tuple[int, int] | None:
    """The nearest text left of the field, unless another field is between them."""
    left, bottom, _, top = field.box
    before = [
        (cell.right, at, number)
        for at, number, cell in _cells(lines, bottom, top)
        if cell.right <= left + 3 and any(map(str.isalnum, cell.text))
    ]
    if not before:
        return None
    end, at, number = max(before)
    is_between = any(
        end - 3 < other.box[0] < left and other.box[1] < top and bottom < other.box[3] for other in fields
    )
    return None if is_between else (at, number)


def _above(lines: Sequence[Line], field: Field) -> tuple[int, int] | None:
    left, _, right, top = field.box
    above = [
        (lines[at].baseline, at, number)
        for at, number, cell in _cells(lines, top - 2, top + 40)
        if cell.left < right and left < cell.right and lines[at].baseline < top + ABOVE * lines[at].height
    ]
    return min(above)[1:] if above else None


def _beside(lines: Sequence[Line], field: Field) -> tuple[int, int] | None:
    """The text of a tick: the nearer one of those right and left of it."""
    left, bottom, right, top = field.box
    texts = [
        (max(cell.left - right, left - cell.right), at, number)
        for at, number, cell in _cells(lines, bottom - 2, top + 2)
        if max(cell.left - right, left - cell.right) < BESIDE * lines[at].height
    ]
    return min(texts)[1:] if texts else None
