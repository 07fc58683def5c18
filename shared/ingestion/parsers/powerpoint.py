"""Parser of PowerPoint files."""

import io
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.html_xml import tree
from shared.ingestion.parsers.markdown_table import titled_table
from shared.ingestion.parsers.number_format import Separators
from shared.ingestion.parsers.number_separators import separators_of_package
from shared.ingestion.parsers.office_drawings import (
    alternative_text,
    chart,
    diagram,
    drawn_paragraphs,
    has_bullet,
)
from shared.ingestion.parsers.office_xml import Package, attribute, child, local, prepared
from shared.ingestion.parsers.parsed_file import ParsedFile, counted, open_archive
from shared.ingestion.parsers.symbol_fonts import unread_symbols
from shared.library_patches.pptx import replace_missing_pillow
from shared.text.normalize import one_line

replace_missing_pillow()
from pptx.exc import PythonPptxError  # noqa: E402
from pptx.package import Package as PowerPointPackage  # noqa: E402

# Smaller pictures are logos and icons: a share of the slide's area.
MIN_PICTURE = 0.04
# Shapes beside each other are columns if one has more text than a label.
LABEL_CHARACTERS = 40
# The text of these placeholders is the slide's number or repeats on each slide or page of notes.
_NUMBER, _REPEATED, _HEADER = 13, {15, 16}, 14
# These have the bullets of the master: body, subtitle, and content.
_BODIES = {2, 4, 6, 7}


@dataclass(slots=True)
class _Unread:
    """Counts of parts that are not read. `separators`: of the numbers of charts."""

    separators: Separators
    pictures: int = 0
    media: int = 0
    objects: int = 0
    # Numbers of slides that have pictures only.
    slides: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A shape's text, and its left, top, right and bottom edge."""

    text: str
    edges: tuple[int, int, int, int]


def pptx(data: bytes) -> ParsedFile:
    """PowerPoint: slides by the position of their shapes; hidden slides, marked `(hidden slide)`; tables,
    charts and diagrams; equations; notes, marked `Notes:`; comments, marked `Comment:`

    Noted: pictures of at least 4 % of a slide, also in shapes; handwriting; charts without stored data; sound
    and video; embedded files; symbols of special fonts
    Not read: animations, slide numbers, hidden shapes, text of layouts and masters"""
    with open_archive(data) as archive:
        package = Package(archive)
        title, unread = package.title(), _Unread(separators_of_package(package))
    # Presentations that open as a show included, which pptx.Presentation refuses.
    presentation = PowerPointPackage.open(io.BytesIO(data)).main_document_part.presentation
    area = (presentation.slide_width or 1) * (presentation.slide_height or 1)
    parts: list[tuple[int | None, str]] = []
    repeated = set[str]()
    for number, slide in enumerate(presentation.slides, 1):
        before = unread.pictures
        texts = list(_of_slide(slide, unread, repeated, area))
        if not texts and unread.pictures > before:
            unread.slides.append(number)
        parts.append((number, "\n\n".join(texts)))
    if len(unread.slides) * 2 > len(parts):
        raise UnreadableDocument(
            f"{len(unread.slides)} of {len(parts)} slides are pictures. Upload a file with text.",
            code="no_text",
        )
    return ParsedFile(parts, title, notes=[*_notes(unread), *unread_symbols(*(text for _, text in parts))])


def _notes(unread: _Unread) -> list[str]:
    return [
        *counted(unread.pictures, "picture was", "pictures were", "not read."),
        *([f"Without text: slides {', '.join(map(str, unread.slides[:20]))}."] if unread.slides else []),
        *counted(unread.media, "sound or video was", "sounds or videos were", "not read."),
        *counted(unread.objects, "embedded file was", "embedded files were", "not read."),
    ]


