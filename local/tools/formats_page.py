"""Rows of docs/formats.md, from the docstrings of the parsers and the extensions of their files."""

import re

from local import ROOT
from shared.ingestion.file_type import EXTENSIONS
from shared.ingestion.parsers.parsed_file import PARSERS, parser_of

PATH = ROOT / "docs" / "formats.md"
_ROW = re.compile(r"(\w+): (.+?)\n\n\s*Noted: (.+?)(?:\n\s*Not read: (.+))?", re.DOTALL)


def page() -> str:
    """The page with the rows of the parsers written anew."""
    text = PATH.read_text()
    for kind in PARSERS:
        if row := _ROW.fullmatch(parser_of(kind).__doc__ or ""):
            name, *cells = (" ".join((cell or "").split()) for cell in row.groups())
            ends = " ".join(f"`{end}`" for end, of in EXTENSIONS.items() if of == kind)
            line = f"| {' | '.join([f'{name} ({ends})', *cells])} |".replace("|  |", "| |")
            text = re.sub(rf"(?m)^\| {name} \(.*$", line.replace("\\", r"\\"), text)
    return text


def write() -> None:
    PATH.write_text(page())
