"""Drawings of Office files: paragraphs of text, charts, diagrams, descriptions of pictures."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from typing import Any

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.markdown_table import table
from shared.ingestion.parsers.number_format import Separators, is_percentage, shown_number
from shared.ingestion.parsers.office_equations import equation
from shared.ingestion.parsers.office_xml import Package, attribute, child, is_on, local, unescaped, value
from shared.ingestion.parsers.parsed_file import description
from shared.ingestion.parsers.symbol_fonts import symbols
from shared.text.normalize import one_line
from shared.text.roman_numerals import roman
from shared.text.superscripts import script

# Fields whose text is a placeholder, in the language of the program: those of slides and of labels in charts.
_PLACEHOLDERS = {
    "slidenum", "VALUE", "XVALUE", "YVALUE", "BUBBLESIZE", "PERCENTAGE", "CATEGORYNAME", "SERIESNAME",
    "CELLRANGE", "CELLREF",
}  # fmt: skip
# The digits of the format General.
_PERCENTAGE = "0.########%"


class ScriptedText:
    """Text of runs, with characters, ^ or _ for superscripts and subscripts, which may be several runs, and
    ~~ around struck words, scripts among them."""

    def __init__(self) -> None:
        # The text before struck words, and these.
        self._before = self._text = ""
        self._kind = self._content = ""
        self._is_struck = False

    def add(self, text: str, kind: str = "", is_struck: bool = False) -> None:
        """kind: "sup", "sub" or ""."""
        if kind != self._kind or is_struck != self._is_struck:
            self._end_script()
            self._kind = kind
        if is_struck != self._is_struck:
            self._end_struck()
            self._is_struck = is_struck
        if kind:
            self._content += text
        else:
            self._text += text

    def text(self) -> str:
        self._end_script()
        self._end_struck()
        return self._before

    def _end_script(self) -> None:
        if self._kind:
            self._text += script(self._kind, self._content, (self._text or self._before)[-3:])
        self._kind = self._content = ""

    def _end_struck(self) -> None:
        self._before += struck(self._text) if self._is_struck else self._text
        self._text, self._is_struck = "", False


def struck(text: str) -> str:
    inner = text.strip()
    return text.replace(inner, f"~~{inner}~~", 1) if inner else text


def drawn_paragraphs(element: Any, inherits_bullet: Callable[[int], bool] | None = None) -> Iterator[str]:
    """The paragraphs of text in a drawing, automatic numbers and levels included, and bullets if it is known
    which levels inherit one."""
    counts: dict[int, int] = {}
    for paragraph in element.iter("{*}p"):
        text = _drawn_text(paragraph)
        properties = child(paragraph, "pPr")
        level = int(attribute(properties, "lvl", "0") or 0)
        numbered = child(properties, "buAutoNum")
        counts = {key: count for key, count in counts.items() if key < level + (numbered is not None)}
        if not text:
            continue
        if numbered is not None:
            counts[level] = counts.get(level, int(attribute(numbered, "startAt", "1") or 1) - 1) + 1
            yield "  " * level + f"{_auto_number(counts[level], attribute(numbered, 'type') or '')} {text}"
        elif inherits_bullet and (inherits_bullet(level) if (own := has_bullet(properties)) is None else own):
            yield f"{'  ' * level}- {text}"
        else:
            yield f"{'  ' * (level - 1)}- {text}" if level else text


def has_bullet(properties: Any) -> bool | None:
    """Whether the properties of a paragraph state a bullet; None where they state nothing."""
    if child(properties, "buNone") is not None:
        return False
    return True if any(child(properties, name) is not None for name in ("buChar", "buBlip")) else None


def _drawn_text(paragraph: Any) -> str:
    text = ScriptedText()
    for run in paragraph:
        name = local(run)
        if name == "r" or (name == "fld" and run.get("type") not in _PLACEHOLDERS):
            properties = child(run, "rPr")
            baseline = int(attribute(properties, "baseline", "0") or 0)
            content = child(run, "t")
            text.add(
                _in_font(unescaped((content.text if content is not None else None) or ""), properties),
                "sup" if baseline > 0 else "sub" if baseline < 0 else "",
                (attribute(properties, "strike") or "noStrike") != "noStrike",
            )
        elif name == "br":
            text.add(" ")
        elif name == "m":
            for math in run.iter("{*}oMath"):
                text.add(equation(math))
    return one_line(text.text())


def _in_font(text: str, properties: Any) -> str:
    """The font for symbols has the private characters only, the other font has the letters too."""
    font, of_symbols = (attribute(child(properties, name), "typeface") for name in ("latin", "sym"))
    if of_symbols:
        text = re.sub("[\uf000-\uf0ff]+", lambda match: symbols(match[0], of_symbols), text)
    return symbols(text, font)


def _auto_number(number: int, kind: str) -> str:
    if kind.startswith("roman"):
        text = roman(number)
    elif kind.startswith("alpha"):
        text = letters(number)
    else:
        text = str(number)
    text = text if "Uc" in kind else text.lower()
    return f"({text})" if "ParenBoth" in kind else f"{text})" if "ParenR" in kind else (
        text if kind.endswith("Plain") else f"{text}."
    )  # fmt: skip


def letters(number: int) -> str:
    """A to Z, then AA, BB."""
    return chr(65 + (number - 1) % 26) * min((number - 1) // 26 + 1, 100)


def chart(root: Any, separators: Separators) -> str:
    """The title of a chart, and its categories and series as a table, as stored in the chart."""
    plot = next(root.iter("{*}plotArea"), root)
    title = next((title for title in root.iter("{*}title") if local(title.getparent()) == "chart"), None)
    heading = "" if title is None else one_line(" ".join(drawn_paragraphs(title)) or _first_value(title))
    categories: dict[int, str] = {}
    names, series = list[str](), list[dict[int, str]]()
    for one, code in _series(plot):
        points = _points(one, separators, code, "val", "yVal")
        categories |= {
            key: text
            for key, text in _points(one, separators, "General", "cat", "xVal").items()
            if key not in categories
        }
        sizes = _points(one, separators, "General", "bubbleSize")
        name = _first_value(child(one, "tx")) or (heading if not names else f"Series {len(names) + 1}")
        for label, column in ((name, points), (f"{name} (size)", sizes)):
            if column:
                names.append(label)
                series.append(column)
    # The points of the newer kinds of charts, such as waterfalls.
    for data in root.iter("{*}chartData"):
        for dimension in data.iter("{*}strDim", "{*}numDim"):
            column = {int(point.get("idx", 0)): point.text or "" for point in dimension.iter("{*}pt")}
            if local(dimension) == "strDim" and not categories:
                categories = column
            elif column:
                names.append(heading or "Value")
                series.append(column)
    keys = sorted(set(categories).union(*series)) if series else []
    rows = [["", *names], *([categories.get(key, ""), *(one.get(key, "") for one in series)] for key in keys)]
    axes = [
        one_line(" ".join(drawn_paragraphs(title)))
        for title in plot.iter("{*}title")
        if local(title.getparent()).endswith("Ax")
    ]
    labels = [
        one_line(" ".join(drawn_paragraphs(label)))
        for label in plot.iter("{*}dLbl")
        if child(child(label, "tx"), "rich") is not None
    ]
    # Without their fields, labels may have separators only. The text of labels from cells is stored apart.
    labels = [label for label in labels if re.search(r"\w", label)]
    labels += [
        _first_value(point) for cells in plot.iter("{*}dlblRangeCache") for point in cells.iter("{*}pt")
    ]
    parts = [
        heading and f"Chart: {heading}",
        ", ".join(filter(None, axes)) and f"Axes: {', '.join(filter(None, axes))}",
        ", ".join(filter(None, labels)) and f"Labels: {', '.join(filter(None, labels))}",
    ]
    return "\n\n".join(filter(None, [*parts, table(rows) if keys else ""]))


def _series(plot: Any) -> Iterator[tuple[Any, str]]:
    """The series of a chart, each with the format of its values that have the format General."""
    axes = {value(axis, "axId"): axis for axis in plot.iter("{*}valAx")}
    for group, of_group in groupby(plot.iter("{*}ser"), key=lambda series: series.getparent()):
        ids = [attribute(axis, "val") for axis in group.iterchildren("{*}axId")]
        # The first axis of points has their x values. A stacked share of 100 % has the format of the axis.
        axis = next((axes[id_] for id_ in reversed(ids) if id_ in axes), None)
        axis = None if value(group, "grouping") == "percentStacked" else axis
        common = child(group, "dLbls")
        for series in of_group:
            own = child(series, "dLbls")
            yield series, _general_format(common if own is None else own, axis)


def _general_format(labels: Any, axis: Any) -> str:
    """The format of values in General: in percent where the labels that show them, or else their axis, have
    such a format of their own. Other formats may hide or round values."""
    shows_values = is_on(labels, "showVal") and not is_on(labels, "showPercent")
    for place in (labels if shows_values else None, axis):
        format_ = child(place, "numFmt")
        if attribute(format_, "sourceLinked", "1") in ("0", "false"):
            return _PERCENTAGE if is_percentage(attribute(format_, "formatCode") or "") else "General"
    return "General"


def _points(series: Any, separators: Separators, in_general: str, *names: str) -> dict[int, str]:
    """The stored points of a dimension of a series, by index. Categories may have several levels.
    `in_general`: the format of values in General."""
    points: dict[int, str] = {}
    for name in names:
        dimension = child(series, name)
        if dimension is None:
            continue
        code = next((code.text for code in dimension.iter("{*}formatCode")), None) or "General"
        code = in_general if code == "General" else code
        for point in dimension.iter("{*}pt"):
            index, text = int(point.get("idx", 0)), _first_value(point)
            own_code = point.get("formatCode") or code
            if local(point.getparent()) in ("numCache", "numLit"):
                with suppress(ValueError, ArithmeticError):
                    text = shown_number(float(text), own_code, separators=separators)
            # The first level is the innermost.
            points[index] = f"{text} {points[index]}" if index in points else text
    return points


def _first_value(element: Any) -> str:
    if element is None:
        return ""
    return one_line(next((value.text or "" for value in element.iter("{*}v")), ""))


def diagram(root: Any) -> str:
    """The texts of a SmartArt diagram, in the order of its points."""
    texts = list[str]()
    for point in root.iter("{*}pt"):
        # Connections and presentation points show no text of their own.
        if point.get("type", "node") in ("node", "asst", "doc") and (body := child(point, "t")) is not None:
            texts += drawn_paragraphs(body)
    return "\n".join(f"- {text}" for text in texts)


def graphic(
    package: Package, targets: dict[str, tuple[str, str]], element: Any, separators: Separators
) -> str:
    """The text of the chart or diagram that the element names; "" where the file lacks it."""
    is_diagram = local(element) == "relIds"
    _, part = targets.get(attribute(element, "dm" if is_diagram else "id") or "", ("", ""))
    if not part or not package.has(part):
        return ""
    try:
        root = package.tree(part)
    except UnreadableDocument:
        return ""
    return diagram(root) if is_diagram else chart(root, separators)


def alternative_text(drawing: Any) -> str:
    """The author's description of a picture."""
    for element in drawing.iter("{*}docPr", "{*}cNvPr"):
        if text := description(element.get("descr", "")):
            return f"Picture: {text}"
    return ""
