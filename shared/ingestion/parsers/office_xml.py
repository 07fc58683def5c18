"""Parts of Office files, and their XML elements.

Elements are found by their local names, since the strict variants of the formats have other namespaces.
"""

import posixpath
import re
import zipfile
from typing import Any

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.html_xml import tree
from shared.ingestion.parsers.parsed_file import own_title, read_member

# The words of a header or footer that has the number of the page alone.
_PAGE_WORDS = {
    "page", "of", "seite", "von", "página", "pagina", "de", "di", "side", "sida", "av", "af", "strona", "z",
    "sur", "sivu", "blatt", "страница", "из", "ページ", "页",
}  # fmt: skip
# Characters that XML or the format cannot have as they are, such as _x000D_.
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")


class Package:
    """An Office file: its parts and the relationships between them."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self._names = {name.lower(): name for name in archive.namelist()}

    def has(self, part: str) -> bool:
        return part.lower() in self._names

    def name(self, part: str) -> str:
        return self._names.get(part.lower(), part)

    def tree(self, part: str) -> Any:
        try:
            root = tree(read_member(self.archive, self.name(part)))
        except UnreadableDocument:
            # Without advice about XML, which the user does not see.
            raise UnreadableDocument from None
        return prepared(root)

    def targets(self, part: str) -> dict[str, tuple[str, str]]:
        """(last word of its type, name) of each part of the file that the part names, by id."""
        folder, _, name = part.rpartition("/")
        relationships = f"{folder}/_rels/{name}.rels".lstrip("/")
        if not self.has(relationships):
            return {}
        return {
            element.get("Id"): (
                element.get("Type", "").rpartition("/")[2],
                posixpath.normpath(posixpath.join("/", folder, element.get("Target", ""))).lstrip("/"),
            )
            for element in self.tree(relationships).iter("{*}Relationship")
            if element.get("TargetMode") != "External"
        }

    def target(self, part: str, kind: str) -> str | None:
        """The part that this part names by that type."""
        return next((name for type_, name in self.targets(part).values() if type_ == kind), None)

    def title(self) -> str | None:
        part = self.target("", "core-properties") or "docProps/core.xml"
        if not self.has(part):
            return None
        return next((own_title(title.text) for title in self.tree(part).iter("{*}title") if title.text), None)


def local(element: Any) -> str:
    """The local name; "" for comments and instructions."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def child(element: Any, name: str) -> Any:
    return None if element is None else element.find(f"{{*}}{name}")


def attribute(element: Any, name: str, default: str | None = None) -> str | None:
    """The attribute by its local name."""
    if element is not None:
        for key, value in element.items():
            if key.rpartition("}")[2] == name:
                return str(value)
    return default


def value(element: Any, name: str) -> str | None:
    """The attribute val of a child."""
    return attribute(child(element, name), "val")


def is_on(element: Any, name: str) -> bool:
    """Whether the child, a switch, exists and is not off."""
    switch = child(element, name)
    return switch is not None and attribute(switch, "val", "1") not in ("0", "false", "off")


def refuse_entities(element: Any) -> None:
    """Raise UnreadableDocument for a part that may declare entities, whose text would be missing."""
    if element.getroottree().docinfo.doctype:
        raise UnreadableDocument(
            "The file has a document type declaration, which Office files must not have. Open the file in "
            "its program, save it, and upload it again."
        )


def prepared(root: Any) -> Any:
    """The root, without entities, with the first of alternatives for programs of different age, which all say
    the same. Raises UnreadableDocument."""
    refuse_entities(root)
    for alternatives in list(root.iter("{*}AlternateContent")):
        first = child(alternatives, "Choice")
        for element in list(first if first is not None else child(alternatives, "Fallback") or ()):
            alternatives.addprevious(element)
        alternatives.getparent().remove(alternatives)
    return root


def is_page_number(text: str) -> bool:
    """Whether a header or footer has no more than the number of the page, perhaps of how many."""
    words, numbers = re.findall(r"[^\W\d]+", text.lower()), re.findall(r"\d+", text)
    is_pair = (
        len(numbers) == 2 and (bool(words) or "/" in text) and all(len(number) < 4 for number in numbers)
    )
    # A number alone may be a year.
    is_one = len(numbers) < 2 and (bool(words) or all(len(number) < 4 for number in numbers))
    return _PAGE_WORDS.issuperset(words) and (is_one or is_pair)


def unescaped(text: str) -> str:
    """The text of a cell or slide without escapes; spaces for control characters."""
    if "_x" not in text:
        return text
    return _ESCAPE.sub(lambda match: chr(code) if (code := int(match[1], 16)) >= 32 else " ", text)
