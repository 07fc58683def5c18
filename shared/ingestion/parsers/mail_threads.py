"""Earlier messages that the text of a mail quotes, each below a heading with its author and date."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile

# "On … wrote:", on one or two lines, and headers of an earlier message, in the languages of common programs:
# English, German, French, Spanish, Italian, Dutch, Portuguese, and those of Scandinavia.
_INTRODUCTION = re.compile(
    r"(?:On|Am|Le|El|Il|Op|Em|Den)\b(?=.{0,60}\d).{8,250}?"
    r"\b(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|escreveu|skrev)\b[^:]{0,80}:\s*"
)
# A header, other than a row of a table, which has bars.
_HEADER = re.compile(r"[*_\s]{0,4}(?P<name>[^\W\d][^:\d|*_]{0,20}?)[*_\s]{0,4}:(?P<value>[^|]*)")
_AUTHOR = {"From", "Von", "De", "Da", "Van", "Från", "Fra"}
_SENT = {
    "Sent", "Gesendet", "Envoyé", "Enviado", "Enviado el", "Enviada em", "Inviato", "Verzonden", "Skickat",
    "Sendt",
}  # fmt: skip
_DATE = {"Date", "Datum", "Fecha", "Data", "Dato"}
_SUBJECT = {"Subject", "Betreff", "Objet", "Asunto", "Oggetto", "Onderwerp", "Assunto", "Ämne", "Emne"}
_NAME = re.compile(r".*@.*|\W*[^\W\d]\D*")
_DIVIDER = re.compile(
    r"\\?_{5,}|-{3,} ?(?:Original Message|Forwarded message|Ursprüngliche Nachricht|Original-Nachricht"
    r"|Weitergeleitete Nachricht|Message d['’]origine|Message original|Message transféré|Mensaje original"
    r"|Mensaje reenviado|Messaggio originale|Messaggio inoltrato|Oorspronkelijk bericht"
    r"|Doorgestuurd bericht|Mensagem original|Mensagem encaminhada|Ursprungligt meddelande"
    r"|Vidarebefordrat meddelande|Opprinnelig melding|Oprindelig meddelelse|Videresendt melding"
    r"|Videresendt meddelelse) ?-{3,}",
    re.IGNORECASE,
)
_MAX_HEADERS = 12
# Marks of quotations. In >= there is none, and in > 5 only if a line beside it has as many.
_MARKS = re.compile(r"(?:>(?!=) ?){0,50}")
_NUMBER = re.compile(r"[-+]?\d")
_CODE = re.compile(r" {0,3}```")


@dataclass(slots=True)
class _Line:
    """A line without its marks of quotations, whose number is `depth`. `next`: the index of the next text."""

    depth: int
    text: str
    is_code: bool
    next: int = 0


@dataclass(slots=True)
class _Introduction:
    """Of a message whose lines have that depth, by so many lines. `headers`: those not in the heading."""

    heading: str
    count: int
    headers: Sequence[str] = field(default_factory=list)
    depth: int = 0


def with_headings(text: str, mark: str, author: str) -> str:
    """The text of a mail by this author, where headings with that mark stand for the lines that introduce
    earlier messages and for the marks of quotations. The heading is repeated where its author goes on. The
    text stays as it is if one of its quotations has no introduction, such as one between answers."""
    lines = _lines(text)
    # The headings by the depth of their lines.
    headings, made = [author], list[str]()
    at, has_earlier = 0, False
    while at < len(lines):
        line = lines[at]
        if introduction := _introduction(lines, at, len(headings)):
            headings[introduction.depth :] = [introduction.heading]
            made += ["", f"{mark} {introduction.heading}", "", *introduction.headers]
            at += introduction.count
            has_earlier = True
            continue
        if line.text:
            goes_on = line.depth < len(headings) - 1
            del headings[line.depth + 1 :]
            if line.depth >= len(headings) or (goes_on and not headings[-1]):
                return text
            made += ["", f"{mark} {headings[-1]}", ""] if goes_on else []
        made.append(line.text)
        at += 1
    return "\n".join(made) if has_earlier else text


def _lines(text: str) -> list[_Line]:
    lines, of_code = list[_Line](), -1
    stored = text.split("\n")
    depths = _depths(stored)
    contents = [_without_marks(line, depth) for line, depth in zip(stored, depths, strict=True)]
    fences = Counter(depth for content, depth in zip(contents, depths, strict=True) if _CODE.match(content))
    for line, marks, unmarked in zip(stored, depths, contents, strict=True):
        # Marks within code are code. The end of a quotation ends its code.
        is_code = 0 <= of_code <= marks
        depth = of_code if is_code else marks
        content = unmarked if depth == marks else _without_marks(line, depth)
        fences[depth] -= (is_fence := bool(_CODE.match(content)))
        # Code that does not end is text.
        of_code = depth if is_code != is_fence and (is_code or fences[depth] > 0) else -1
        lines.append(_Line(depth, content, is_code or is_fence))
    following = len(lines)
    for at in reversed(range(len(lines))):
        lines[at].next = following
        following = at if lines[at].text else following
    return lines


def _without_marks(line: str, depth: int) -> str:
    return re.sub(rf"^(?:> ?){{{depth}}}", "", line).rstrip()


def _depths(lines: Sequence[str]) -> list[int]:
    """The number of marks of each line. Before a number, the last > is one only if the next line with words,
    above or below, has as many."""
    ends = [match.end() if (match := _MARKS.match(line)) else 0 for line in lines]
    depths = [line.count(">", 0, end) for line, end in zip(lines, ends, strict=True)]
    all_marks = [*depths]
    filled = [at for at, (line, end) in enumerate(zip(lines, ends, strict=True)) if line[end:].strip()]
    numbers = {at for at in filled if depths[at] and _NUMBER.match(lines[at], ends[at])}
    for before, at in pairwise([None, *filled]):
        if at in numbers:
            depths[at] -= before is None or depths[before] < depths[at]
    for after, at in pairwise([None, *reversed(filled)]):
        if at in numbers and after is not None and all_marks[at] <= depths[after]:
            depths[at] = all_marks[at]
    return depths


def _introduction(lines: Sequence[_Line], at: int, authors: int) -> _Introduction | None:
    """The lines from there, if they introduce a message. `authors`: how many depths have one."""
    depth = lines[at].depth
    is_divider = bool(_DIVIDER.fullmatch(lines[at].text.strip()))
    below = lines[at + is_divider : at + is_divider + _MAX_HEADERS]
    own = takewhile(lambda line: line.text and line.depth == depth and not line.is_code, below)
    texts = [line.text.strip() for line in own]
    made = None
    if is_divider or not at or not lines[at - 1].text or lines[at - 1].depth < depth:
        made = _by_headers(texts)
    is_clear = bool(made) or depth == authors
    for count in (1, 2) if not is_divider else ():
        line = " ".join(texts[:count])
        if not made and _INTRODUCTION.fullmatch(line):
            made = _Introduction(line.rstrip(": "), count)
            is_clear |= "@" in line
    if not made:
        return None
    made.count += is_divider
    following = lines[at + made.count - 1].next
    if following == len(lines):
        return None
    made.depth = lines[following].depth
    # The text is quoted, or has no marks, as in Outlook.
    is_quoted = made.depth == depth + 1
    is_unmarked = made.depth == depth and is_clear and not lines[following].text.startswith(">")
    return made if made.depth <= authors and (is_quoted or is_unmarked) else None


def _by_headers(texts: Sequence[str]) -> _Introduction | None:
    """By an author, a date, and a time of sending or a subject."""
    headers = [
        (match["name"], match["value"].strip("*_ \t"))
        for match in takewhile(bool, map(_HEADER.fullmatch, texts))
        if match
    ]
    names = [name for name, _ in headers]
    dates = [at for at, name in enumerate(names) if name in _SENT | _DATE]
    if not dates or names[0] not in _AUTHOR or not _NAME.fullmatch(headers[0][1]):
        return None
    if (_SENT | _SUBJECT).isdisjoint(names):
        return None
    others = [text for at, text in enumerate(texts[: len(names)]) if at not in (0, dates[0])]
    return _Introduction(f"{headers[0][1]}, {headers[dates[0]][1]}", len(names), others)
