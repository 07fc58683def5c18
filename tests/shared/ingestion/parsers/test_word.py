"""Parsing of Word files: numbers as Word shows them, all parts, tables, scripts, tracked changes."""

from typing import Any

import pytest

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.word import docx
from tests.shared.ingestion.parsers.office_files import (
    CHART,
    CHART_TABLE,
    DIAGRAM,
    cell,
    paragraph,
    relationships,
    run,
    table,
    word_file,
)
from tests.shared.sample_files import archive, members

Parts = dict[str, tuple[str, str]]
SUP, SUB = '<w:vertAlign w:val="superscript"/>', '<w:vertAlign w:val="subscript"/>'


def text_of(body: str, parts: Parts | None = None) -> str:
    ((_, text),) = docx(word_file(body, parts)).parts
    return text


# -- numbers ------------------------------------------------------------------------------------------


def numbered(text: str, level: int = 0, list_id: int = 1) -> str:
    return paragraph(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>')


def levels(*texts: tuple[str, str], more: str = "") -> str:
    """A definition of (format, text) for each level, and the list 1 of it."""
    inner = "".join(
        f'<w:lvl w:ilvl="{index}"><w:start w:val="1"/><w:numFmt w:val="{format_}"/>'
        f'{"<w:isLgl/>" if text.startswith("!") else ""}<w:lvlText w:val="{text.lstrip("!")}"/>'
        f'<w:pStyle w:val="H{index}"/></w:lvl>'
        for index, (format_, text) in enumerate(texts)
    )
    list_ = '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    return f'<w:abstractNum w:abstractNumId="0">{inner}</w:abstractNum>{list_}{more}'


RESTARTED = (
    '<w:num w:numId="2"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="9"/>'
    "</w:lvlOverride></w:num>"
)
DECIMAL = (("decimal", "%1."), ("decimal", "%1.%2"), ("decimal", "%1.%2.%3"))
NUMBERS: list[tuple[str, str, str]] = [
    (levels(*DECIMAL), "0a 1b 1c 2d 0e 1f", "1. a\n1.1 b\n1.2 c\n1.2.1 d\n2. e\n2.1 f"),
    (levels(("decimal", "§ %1"), ("decimal", "(%2)")), "0a 1b 1c 0d 1e", "§ 1 a\n(1) b\n(2) c\n§ 2 d\n(1) e"),
    (levels(("upperRoman", "%1."), ("lowerLetter", "%2)")), "0a 1b 1c 0d", "I. a\na) b\nb) c\nII. d"),
    (levels(("upperRoman", "Article %1"), ("decimalZero", "!%1.%2")), "0a 1b 1c",
     "Article I a\n1.01 b\n1.02 c"),
    (levels(("cardinalText", "ARTICLE %1"), ("ordinal", "%2")), "0a 1b", "ARTICLE One a\n1st b"),
    (levels(("japaneseCounting", "第%1条")), "0a " * 11 + "0b",
     "\n".join(f"第{number}条 {'b' if number == '十二' else 'a'}"
               for number in [*"一二三四五六七八九十", "十一", "十二"])),
    # A level without one above counts as its first.
    (levels(*DECIMAL), "1a 1b 0c 1d", "1.1 a\n1.2 b\n1. c\n1.1 d"),
    # Lists of one definition continue each other; a list may begin at a number of its own.
    (levels(*DECIMAL, more=RESTARTED), "0a 0b/2 0c/2 0d/2", "1. a\n9. b\n10. c\n11. d"),
    (levels(("bullet", "o"), ("bullet", "o")), "0a 1b 0c", "- a\n  - b\n- c"),
    (levels(*DECIMAL), "0a 0b/0 0c", "1. a\n\nb\n\n2. c"),
    (levels(("lowerLetter", "%1)")), "0a " * 26 + "0b",
     "\n".join([*(f"{chr(97 + at)}) a" for at in range(26)), "aa) b"])),
]  # fmt: skip


def test_automatic_numbers_are_those_that_word_shows(subtests: pytest.Subtests):
    for definition, items, text in NUMBERS:
        body = "".join(
            numbered(item[1], int(item[0]), int(item.partition("/")[2] or 1)) for item in items.split()
        )
        with subtests.test(text=text):
            assert text_of(body, {"numbering": ("numbering", definition)}) == text


def test_headings_have_the_numbers_of_their_styles():
    styles = "".join(
        f'<w:style w:styleId="H{index}"><w:name w:val="heading {index + 1}"/><w:pPr><w:numPr>'
        '<w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
        for index in range(3)
    )
    body = "".join(
        paragraph(text, f'<w:pStyle w:val="H{at}"/>') for at, text in enumerate(("Scope", "Terms", "Yard"))
    )
    parts: Parts = {"numbering": ("numbering", levels(*DECIMAL)), "styles": ("styles", styles)}
    assert (
        text_of(body + paragraph("Text."), parts) == "# 1. Scope\n\n## 1.1 Terms\n\n### 1.1.1 Yard\n\nText."
    )


def test_bold_numbered_lines_above_text_are_headings():
    bold = "<w:b/>"
    styles = '<w:style w:styleId="S"><w:name w:val="clause"/><w:rPr><w:b/></w:rPr></w:style>'
    parts: Parts = {"numbering": ("numbering", levels(*DECIMAL)), "styles": ("styles", styles)}

    def clause(text: str, level: int = 0) -> str:
        return numbered(run(text, bold), level)

    cases = (
        (clause("Fees") + numbered("Ships pay.", 1) + clause("Term") + paragraph("One year."),
         "## 1. Fees\n\n1.1 Ships pay.\n\n## 2. Term\n\nOne year."),
        (clause("Fees") + clause("Yachts", 1) + paragraph("None."), "## 1. Fees\n\n### 1.1 Yachts\n\nNone."),
        (paragraph(run("4.2 Fees", bold)) + paragraph("Ships pay."), "### 4.2 Fees\n\nShips pay."),
        (paragraph("§ 4 Fees", '<w:pStyle w:val="S"/>') + paragraph("x"), "## § 4 Fees\n\nx"),
        # Items of a list, a sentence, a bold word, a line without a number.
        (clause("Gloves") + clause("Boots"), "1. Gloves\n2. Boots"),
        (clause("Gloves") + clause("Boots") + paragraph("x"), "1. Gloves\n2. Boots\n\nx"),
        # Dates, an amount.
        (paragraph(run("12. Mai 2026", bold)) + paragraph("x"), "12. Mai 2026\n\nx"),
        (paragraph(run("3. Dec", bold)) + paragraph("x"), "3. Dec\n\nx"),
        (paragraph(run("3. May ships moor", bold)) + paragraph("x"), "## 3. May ships moor\n\nx"),
        (paragraph(run("100 EUR per berth", bold)) + paragraph("x"), "100 EUR per berth\n\nx"),
        (clause("Ships pay.") + paragraph("x"), "1. Ships pay.\n\nx"),
        (numbered(run("Fees", bold) + run(" of ships")) + paragraph("x"), "1. Fees of ships\n\nx"),
        (paragraph(run("Fees", bold)) + paragraph("x"), "Fees\n\nx"),
        (paragraph(run("Fees", '<w:b w:val="0"/>'), '<w:pStyle w:val="S"/>') + paragraph("x"), "Fees\n\nx"),
    )  # fmt: skip
    assert tuple((body, text_of(body, parts)) for body, _ in cases) == cases
    plain: Parts = {"numbering": ("numbering", levels(("decimal", "%1")))}
    assert text_of(clause("Scope") + paragraph("x"), plain) == "## 1 Scope\n\nx"


def test_a_sentence_in_the_style_of_a_heading_is_text():
    heading = '<w:pStyle w:val="H"/>'
    styles = '<w:style w:styleId="H"><w:name w:val="heading 2"/></w:style>'
    clause = "9.2. Each party may terminate this agreement at any time by a notice of 45 days."
    body = paragraph("9. Term.", heading) + paragraph(clause, heading) + paragraph("x" * 250, heading)
    assert text_of(body, {"styles": ("styles", styles)}) == f"## 9. Term.\n\n{clause}\n\n{'x' * 250}"
    long = "Agreement between Skar Trading of Oster and the Moss Shipping Company of Kiel Ltd."
    assert text_of(paragraph(long, heading), {"styles": ("styles", styles)}) == f"## {long}"


# -- parts --------------------------------------------------------------------------------------------

BEGIN, END = '<w:r><w:fldChar w:fldCharType="begin"{}/></w:r>', '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
SEPARATE = '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
CODE = "<w:r><w:instrText>{}</w:instrText></w:r>"
NOTE = '<w:r><w:footnoteReference w:id="2"/></w:r>'
SYMBOL = '<w:rFonts w:ascii="Symbol" w:hAnsi="Symbol"/>'
BOX = (
    '<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:default w:val="{}"/></w:checkBox>'
    "</w:ffData></w:fldChar></w:r>"
)
FRAME = (
    "<w:r><mc:AlternateContent><mc:Choice>{0}</mc:Choice><mc:Fallback>{0}</mc:Fallback>"
    "</mc:AlternateContent></w:r>"
)
TEXT_BOX = FRAME.format(f"<w:drawing><w:txbxContent>{paragraph('Boxed.')}</w:txbxContent></w:drawing>")
FRACTION = (
    "<m:oMath><m:f><m:num><m:r><m:t>d</m:t></m:r></m:num><m:den><m:r><m:t>t</m:t></m:r></m:den></m:f>"
    "</m:oMath>"
)
DESCRIBED = '<w:r><w:drawing><w:docPr descr="{}"/><a:blip r:embed="x"/></w:drawing></w:r>'
REFERENCE = f'<w:fldSimple w:instr="REF x">{run("Clause 9")}</w:fldSimple>'
PARTS: list[tuple[str, Parts, str]] = [
    (paragraph(run("Waived") + '<w:r><w:footnoteReference w:id="2"/></w:r>' + run(" for two")
     + '<w:r><w:endnoteReference w:id="5"/></w:r>' + run(".")) + paragraph("Next."),
     {"footnotes": ("footnotes", f'<w:footnote w:id="2">{paragraph("Not in May.")}</w:footnote>'),
     "endnotes": ("endnotes", f'<w:endnote w:id="5">{paragraph("Minutes 14.")}</w:endnote>')},
     "Waived¹ for two^i.\n\n¹ Not in May.\n\n^i Minutes 14.\n\nNext."),
    (paragraph(run("Rent") + '<w:r><w:commentReference w:id="0"/></w:r>'),
     {"comments": ("comments", f'<w:comment w:id="0" w:author="Ann">{paragraph("Too high?")}</w:comment>')},
     "Rent\n\nComment by Ann: Too high?"),
    (paragraph(run("Before.") + TEXT_BOX) + paragraph("After."), {}, "Before.\n\nBoxed.\n\nAfter."),
    (paragraph(run("Season") + '<w:r><w:drawing><c:chart r:id="r_c1"/></w:drawing></w:r>'),
     {"c1": ("chart", CHART)}, f"Season\n\n{CHART_TABLE}"),
    (paragraph('<w:r><w:drawing><c:chart r:id="r_charts/chart1"/></w:drawing></w:r>'),
     {"charts/chart1": ("chart", f'<c:lang val="fr-FR"/>{CHART}')},
     CHART_TABLE.replace("73.1", "73,1").replace("50.0", "50,0")),
    # Libraries state English in each chart.
    (paragraph(run("Fang", '<w:lang w:val="sr-Latn-RS"/>')
     + '<w:r><w:drawing><c:chart r:id="r_charts/chart1"/></w:drawing></w:r>'),
     {"charts/chart1": ("chart", f'<c:lang val="en-US"/>{CHART}<c:lang val="en-US"/>')},
     "Fang\n\n" + CHART_TABLE.replace("73.1", "73,1").replace("50.0", "50,0")),
    (paragraph('<w:r><w:drawing><dgm:relIds r:dm="r_d1"/></w:drawing></w:r>'),
     {"d1": ("diagramData", DIAGRAM)}, "- Harbour master"),
    (paragraph(run("Speed ") + FRACTION + run(" m")), {}, r"Speed $\frac{d}{t}$ m"),
    (paragraph(run("Rent ") + f"<w:del>{run('900')}</w:del><w:ins>{run('950')}</w:ins>"), {}, "Rent 950"),
    (paragraph(f"<w:moveFrom>{run('here')}</w:moveFrom>")
     + paragraph(f"<w:moveTo>{run('there')}</w:moveTo>"), {}, "there"),
    (paragraph("One ", "<w:rPr><w:del/></w:rPr>") + paragraph("line."), {}, "One line."),
    (paragraph("".join(map(DESCRIBED.format, ("Quay from the south", "quay.png", "Picture 1")))), {},
     "Picture: Quay from the south"),
    (paragraph(run("9", "<w:strike/>") + run(" 7 m") + run("3", SUP)), {}, "~~9~~ 7 m³"),
    (paragraph(run("10", "<w:dstrike/>") + run("6", f"<w:strike/>{SUP}") + run(" N")), {}, "~~10⁶~~ N"),
    (paragraph(run("m") + run("3", f"<w:strike/>{SUP}") + run("2", SUP)), {}, "m~~³~~²"),
    # By a style of the characters, and by that of the paragraph.
    (paragraph(run("9 ", '<w:rStyle w:val="S"/>') + run("7"))
     + paragraph(run("8") + run(" 6", '<w:dstrike w:val="0"/>'), '<w:pStyle w:val="P"/>'),
     {"styles": ("styles", '<w:style w:styleId="S"><w:rPr><w:strike/></w:rPr></w:style>'
     '<w:style w:styleId="P"><w:rPr><w:dstrike/></w:rPr></w:style>')}, "~~9~~ 7\n\n~~8~~ 6"),
    (paragraph("O", '<w:framePr w:dropCap="drop"/>') + paragraph("nce."), {}, "Once."),
    (f"<w:sdt><w:sdtContent>{paragraph('Chosen.')}</w:sdtContent></w:sdt>"
     + paragraph(f"{REFERENCE}<w:hyperlink>{run(' linked')}</w:hyperlink>"), {},
     "Chosen.\n\nClause 9 linked"),
    (paragraph(BEGIN.format("") + "<w:r><w:instrText>DATE</w:instrText></w:r>" + run("3 May") + END), {},
     "3 May"),
    (paragraph(BOX.format(1) + run(" insured ") + BOX.format(0) + run(" hired")), {}, "☒ insured ☐ hired"),
    (paragraph('<w:r><w:sym w:font="Symbol" w:char="F061"/><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>'),
     {}, "α☑"),
    (paragraph(run("5 ") + run("m", SYMBOL) + run("g") + run("\uf06d", SYMBOL)
     + run("p", '<w:rStyle w:val="S"/>')), {"styles": ("styles",
     f'<w:style w:styleId="S"><w:rPr>{SYMBOL}</w:rPr></w:style>')}, "5 μgμπ"),
    # A symbol that is named by a font for text; a tick of another font than Wingdings.
    (paragraph('<w:r><w:sym w:font="Arial" w:char="2192"/><w:sym w:font="Wingdings 2" w:char="F050"/></w:r>'),
     {}, "→✓"),
    (paragraph("<w:r><mc:AlternateContent><mc:Choice><w:symEx w:font='x' w:char='1F60A'/></mc:Choice>"
     "<mc:Fallback><w:t>:-)</w:t></mc:Fallback></mc:AlternateContent></w:r>"), {}, "😊"),
    (paragraph('<w:r><w:pict><v:textpath string="DRAFT"/></w:pict></w:r>'), {}, "DRAFT"),
    # A field in the condition of a field.
    (paragraph(BEGIN.format("") + CODE.format("IF") + BEGIN.format("") + CODE.format("MERGEFIELD") + SEPARATE
     + run("vip") + END + CODE.format('= "vip"') + SEPARATE + run("Dear member") + END), {}, "Dear member"),
    (paragraph(run("shown") + run("hidden", '<w:rStyle w:val="H"/>')
     + run("!", '<w:rStyle w:val="H"/><w:vanish w:val="0"/>')),
     {"styles": ("styles", '<w:style w:styleId="H"><w:rPr><w:vanish/></w:rPr></w:style>')}, "shown!"),
    (paragraph(BEGIN.format("") + CODE.format('SYMBOL 109 \\f "Symbol" \\s 10') + END + run("g")), {}, "μg"),
    # A note that refers to itself.
    (paragraph(run("Waived") + NOTE), {"footnotes": ("footnotes",
     f'<w:footnote w:id="2">{paragraph(run("See") + NOTE)}</w:footnote>')}, "Waived¹\n\n¹ See¹"),
    (paragraph(run("a") + "<w:r><w:tab/><w:noBreakHyphen/><w:br/></w:r>" + run("b")), {}, "a -\nb"),
    (paragraph(run("shown") + run("hidden", "<w:vanish/>")), {}, "shown"),
]  # fmt: skip


def test_all_parts_of_a_document_are_read():
    assert [(body, parts, text_of(body, parts)) for body, parts, _ in PARTS] == PARTS


def test_headers_and_footers_are_read_once():
    parts: Parts = {
        "h1": ("header", paragraph("Lessor Alden")), "h2": ("header", paragraph("Lease L-2207")),
        "f1": ("footer", paragraph("Page 1 of 3")), "f2": ("footer", paragraph("VAT DE81")),
    }  # fmt: skip
    references = (
        '<w:headerReference w:type="first" r:id="r_h1"/><w:headerReference w:type="default" r:id="r_h2"/>'
        '<w:footerReference w:type="first" r:id="r_f1"/><w:footerReference w:type="default" r:id="r_f2"/>'
    )
    titled, plain = (f"<w:sectPr>{references}{switch}</w:sectPr>" for switch in ("<w:titlePg/>", ""))
    year: Parts = {"f1": ("footer", paragraph("2024"))}
    cases = (
        (paragraph("Body.", titled) + titled, parts, "Lessor Alden\n\nLease L-2207\n\nBody.\n\nVAT DE81"),
        (paragraph("Body.", plain) + plain, parts, "Lease L-2207\n\nBody.\n\nVAT DE81"),
        (paragraph("Body.") + '<w:sectPr><w:footerReference w:type="default" r:id="r_f1"/></w:sectPr>', year,
         "Body.\n\n2024"),
        # A section without headers has those of the section before.
        (paragraph("Body.", plain) + "<w:sectPr><w:titlePg/></w:sectPr>", parts,
         "Lease L-2207\n\nLessor Alden\n\nBody.\n\nVAT DE81"),
    )  # fmt: skip
    assert tuple((body, own, text_of(body, own)) for body, own, _ in cases) == cases


# -- characters and tables ----------------------------------------------------------------------------


def test_superscripts_and_subscripts_are_characters_or_marked():
    cases: list[tuple[str, str]] = [
        (run("3 × 10") + run("6", SUP) + run(" in m") + run("3", SUP), "3 × 10⁶ in m³"),
        (run("Al") + run("2", SUB) + run("O") + run("3", SUB), "Al₂O₃"),
        (run("10") + run("1", SUP) + run("2", SUP) + run(" l"), "10¹² l"),
        (run("10") + run("-9", SUP) + run(" s") + run("−1", SUP), "10⁻⁹ s⁻¹"),
        (run("84") + run("4", SUP) + run(" percent"), "84⁴ percent"),
        (run("12 m") + run("2", '<w:position w:val="6"/>'), "12 m²"),
        (run("e") + run("-kt", SUP), "e^(-kt)"),
        (run("V") + run("max", SUB), "V_max"),
        (run("m") + run("3", '<w:rStyle w:val="Raised"/>'), "m³"),
        (run("the 4") + run("th", SUP), "the 4th"),
    ]
    styles = f'<w:style w:styleId="Raised"><w:rPr>{SUP}</w:rPr></w:style>'
    assert [(runs, text_of(paragraph(runs), {"styles": ("styles", styles)})) for runs, _ in cases] == cases


def test_tables_keep_rows_columns_and_merged_values():
    def bold(text: str) -> str:
        return cell(paragraph(run(text, "<w:b/>")))

    two, three = '<w:gridSpan w:val="2"/>', '<w:gridSpan w:val="3"/>'
    begins, continues = '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    rule = "| --- | --- |"
    cases: list[tuple[str, str]] = [
        (table(cell("Port") + cell("Fee"), cell("Skar") + cell("1|2")),
         f"| Port | Fee |\n{rule}\n| Skar | 1\\|2 |"),
        (table(cell("Port", begins) + cell("Fee"), cell("", continues) + cell("7")),
         f"| Port | Fee |\n{rule}\n| Port | 7 |"),
        (table(cell("Port") + cell("Traffic", two), cell("") + cell("2026") + cell("2027"),
         cell("Skar") + cell("1") + cell("2")),
         "| Port | Traffic 2026 | Traffic 2027 |\n| --- | --- | --- |\n| Skar | 1 | 2 |"),
        (table(cell("Dues of 2027", three), cell("a") + cell("b") + cell("c"),
         cell("1") + cell("2") + cell("3")),
         "Dues of 2027\n\n| a | b | c |\n| --- | --- | --- |\n| 1 | 2 | 3 |"),
        (table(cell("") + cell("Kiel"), cell("Fee") + cell("10")), f"|  | Kiel |\n{rule}\n| Fee | 10 |"),
        (table(bold("Ship") + cell("Skiff"), bold("Port") + cell("Skar")),
         f"|  |  |\n{rule}\n| Ship | Skiff |\n| Port | Skar |"),
        (table("<w:trPr><w:tblHeader/></w:trPr>" + bold("Term") + cell("Meaning"),
         bold("Fee") + cell("The dues")), f"| Term | Meaning |\n{rule}\n| Fee | The dues |"),
        *((table(bold("Term") + cell("Meaning"), bold("Fee") + cell("The dues")).replace("<w:tbl>",
        f"<w:tbl><w:tblPr><w:tblLook {look}/></w:tblPr>"),
        f"| Term | Meaning |\n{rule}\n| Fee | The dues |") for look in ('w:val="04A0"', 'w:firstRow="1"')),
        (table(cell("Cell") + cell("Cell"), cell("1") + cell("2")), f"| Cell | Cell |\n{rule}\n| 1 | 2 |"),
        (table(cell("Step") + cell("Parts"), cell("One") + cell(paragraph("bolt") + paragraph("nut"))),
         f"| Step | Parts |\n{rule}\n| One | bolt nut |"),
        (table(cell("Outer") + cell(table(cell("key") + cell("value"), cell("k2") + cell("v2")) + "<w:p/>"),
         cell("a") + cell("b")), f"| Outer | key, value; k2, v2 |\n{rule}\n| a | b |"),
        (table(cell(paragraph("A frame.") + paragraph("Two."))), "A frame.\n\nTwo."),
        (table(cell("a") + cell("gone", "<w:cellDel/>") + cell("b"), cell("c") + cell("2")),
         f"| a | b |\n{rule}\n| c | 2 |"),
        (table(cell("a") + cell("b"), "<w:trPr><w:del/></w:trPr>" + cell("gone") + cell("1"),
         cell("c") + cell("2")), f"| a | b |\n{rule}\n| c | 2 |"),
        (table(cell("a") + cell("b") + cell("c"),
         '<w:trPr><w:gridBefore w:val="1"/></w:trPr>' + cell("1") + cell("2")),
         "| a | b | c |\n| --- | --- | --- |\n|  | 1 | 2 |"),
    ]  # fmt: skip
    assert [(body, text_of(body)) for body, _ in cases] == cases


# -- notes --------------------------------------------------------------------------------------------


def test_what_is_not_read_is_noted():
    picture = '<w:r><w:drawing><a:blip r:embed="x"/></w:drawing></w:r>'
    cases: list[tuple[str, list[str]]] = [
        (picture, ["1 picture was not read."]),
        (picture * 2, ["2 pictures were not read."]),
        ("<w:r><w:object/></w:r>", ["1 embedded file was not read."]),
        ('<w:r><w:sym w:font="Webdings" w:char="F04A"/></w:r>',
         ["1 symbol of a special font could not be read."]),
        (run("v", '<w:rFonts w:ascii="Webdings"/>'), ["1 symbol of a special font could not be read."]),
        (run("\uf0aa"), ["1 symbol of a special font could not be read."]),
        ('<w:r><w:drawing><a:blip r:link="x"/></w:drawing></w:r>', ["1 picture was not read."]),
        ('<w:r><w:drawing><c:chart r:id="r_none"/></w:drawing></w:r>', ["1 picture was not read."]),
        ('<w:r><w:drawing><w:contentPart r:id="x"/></w:drawing></w:r>', ["1 picture was not read."]),
        (BEGIN.format("") + CODE.format(r"EQ \i(0,1,x)") + END, ["1 equation in a field was not read."]),
        (run("more"), []),
    ]  # fmt: skip
    assert [(runs, docx(word_file(paragraph(run("Text.") + runs))).notes) for runs, _ in cases] == cases
    assert docx(word_file(paragraph("Text.") + '<w:altChunk r:id="r_x"/>')).notes == [
        "1 linked part of the document was not read."
    ]
    with pytest.raises(UnreadableDocument, match="pictures and no text") as refused:
        docx(word_file(paragraph(picture)))
    assert refused.value.code == "no_text"


def test_documents_in_a_document_are_read_with_their_notes():
    picture = '<w:r><w:drawing><a:blip r:embed="x"/></w:drawing></w:r>'
    inner = word_file(paragraph(run("Annex B.") + picture))
    for name, content, text, notes in (
        ("annex.docx", inner, "Text.\n\nAnnex B.", ["1 picture was not read."]),
        ("annex.htm", b"<p>Annex C.</p>", "Text.\n\nAnnex C.", []),
        ("annex.txt", b"Annex D.", "Text.\n\nAnnex D.", []),
        ("annex.rtf", b"{}", "Text.", ["1 linked part of the document was not read."]),
    ):
        files = members(word_file(paragraph("Text.") + '<w:altChunk r:id="r_part"/>'))
        relations = relationships({"part": "aFChunk"}).replace("part.xml", name)
        parsed = docx(archive({**files, "word/_rels/document.xml.rels": relations, f"word/{name}": content}))
        assert parsed.parts == [(None, text)]
        assert parsed.notes == notes


def test_a_field_is_its_equation_or_its_result(subtests: pytest.Subtests):
    reference = BEGIN.format("") + CODE.format(" REF x ") + SEPARATE + run("9") + END
    for codes, result, expected in (
        ([r"EQ \f(1,2)"], "", r"$\frac{1}{2}$"),
        ([r" eq \f(1,5;\r(3;x)) "], "", r"$\frac{1,5}{\sqrt[3]{x}}$"),
        ([r"EQ \r(,2) m\s\up8(3) v\s\do4(a)"], "", r"$\sqrt{2} m^{3} v_{a}$"),
        # A code is read whole, and its result only without an equation.
        ([r" EQ \f(1;2)", r" + \r(;x) "], "", r"$\frac{1}{2} + \sqrt{x}$"),
        ([" EQ 3 ", r"\f(1;2)"], run("3.5"), r"$3 \frac{1}{2}$"),
        ([" E", r"Q \i(0;1;x)"], run("3.5"), "3.5"),
        (["SYMBOL 10", '9 \\f "Symbol"'], run("m"), "μ"),
        ([r"EQ \f(1;", reference, ")"], "", r"$\frac{1}{9}$"),
        (["EQ x" + " " * 500_000 + "x"], "", ""),
        ([" REF x "], run("9"), "9"),
    ):
        with subtests.test(codes=codes[0][:20]):
            parts = [code if code.startswith("<") else CODE.format(code) for code in codes]
            field = BEGIN.format("") + "".join(parts) + (result and SEPARATE + result) + END
            text = text_of(paragraph(run("Load ") + field + run(" ends")))
            assert text.split() == f"Load {expected} ends".split()


def test_a_part_with_entities_is_refused():
    files: dict[str, Any] = {**members(word_file(paragraph("Rent &rent; euros")))}
    declared = b'<!DOCTYPE x [<!ENTITY rent "950">]>' + files["word/document.xml"]
    with pytest.raises(UnreadableDocument, match="document type declaration"):
        docx(archive({**files, "word/document.xml": declared}))
