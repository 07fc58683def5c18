"""Questions of interviews, examinations and FAQs as boundaries."""

import re

from shared.ingestion.chunking.boundaries import Boundary, Break

_BOLD = r"(?:\*\*|__)?"
_QUESTION = re.compile(
    rf"^[ \t]*(?P<heading>#{{1,6}} +)?(?P<said>{_BOLD}(?:Q|Question|QUESTION|Frage|Pregunta)"
    rf"[ \t]?[0-9]{{0,4}}[ \t]?[:.)]{_BOLD}[ \t]*\S.*)$"
    rf"|^[ \t]*{_BOLD}\(?[0-9]{{1,4}}[.)][ \t]+\S.*\?{_BOLD}[ \t]*$"
    r"|^(?P<title>#{1,6} +\S.*\?[ \t*_#]*)$"
    r"|^(?P<bold>\*\*[^*\n]+\?\*\*[ \t]*)$",
    re.MULTILINE,
)
# On a line of its own, or behind its question.
_ANSWER = re.compile(
    rf"(?:^|[ \t]){_BOLD}(?:A|Answer|ANSWER|Antwort|Respuesta)[ \t]?[0-9]{{0,4}}[ \t]?[:.)]{_BOLD}[ \t]"
)
_ANSWERS = re.compile(_ANSWER.pattern.replace("(?:^|[ \t])", r"^[ \t]*"), re.MULTILINE)


def count_answers(text: str) -> int:
    """The number of lines that are marked as answers."""
    return sum(1 for _ in _ANSWERS.finditer(text))


def qa_boundaries(text: str) -> list[Boundary]:
    boundaries: list[Boundary] = []
    for match in _QUESTION.finditer(text):
        line = match.group()
        start = match.start() + len(line) - len(line.lstrip())
        answer = _ANSWER.search(text, start + 1, match.end())
        question = text[start : answer.start() if answer else match.end()].rstrip()
        heading = (match["heading"] or match["title"]) is not None
        end = start + len(question)
        boundaries.append(Boundary(start, end, Break.HARD, is_heading=heading, is_question=True))
    return boundaries
