"""Elements of HTML without a form in Markdown, and those that are not read."""

import re
from collections import Counter
from typing import Any

from lxml import etree

from shared.ingestion.parsers.html_forms import write_fields
from shared.ingestion.parsers.html_formulas import formula
from shared.ingestion.parsers.html_lists import write_numbers
from shared.ingestion.parsers.html_tables import write_table
from shared.ingestion.parsers.html_text import INLINE, line_of, replace, text_of
from shared.ingestion.parsers.parsed_file import counted, description
from shared.text.superscripts import script

# Smaller pictures are icons and signs of visits, in pixels.
MIN_PICTURE = 48
_REWRITTEN = re.compile(
    r"<(?:su[pb]|math|input|select|textarea|button|datalist|table|img|svg|canvas|video|audio|iframe|embed"
    r"|del|s|strike|ol|nav|body\s[^>]{0,500}(?:style|hidden))\b|noteref|vertical-align\s*:\s*su|line-through",
    re.IGNORECASE,
)
_NAMESPACES = {"re": "http://exslt.org/regular-expressions"}
_INVISIBLE = "re:test(@style, '(^|[;\\s])visibility\\s*:\\s*hidden', 'i')"
# Menus, and what browsers do not show while scripts run.
_HIDDEN = etree.XPath(
    ".//*[self::nav or self::template[not(@shadowrootmode)] or self::noscript"
    " or @hidden and @hidden!='until-found'"
    " or re:test(@style, '(^|[;\\s])display\\s*:\\s*none', 'i')"
    f" or not(self::td or self::th) and {_INVISIBLE}]",
    namespaces=_NAMESPACES,
)
# Words whose style stands for an element, and the numbers of notes in a text.
_STYLED = {
    tag: etree.XPath(
        f".//*[self::span or self::a or self::font][{condition}][not(.//{tag} or ancestor::{tag})]",
        namespaces=_NAMESPACES,
    )
    for tag, condition in {
        "sup": "re:test(@style, 'vertical-align\\s*:\\s*super') or contains(@role, 'doc-noteref')"
        " or contains(@*[name()='epub:type'], 'noteref')",
        "sub": "re:test(@style, 'vertical-align\\s*:\\s*sub\\b')",
    }.items()
}
_STRUCK = etree.XPath(".//*[re:test(@style, 'line-through', 'i')]", namespaces=_NAMESPACES)
_STRIKES = ("del", "s", "strike")
# They keep their place in the table.
_INVISIBLE_CELLS = etree.XPath(f".//*[(self::td or self::th) and {_INVISIBLE}]", namespaces=_NAMESPACES)


def rewritten(text: str) -> tuple[str, Counter[str]]:
    """HTML whose Markdown has what a reader sees, and the numbers of elements that are not read by their
    kind."""
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    root = etree.HTML(text.encode(errors="replace"), parser) if _REWRITTEN.search(text) else None
    if root is None:
        return text, Counter()
    for body in root.iter("body"):
        # Scripts show the body of some pages.
        body.attrib.clear()
    for element in _HIDDEN(root):
        replace(element, "")
    for cell in _INVISIBLE_CELLS(root):
        tag = cell.tag
        replace(cell, "")
        cell.tag = tag
    for math in list(root.iter("math")):
        replace(math, formula(math))
    _strike_styled(root)
    _name_styled(root)
    for element in reversed(list(root.iter("sup", "sub"))):
        replace(element, script(element.tag, text_of(element), _before(element)))
    write_fields(root)
    for struck in list(root.iter(*_STRIKES)):
        if struck.getparent() is None:
            continue  # It was within another one.
        etree.strip_tags(struck, *_STRIKES)
        if not struck.tail and struck.getnext() is not None:
            struck.tail = " "
    pictures = [
        each
        for each in root.iter("img", "svg", "canvas", "embed")
        # The outer picture has the text of the inner one.
        if each.tag != "svg" or next(each.iterancestors("svg"), None) is None
    ]
    unread_pictures = sum(map(_is_unread_picture, pictures))
    media = [each for each in root.iter("video", "audio") if _is_content(each)]
    frames = [each for each in root.iter("iframe") if each.get("src") and _is_content(each)]
    for element in (*media, *frames):
        # A text for old browsers.
        replace(element, "")
    for table in list(root.iter("table")):
        write_table(table)
    for items in list(root.iter("ol")):
        write_numbers(items)
    unread = Counter(pictures=unread_pictures, media=len(media), frames=len(frames))
    return etree.tostring(root, encoding="unicode", method="html"), unread


def _name_styled(root: Any) -> None:
    """Rename the elements whose style raises or lowers their text, and the numbers of notes."""
    for tag, styled in _STYLED.items():
        for element in styled(root):
            element.tag = tag


def _strike_styled(root: Any) -> None:
    """Put the elements whose style strikes their text within an element del, or the contents of blocks, which
    keep their place. Text beside blocks within a struck block is not marked."""
    seen = set[Any]()
    for element in _STRUCK(root):
        if element in seen:
            continue
        within = list(element.iter())
        seen.update(within)
        if element.tag in INLINE:
            struck = etree.Element("del")
            element.addprevious(struck)
            struck.tail, element.tail = element.tail, None
            struck.append(element)
            continue
        for block in within:
            if _is_block(block) and not any(map(_is_block, block.iterdescendants())):
                struck = etree.Element("del")
                struck.text, block.text = block.text, None
                struck.extend(list(block))
                block.append(struck)


def _is_block(element: Any) -> bool:
    return element.tag not in INLINE and bool(element.text or len(element))


def notes_on(unread: Counter[str]) -> list[str]:
    return [
        *counted(unread["pictures"], "picture was", "pictures were", "not read."),
        *counted(unread["media"], "sound or video was", "sounds or videos were", "not read."),
        *counted(unread["frames"], "embedded page was", "embedded pages were", "not read."),
    ]


def _before(element: Any) -> str:
    """The end of the text before the element, within its parent."""
    previous = element.getprevious()
    if previous is None:
        return (element.getparent().text or "")[-3:]
    return (previous.tail or text_of(previous))[-3:]


def _is_unread_picture(picture: Any) -> bool:
    """Whether a picture is content without a text. Its text takes its place."""
    if picture.tag == "svg":
        text = "; ".join(filter(None, map(line_of, picture.iter("text", "foreignobject"))))
        has_source = picture.get("width") is not None
    else:
        text = description(picture.get("alt") or "") if picture.tag == "img" else line_of(picture)
        # The attachments of a mail have notes of their own.
        has_source = picture.tag == "canvas" or any(
            "src" in name and not address.startswith("cid:") for name, address in picture.items()
        )
    is_unread = has_source and not text and _is_content(picture)
    if text or picture.tag == "svg":
        replace(picture, f" {text} ")
    return is_unread


def _is_content(element: Any) -> bool:
    """Whether a picture, video or frame is no icon, ornament or part of the page's frame."""
    if element.get("alt") == "" or element.get("aria-hidden") == "true":
        return False
    sizes = [size for name in ("width", "height") if (size := re.match(r"\d+", element.get(name) or ""))]
    if any(int(size[0]) < MIN_PICTURE for size in sizes):
        return False
    around = {ancestor.tag for ancestor in element.iterancestors()}
    return around.isdisjoint({"button", "nav"}) and (
        around.isdisjoint({"header", "footer"}) or not around.isdisjoint({"article", "main"})
    )
