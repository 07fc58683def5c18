"""Word files of given XML, for the tests of their parser."""

from collections.abc import Mapping

from tests.shared.sample_files import archive

_MAIN = "http://schemas.openxmlformats.org/officeDocument/2006"
NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    f'xmlns:r="{_MAIN}/relationships" xmlns:m="{_MAIN}/math" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" '
    'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
    'xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)
CHART = (
    "<c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Catch</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    "<c:plotArea><c:barChart><c:ser><c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>Herring</c:v></c:pt>"
    "</c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache><c:pt idx='0'><c:v>Alk</c:v></c:pt>"
    "<c:pt idx='1'><c:v>Kittiwake</c:v></c:pt></c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache>"
    "<c:formatCode>0.0%</c:formatCode>"
    "<c:pt idx='0'><c:v>0.731</c:v></c:pt><c:pt idx='1'><c:v>0.5</c:v></c:pt>"
    "</c:numCache></c:numRef></c:val></c:ser></c:barChart></c:plotArea></c:chart>"
)
CHART_TABLE = "Chart: Catch\n\n|  | Herring |\n| --- | --- |\n| Alk | 73.1% |\n| Kittiwake | 50.0% |"
DIAGRAM = (
    "<dgm:ptLst><dgm:pt type='doc'/>"
    "<dgm:pt><dgm:t><a:p><a:r><a:t>Harbour master</a:t></a:r></a:p></dgm:t></dgm:pt>"
    "<dgm:pt type='pres'><dgm:t><a:p><a:r><a:t>Shown twice</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst>"
)


def relationships(parts: Mapping[str, str]) -> str:
    """Of each part's name and type; the id of a part is r_ and its name."""
    items = "".join(
        f'<Relationship Id="r_{name}" Type="{_MAIN}/relationships/{kind}" Target="{name}.xml"/>'
        for name, kind in parts.items()
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{items}</Relationships>'


def word_file(body: str, parts: Mapping[str, tuple[str, str]] | None = None) -> bytes:
    """A Word file with this body, and parts by name: (type, content)."""
    parts = parts or {}
    members: dict[str, str | bytes] = {
        "word/document.xml": f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": relationships({name: kind for name, (kind, _) in parts.items()}),
    }
    for name, (_, content) in parts.items():
        members[f"word/{name}.xml"] = f"<w:part {NAMESPACES}>{content}</w:part>"
    return archive(members)


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(content: str, properties: str = "") -> str:
    """content: runs, or a text."""
    inner = content if content.startswith("<") else run(content)
    return f"<w:p><w:pPr>{properties}</w:pPr>{inner}</w:p>"


def cell(content: str, properties: str = "") -> str:
    inner = content if content.startswith("<w:p") or content.startswith("<w:tbl") else paragraph(content)
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{inner}</w:tc>"


def table(*rows: str) -> str:
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
