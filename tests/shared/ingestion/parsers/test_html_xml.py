"""HTML whose elements have no form in Markdown: scripts, formulas, fields, merged cells, pictures."""

import pytest

from shared.ingestion.parsers.html_xml import html, markdown

MATH = "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><mi>c</mi></mfrac>{}</math>"
PRICES = "Prices\n\n| A | B |\n|-|\n| 1 | 2 |"
CASES = {
    # Scripts and inline elements
    "3 × 10<sup>6</sup>, Al<sub>2</sub>O<sub>3</sub>, e<sup>-kt</sup>": "3 × 10⁶, Al₂O₃, e^(-kt)",
    "note<sup><a href=#4>4</a></sup>, <i>x</i><sup>2</sup>, 10<sup><b>6</b></sup>": "note⁴, x², 10⁶",
    "<b>12</b>.<b>50</b> <span>E</span><i>-42</i>": "12.50 E-42",
    "5 <del>May</del><ins>June</ins>": "5 ~~May~~ June",
    # Tables
    "<table><caption>Prices</caption><tr><th>A<th>B<tr><td>1<td>2</table>": PRICES,
    "<table><tr><td colspan=2>Prices<tr><th>A<th>B<tr><td>1<td>2</table>": PRICES,
    "<table><tr><th>A<th>B<tr><td rowspan=2>Kiln<td>1<tr><td>2</table>": (
        "| A | B |\n|-|\n| Kiln | 1 |\n| Kiln | 2 |"
    ),
    "<table><tr><th>A<th>B<th>C<tr><td colspan=2>x<td>1<tr><td colspan=3>Group</table>": (
        "| A | B | C |\n|-|\n| x | x | 1 |\n| Group |  |  |"
    ),
    "<table><tr><th rowspan=2>A<th colspan=2>Q1<tr><th>in<th>out<tr><td>x<td>1<td>2</table>": (
        "| A | Q1 in | Q1 out |\n|-|\n| x | 1 | 2 |"
    ),
    "<table><tr><th>A<th>B<tr><td><ul><li>x<li>y</ul><td>1<br>2</table>": "| A | B |\n|-|\n| x; y | 1 2 |",
    "<table><tr><th>A<th>B<tr><td>k<td><table><tr><td>i<td>j<tr><td>l<td>m</table></table>": (
        "| A | B |\n|-|\n| k | i, j; l, m |"
    ),
    "<table><tr><td><table><tr><td>A<td>B<tr><td>1<td>2</table><tr><td>Imprint</table>": (
        "| A | B |\n|-|\n| 1 | 2 |\n\nImprint"
    ),
    # Formulas
    MATH.format("<mo>=</mo><msqrt><mi>x</mi></msqrt>"): "(a + 1)/c = √x",
    MATH.format("<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>"): "(a + 1)/cx₁²",
    MATH.format(
        "<annotation encoding='application/x-tex'>{\\displaystyle E=mc^{2}}</annotation>"
    ): "$E=mc^{2}$",
    "<math alttext='x_1'><mi>x</mi></math>": "$x_1$",
    # Forms
    "<form><p>Order<label>Name: <input value=Bob></label><input type=submit></form>": "Order\n\nName: Bob",
    "<label for=n>News</label><input id=n type=checkbox checked><input type=hidden value=x>": "News: yes",
    "<label><input type=radio>By post</label>": "By post: no",
    "<label for=s>Land</label><select id=s><option>DE<option selected>NL</select>": "Land: NL",
    "<textarea aria-label=Remark>Ring twice</textarea>": "Remark: Ring twice",
    "<label>Empty <input></label>": "Empty",
    "<details><summary>More</summary>text</details>": "**More**\n\ntext",
    "Kiln <img src=a.png alt='Firing curve'> 7": "Kiln Firing curve 7",
}


def test_the_text_is_what_a_reader_sees(subtests: pytest.Subtests):
    for source, expected in CASES.items():
        with subtests.test(source=source):
            lines = ["|-|" if line.startswith("| ---") else line for line in markdown(source).split("\n")]
            assert "\n".join(lines).strip() == expected


def test_pictures_of_the_content_are_noted(subtests: pytest.Subtests):
    cases = {
        "<img src=a.png><p><img src=b.png width=600>": ["2 pictures were not read."],
        "<img src=a.png>": ["1 picture was not read."],
        "<img src=a.png alt=''><img src=b.png width=1 height=1><nav><img src=c.png></nav>": [],
        "<a href=x><img src=a.png></a><img src=b.png alt=Curve><img>": [],
    }
    for source, notes in cases.items():
        with subtests.test(source=source):
            assert html(f"<p>Kiln{source}".encode()).notes == notes


def test_huge_spans_are_bounded():
    row = "<tr><td colspan=99999999 rowspan=99999999>x<td>y"
    assert markdown(f"<table>{row}</table>").count("x") == 1000
