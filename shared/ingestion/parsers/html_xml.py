"""HTML, XML and the books that are made of both (EPUB)."""

import posixpath
import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import unquote

from html_to_markdown import ConversionOptions, convert
from lxml import etree

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.base import Reading, marked_encoding, member_of, one_line, own_title, unpacked

# What leaves no mark in the text: how words look, and addresses.
UNMARKED = ["a", "b", "strong", "i", "em", "u", "mark", "iframe", "object", "embed"]
TITLE_WITHIN = 100_000
# Elements within each other. Of what stands more than 1,024 deep html-to-markdown says nothing.
MAX_DEPTH = 1000
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_CHARSET = re.compile(rb"<meta[^>]{1,200}charset=[\"']?([\w-]{2,40})", re.IGNORECASE)


def html(data: bytes) -> Reading:
    text = _decoded(data)
    title = _TITLE.search(text[:TITLE_WITHIN])
    return Reading([(None, markdown(text))], own_title(unescape(title[1])) if title else None)


def epub(data: bytes) -> Reading:
    """The chapters in the order of the book's spine."""
    with unpacked(data) as archive:
        container = tree(member_of(archive, "META-INF/container.xml"))
        package_path = next(iter(container.xpath("//*[local-name()='rootfile']/@full-path")), "")
        package = tree(member_of(archive, package_path))
        folder = package_path.rpartition("/")[0]
        items = {item.get("id"): item.get("href") for item in package.xpath("//*[local-name()='item']")}
        spine = package.xpath("//*[local-name()='itemref']/@idref")
        chapters = [posixpath.join(folder, unquote(items[place])) for place in spine if items.get(place)]
        texts = [html(member_of(archive, posixpath.normpath(chapter))) for chapter in chapters]
        titles = package.xpath("//*[local-name()='title']/text()")
    return Reading([part for text in texts for part in text.parts], own_title(titles[0]) if titles else None)


def xml(data: bytes) -> Reading:
    """Elements as an outline of names and texts; running text with marks in it as running text."""
    root = tree(data)
    return Reading([(None, "\n".join(_outline(root, 0)))])


def _outline(element: Any, depth: int) -> Iterator[str]:
    if not isinstance(element.tag, str):
        return
    name = element.tag.rpartition("}")[2]
    attributes = "".join(f" {key.rpartition('}')[2]}={value}" for key, value in element.items())
    label = f"{'  ' * min(depth, 20)}{name}{attributes}:"
    children = [child for child in element if isinstance(child.tag, str)]
    running = (element.text or "").strip() or any((child.tail or "").strip() for child in children)
    if running or not children:
        yield f"{label} {one_line(''.join(element.itertext()))}".rstrip()
        return
    yield label
    for child in children:
        yield from _outline(child, depth + 1)


def tree(data: bytes) -> Any:
    """Its root element. Raises UnreadableDocument."""
    # Nothing is fetched, and no entity is made longer than it is.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        raise UnreadableDocument("This is not well-formed XML.") from None


def markdown(text: str) -> str:
    """Of HTML: what shows of it. No scripts, no styles, nothing hidden, no menus, no addresses. Raises
    UnreadableDocument for one of which a part would be missing."""
    if text.count("<") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise UnreadableDocument(
            f"Elements stand within each other more than {MAX_DEPTH:,} deep: that cannot be read whole.",
            code="nested_too_deeply",
        )
    options = ConversionOptions(
        extract_metadata=False, compact_tables=True, skip_images=True, strip_tags=UNMARKED
    )
    return "\n".join(line.rstrip() for line in (convert(text, options).content or "").splitlines())


def _depth(text: str) -> int:
    """How deep elements stand within each other, those that end without saying so ended."""
    parser = etree.HTMLParser(target=_Depth(), encoding="utf-8", huge_tree=True)
    return int(etree.HTML(text.encode(errors="replace"), parser))


class _Depth:
    """What a parser tells of elements, counted: no tree is made."""

    def __init__(self) -> None:
        self._now = self._most = 0

    def start(self, _tag: str, _attributes: object) -> None:
        self._now += 1
        self._most = max(self._most, self._now)

    def end(self, _tag: str) -> None:
        self._now -= 1

    def close(self) -> int:
        return self._most


def _decoded(data: bytes) -> str:
    """By its byte-order mark, by what it says of itself, or as UTF-8; else as browsers take the rest."""
    charset = _CHARSET.search(data[:2048])
    for encoding in filter(None, (marked_encoding(data), charset and charset[1].decode("ascii"), "utf-8")):
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("cp1252", errors="replace")
