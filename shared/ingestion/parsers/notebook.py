"""Parser of Jupyter notebooks: their cells and outputs as Markdown."""

import re
from collections import Counter
from typing import Any

from shared.ingestion.parsers.html_elements import notes_on
from shared.ingestion.parsers.html_xml import markdown
from shared.ingestion.parsers.parsed_file import ParsedFile

# Colours of a terminal.
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
# The plain form of an output that only HTML shows.
_OBJECT = re.compile(r"<[\w.]+ (?:object|at 0x)[^<>]*>")


def notebook(value: dict[str, Any]) -> ParsedFile:
    """The cells of a notebook of version 4. Code and what it printed are fenced, tables are Markdown.

    Raises AttributeError, KeyError or TypeError for another value, UnreadableDocument for HTML too deep."""
    language = value["metadata"].get("language_info", {}).get("name", "")
    parts: list[str] = []
    unread = Counter[str]()
    for cell in value["cells"]:
        source, outputs = "".join(cell["source"]), cell.get("outputs", ())
        parts.append(_fenced(source, language) if cell["cell_type"] == "code" else source)
        parts += [_shown(output, unread) for output in outputs]
        attached = [output.get("data", {}) for output in outputs] + [*cell.get("attachments", {}).values()]
        unread["pictures"] += sum(any(kind.startswith("image/") for kind in data) for data in attached)
    text = "\n\n".join(filter(str.strip, parts))
    return ParsedFile([(None, text)], notes=notes_on(unread))


def _shown(output: dict[str, Any], unread: Counter[str]) -> str:
    """The text of an output: of its forms the one with the most structure."""
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}"
    data = output.get("data", {})
    html, plain = ("".join(data.get(kind, "")) for kind in ("text/html", "text/plain"))
    if html and ("<table" in html or not plain or _OBJECT.fullmatch(plain.strip())):
        text, of_html = markdown(html)
        unread.update(of_html)
        return text
    if any(kind.startswith("image/") for kind in data):
        # The text is the name of an object.
        return ""
    if text := "".join(data.get("text/markdown", "") or data.get("text/latex", "")):
        return text
    return _fenced(_COLOUR.sub("", "".join(output.get("text", plain))))


def _fenced(text: str, language: str = "") -> str:
    fence = "`" * max([3, *(len(marks) + 1 for marks in re.findall("`+", text))])
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}" if text.strip() else ""