def _of_slide(slide: Any, unread: _Unread, repeated: set[str], area: int) -> Iterator[str]:
    element = _prepared_slide(slide, unread)
    heading = slide.shapes.title
    title = "" if heading is None or _is_hidden(heading) else one_line(" ".join(_paragraphs(heading)))
    shapes = [shape for shape in slide.shapes if not title or shape != heading]
    texts = _in_reading_order(_placed(shapes, slide, unread, repeated, area))
    texts += [*_speaker_notes(slide, unread, area), *_comments(slide)]
    hidden = "(hidden slide)" if element.get("show") in ("0", "false") and (title or texts) else ""
    if title or hidden:
        yield " ".join(filter(None, ["#", title, hidden]))
    yield from texts


def _prepared_slide(slide: Any, unread: _Unread) -> Any:
    """The element of a slide or of its notes."""
    element = prepared(slide.part._element)
    unread.pictures += sum(1 for _ in element.iter("{*}contentPart", "{*}model3d"))
    # python-pptx has no class for handwriting.
    etree.strip_elements(element, "{*}contentPart", with_tail=False)
    return element


def _speaker_notes(slide: Any, unread: _Unread, area: int) -> Iterator[str]:
    """The notes of a slide, and the shapes beside them."""
    if not slide.has_notes_slide:
        return
    notes = slide.notes_slide
    _prepared_slide(notes, unread)
    shapes = [shape for shape in notes.shapes if _placeholder(shape) not in (_NUMBER, _HEADER, *_REPEATED)]
    for text in _in_reading_order(_placed(shapes, notes, unread, set(), area)):
        yield f"Notes: {text}"


def _placed(
    shapes: Iterable[Any], slide: Any, unread: _Unread, repeated: set[str], area: int
) -> Iterator[_Placed]:
    for shape in shapes:
        if _is_hidden(shape):
            continue
        left, top, width, height = _place(shape)
        texts = list(filter(None, _of_shape(shape, slide, unread, repeated, area, width * height)))
        if texts:
            yield _Placed("\n\n".join(texts), (left, top, left + width, top + height))


def _is_hidden(shape: Any) -> bool:
    return attribute(next(shape._element.iter("{*}cNvPr"), None), "hidden") in ("1", "true")


def _place(shape: Any) -> tuple[int, int, int, int]:
    """Left, top, width and height; zeros where the file has none."""
    with suppress(PythonPptxError, ValueError):
        return shape.left or 0, shape.top or 0, shape.width or 0, shape.height or 0
    return 0, 0, 0, 0


def _of_shape(
    shape: Any, slide: Any, unread: _Unread, repeated: set[str], area: int, size: int
) -> Iterator[str]:
    element = shape._element
    placeholder = _placeholder(shape)
    if hasattr(shape, "shapes"):
        yield from _in_reading_order(_placed(shape.shapes, slide, unread, repeated, area))
    elif getattr(shape, "has_table", False):
        yield _table(shape.table)
    elif local(element) == "graphicFrame":
        yield from _of_frame(element, slide, unread)
    elif local(element) == "pic":
        has_media = any(local(inner) in ("videoFile", "audioFile") for inner in element.iter())
        unread.media += has_media
        unread.pictures += not has_media and size >= area * MIN_PICTURE
        yield alternative_text(element)
    elif placeholder == _NUMBER:
        return
    elif text := "\n".join(_paragraphs(shape)):
        if placeholder not in _REPEATED or text not in repeated:
            yield text
        if placeholder in _REPEATED:
            repeated.add(text)
    elif child(child(element, "spPr"), "blipFill") is not None:
        unread.pictures += size >= area * MIN_PICTURE


def _of_frame(element: Any, slide: Any, unread: _Unread) -> Iterator[str]:
    """A diagram, a chart of the newer kinds, or an embedded file."""
    for inner in element.iter():
        name = local(inner)
        if name in ("relIds", "chart"):
            text = ""
            with suppress(KeyError):
                part = slide.part.related_part(attribute(inner, "dm" if name == "relIds" else "id"))
                root = prepared(tree(part.blob))
                text = diagram(root) if name == "relIds" else chart(root, unread.separators)
            unread.pictures += name == "chart" and not text
            yield text
        elif name == "oleObj":
            unread.objects += 1
            return


