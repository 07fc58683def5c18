"""Characters of symbol fonts as Unicode.

A letter in such a font is another character: the letter m of the font Symbol is μ.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from shared.ingestion.parsers.office_xml import attribute
from shared.ingestion.parsers.parsed_file import counted

UNKNOWN = "\ufffd"
_PRIVATE = re.compile("[\ue000-\uf8ff]")


def _table(text: str, first: int) -> dict[int, str]:
    return {first + index: character for index, character in enumerate(text) if character != UNKNOWN}


_CHECKS = {"a": "✔", "r": "✖", "c": "☐", "g": "■", "n": "●", "=": "•"}
# By the code of the character. Symbol is complete; the next have bullets, ticks, boxes, arrows and numbers;
# the last have spaces.
_FONTS: Mapping[str, Mapping[int, str]] = {
    "symbol": _table(
        " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼",
        0x20,
    )
    | _table(
        "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊⟨®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪\ufffd⟩∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭",
        0xA0,
    ),
    "wingdings": _table("⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿", 0x80)
    | _table("⇦⇨⇧⇩⬄⇳⬁⬀⬃⬂", 0xEF)
    | {
        0x20: " ", 0x28: "☎", 0x2A: "✉", 0x45: "☜", 0x46: "☞", 0x4A: "☺", 0x4B: "😐", 0x4C: "☹", 0x6C: "●",
        0x6D: "❍", 0x6E: "■", 0x6F: "☐", 0x71: "❑", 0x72: "❒", 0x74: "⬧", 0x75: "◆", 0x76: "❖", 0x77: "⬥",
        0x9E: "·", 0x9F: "•", 0xA1: "○", 0xA7: "▪", 0xA8: "☐", 0xAB: "★", 0xD8: "➢", 0xDF: "←", 0xE0: "→",
        0xE1: "↑", 0xE2: "↓", 0xE8: "➔", 0xFB: "☒", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
    },
    "wingdings 2": {
        0x20: " ", 0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0x97: "●", 0xA3: "☐",
    },
    "webdings": {0x20: " ", **{ord(letter): shown for letter, shown in _CHECKS.items()}},
    **{name: {0x20: " "} for name in ("wingdings 3", "marlett", "mt extra", "zapfdingbats", "zapf dingbats")},
}  # fmt: skip


def symbols(text: str, font: str | None) -> str:
    """The text in that font as Unicode characters; U+FFFD for those that have none."""
    table = _FONTS.get(font.lower()) if font else None
    if table is None:
        # Private characters have a meaning in their own font alone.
        return _PRIVATE.sub(UNKNOWN, text)
    return "".join(
        table.get(code & 0xFF, UNKNOWN)
        if 0x20 <= (code := ord(character)) < 0x100 or 0xF000 <= code < 0xF100
        else _PRIVATE.sub(UNKNOWN, character)
        for character in text
    )


def symbol(element: Any) -> str:
    """The character of a Word element sym, which names its font."""
    with suppress(ValueError):
        return symbols(chr(int(attribute(element, "char") or "", 16)), attribute(element, "font"))
    return UNKNOWN


def unread_symbols(*texts: str) -> list[str]:
    """A note about the symbols without a Unicode character."""
    number = sum(text.count(UNKNOWN) for text in texts)
    return counted(number, "symbol", "symbols", "of a special font could not be read.")
