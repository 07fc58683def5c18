"""Equations of Office files as LaTeX (ECMA-376, 22.1)."""

import re
import unicodedata
from collections.abc import Callable
from typing import Any

from shared.ingestion.parsers.office_xml import attribute, child, is_on, local, value
from shared.ingestion.parsers.symbol_fonts import symbol, symbols
from shared.text.normalize import one_line

_FUNCTIONS = {
    "arccos", "arcsin", "arctan", "arg", "cos", "cosh", "cot", "coth", "csc", "deg", "det", "dim", "exp",
    "gcd", "inf", "ker", "lg", "lim", "ln", "log", "max", "min", "sec", "sin", "sinh", "sup", "tan", "tanh",
}  # fmt: skip
_OPERATORS = {
    "∑": "\\sum", "∏": "\\prod", "∐": "\\coprod", "∫": "\\int", "∬": "\\iint", "∭": "\\iiint", "∮": "\\oint",
    "⋃": "\\bigcup", "⋂": "\\bigcap", "⋁": "\\bigvee", "⋀": "\\bigwedge",
}  # fmt: skip
_ACCENTS = {
    "\u0300": "grave", "\u0301": "acute", "\u0302": "hat", "\u0303": "tilde", "\u0304": "bar",
    "\u0305": "overline", "\u0306": "breve", "\u0307": "dot", "\u0308": "ddot", "\u030c": "check",
    "\u20d6": "overleftarrow", "\u20d7": "vec", "\u20db": "dddot", "\u20e1": "overleftrightarrow",
}  # fmt: skip
_BRACES = {"⏞": "overbrace", "⏟": "underbrace"}
# Word shows neither deletions nor properties.
_NOT_SHOWN = re.compile(r"del|moveFrom|\w+Pr")
_SPECIAL = re.compile(r"[#$%{}_]")
# The application of a function, multiplication, separation and addition.
_INVISIBLE = re.compile("[\u2061-\u2064]")
_ESCAPED = r"\\\g<0>"
_STACKED = "\\genfrac{}{}{0pt}{}"


def equation(element: Any) -> str:
    """An equation as LaTeX between dollars."""
    latex = one_line(_latex(element))
    return f"${latex}$" if latex else ""


def _latex(element: Any) -> str:
    """The LaTeX of the elements within."""
    return "" if element is None else "".join(map(_written, element))


def _written(element: Any) -> str:
    name = local(element)
    properties = child(element, f"{name}Pr")
    if not name or _NOT_SHOWN.fullmatch(name):
        return ""
    if name == "r":
        return _run(element)
    is_deleted = child(child(properties, "ctrlPr"), "del") is not None
    write = None if is_deleted else _STRUCTURES.get(name)
    return write(element, properties) if write else _latex(element)


def _run(run: Any) -> str:
    # The properties of the equation's run and of the paragraph's have one name.
    own = [part for part in run if local(part) == "rPr"]
    if any(is_on(part, "vanish") or child(part, "del") is not None for part in own):
        return ""
    font = next((attribute(child(part, "rFonts"), "ascii") for part in own), None)
    text = "".join(
        symbol(part) if local(part) == "sym" else symbols(part.text or "", font)
        for part in run
        if local(part) in ("t", "sym")
    )
    # PowerPoint writes italic letters as characters of their own.
    text = re.sub("[\U0001d400-\U0001d7ff]+", lambda match: unicodedata.normalize("NFKC", match[0]), text)
    # Text with commands is LaTeX that its author typed.
    text = _INVISIBLE.sub("", text if "\\" in text else _SPECIAL.sub(_ESCAPED, text))
    if text.strip() in _FUNCTIONS:
        return f"\\{text.strip()} "
    if any(is_on(part, "nor") for part in own) and " " in text.strip():
        return f"\\text{{{text}}}"
    return f"\\mathbf{{{text}}}" if any(value(part, "sty") == "b" for part in own) else text


def _argument(element: Any, name: str) -> str:
    return _latex(child(element, name)).strip()


def _arguments(element: Any) -> list[str]:
    return [_latex(part).strip() for part in element if local(part) == "e"]


def _scripts(element: Any) -> str:
    lower, upper = _argument(element, "sub"), _argument(element, "sup")
    return (f"_{{{lower}}}" if lower else "") + (f"^{{{upper}}}" if upper else "")


def _with_scripts(element: Any, _properties: Any) -> str:
    base = _argument(element, "e")
    return (f"{{{base}}}" if re.search(r"[_^]\{[^{}]*\}$", base) else base) + _scripts(element)


