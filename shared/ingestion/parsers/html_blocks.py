"""Blocks of an HTML page: the innermost ones, their length, and their removal."""

import re
from collections.abc import Iterator
from typing import Any

HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BLOCKS = {
    "address", "article", "aside", "blockquote", "dd", "details", "div", "dl", "dt", "fieldset", "figcaption",
    "figure", "footer", "form", "header", "hr", "li", "main", "ol", "p", "pre", "section", "summary", "table",
    "ul", *HEADINGS,
}  # fmt: skip


def leaves(element: Any) -> Iterator[Any]:
    """The innermost blocks, the last one first."""
    outer: set[Any] = set()
    for block in reversed([each for each in element.iter() if each.tag in _BLOCKS]):
        if block not in outer:
            yield block
        outer.update(each for each in block.iterancestors())


def common(elements: list[Any]) -> Any:
    """The innermost element that has them all."""
    first, *others = elements
    return next(
        each for each in (first, *first.iterancestors())
        if all(each is other or each in other.iterancestors() for other in others)
    )  # fmt: skip


def letters_of(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)


def length_of(element: Any) -> int:
    return sum(len(text.strip()) for text in element.itertext())


def prose(element: Any) -> int:
    """Characters outside of links."""
    return sum(len(text.strip()) for text in element.xpath(".//text()[not(ancestor::a)]"))


def drop(element: Any) -> None:
    """Remove the element, not the text behind it."""
    parent, before, tail = element.getparent(), element.getprevious(), element.tail or ""
    if parent is None:
        return
    if before is None:
        parent.text = (parent.text or "") + tail
    else:
        before.tail = (before.tail or "") + tail
    parent.remove(element)
