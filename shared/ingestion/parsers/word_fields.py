"""Characters of symbol fonts, and ticks and choices of old forms, in Word files."""

from contextlib import suppress
from typing import Any

from shared.ingestion.parsers.office_xml import attribute, child, is_on, value

# The letters of the font Symbol, and check marks and boxes of Wingdings.
_SYMBOLS = dict(zip(range(0x41, 0x5B), "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ", strict=True))
_SYMBOLS |= dict(zip(range(0x61, 0x7B), "αβχδεφγηιϕκλμνοπθρστυϖωξψζ", strict=True))
_SYMBOLS |= {
    0xA3: "≤", 0xA5: "∞", 0xAC: "←", 0xAE: "→", 0xB0: "°", 0xB1: "±", 0xB3: "≥", 0xB4: "×", 0xB7: "•",
    0xB8: "÷", 0xB9: "≠", 0xBB: "≈", 0xD6: "√", 0xD9: "∧", 0xDA: "∨", 0xE5: "∑",
}  # fmt: skip
_WINGDINGS = {
    0x6F: "☐",
    0xA8: "☐",
    0xFB: "☒",
    0xFC: "✓",
    0xFD: "☒",
    0xFE: "☑",
    0xE0: "→",
    0xD8: "➢",
    0xA7: "▪",
}


def symbol(font: str, code: str) -> str | None:
    """The character of a symbol font, whose code is hexadecimal; None for an unknown one."""
    with suppress(ValueError):
        number = int(code, 16) & 0xFF
        if font.lower() == "symbol":
            return _SYMBOLS.get(number, chr(number) if 0x20 <= number < 0x41 else None)
        if font.lower().startswith("wingdings"):
            return _WINGDINGS.get(number)
    return None


def form_value(field: Any) -> str:
    """The value of an old form's tick or choice, which has no text of its own."""
    data = child(field, "ffData")
    if (box := child(data, "checkBox")) is not None:
        return "☒" if is_on(box, "checked" if child(box, "checked") is not None else "default") else "☐"
    if (choice := child(data, "ddList")) is not None:
        entries = [attribute(entry, "val") or "" for entry in choice.iter("{*}listEntry")]
        with suppress(ValueError, IndexError):
            return entries[int(value(choice, "result") or value(choice, "default") or 0)]
    return ""