def _fraction(element: Any, properties: Any) -> str:
    above, below = _argument(element, "num"), _argument(element, "den")
    kind = value(properties, "type")
    if kind == "lin":
        return f"{_grouped(above)}/{_grouped(below)}"
    command = _STACKED if kind == "noBar" else "\\frac"
    return f"{command}{{{above}}}{{{below}}}"


def _grouped(part: str) -> str:
    return f"({part})" if re.search(r"[^\w.,\\]", part) else part


def _delimited(element: Any, properties: Any) -> str:
    # An empty value is no character, in contrast to none.
    first, separator, last = (
        default if (sign := value(properties, name)) is None else sign
        for name, default in (("begChr", "("), ("sepChr", "|"), ("endChr", ")"))
    )
    inner = f" {_SPECIAL.sub(_ESCAPED, separator)} ".join(_arguments(element))
    parts = [local(part) for argument in element if local(argument) == "e" for part in argument]
    if (first, last) == ("(", ")") and parts == ["f"] and inner.startswith(_STACKED):
        return inner.replace(_STACKED, "\\binom", 1)
    return f"\\left{_side(first)} {inner} \\right{_side(last)}"


def _side(character: str) -> str:
    return _SPECIAL.sub(_ESCAPED, character) or "."


def _operator(element: Any, properties: Any) -> str:
    sign = value(properties, "chr") or "∫"
    return f"{_OPERATORS.get(sign, sign)}{_scripts(element)} {_argument(element, 'e')}"


def _root(element: Any, properties: Any) -> str:
    degree = "" if is_on(properties, "degHide") else _argument(element, "deg")
    return f"\\sqrt{f'[{degree}]' if degree else ''}{{{_argument(element, 'e')}}}"


def _limit(element: Any, _properties: Any) -> str:
    base, limit = _argument(element, "e"), _argument(element, "lim")
    is_upper = local(element) == "limUpp"
    if base.lstrip("\\") in _FUNCTIONS or "brace{" in base:
        return f"{base}{'^' if is_upper else '_'}{{{limit}}}"
    return f"\\{'over' if is_upper else 'under'}set{{{limit}}}{{{base}}}"


def _accented(element: Any, properties: Any) -> str:
    sign = value(properties, "chr") or "\u0302"
    name = _ACCENTS.get(sign, f"overset{{{sign}}}")
    return f"\\{name}{{{_argument(element, 'e')}}}"


def _grouping(element: Any, properties: Any) -> str:
    sign, inner = value(properties, "chr") or "⏟", _argument(element, "e")
    if sign in _BRACES:
        return f"\\{_BRACES[sign]}{{{inner}}}"
    is_above = value(properties, "pos") == "top"
    return f"\\{'over' if is_above else 'under'}set{{{sign}}}{{{inner}}}"


def _bar(element: Any, properties: Any) -> str:
    kind = "overline" if value(properties, "pos") == "top" else "underline"
    return f"\\{kind}{{{_argument(element, 'e')}}}"


def _matrix(element: Any, _properties: Any) -> str:
    return _rows("matrix", [" & ".join(_arguments(row)) for row in element if local(row) == "mr"])


def _lines(element: Any, _properties: Any) -> str:
    rows = _arguments(element)
    return _rows("aligned", rows) if len(rows) > 1 else "".join(rows).replace("&", "")


def _rows(environment: str, rows: list[str]) -> str:
    lines = " \\\\ ".join(rows)
    return f"\\begin{{{environment}}} {lines} \\end{{{environment}}}"


def _function(element: Any, _properties: Any) -> str:
    return f"{_argument(element, 'fName')}{{{_argument(element, 'e')}}}"


_STRUCTURES: dict[str, Callable[[Any, Any], str]] = {
    "sSup": _with_scripts, "sSub": _with_scripts, "sSubSup": _with_scripts,
    "sPre": lambda element, _: f"{{}}{_scripts(element)}{_argument(element, 'e')}",
    "f": _fraction, "d": _delimited, "nary": _operator, "rad": _root, "limLow": _limit, "limUpp": _limit,
    "acc": _accented, "groupChr": _grouping, "bar": _bar, "m": _matrix, "eqArr": _lines, "func": _function,
    "borderBox": lambda element, _: f"\\boxed{{{_argument(element, 'e')}}}",
    "phant": lambda element, properties: (
        "" if value(properties, "show") in ("0", "off", "false") else _argument(element, "e")
    ),
}  # fmt: skip
