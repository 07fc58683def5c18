"""Pictures of a PDF's page that are large enough to be content."""

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pypdfium2 import raw

from shared.ingestion.parsers.pdf_grids import Matrix, matrix_of, rulings_of

# The least share of the page: a logo, a signature or a line has less. From the second share on, a picture is
# the scanned page, or its background.
CONTENT, WHOLE_PAGE = 0.03, 0.8
# A page with fewer lines and shapes is blank.
DRAWING = 10
# A page with more of them has a map or a diagram, whose lines are no table.
MAX_DRAWINGS = 5_000
# Groups nest; files nest them without end.
DEPTH = 3
# Parts of one picture have this distance in points, and this share of the smaller one in common.
DISTANCE, OVERLAP = 2, 0.1

Box = tuple[float, float, float, float]
# The box of a picture in points, and the bytes that it has in the file.
Picture = tuple[int, int, int, int, int]
_PAGE: Matrix = (1, 0, 0, 1, 0, 0)


class Pictures(NamedTuple):
    """`area`: of the page, in square points. `scan`: the picture that covers the page. `has_text_layer`:
    whether a picture hides the text, as OCR writes it. `is_blank`: whether nothing is drawn on the page.
    `rulings`: its horizontal and vertical lines, none of a drawing with very many."""

    area: float
    content: frozenset[Picture]
    scan: Picture | None
    has_text_layer: bool
    is_blank: bool
    rulings: Sequence[Box]


def pictures_of(page: Any) -> Pictures:
    visible = page.get_bbox()
    area = _area(visible) or 1
    parts: list[Picture] = []
    rulings: list[Box] = []
    others = 0
    for item, kind, picture, matrix in _objects(page.raw, _PAGE, DEPTH, visible):
        if picture:
            parts.append(picture)
        elif kind != raw.FPDF_PAGEOBJ_TEXT:
            others += 1
        if kind == raw.FPDF_PAGEOBJ_PATH and others <= MAX_DRAWINGS:
            rulings += rulings_of(item, matrix)
    shares = {picture: _area(picture[:4]) / area for picture in _joined(parts)}
    scan = next((picture for picture, share in shares.items() if share >= WHOLE_PAGE), None)
    return Pictures(
        area,
        frozenset(picture for picture, share in shares.items() if CONTENT <= share < WHOLE_PAGE),
        scan,
        scan is not None and _has_text_layer(page, visible),
        others < DRAWING and sum(shares.values()) < CONTENT,
        rulings if others <= MAX_DRAWINGS else [],
    )


def _objects(
    container: Any, matrix: Matrix, depth: int, visible: Box
) -> Iterator[tuple[Any, int, Picture | None, Matrix]]:
    """The objects of a page or a group in the order of drawing, each with its box if it is a picture, or a
    group with one, and the matrix of its container. A group that covers the page is no picture, but its
    objects may be."""
    is_page = depth == DEPTH
    count = (raw.FPDFPage_CountObjects if is_page else raw.FPDFFormObj_CountObjects)(container)
    item_at = raw.FPDFPage_GetObject if is_page else raw.FPDFFormObj_GetObject
    for number in range(count):
        item = item_at(container, number)
        kind = raw.FPDFPageObj_GetType(item)
        if kind == raw.FPDF_PAGEOBJ_IMAGE:
            yield item, kind, _picture(item, kind, matrix, visible), matrix
        elif kind == raw.FPDF_PAGEOBJ_FORM and depth:
            picture = _picture(item, kind, matrix, visible)
            if _area(picture[:4]) < WHOLE_PAGE * _area(visible):
                yield item, kind, picture if _has_picture(item, depth) else None, matrix
            else:
                yield from _objects(item, matrix_of(item, matrix), depth - 1, visible)
        else:
            yield item, kind, None, matrix


def _has_picture(group: Any, depth: int) -> bool:
    for number in range(raw.FPDFFormObj_CountObjects(group) if depth else 0):
        item = raw.FPDFFormObj_GetObject(group, number)
        kind = raw.FPDFPageObj_GetType(item)
        if kind == raw.FPDF_PAGEOBJ_IMAGE or (
            kind == raw.FPDF_PAGEOBJ_FORM and _has_picture(item, depth - 1)
        ):
            return True
    return False


def _has_text_layer(page: Any, visible: Box) -> bool:
    """Whether text is invisible, or the pictures are drawn over it."""
    has_picture = False
    for item, kind, picture, _ in _objects(page.raw, _PAGE, DEPTH, visible):
        has_picture = has_picture or picture is not None
        if kind == raw.FPDF_PAGEOBJ_TEXT and (
            not has_picture or raw.FPDFTextObj_GetTextRenderMode(item) == raw.FPDF_TEXTRENDERMODE_INVISIBLE
        ):
            return True
    return False


def _picture(item: Any, kind: int, matrix: Matrix, visible: Box) -> Picture:
    """The visible part of a picture, or of a group."""
    edges = [ctypes.c_float() for _ in range(4)]
    raw.FPDFPageObj_GetBounds(item, *map(ctypes.byref, edges))
    left, bottom, right, top = (edge.value for edge in edges)
    a, b, c, d, e, f = matrix
    corners = [(x * a + y * c + e, x * b + y * d + f) for x in (left, right) for y in (bottom, top)]
    size = raw.FPDFImageObj_GetImageDataRaw(item, None, 0) if kind == raw.FPDF_PAGEOBJ_IMAGE else 0
    return (
        round(max(visible[0], min(x for x, _ in corners))),
        round(max(visible[1], min(y for _, y in corners))),
        round(min(visible[2], max(x for x, _ in corners))),
        round(min(visible[3], max(y for _, y in corners))),
        size,
    )


def _joined(parts: Sequence[Picture]) -> list[Picture]:
    """The pictures: parts that are drawn one after the other and lie beside each other are one."""
    pictures: list[Picture] = []
    for part in parts:
        if pictures and _is_beside(pictures[-1], part):
            before = pictures[-1]
            pictures[-1] = (
                min(before[0], part[0]), min(before[1], part[1]), max(before[2], part[2]),
                max(before[3], part[3]), before[4] + part[4],
            )  # fmt: skip
        else:
            pictures.append(part)
    return pictures


def _is_beside(one: Picture, other: Picture) -> bool:
    left, bottom = max(one[0], other[0]), max(one[1], other[1])
    right, top = min(one[2], other[2]), min(one[3], other[3])
    is_near = right - left >= -DISTANCE and top - bottom >= -DISTANCE
    smaller = min(_area(one[:4]), _area(other[:4]))
    return is_near and _area((left, bottom, right, top)) <= OVERLAP * smaller


def _area(box: Box) -> float:
    left, bottom, right, top = box
    return max(0, right - left) * max(0, top - bottom)
