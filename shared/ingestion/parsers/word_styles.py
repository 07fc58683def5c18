"""Styles of Word files: headings, automatic numbers and raised characters, with what they inherit."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.ingestion.parsers.office_xml import attribute, child, is_on, value

_HEADING_STYLE = re.compile(r"heading ([1-9])", re.IGNORECASE)
_TITLE_STYLES = {"title": 1, "subtitle": 2}


@dataclass(frozen=True, slots=True)
class Style:
    """heading: its level from 1, if it is a heading's. list_id, level: of its automatic number. raised:
    "sup", "sub" or "". is_hidden, is_bold: None where no style says it."""

    heading: int | None = None
    list_id: str | None = None
    level: int | None = None
    raised: str = ""
    font: str | None = None
    is_hidden: bool | None = None
    is_bold: bool | None = None


def styles_of(root: Any) -> dict[str, Style]:
    """The styles by id, with what they inherit."""
    if root is None:
        return {}
    elements = {attribute(style, "styleId") or "": style for style in root.iter("{*}style")}
    return {id_: _style(id_, elements) for id_ in elements}


def _style(id_: str, elements: dict[str, Any]) -> Style:
    heading = list_id = level = raised = font = is_hidden = is_bold = None
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
        is_hidden = _switch(characters, "vanish") if is_hidden is None else is_hidden
        is_bold = _switch(characters, "b") if is_bold is None else is_bold
        id_ = value(element, "basedOn") or ""
    return Style(
        heading if heading and heading < 10 else None,
        list_id,
        level,
        {"superscript": "sup", "subscript": "sub"}.get(raised or "", ""),
        font,
        is_hidden,
        is_bold,
    )


def font_and_hiding(
    properties: Any, styles: Mapping[str, Style], of_paragraph: Style
) -> tuple[str | None, bool]:
    """The font of a run, and whether it is hidden, by its own properties and its styles."""
    if properties is None:
        return of_paragraph.font, bool(of_paragraph.is_hidden)
    own = styles.get(value(properties, "rStyle") or "", of_paragraph)
    hidden = (_switch(properties, "vanish"), own.is_hidden, of_paragraph.is_hidden)
    return (
        _font(properties) or own.font or of_paragraph.font,
        next((is_hidden for is_hidden in hidden if is_hidden is not None), False),
    )


def _font(properties: Any) -> str | None:
    fonts = child(properties, "rFonts")
    return attribute(fonts, "ascii") or attribute(fonts, "hAnsi")


def is_bold(properties: Any, styles: Mapping[str, Style], of_paragraph: Style) -> bool:
    """Whether a run is bold, by its own properties and its styles."""
    own = styles.get(value(properties, "rStyle") or "", of_paragraph)
    stated = (_switch(properties, "b"), own.is_bold, of_paragraph.is_bold)
    return next((each for each in stated if each is not None), False)


def _switch(properties: Any, name: str) -> bool | None:
    return None if child(properties, name) is None else is_on(properties, name)
