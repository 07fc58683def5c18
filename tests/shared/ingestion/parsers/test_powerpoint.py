"""Parsing of PowerPoint files: charts, diagrams, tables, numbers of lists, order of shapes, notes."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from lxml import etree
from pptx import Presentation
from pptx.chart.data import BubbleChartData, CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.util import Inches

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.powerpoint import pptx
from tests.shared.ingestion.parsers.office_files import DIAGRAM, NAMESPACES
from tests.shared.sample_files import archive, members, save

BODY, BLANK, COMPARISON = 1, 6, 4
PRESENTATION = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"


def deck(*fills: Callable[[Any], object], layout: int = BLANK) -> bytes:
    """A slide for each function that fills it."""
    made = Presentation()
    for fill in fills:
        fill(made.slides.add_slide(made.slide_layouts[layout]))
    return save(made)


def text_of(data: bytes) -> str:
    return "\n\n".join(text for _, text in pptx(data).parts)


def box(slide: Any, text: str, left: float, top: float, height: float = 1) -> Any:
    shape = slide.shapes.add_textbox(Inches(left), Inches(top), Inches(3), Inches(height))
    shape.text_frame.text = text
    return shape


def add_chart(kind: Any, data: Any) -> Callable[[Any], object]:
    return lambda slide: slide.shapes.add_chart(kind, 0, 0, Inches(5), Inches(4), data)


def test_charts_are_tables_of_categories_and_series():
    shares = CategoryChartData(number_format="0.0%")
    shares.categories = ["Ore", "Grain"]
    shares.add_series("Share", (0.625, None))
    shares.add_series("Change", (-0.05, 0.375))
    points, bubbles = XyChartData(), BubbleChartData()
    points.add_series("Draft").add_data_point(1.5, 20)
    bubbles.add_series("Ships").add_data_point(1, 2, 30)
    levels = CategoryChartData()
    year = levels.add_category("2026")
    year.add_sub_category("in")
    year.add_sub_category("out")
    levels.add_series("Skar", (1, 2))
    rule = "| --- | --- |"
    cases = (
        (XL_CHART_TYPE.COLUMN_CLUSTERED, shares,
         "|  | Share | Change |\n| --- | --- | --- |\n| Ore | 62.5% | -5.0% |\n| Grain |  | 37.5% |"),
        (XL_CHART_TYPE.XY_SCATTER, points, f"|  | Draft |\n{rule}\n| 1.5 | 20 |"),
        (XL_CHART_TYPE.BUBBLE, bubbles, "|  | Ships | Ships (size) |\n| --- | --- | --- |\n| 1 | 2 | 30 |"),
        (XL_CHART_TYPE.BAR_CLUSTERED, levels, f"|  | Skar |\n{rule}\n| 2026 in | 1 |\n| out | 2 |"),
    )  # fmt: skip
    assert tuple((kind, data, text_of(deck(add_chart(kind, data)))) for kind, data, _ in cases) == cases


def labelled_chart(slide: Any) -> None:
    data = CategoryChartData()
    data.categories = ["Ore", "Grain"]
    data.add_series("Share", (1, 2))
    frame = slide.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, Inches(5), Inches(4), data)
    series = frame.chart.plots[0].series[0]
    series.points[1].data_label.text_frame.text = "New quay"
    range_ = '<a:fld {} id="x" type="CELLRANGE"><a:t>[ZELLBEREICH]</a:t></a:fld>'
    label = series.points[0].data_label.text_frame.paragraphs[0]
    label._p.append(etree.fromstring(range_.format(NAMESPACES)))


PIE, COLUMNS, SHARES = XL_CHART_TYPE.PIE, XL_CHART_TYPE.COLUMN_CLUSTERED, XL_CHART_TYPE.COLUMN_STACKED_100
# The format of labels or of the value axis, and values without a format.
FORMATS: list[tuple[Any, str, str, float, str]] = [
    (PIE, "value", "0.00%", 0.075, "7.5%"), (COLUMNS, "axis", "0%", 0.0751234, "7.51234%"),
    # The share of a value, and the values themselves.
    (PIE, "percentage", "0%", 45, "45"), (PIE, "value percentage", "0%", 45, "45"),
    (SHARES, "axis", "0%", 45, "45"), (SHARES, "value", "0%", 0.45, "45%"), (PIE, "name", "0%", 45, "45"),
    (COLUMNS, "percentage axis", "0%", 0.5, "50%"), (COLUMNS, "value axis", "0.0", 0.5, "0.5"),
    # Formats that hide or round values, and a sign without a meaning.
    (PIE, "value", ";;;", 45, "45"), (PIE, "value", "#,##0;-#,##0;;", 25.4, "25.4"),
    (PIE, "value", '[>=0.05]0%;""', 0.03, "3%"), (PIE, "value", "[<=1]0%;0", 45, "45"),
    (PIE, "value", '0"%"', 45, "45"), (COLUMNS, "axis", "0\\%", 45, "45"), (PIE, "value", "0,", 45, "45"),
]  # fmt: skip


def test_a_format_of_labels_or_axes_keeps_the_values(subtests: pytest.Subtests):
    for kind, places, code, share, shown in FORMATS:
        made = Presentation()
        slide = made.slides.add_slide(made.slide_layouts[BLANK])
        data = CategoryChartData()
        data.categories = ["Ore"]
        data.add_series("Share", (share,))
        chart = slide.shapes.add_chart(kind, 0, 0, Inches(5), Inches(4), data).chart
        if "axis" in places:
            ticks = chart.value_axis.tick_labels
            ticks.number_format, ticks.number_format_is_linked = "0%" if "value" in places else code, False
        if places != "axis":
            chart.plots[0].has_data_labels = True
            labels = chart.plots[0].data_labels
            labels.number_format, labels.number_format_is_linked = code, False
            labels.show_value, labels.show_percentage = "value" in places, "percentage" in places
            labels.show_series_name = "name" in places
        with subtests.test(kind=kind, places=places, code=code):
            assert text_of(save(made)).splitlines()[2] == f"| Ore | {shown} |"


def test_the_format_of_values_is_that_of_their_own_axis(subtests: pytest.Subtests):
    """Points have two value axes, and a chart may have axes that a group of series does not have."""
    data = XyChartData()
    data.add_series("Draft").add_data_point(0.5, 20)
    for axes, shown in (((True, False), "0.5 | 20"), ((False, True), "0.5 | 2000%")):
        made = Presentation()
        slide = made.slides.add_slide(made.slide_layouts[BLANK])
        chart = slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, 0, 0, Inches(5), Inches(4), data).chart
        for axis, has_format in zip((chart.category_axis, chart.value_axis), axes, strict=True):
            axis.tick_labels.number_format = "0%" if has_format else "General"
            axis.tick_labels.number_format_is_linked = not has_format
        with subtests.test(shown=shown):
            assert text_of(save(made)).splitlines()[2] == f"| {shown} |"
            for id_ in chart._chartSpace.iter("{*}axId"):
                if id_.getparent() is chart.plots[0]._element:
                    id_.set("val", "7")
            assert text_of(save(made)).splitlines()[2] == "| 0.5 | 20 |"


def german_chart(slide: Any) -> None:
    data = CategoryChartData(number_format="#,##0")
    data.categories = ["Erz"]
    data.add_series("Umsatz", (2180,))
    add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, data)(slide)
    run = box(slide, "Umsatz 2027", 0, 6).text_frame.paragraphs[0].runs[0]
    run._r.get_or_add_rPr().set("lang", "de-DE")


def diagram(slide: Any) -> None:
    content = f"<part {NAMESPACES}>{DIAGRAM}</part>".encode()
    name = PackURI("/ppt/diagrams/data1.xml")
    part = Part(name, "application/xml", slide.part.package, content)
    id_ = slide.part.relate_to(part, "http://x/diagramData")
    with_xml(
        f'<p:graphicFrame><a:graphic><a:graphicData uri="x"><dgm:relIds r:dm="{id_}"/></a:graphicData>'
        "</a:graphic></p:graphicFrame>"
    )(slide)


def two_columns(slide: Any) -> None:
    places = (("right, low", 6, 4), ("right", 6, 1), ("left, low", 0.5, 4), ("left", 0.5, 1))
    for text, left, top in places:
        box(slide, f"{text} {'words ' * 8}".strip(), left, top)


def labels(slide: Any) -> None:
    for text, left, top in (("12 kn", 6, 1), ("Crew", 0.5, 3), ("Speed", 0.5, 1), ("4", 6, 3)):
        box(slide, text, left, top)


PRO = "It is cheap, and the quay stays open for all ships."
CONTRA = "It takes longer, and the crane is too small for it."


def comparison(slide: Any) -> None:
    for placeholder, text in enumerate(("Plans", "For", PRO, "Against", CONTRA)):
        slide.placeholders[placeholder].text = text


def bullets(slide: Any) -> None:
    shape = slide.placeholders[1]
    shape.text_frame.text = "Fees rise\nby 3.5%\nThe quay closes\nSource: the board"
    for number, (level, mark) in enumerate(((0, ""), (1, ""), (0, ""), (0, "<a:buNone/>"))):
        shape.text_frame.paragraphs[number].level = level
        if mark:
            properties = shape.text_frame.paragraphs[number]._p.get_or_add_pPr()
            properties.append(etree.fromstring(f"<a:x {NAMESPACES}>{mark}</a:x>")[0])


def paragraphs(*xml: str) -> Callable[[Any], object]:
    def fill(slide: Any) -> None:
        body = box(slide, "", 1, 1).text_frame._txBody
        body.remove(body.findall(f"{{{_DRAWING}}}p")[0])
        for one in xml:
            body.append(etree.fromstring(f"<a:p {NAMESPACES}>{one}</a:p>"))

    return fill


def in_font(kind: str, text: str) -> str:
    return f'<a:r><a:rPr><a:{kind} typeface="Symbol"/></a:rPr><a:t>{text}</a:t></a:r>'


def alternative(choice: str, fallback: str) -> str:
    return (
        f"<mc:AlternateContent {NAMESPACES} {PRESENTATION}><mc:Choice>{choice}</mc:Choice>"
        f"<mc:Fallback>{fallback}</mc:Fallback></mc:AlternateContent>"
    )


def test_paragraphs_keep_numbers_levels_scripts_and_equations():
    def item(text: str, properties: str) -> str:
        attributes, _, inner = properties.partition(">")
        return f"<a:pPr {attributes}>{inner}</a:pPr><a:r><a:t>{text}</a:t></a:r>"

    third = '><a:buAutoNum type="arabicPeriod" startAt="3"/>'
    letter = 'lvl="1"><a:buAutoNum type="alphaLcParenR"/>'
    raised = '<a:r><a:rPr baseline="30000"/><a:t>{}</a:t></a:r>'
    base, power = (f"<m:r><m:t>{text}</m:t></m:r>" for text in "r2")
    equation = f"<m:oMath><m:sSup><m:e>{base}</m:e><m:sup>{power}</m:sup></m:sSup></m:oMath>"
    cases: list[tuple[tuple[str, ...], str]] = [
        ((item("one", third), item("two", third)), "3. one\n4. two"),
        ((item("one", third), item("a", letter), item("b", letter), item("two", third)),
         "3. one\n  a) a\n  b) b\n4. two"),
        ((item("top", ">"), item("sub", 'lvl="1">')), "top\n- sub"),
        ((item("top", '><a:buChar char="•"/>'), item("sub", 'lvl="1">')), "- top\n- sub"),
        (("<a:r><a:t>Load 10</a:t></a:r>" + raised.format(6) + "<a:r><a:t> N</a:t></a:r>",), "Load 10⁶ N"),
        (('<a:r><a:rPr strike="sngStrike"/><a:t>9 </a:t></a:r><a:r><a:t>7</a:t></a:r>',), "~~9~~ 7"),
        (('<a:r><a:rPr strike="dblStrike"/><a:t>10</a:t></a:r>'
          '<a:r><a:rPr strike="sngStrike" baseline="30000"/><a:t>6</a:t></a:r><a:r><a:t> N</a:t></a:r>',),
         "~~10⁶~~ N"),
        (("<a:r><a:t>Area </a:t></a:r><m:m>" + equation + "</m:m>",), "Area $r^{2}$"),
        # The font for symbols has private characters only, the font for letters has letters too.
        ((f"<a:r><a:t>5 </a:t></a:r>{in_font('latin', 'm')}<a:r><a:t>g</a:t></a:r>",), "5 μg"),
        ((in_font("sym", "x \uf0de y"),), "x ⇒ y"),
        (('<a:r><a:t>Page </a:t></a:r><a:fld type="slidenum"><a:t>3</a:t></a:fld>',), "Page"),
        (("<a:r><a:t>two_x000B_lines</a:t></a:r>",), "two lines"),
        ((alternative(f"<m:m>{equation}</m:m>", "<a:r><a:t>r2</a:t></a:r>"),), "$r^{2}$"),
    ]  # fmt: skip
    assert [(xml, text_of(deck(paragraphs(*xml)))) for xml, _ in cases] == cases


def merged_cells(slide: Any) -> None:
    table = add_table(slide, ("Item", "Cost"), ("Rope", "8"), ("", "9"))
    table.cell(1, 0).merge(table.cell(2, 0))


def column_of_names(slide: Any) -> None:
    table = add_table(slide, ("Ship", "Skiff"), ("Port", "Skar"))
    table.first_row, table.first_col = False, True


def add_table(slide: Any, *rows: tuple[str, str]) -> Any:
    table = slide.shapes.add_table(len(rows), 2, 0, 0, Inches(4), Inches(2)).table
    for row, texts in enumerate(rows):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    return table


def picture(slide: Any, inches: float = 5, properties: str = "<p:nvPr/>") -> None:
    part = Part(PackURI(f"/ppt/media/image{slide.slide_id}.png"), "image/png", slide.part.package, b"")
    size = int(inches * 914_400)
    with_xml(
        f'<p:pic><p:nvPicPr><p:cNvPr id="9" name="P"/><p:cNvPicPr/>{properties}</p:nvPicPr><p:blipFill>'
        f'<a:blip r:embed="{slide.part.relate_to(part, "http://x/image")}"/></p:blipFill><p:spPr><a:xfrm>'
        f'<a:off x="0" y="0"/><a:ext cx="{size}" cy="{size}"/></a:xfrm></p:spPr></p:pic>'
    )(slide)


LOST_CHART = (
    "<p:graphicFrame><a:graphic><a:graphicData uri='x'><c:chart r:id='rId99'/></a:graphicData></a:graphic>"
    "</p:graphicFrame>"
)


def test_what_is_not_read_is_noted():
    words = with_xml(shape("Words"))

    def both(slide: Any) -> None:
        words(slide)
        picture(slide)

    lost = ["1 picture was not read.", "Without text: slides 2."]
    cases: Sequence[tuple[Sequence[Callable[[Any], object]], list[str]]] = [
        ([words], []),
        ([words, words, picture], ["1 picture was not read.", "Without text: slides 3."]),
        ([both], ["1 picture was not read."]),
        ([words, lambda slide: picture(slide, 0.5)], []),
        ([words, with_xml(LOST_CHART)], lost),
        ([words, with_xml("<p:contentPart/>")], lost),
        ([paragraphs("<a:r><a:t>\uf0aa</a:t></a:r>")], ["1 symbol of a special font could not be read."]),
    ]
    assert [(fills, pptx(deck(*fills)).notes) for fills, _ in cases] == cases
    with pytest.raises(UnreadableDocument, match="2 of 3 slides are pictures") as refused:
        pptx(deck(words, picture, picture))
    assert refused.value.code == "no_text"


def with_xml(xml: str) -> Callable[[Any], object]:
    """A slide with an element beside its shapes."""

    def fill(slide: Any) -> None:
        wrapped = etree.fromstring(f"<x {NAMESPACES} {PRESENTATION}>{xml}</x>")
        slide.shapes._spTree.extend(wrapped)

    return fill


def shape(text: str, hidden: str = "0") -> str:
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="7" name="" hidden="{hidden}"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr>'
        f"<p:spPr/><p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


def hidden_title(slide: Any) -> None:
    slide.shapes.title.text = "Rates"
    slide.shapes.title._element.nvSpPr.cNvPr.set("hidden", "1")
    box(slide, "Words", 1, 6)


def symbol(slide: Any) -> None:
    box(slide, "g", 1, 1).text_frame.paragraphs[0].runs[0].font.name = "Wingdings 3"


def hidden_slide(slide: Any) -> None:
    slide.shapes.title.text = "Rates"
    slide._element.set("show", "0")
    slide.notes_slide.notes_text_frame.text = "Until May."
    with_xml(shape("Ask Ann.") + "<p:contentPart/>")(slide.notes_slide)


def picture_for_title(slide: Any) -> None:
    box(slide, "Words", 1, 6)
    picture(slide, properties='<p:nvPr><p:ph type="title"/></p:nvPr>')


WORDS = " words" * 8
ALTERNATIVES = with_xml(alternative(shape("New."), shape("Old.")) + shape("Hidden.", "1"))
SLIDES: list[tuple[Callable[[Any], object], int, str]] = [
    (labelled_chart, BLANK, "Labels: New quay\n\n|  | Share |\n| --- | --- |\n| Ore | 1 |\n| Grain | 2 |"),
    (german_chart, BLANK, "|  | Umsatz |\n| --- | --- |\n| Erz | 2.180 |\n\nUmsatz 2027"),
    (diagram, BLANK, "- Harbour master"),
    # Shapes are read in the order of their places.
    (two_columns, BLANK, f"left{WORDS}\n\nleft, low{WORDS}\n\nright{WORDS}\n\nright, low{WORDS}"),
    (labels, BLANK, "Speed\n\n12 kn\n\nCrew\n\n4"),
    (comparison, COMPARISON, f"# Plans\n\nFor\n\n- {PRO}\n\nAgainst\n\n- {CONTRA}"),
    # Paragraphs have the bullets of their placeholder, merged cells repeat their value.
    (bullets, BODY, "- Fees rise\n  - by 3.5%\n- The quay closes\nSource: the board"),
    (merged_cells, BLANK, "| Item | Cost |\n| --- | --- |\n| Rope | 8 |\n| Rope | 9 |"),
    (column_of_names, BLANK, "|  |  |\n| --- | --- |\n| Ship | Skiff |\n| Port | Skar |"),
    # Of two alternatives one is read, and no hidden shape.
    (ALTERNATIVES, BLANK, "New."),
    (hidden_title, BODY, "Words"),
    # A letter of a symbol font without a table is unknown.
    (symbol, BLANK, "\ufffd"),
    # A hidden slide says so, and all texts beside a slide are notes.
    (hidden_slide, BODY, "# Rates (hidden slide)\n\nNotes: Ask Ann.\n\nNotes: Until May."),
    (picture_for_title, BLANK, "Words"),
]


def test_a_slide_is_its_visible_shapes_in_order():
    assert [(fill, layout, text_of(deck(fill, layout=layout))) for fill, layout, _ in SLIDES] == SLIDES


def test_slide_shows_are_read_and_slides_with_entities_refused():
    files: dict[str, Any] = {**members(deck(with_xml(shape("Words"))))}
    kinds = files["[Content_Types].xml"]
    show = kinds.replace(b"presentationml.presentation.main", b"presentationml.slideshow.main")
    assert text_of(archive({**files, "[Content_Types].xml": show})) == "Words"
    slide = "ppt/slides/slide1.xml"
    content = files[slide].partition(b"?>")[2].replace(b"Words", b"&words;")
    declared = b'<!DOCTYPE x [<!ENTITY words "Words">]>' + content
    with pytest.raises(UnreadableDocument, match="document type declaration"):
        pptx(archive({**files, slide: declared}))
