"""Styles of Word files: headings, automatic numbers and raised characters, with what they inherit."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.ingestion.parsers.office_xml import attribute, child, is_on, value

_HEADING_STYLE = re.compile(r"heading ([1-9])", re.IGNORECASE)
_TITLE_STYLES = {"title": 1, "subtitle": 2}
# Properties of characters that are on or off.
SWITCHES = ("vanish", "b", "strike", "dstrike")


@dataclass(frozen=True, slots=True)
class Style:
    """heading: its level from 1, if it is a heading's. list_id, level: of its automatic number. raised:
    "sup", "sub" or "". switches: those of SWITCHES that it states."""

    heading: int | None = None
    list_id: str | None = None
    level: int | None = None
    raised: str = ""
    font: str | None = None
    switches: dict[str, bool] = field(default_factory=dict)


def styles_of(root: Any) -> dict[str, Style]:
    """The styles by id, with what they inherit."""
    if root is None:
        return {}
    elements = {attribute(style, "styleId") or "": style for style in root.iter("{*}style")}
    return {id_: _style(id_, elements) for id_ in elements}


def _style(id_: str, elements: dict[str, Any]) -> Style:
    heading = list_id = level = raised = font = None
    switches: dict[str, bool] = {}
    seen = set[str]()
    while id_ in elements and id_ not in seen:
        seen.add(id_)
        element = elements[id_]
        properties, characters = child(element, "pPr"), child(element, "rPr")
        name = (value(element, "name") or "").lower()
        named = _HEADING_STYLE.fullmatch(name)
        outline = value(properties, "outlineLvl") or ""
        if heading is None:
            own = int(named[1]) if named else _TITLE_STYLES.get(name)
            heading = own or (int(outline) + 1 if outline.isdecimal() else None)
        numbered = child(properties, "numPr")
        if numbered is not None and list_id is None:
            list_id, of_style = value(numbered, "numId"), value(numbered, "ilvl") or ""
            level = int(of_style) if of_style.isdecimal() else None
        raised = raised or value(characters, "vertAlign")
        font = font or _font(characters)
        switches = _switches(characters) | switches
        id_ = value(element, "basedOn") or ""
    return Style(
        heading if heading and heading < 10 else None,
        list_id,
        level,
        {"superscript": "sup", "subscript": "sub"}.get(raised or "", ""),
        font,
        switches,
    )


def font_of(properties: Any, styles: Mapping[str, Style], of_paragraph: Style) -> str | None:
    """The font of a run, by its own properties and its styles."""
    own = styles.get(value(properties, "rStyle") or "", of_paragraph)
    return _font(properties) or own.font or of_paragraph.font


def _font(properties: Any) -> str | None:
    fonts = child(properties, "rFonts")
    return attribute(fonts, "ascii") or attribute(fonts, "hAnsi")


def switches_of(properties: Any, styles: Mapping[str, Style], of_paragraph: Style) -> dict[str, bool]:
    """The switches that a run states by its own properties and its styles."""
    own = styles.get(value(properties, "rStyle") or "", of_paragraph)
    return of_paragraph.switches | own.switches | _switches(properties)


def _switches(properties: Any) -> dict[str, bool]:
    return {name: is_on(properties, name) for name in SWITCHES if child(properties, name) is not None}
