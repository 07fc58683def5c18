"""Numbers of HTML lists as browsers show them."""

import re
from typing import Any

from shared.text.roman_numerals import roman

_STYLE = re.compile(r"list-style(?:-type)?\s*:\s*(?:inside\s+|outside\s+)?([\w-]+)", re.IGNORECASE)
_TYPES = {"a": "lower-alpha", "A": "upper-alpha", "i": "lower-roman", "I": "upper-roman", "1": "decimal"}


def write_numbers(items: Any, *, is_in_cell: bool = False) -> None:
    """Write the numbers of a list as text, unless Markdown counts in the same way."""
    rows = items.findall("li")
    style = _style_of(items) or "decimal"
    number, step = _integer(items.get("start")), -1 if items.get("reversed") is not None else 1
    number = (len(rows) if step < 0 else 1) if number is None else number
    numbers: list[str] = []
    for row in rows:
        own = _integer(row.get("value"))
        number = number if own is None else own
        numbers.append(_number(number, _style_of(row) or style))
        number += step
    start = _integer(numbers[0]) if numbers else None
    if not is_in_cell and start is not None and numbers == [str(start + at) for at in range(len(numbers))]:
        items.set("start", str(start))
        return
    items.tag = "ul"
    for row, text in zip(rows, numbers, strict=True):
        first = row
        while not (first.text or "").strip() and len(first) and first[0].tag in ("p", "div"):
            first = first[0]
        first.text = f"{text}. {(first.text or '').lstrip()}" if text else first.text


def _style_of(element: Any) -> str:
    styles = _STYLE.search(element.get("style") or "")
    return styles[1].lower() if styles else _TYPES.get(element.get("type") or "", "")


def _integer(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\s*[+-]?\d{1,9}\s*", text) else None


def _number(number: int, style: str) -> str:
    """The number in a style of CSS; empty for a style without numbers."""
    if style in ("none", "disc", "circle", "square"):
        return ""
    if style.endswith("-roman") and 0 < number < 4000:
        return roman(number) if style.startswith("upper") else roman(number).lower()
    if style.endswith(("-alpha", "-latin")) and number > 0:
        letters = ""
        while number:
            number, letter = divmod(number - 1, 26)
            letters = chr(ord("A") + letter) + letters
        return letters if style.startswith("upper") else letters.lower()
    return f"{number:02}" if style == "decimal-leading-zero" else str(number)
