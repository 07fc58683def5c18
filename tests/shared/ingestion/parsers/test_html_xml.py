"""HTML whose elements have no form in Markdown: scripts, formulas, fields, merged cells, pictures."""

import pytest

from shared.ingestion.parsers.html_xml import html, markdown

MATH = "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><mi>c</mi></mfrac>{}</math>"
CASES = {
    # Scripts and inline elements
    "3 × 10<sup>6</sup>, Al<sub>2</sub>O<sub>3</sub>, e<sup>-kt</sup>": "3 × 10⁶, Al₂O₃, e^(-kt)",
    "note<sup><a href=#4>4</a></sup>, <i>x</i><sup>2</sup>, 10<sup><b>6</b></sup>": "note⁴, x², 10⁶",
    "<b>12</b>.<b>50</b> <span>E</span><i>-42</i>": "12.50 E-42",
    "5 <del>May</del><ins>June</ins>": "5 ~~May~~ June",
    "<span style='text-decoration: line-through'>9</span> 7": "~~9~~ 7",
    "<span style='TEXT-DECORATION: LINE-THROUGH'>9 <del>8</del> <s>6</s> 5</span> 7": "~~9 8 6 5~~ 7",
    "<p style=text-decoration:line-through>9 <b>8</b><br>6</p><p>7": "~~9 8\n6~~\n\n7",
    "<table><tr><th>A<th>B<tr><td style=text-decoration:line-through>9<td>7</table>":
        "| A | B |\n|-|\n| ~~9~~ | 7 |",
    "<table><tr><th>A<th>B<tr style=text-decoration:line-through><td><p>9<td>7</table>":
        "| A | B |\n|-|\n| ~~9~~ | ~~7~~ |",
    "<ul><li style=text-decoration:line-through>9<li>7</ul>": "- ~~9~~\n- 7",
    "10<span style='vertical-align: super; text-decoration: line-through'>6</span>": "10~~⁶~~",
    "<del>9 <s>8</s> 7</del><b>6</b><p><del>5 <s>4</s> 3</del><b>2</b>": "~~9 8 7~~ 6\n\n~~5 4 3~~ 2",
    "<s>10<sup>6</sup></s> N": "~~10⁶~~ N",
    "10<span style='vertical-align: super'>6</span>, H<span style='vertical-align:sub'>2</span>O": "10⁶, H₂O",
    "5<span style='vertical-align: sublime'>2</span>": "52",
    "Fee 12<a epub:type=noteref>1</a>, 13<a role=doc-noteref><sup>2</sup></a>": "Fee 12¹, 13²",
    # Tables
    "<table><caption>Prices</caption><tr><th>A<th>B<tr><td>1<td>2</table>":
        "Prices\n\n| A | B |\n|-|\n| 1 | 2 |",
    "<table><tr><th>A<th>B<th>C<tr><td colspan=2>x<td>1<tr><td colspan=3>Group</table>":
        "| A | B | C |\n|-|\n| x | x | 1 |\n| Group |  |  |",
    "<table><tr><th rowspan=2>A<th colspan=2>Q1<tr><th>in<th>out<tr><td>x<td>1<td>2</table>":
        "| A | Q1 in | Q1 out |\n|-|\n| x | 1 | 2 |",
    "<table><tr><th>A<th>B<tr><td><ul><li>x<li>y</ul><td>1<br>2</table>": "| A | B |\n|-|\n| x; y | 1 2 |",
    "<table><tr><th>A<th>B<tr><td>k<td><table><tr><td>i<td>j<tr><td>l<td>m</table></table>":
        "| A | B |\n|-|\n| k | i, j; l, m |",
    "<table><tr><td><table><tr><td>A<td>B<tr><td>1<td>2</table><tr><td>Imprint</table>":
        "| A | B |\n|-|\n| 1 | 2 |\n\nImprint",
    # A row of values is no header, a row of names is, and a wider one loses none.
    "<table><tr><th>A<th>B<tr><th>1<th>2<tr><td>3<td>4</table>": "| A | B |\n|-|\n| 1 | 2 |\n| 3 | 4 |",
    "<table><tr><th>A<th>B<tr><th>kg<th>m<th>Sum<tr><td>1<td>2<td>3</table>":
        "| A kg | B m | Sum |\n|-|\n| 1 | 2 | 3 |",
    "<table><tr><td>A<td colspan=2>Sales<tr><td><td>2026<td>2027<tr><td>x<td>1<td>2</table>":
        "| A | Sales 2026 | Sales 2027 |\n|-|\n| x | 1 | 2 |",
    "<table><tr><th>A<th>B<tr><th colspan=2>Kilns<tr><td>x<td>y</table>":
        "| A | B |\n|-|\n| Kilns |  |\n| x | y |",
    "<table><tr><td colspan=2>Prices<tr><td colspan=2>2027<tr><td>A<td>B<tr><td>1<td>2</table>":
        "Prices\n\n2027\n\n| A | B |\n|-|\n| 1 | 2 |",
    "<table><tfoot><tr><td>Sum<td>3</tfoot><tr><th>A<th>B<tr><td>x<td>3</table>":
        "| A | B |\n|-|\n| x | 3 |\n| Sum | 3 |",
    # Cells reach to the end of their group of rows, and no further.
    "<table><tr><th>A<th>B<tbody><tr><td rowspan=0>x<td>1<tr><td>2<tbody><tr><td>y<td>3</table>":
        "| A | B |\n|-|\n| x | 1 |\n| x | 2 |\n| y | 3 |",
    "<table><tr><th>A<th>B<tbody><tr><td rowspan=9>x<td>1<tbody><tr><td>y<td>3</table>":
        "| A | B |\n|-|\n| x | 1 |\n| y | 3 |",
    "<table><tr><th>A<th>B<th>C<tr><td>x<td>1<td rowspan=2>k<tr><td>y</table>":
        "| A | B | C |\n|-|\n| x | 1 | k |\n| y |  | k |",
    "<table><tr><th>A<th>B<tr><td hidden>h<td>x<td>1<tr style='display: none'><td>h<td>h</table>":
        "| A | B |\n|-|\n| x | 1 |",
    "<table><tr><th>A<th>B<tr><td style='visibility: hidden'>h<td>1</table>": "| A | B |\n|-|\n|  | 1 |",
    "<body style='visibility:hidden'><p>Kiln</body>": "Kiln",
    "<table><tr><th>A<th><th>B<tr><td>1<td><td>2<tr><td><td><td></table>": "| A | B |\n|-|\n| 1 | 2 |",
    "<table><caption>Kiln<p>of 2027</caption><tr><th>A<th>B<tr><td>1<td>2</table>":
        "Kiln\n\nof 2027\n\n| A | B |\n|-|\n| 1 | 2 |",
    # Blocks divide words, also in a cell's list and in a header of two rows.
    "<table><tr><td><ul><li><p>x</p><p>5</p></ul><td>y</table>": "| x 5 | y |\n|-|",
    "<table><tr><th colspan=2>In<br>all<tr><th>A<th>B<tr><td>1<td>2</table>":
        "In\nall\n\n| A | B |\n|-|\n| 1 | 2 |",
    "<table>Note<tr><p>7</p><td>1<td>2</tr><tr><td>3<td>4</tr><div>8</div></table>":
        "Note\n\n8\n\n7\n\n| 1 | 2 |\n|-|\n| 3 | 4 |",
    # Numbers of lists
    "<ol type=a><li>x<li>y<ol type=I start=4><li>z</ol></ol>": "- a. x\n- b. y\n  * IV. z",
    "<ol style='list-style: inside lower-alpha' start=27><li><p>x</ol>": "- aa. x",
    "<ol><li value=5>x<li>y</ol>": "5. x\n6. y",
    "<ol><li>x<li value=7>y</ol>": "- 1. x\n- 7. y",
    "<ol reversed><li>x<li>y</ol>": "- 2. x\n- 1. y",
    "<ol style=list-style-type:none><li>§ 1<li>§ 2</ol>": "- § 1\n- § 2",
    "<table><tr><td><ol start=3><li>x<li>y</ol><td>1</table>": "| 3. x; 4. y | 1 |\n|-|",
    # Formulas
    MATH.format("<mo>=</mo><msqrt><mi>x</mi></msqrt>"): "(a + 1)/c = √x",
    MATH.format("<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>"): "(a + 1)/cx₁²",
    MATH.format("<annotation encoding='application/x-tex'>{\\displaystyle E=mc^{2}}</annotation>"):
        "$E=mc^{2}$",
    "<math alttext='x_1'><mi>x</mi></math>": "$x_1$",
    "<math><mlongdiv><mn>3</mn><mn>435</mn><msrow><mn>13</mn></msrow></mlongdiv></math>": "3 435 13",
    # Forms
    "<form><p>Order<label>Name: <input value=Bob></label><input type=submit></form>": "Order\n\nName: Bob",
    "<label for=n>News</label><input id=n type=checkbox checked><input type=hidden value=x>": "News: yes",
    "<label><input type=radio>By post</label>": "By post: no",
    "<label for=s>Land</label><select id=s><option>DE<option selected>NL</select>": "Land: NL",
    "<textarea aria-label=Remark>Ring twice</textarea>": "Remark: Ring twice",
    "<label>Empty <input></label>": "Empty",
    "<details><summary>More</summary>text</details>": "**More**\n\ntext",
    "<select multiple><option>a<option>b</select>Kiln": "Kiln",
    "<input value=7 list=d><datalist id=d><option>8</datalist>": "7",
    # Headers, pictures, sound and hidden text
    "<body><nav>menu</nav><header><h1>Kiln</h1>hot</header><p>7</p></body>": "# Kiln\n\nhot\n\n7",
    "<ul><li><header><b>Kiln</b></header><p>7</p></ul>": "- Kiln\n\n  7",
    "Kiln <img src=a.png alt='Firing curve'> 7": "Kiln Firing curve 7",
    "Kiln <img src=a.png alt='IMG_1234.jpg'> 7": "Kiln 7",
    "Kiln <svg><title>Chart</title><text>Sales 5</text></svg> 7": "Kiln Sales 5 7",
    "<p>Kiln<video src=a.mp4>Get another browser.</video>": "Kiln",
    "<p>1<wbr>200 &euro;<span hidden>9</span><span style='display: none'>9</span><sup></sup>": "1200 €",
}  # fmt: skip


