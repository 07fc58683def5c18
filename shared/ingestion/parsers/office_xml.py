"""Parts that Word, PowerPoint and Excel files share: relationships, charts, diagrams, equations, drawn text.

Elements are found by their local names, since the strict variants of the formats have other namespaces.
"""

import posixpath
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from officemath2latex import process_math_node

from shared.errors import UnreadableDocument
from shared.ingestion.parsers.html_xml import tree
from shared.ingestion.parsers.markdown_table import table
from shared.ingestion.parsers.number_format import shown_number
from shared.ingestion.parsers.parsed_file import description, own_title, read_member
from shared.text.normalize import one_line
from shared.text.roman_numerals import roman
from shared.text.superscripts import script


class Package:
    """An Office file: its parts and the relationships between them."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self._names = {name.lower(): name for name in archive.namelist()}

    def has(self, part: str) -> bool:
        return part.lower() in self._names

    def name(self, part: str) -> str:
        return self._names.get(part.lower(), part)

    def tree(self, part: str) -> Any:
        try:
            return tree(read_member(self.archive, self.name(part)))
        except UnreadableDocument:
            # Without advice about XML, which the user does not see.
            raise UnreadableDocument from None

    def targets(self, part: str) -> dict[str, tuple[str, str]]:
        """(last word of its type, name) of each part of the file that the part names, by id."""
        folder, _, name = part.rpartition("/")
        relationships = f"{folder}/_rels/{name}.rels".lstrip("/")
        if not self.has(relationships):
            return {}
        return {
            element.get("Id"): (
                element.get("Type", "").rpartition("/")[2],
                posixpath.normpath(posixpath.join("/", folder, element.get("Target", ""))).lstrip("/"),
            )
            for element in self.tree(relationships).iter("{*}Relationship")
            if element.get("TargetMode") != "External"
        }

    def target(self, part: str, kind: str) -> str | None:
        """The part that this part names by that type."""
        return next((name for type_, name in self.targets(part).values() if type_ == kind), None)

    def title(self) -> str | None:
        part = self.target("", "core-properties") or "docProps/core.xml"
        if not self.has(part):
            return None
        return next((own_title(title.text) for title in self.tree(part).iter("{*}title") if title.text), None)


def local(element: Any) -> str:
    """The local name; "" for comments and instructions."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def child(element: Any, name: str) -> Any:
    return None if element is None else element.find(f"{{*}}{name}")


def attribute(element: Any, name: str, default: str | None = None) -> str | None:
    """The attribute by its local name."""
    if element is not None:
        for key, value in element.items():
            if key.rpartition("}")[2] == name:
                return str(value)
    return default


def value(element: Any, name: str) -> str | None:
    """The attribute val of a child."""
    return attribute(child(element, name), "val")


def is_on(element: Any, name: str) -> bool:
    """Whether the child, a switch, exists and is not off."""
    switch = child(element, name)
    return switch is not None and attribute(switch, "val", "1") not in ("0", "false", "off")


def chosen(alternatives: Any) -> list[Any]:
    """The children of the first alternative for programs of different age, which all say the same."""
    first = child(alternatives, "Choice")
    return list(first if first is not None else child(alternatives, "Fallback") or ())


def equation(element: Any) -> str:
    """An equation as LaTeX between dollars; its characters where it cannot be written so."""
    with suppress(Exception):
        if latex := one_line(process_math_node(element)):
            return f"${latex}$"
    return one_line("".join(text.text or "" for text in element.iter("{*}t")))


class ScriptedText:
    """Text of runs, with characters, ^ or _ for superscripts and subscripts, which may be several runs."""

    def __init__(self) -> None:
        self._text = ""
        self._kind = self._content = ""

    def add(self, text: str, kind: str = "") -> None:
        """kind: "sup", "sub" or ""."""
        if kind != self._kind:
            self._end_script()
            self._kind = kind
        if kind:
            self._content += text
        else:
            self._text += text

    def text(self) -> str:
        self._end_script()
        return self._text

    def _end_script(self) -> None:
        if self._kind:
            self._text += script(self._kind, self._content, self._text[-3:])
            self._kind = self._content = ""


def drawn_paragraphs(element: Any) -> Iterator[str]:
    """The paragraphs of text in a drawing, automatic numbers and levels included."""
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
        else:
            yield f"{'  ' * (level - 1)}- {text}" if level else text


def _drawn_text(paragraph: Any) -> str:
    text = ScriptedText()
    for run in paragraph:
        name = local(run)
        if name in ("r", "fld"):
            baseline = int(attribute(child(run, "rPr"), "baseline", "0") or 0)
            content = child(run, "t")
            text.add(
                (content.text if content is not None else None) or "",
                "sup" if baseline > 0 else "sub" if baseline < 0 else "",
            )
        elif name == "br":
            text.add(" ")
        elif name in ("AlternateContent", "m"):
            for math in run.iter("{*}oMath"):
                text.add(equation(math))
    return one_line(text.text())


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


def chart(root: Any) -> str:
    """The title of a chart, and its categories and series as a table, as stored in the chart."""
    plot = next(root.iter("{*}plotArea"), root)
    title = next((title for title in root.iter("{*}title") if local(title.getparent()) == "chart"), None)
    heading = "" if title is None else one_line(" ".join(drawn_paragraphs(title)) or _first_value(title))
    categories: dict[int, str] = {}
    names, series = list[str](), list[dict[int, str]]()
    for one in plot.iter("{*}ser"):
        points = _points(one, "val", "yVal")
        categories |= {
            key: text for key, text in _points(one, "cat", "xVal").items() if key not in categories
        }
        sizes = _points(one, "bubbleSize")
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
    parts = [
        heading and f"Chart: {heading}",
        ", ".join(filter(None, axes)) and f"Axes: {', '.join(filter(None, axes))}",
    ]
    return "\n\n".join(filter(None, [*parts, table(rows) if keys else ""]))


def _points(series: Any, *names: str) -> dict[int, str]:
    """The stored points of a dimension of a series, by index. Categories may have several levels."""
    points: dict[int, str] = {}
    for name in names:
        dimension = child(series, name)
        if dimension is None:
            continue
        code = next((code.text for code in dimension.iter("{*}formatCode")), None) or "General"
        for point in dimension.iter("{*}pt"):
            index, text = int(point.get("idx", 0)), _first_value(point)
            own_code = point.get("formatCode") or code
            if local(point.getparent()) in ("numCache", "numLit"):
                with suppress(ValueError, ArithmeticError):
                    text = shown_number(float(text), own_code)
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


def graphic(package: Package, targets: dict[str, tuple[str, str]], element: Any) -> str:
    """The text of the chart or diagram that the element names; "" where the file lacks it."""
    is_diagram = local(element) == "relIds"
    _, part = targets.get(attribute(element, "dm" if is_diagram else "id") or "", ("", ""))
    if not part or not package.has(part):
        return ""
    try:
        root = package.tree(part)
    except UnreadableDocument:
        return ""
    return diagram(root) if is_diagram else chart(root)


def alternative_text(drawing: Any) -> str:
    """The author's description of a picture."""
    for element in drawing.iter("{*}docPr", "{*}cNvPr"):
        if text := description(element.get("descr", "")):
            return f"Picture: {text}"
    return ""
