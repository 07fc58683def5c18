"""Earlier messages that the text of a mail quotes, each below a heading with its author and date."""

import re
from collections import deque
from itertools import groupby, islice

# "On … wrote:", on one or two lines, and headers of an earlier message, in the languages of common programs.
_INTRODUCTION = re.compile(
    r"(?:On|Am|Le|El|Il|Op|Em|Den)\b(?=.{0,60}\d).{8,250}?"
    r"\b(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|escreveu|skrev)\b[^:]{0,80}:\s*"
)
_AUTHOR = re.compile(r"\W{0,4}(?:From|Von|De|Da|Van|Från|Fra)\W{0,3}:(.+)")
_DATE = re.compile(
    r"\W{0,4}(?:Sent|Date|Gesendet|Datum|Envoyé|Enviado|Fecha|Inviato|Data|Verzonden|Skickat|Sendt)\W{0,3}:(.+)"
)
_DIVIDER = re.compile(r"-{3,} ?[^-]{4,40}-{3,}|_{5,}")
_MARKS = re.compile(r"(?:> ?)*")
# As many lines behind the author of an earlier message may have its date.
_HEADERS = 4


def with_headings(text: str, mark: str, author: str) -> str:
    """The text of a mail by this author, where headings with that mark stand for the lines that introduce
    earlier messages and for the marks of quotations. Answers between quoted lines stay as they are."""
    lines = deque((line.startswith(">"), _MARKS.sub("", line, count=1).rstrip()) for line in text.split("\n"))
    changes = [is_quoted for is_quoted, _ in groupby(is_quoted for is_quoted, line in lines if line)]
    if len(changes) > 3 or changes == [True, False, True]:
        return text
    made: list[str] = []
    has_earlier = was_quoted = False
    while lines:
        is_quoted, line = lines.popleft()
        below, start = [other.lstrip() for _, other in islice(lines, _HEADERS)], line.lstrip()
        sender, dates = _AUTHOR.fullmatch(start), [*map(_DATE.fullmatch, below)]
        date = next(filter(None, dates), None)
        heading = start if _INTRODUCTION.fullmatch(start) else ""
        if sender and date:
            heading = ", ".join(part.strip("*_ \t") for part in (sender[1], date[1]))
            del lines[dates.index(date)]
        elif below and not heading and _INTRODUCTION.fullmatch(f"{start} {below[0]}"):
            lines.popleft()
            heading = f"{start} {below[0]}"
        has_earlier |= bool(heading)
        if heading:
            made += ["", f"{mark} {heading.rstrip(': ')}", ""]
        elif not _DIVIDER.fullmatch(start):
            made += ["", f"{mark} {author}", ""] if was_quoted and line and not is_quoted else []
            made.append(line)
        was_quoted = is_quoted or (was_quoted and not line)
    return "\n".join(made) if has_earlier else text
