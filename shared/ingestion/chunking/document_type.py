"""Document types and their boundaries, by metadata or else by the text."""

import re
from collections.abc import Mapping
from typing import Any

from shared.ingestion.chunking.academic import academic_boundaries, is_paper
from shared.ingestion.chunking.boundaries import Boundary
from shared.ingestion.chunking.legal import legal_boundaries, provisions_in
from shared.ingestion.chunking.qa import count_answers, qa_boundaries

_BOUNDARIES = {"legal": legal_boundaries, "academic": academic_boundaries, "qa": qa_boundaries}
DOCUMENT_TYPES = frozenset({*_BOUNDARIES, "table", "general"})
TABLES = {"csv", "xlsx"}
_ROW = re.compile(r"^\|", re.MULTILINE)
_LINE = re.compile(r"^[^\n]*\S", re.MULTILINE)
_LEGAL_WORDS = re.compile(
    r"\b(?:shall|hereby|herein\w*|hereof|thereof|thereto|pursuant|notwithstanding|indemnif\w+|liabilit\w+|parties"
    r"|agreement|regulation|directive|statute|jurisdiction|lessee|lessor|licensor|licensee|data subject"
    r"|vertrag\w*|haftung|gesetz\w*|kündigung|contrat|loi|contrato|ley)\b",
    re.IGNORECASE,
)
_QUESTIONS_TITLE = re.compile(r"\b(?:faqs?|q ?& ?a|frequently asked|häufige fragen)\b", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6} +\S.*$", re.MULTILINE)


def boundaries_in(text: str, document_type: str) -> list[Boundary]:
    """The boundaries in order, at most one at a position. Tables and general texts have none."""
    find = _BOUNDARIES.get(document_type)
    by_start = {boundary.start: boundary for boundary in find(text)} if find else {}
    return [by_start[start] for start in sorted(by_start)]


def document_type_of(metadata: Mapping[str, Any], text: str, kind: str | None, title: str) -> str:
    """The type in the metadata, else by the text, else `general`.

    `table`: a spreadsheet, or five rows and little else. `academic`: an abstract near the beginning and
    references near the end. `legal`: three different provisions, and legal terms as one percent of the words,
    five at least. `qa`: three questions with marked answers, under such a title, or as most of the headings.
    """
    declared = metadata.get("document_type")
    if isinstance(declared, str) and declared in DOCUMENT_TYPES:
        return declared
    if kind in TABLES or _is_table(text):
        return "table"
    if is_paper(text):
        return "academic"
    if _is_legal(text):
        return "legal"
    return "qa" if _is_qa(text, title) else "general"


def _is_table(text: str) -> bool:
    rows = sum(1 for _ in _ROW.finditer(text)) if "|" in text else 0
    return rows >= 5 and rows >= 0.8 * sum(1 for _ in _LINE.finditer(text))


def _is_legal(text: str) -> bool:
    if len(provisions_in(text)) < 3:
        return False
    return sum(1 for _ in _LEGAL_WORDS.finditer(text)) >= max(5, text.count(" ") / 100)


def _is_qa(text: str, title: str) -> bool:
    if "?" not in text:
        return False
    questions = qa_boundaries(text)
    if len(questions) < 3:
        return False
    headings = sum(1 for _ in _HEADING.finditer(text))
    question_headings = sum(boundary.is_heading for boundary in questions)
    return (
        count_answers(text) >= max(3, len(questions) // 2)
        or _QUESTIONS_TITLE.search(title) is not None
        or (question_headings >= 3 and question_headings >= 0.6 * headings)
    )