def test_the_text_is_what_a_reader_sees(subtests: pytest.Subtests):
    for source, expected in CASES.items():
        with subtests.test(source=source):
            lines = ["|-|" if line.startswith("| ---") else line for line in markdown(source)[0].split("\n")]
            assert "\n".join(lines).strip() == expected


def test_pictures_of_the_content_are_noted():
    cases = {
        "<img src=a.png><p><img src=b.png width=600>": ["2 pictures were not read."],
        "<img src=a.png>": ["1 picture was not read."],
        "<img src=a.png alt=''><img src=b.png width=1 height=1><nav><img src=c.png></nav>": [],
        "<header><a href=x><img src=a.png></a></header><img src=b.png alt=Curve><img>": [],
        "<a href=x><img src=a.png></a>": ["1 picture was not read."],
        "<article><header><img data-src=a.png></header></article>": ["1 picture was not read."],
        "<img src=a.png alt=IMG_1234.jpg><svg width=90></svg>": ["2 pictures were not read."],
        "<noscript><img src=a.png></noscript><svg width=16></svg><svg aria-hidden=true width=90></svg>": [],
        "<svg width=90><text>Sales</text><svg width=80></svg></svg>": [],
        "<img src=a.png alt='Share of AI-generated code, 40 % in 2.025'>": [],
        "<img src=a.png alt='A chart Description automatically generated'>": ["1 picture was not read."],
        "<audio src=a.mp3></audio><iframe src=b.html></iframe><iframe src=c width=1></iframe>": [
            "1 sound or video was not read.", "1 embedded page was not read."],
    }  # fmt: skip
    assert {source: html(f"<p>Kiln{source}".encode()).notes for source in cases} == cases


def test_huge_spans_are_bounded():
    row = "<tr><td colspan=99999999 rowspan=99999999>x<td>y"
    assert markdown(f"<table>{row}</table>")[0].count("x") == 1000
    rows = "<tr><td rowspan=1200>x<td>y" + "<tr><td>y" * 1199
    assert markdown(f"<table>{rows}</table>")[0].count("x") == 1200
