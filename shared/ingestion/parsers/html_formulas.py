"""Formulas in MathML as LaTeX, or as one line."""

from typing import Any

from shared.ingestion.parsers.html_text import text_of
from shared.text.normalize import one_line
from shared.text.superscripts import script


def formula(element: Any) -> str:
    """MathML as its LaTeX, if it has it, or as one line."""
    notes = element.iter("annotation")
    tex = next((text_of(note) for note in notes if "tex" in note.get("encoding", "")), "")
    tex = (tex or element.get("alttext") or "").strip().removeprefix("{\\displaystyle").strip()
    if tex:
        return f"${tex.removesuffix('}').rstrip() if tex.count('}') > tex.count('{') else tex}$"
    return one_line(_line(element))


def _line(element: Any) -> str:
    parts = [_line(child) for child in element if isinstance(child.tag, str)]
    match element.tag, parts:
        case "mfrac", [above, below]:
            return f"{_group(above)}/{_group(below)}"
        case "msqrt", _:
            return f"√{_group(''.join(parts))}"
        case "mroot", [base, degree]:
            return f"{script('sup', degree, '')}√{_group(base)}"
        case "msub" | "munder", [base, index]:
            return base + script("sub", index, base)
        case "msup" | "mover", [base, exponent]:
            return base + script("sup", exponent, base)
        case "msubsup" | "munderover", [base, index, exponent]:
            return base + script("sub", index, base) + script("sup", exponent, base)
        case "mtr", _:
            return f"{', '.join(parts)}; "
        case "mstack" | "msgroup" | "mlongdiv", _:
            return " ".join(parts)
        case "mo", _:
            sign = (element.text or "").strip()
            return f" {sign} " if sign in "=<>≤≥≈≠→+−-±×·" else sign
    return "".join(parts) or (element.text or "").strip()


def _group(text: str) -> str:
    return text if text.isalnum() else f"({text.strip()})"