def _paragraphs(shape: Any) -> list[str]:
    if not getattr(shape, "has_text_frame", False):
        return []
    styles = list(_list_styles(shape))

    def inherits_bullet(level: int) -> bool:
        stated = (has_bullet(child(style, f"lvl{level + 1}pPr")) for style in styles)
        return next((is_bullet for is_bullet in stated if is_bullet is not None), False)

    return list(drawn_paragraphs(shape.text_frame._txBody, inherits_bullet))


def _list_styles(shape: Any) -> Iterator[Any]:
    """The styles of the levels of a shape's paragraphs: its own, those of its layout and of the master."""
    layer = shape
    while layer is not None:
        yield child(child(layer._element, "txBody"), "lstStyle")
        layer = getattr(layer, "_base_placeholder", None)
    master = getattr(getattr(shape.part, "slide_layout", None), "slide_master", None)
    if master is not None and _placeholder(shape) in _BODIES:
        yield child(child(master._element, "txStyles"), "bodyStyle")


def _placeholder(shape: Any) -> int | None:
    """The type of a placeholder."""
    return shape.placeholder_format.type if getattr(shape, "is_placeholder", False) else None


def _table(table: Any) -> str:
    """Merged cells repeat their value."""
    rows: list[list[str]] = []
    grouped = set()
    for row_number, row in enumerate(table.rows):
        texts: list[str] = []
        for column, cell in enumerate(row.cells):
            properties = cell._tc
            if properties.hMerge and texts:
                texts.append(texts[-1])
                grouped.add(row_number)
            elif properties.vMerge and rows:
                texts.append(rows[-1][column])
            else:
                texts.append(" ".join(drawn_paragraphs(properties)))
        rows.append(texts)
    is_named = True if table.first_row else False if table.first_col else None
    return titled_table(rows, grouped, is_named=is_named)


def _comments(slide: Any) -> Iterator[str]:
    for relationship in slide.part.rels.values():
        if relationship.reltype.endswith("/comments") and not relationship.is_external:
            root = prepared(tree(relationship.target_part.blob))
            for comment in root.iter("{*}cm", "{*}reply"):
                texts = [part.text or "" for part in comment if local(part) == "text"]
                texts += [" ".join(drawn_paragraphs(part)) for part in comment if local(part) == "txBody"]
                if text := one_line(" ".join(texts)):
                    yield f"Comment: {text}"


def _in_reading_order(shapes: Iterable[_Placed]) -> list[str]:
    """From top to bottom; columns of texts from left to right; else as they follow each other in the file."""
    return [shape.text for shape in _ordered(list(shapes))]


def _ordered(shapes: list[_Placed]) -> list[_Placed]:
    if len(shapes) < 2:
        return shapes
    columns, rows = _divided(shapes, 0), _divided(shapes, 1)
    has_texts = len(columns) > 1 and all(
        any(len(shape.text) > LABEL_CHARACTERS for shape in column) for column in columns
    )
    groups = columns if has_texts or len(rows) == 1 else rows
    if len(groups) == 1:
        return sorted(shapes, key=lambda shape: (shape.edges[1], shape.edges[0]))
    return [shape for group in groups for shape in _ordered(group)]


def _divided(shapes: list[_Placed], axis: int) -> list[list[_Placed]]:
    """The shapes in groups with a gap between them, along an axis: 0 across, 1 down. Edges may overlap by a
    tenth of the smaller shape."""
    groups: list[list[_Placed]] = []
    end = 0.0
    for shape in sorted(shapes, key=lambda shape: shape.edges[axis]):
        start, stop = shape.edges[axis], shape.edges[axis + 2]
        tolerance = (stop - start) / 10
        if not groups or start >= end - tolerance:
            groups.append([shape])
            end = stop
        else:
            groups[-1].append(shape)
            end = max(end, stop)
    return groups
