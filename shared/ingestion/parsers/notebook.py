"""Parser of Jupyter notebooks: their cells and outputs as Markdown."""

import re
from collections import Counter
from typing import Any

from shared.ingestion.parsers.html_elements import notes_on
from shared.ingestion.parsers.html_xml import markdown
from shared.ingestion.parsers.parsed_file import ParsedFile

# Colours of a terminal.
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


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
    if "<table" in (html := "".join(data.get("text/html", ""))):
        table, of_table = markdown(html)
        unread.update(of_table)
        return table
    if any(kind.startswith("image/") for kind in data):
        # The text is the name of an object.
        return ""
    if text := "".join(data.get("text/markdown", "") or data.get("text/latex", "")):
        return text
    return _fenced(_COLOUR.sub("", "".join(output.get("text", data.get("text/plain", "")))))


def _fenced(text: str, language: str = "") -> str:
    fence = "~~~" if "```" in text else "```"
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}" if text.strip() else ""
