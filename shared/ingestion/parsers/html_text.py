"""Text of an HTML element, and elements in whose place a text stands."""

from typing import Any

from lxml import etree

from shared.text.normalize import one_line

# Elements within a word. All others divide words.
INLINE = {
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "label", "mark", "nobr", "q", "rb", "ruby", "s", "samp", "small", "span", "strike", "strong",
    "sub", "sup", "time", "tt", "u", "var", "wbr",
}  # fmt: skip


def text_of(element: Any) -> str:
    return "".join(element.itertext())


def line_of(element: Any) -> str:
    """The text on one line, with a space between blocks."""
    parts: list[str] = []
    for event, each in etree.iterwalk(element, events=("start", "end")):
        parts.append("" if each.tag in INLINE else " ")
        if event == "start":
            parts.append(each.text or "")
        elif each is not element:
            parts.append(each.tail or "")
    return one_line("".join(parts))


def replace(element: Any, text: str) -> None:
    """The text instead of the element's content."""
    for child in list(element):
        element.remove(child)
    element.tag, element.text = "span", text
