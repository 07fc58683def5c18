"""Pictures of a PDF's page that are large enough to be content."""

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

from pypdfium2 import raw

# The least share of the page: a logo, a signature or a line has less. From the second share on, a picture is
# the scanned page, or its background.
CONTENT, WHOLE_PAGE = 0.03, 0.8
# A page with fewer lines and shapes is blank.
DRAWING = 10
# Pictures lie within groups; files nest them without end.
DEPTH = 3

# The box of a picture in points, and the bytes that it has in the file.
Picture = tuple[int, int, int, int, int]


class Pictures(NamedTuple):
    """`is_scan`: whether a picture covers the page. `is_blank`: whether nothing is drawn on the page."""

    content: frozenset[Picture]
    is_scan: bool
    is_blank: bool


def pictures_of(page: Any) -> Pictures:
    area = page.get_width() * page.get_height()
    pictures: list[Picture] = []
    others = 0
    for item, kind in _objects(page.raw):
        if kind == raw.FPDF_PAGEOBJ_IMAGE or (kind == raw.FPDF_PAGEOBJ_FORM and _has_picture(item, DEPTH)):
            pictures.append(_picture(item, kind))
        elif kind != raw.FPDF_PAGEOBJ_TEXT:
            others += 1
    shares = [(picture, _area(picture) / area if area else 0.0) for picture in pictures]
    return Pictures(
        frozenset(picture for picture, share in shares if CONTENT <= share < WHOLE_PAGE),
        any(share >= WHOLE_PAGE for _, share in shares),
        others < DRAWING and all(share < CONTENT for _, share in shares),
    )


def _objects(page: Any) -> Iterator[tuple[Any, int]]:
    for number in range(raw.FPDFPage_CountObjects(page)):
        item = raw.FPDFPage_GetObject(page, number)
        yield item, raw.FPDFPageObj_GetType(item)


def _has_picture(group: Any, depth: int) -> bool:
    for number in range(raw.FPDFFormObj_CountObjects(group) if depth else 0):
        item = raw.FPDFFormObj_GetObject(group, number)
        kind = raw.FPDFPageObj_GetType(item)
        if kind == raw.FPDF_PAGEOBJ_IMAGE or (
            kind == raw.FPDF_PAGEOBJ_FORM and _has_picture(item, depth - 1)
        ):
            return True
    return False


def _picture(item: Any, kind: int) -> Picture:
    box = [ctypes.c_float() for _ in range(4)]
    raw.FPDFPageObj_GetBounds(item, *map(ctypes.byref, box))
    left, bottom, right, top = (round(edge.value) for edge in box)
    size = raw.FPDFImageObj_GetImageDataRaw(item, None, 0) if kind == raw.FPDF_PAGEOBJ_IMAGE else 0
    return left, bottom, right, top, size


def _area(picture: Picture) -> float:
    left, bottom, right, top, _ = picture
    return max(0, right - left) * max(0, top - bottom)
