"""Parsers of HTML, XML and EPUB."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import unquote

from html_to_markdown import ConversionOptions, PreprocessingOptions, convert
from lxml import etree

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.charsets import encoding_of
from shared.ingestion.parsers.html_elements import notes_on, rewritten
from shared.ingestion.parsers.parsed_file import (
    ParsedFile,
    encoding_by_mark,
    open_archive,
    own_title,
    read_member,
)
from shared.ingestion.parsers.text_encodings import COMMON_ENCODING, detected_encoding
from shared.text.normalize import one_line

# Elements whose Markdown is omitted: emphasis and addresses.
STRIPPED_TAGS = ["a", "b", "strong", "i", "em", "u", "mark", "iframe", "object", "embed"]
TITLE_CHARACTERS = 100_000
# Nested elements. html-to-markdown omits elements at a depth above 1,024.
MAX_DEPTH = 1000
# html-to-markdown escapes a number at the beginning of an item.
_ESCAPED_NUMBER = re.compile(r"^([ >]*[-*+] \d+)\\\.")
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_CHARSET = re.compile(rb"<meta[^>]{1,200}charset\s{0,5}=\s{0,5}[\"']?([\w-]{2,40})", re.IGNORECASE)


def html(data: bytes) -> ParsedFile:
    """HTML: visible text; tables with merged cells, header rows and captions; lists with their numbers (a.,
    IV.); fields of forms; formulas; alternative texts of pictures; labels of SVG pictures; superscripts

    Noted: pictures without an alternative text or with a file name as such, also linked ones, from 48 pixels
    on; sound and video; embedded pages (`iframe`)
    Not read: menus (`nav`), hidden text, scripts, pictures of style sheets"""
    text = decoded(data)
    title = _TITLE.search(text[:TITLE_CHARACTERS])
    content, unread = markdown(text)
    return ParsedFile(
        [(None, content)], own_title(unescape(title[1])) if title else None, notes=notes_on(unread)
    )


def epub(data: bytes) -> ParsedFile:
    """EPUB: the chapters in their order, as HTML

    Noted: as HTML, for the whole book
    Not read: chapters that are drawings"""
    with open_archive(data) as archive:
        container = tree(read_member(archive, "META-INF/container.xml"))
        package_path = next(iter(container.xpath("//*[local-name()='rootfile']/@full-path")), "")
        package = tree(read_member(archive, package_path))
        folder = package_path.rpartition("/")[0]
        items = {item.get("id"): item.get("href") for item in package.xpath("//*[local-name()='item']")}
        spine = package.xpath("//*[local-name()='itemref']/@idref")
        chapters = [posixpath.join(folder, unquote(items[name])) for name in spine if items.get(name)]
        texts = [markdown(decoded(read_member(archive, posixpath.normpath(chapter)))) for chapter in chapters]
        titles = package.xpath("//*[local-name()='title']/text()")
    return ParsedFile(
        [(None, text) for text, _ in texts],
        own_title(titles[0]) if titles else None,
        notes=notes_on(sum((unread for _, unread in texts), Counter())),
    )


def xml(data: bytes) -> ParsedFile:
    """XML: an outline of elements, attributes and texts; mixed content as one text

    Noted: files in base64, which are left out
    Not read: entities that the file defines"""
    root = tree(data)
    return ParsedFile([(None, "\n".join(_outline(root, 0)))])


def _outline(element: Any, depth: int) -> Iterator[str]:
    if not isinstance(element.tag, str):
        return
    name = element.tag.rpartition("}")[2]
    attributes = "".join(f" {key.rpartition('}')[2]}={value}" for key, value in element.items())
    label = f"{'  ' * min(depth, 20)}{name}{attributes}:"
    children = [child for child in element if isinstance(child.tag, str)]
    has_text = (element.text or "").strip() or any((child.tail or "").strip() for child in children)
    if has_text or not children:
        yield f"{label} {one_line(''.join(element.itertext()))}".rstrip()
        return
    yield label
    for child in children:
        yield from _outline(child, depth + 1)


def tree(data: bytes) -> Any:
    """The root element. Raises UnreadableDocument."""
    # Without network access and expansion of entities.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        raise UnreadableDocument(
            "The file is not well-formed XML. Correct it, and upload it again."
        ) from None


def markdown(text: str) -> tuple[str, Counter[str]]:
    """The visible text of HTML as Markdown, without menus and addresses, and the numbers of elements that are
    not read. Raises UnreadableDocument for HTML that would be incomplete."""
    if text.count("<") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise UnreadableDocument(
            f"The file has over {MAX_DEPTH:,} levels of nested elements. Reduce them, and upload it again.",
            code="nested_too_deeply",
        )
    options = ConversionOptions(
        extract_metadata=False,
        compact_tables=True,
        skip_images=True,
        strip_tags=STRIPPED_TAGS,
        # Some pages are one form, and the headers of pages and cards have their titles.
        preprocessing=PreprocessingOptions(remove_forms=False, remove_navigation=False),
    )
    html, unread = rewritten(text)
    lines = (convert(html, options).content or "").splitlines()
    return "\n".join(_ESCAPED_NUMBER.sub(r"\1.", line).rstrip() for line in lines), unread


def _depth(text: str) -> int:
    """How deep elements stand within each other, those that end without saying so ended."""
    parser = etree.HTMLParser(target=_Depth(), encoding="utf-8", huge_tree=True)
    return int(etree.HTML(text.encode(errors="replace"), parser))


class _Depth:
    """What a parser tells of elements, counted: no tree is made."""

    def __init__(self) -> None:
        self._depth = self._max_depth = 0

    def start(self, _tag: str, _attributes: object) -> None:
        self._depth += 1
        self._max_depth = max(self._max_depth, self._depth)

    def end(self, _tag: str) -> None:
        self._depth -= 1

    def close(self) -> int:
        return self._max_depth


def decoded(data: bytes) -> str:
    """The text by its byte-order mark, its declared charset or as UTF-8; else by detection, or as cp1252."""
    charset = _CHARSET.search(data[:2048])
    declared = encoding_of(charset[1].decode("ascii")) if charset else None
    for encoding in filter(None, (encoding_by_mark(data), declared, "utf-8")):
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode(detected_encoding(data) or COMMON_ENCODING, errors="replace")
