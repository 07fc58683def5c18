"""Superscripts and subscripts in plain text: 10⁶, m³, Al₂O₃, remark⁴, V_max, e^(-kt)."""

import re

# Elements in elements: the time is that of a pass for each level.
MAX_DEPTH = 10
_SIGNS = "0123456789+-−=()"
_SUPERSCRIPTS = dict(zip(_SIGNS, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾", strict=True))
_SUBSCRIPTS = dict(zip(_SIGNS, "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎", strict=True))
# Marks of notes and brands stay as they are, and so do the ends of ordinals and abbreviations: 4th, 1er, Mme.
_MARK = re.compile(r"[^\w+=()−-]+|\[.*|TM|SM|[ªº]", re.DOTALL)
_ENDING = re.compile(
    r"(?:st|nd|rd|th|e|ers?|res?|[eè]me|[eè]re|os?|as?|de|te|ste|me|mes|lles?)\.?", re.IGNORECASE
)
_ENDS = re.compile(r"(?:\d\.?|\b[MNmn])$")
# Elements within are replaced first.
_ELEMENT = re.compile(r"<(su[pb])(?:\s[^<>]*)?>((?:(?!</?su[pb]\b)[^\n]){0,80}?)</\1>", re.IGNORECASE)


def markdown_with_scripts(text: str) -> str:
    """The text of Markdown with_scripts, except lines with code."""
    lines, is_code = text.splitlines(keepends=True), False
    for index, line in enumerate(lines):
        if line.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code and "`" not in line:
            lines[index] = with_scripts(line)
    return "".join(lines)


def with_scripts(text: str) -> str:
    """The text with characters, ^ or _ instead of the HTML elements sup and sub."""
    for _ in range(MAX_DEPTH):
        if (rest := _ELEMENT.sub(_written, text)) == text:
            break
        text = rest
    return text


def _written(element: re.Match[str]) -> str:
    return script(element[1], element[2], element.string[max(0, element.start() - 3) : element.start()])


def script(name: str, content: str, before: str) -> str:
    """The content of an element sup or sub that follows the text `before`: Unicode characters where each
    character has one, else ^ or _, with parentheses where they are needed."""
    inner = content.strip()
    characters, mark = (_SUPERSCRIPTS, "^") if name.lower() == "sup" else (_SUBSCRIPTS, "_")
    if mark == "^" and before[-1:].isalpha():
        # The numbers of several notes.
        characters = {**characters, ",": ",", " ": " "}
    if all(character in characters for character in inner):
        written = "".join(characters[character] for character in inner)
    elif not before.strip() or _MARK.fullmatch(inner) or _is_ending(mark, inner, before):
        written = inner
    else:
        needs_none = len(inner) == 1 or (mark == "_" and inner.isalpha())
        written = f"{mark}{inner}" if needs_none else f"{mark}({inner})"
    return content.replace(inner, written, 1) if inner else content


def _is_ending(mark: str, inner: str, before: str) -> bool:
    return mark == "^" and bool(_ENDING.fullmatch(inner) and _ENDS.search(before[-3:]))
