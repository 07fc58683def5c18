"""Kinds of documents, which differ in where chunks begin: what somebody says of one, or else what it looks
like. No model is asked.
"""

import re
from collections.abc import Mapping
from typing import Any

from shared.ingestion.chunking.academic import academic, has_the_parts_of_a_paper
from shared.ingestion.chunking.boundaries import Mark
from shared.ingestion.chunking.legal import legal, named
from shared.ingestion.chunking.qa import answers, questions

_MARKS = {"legal": legal, "academic": academic, "qa": questions}
DOCUMENT_TYPES = frozenset({*_MARKS, "table", "general"})
TABLES = {"csv", "xlsx"}
_ROW = re.compile(r"^\|", re.MULTILINE)
_SHOWN = re.compile(r"^[^\n]*\S", re.MULTILINE)
_LEGAL_WORDS = re.compile(
    r"\b(?:shall|hereby|herein\w*|hereof|thereof|thereto|pursuant|notwithstanding|indemnif\w+|liabilit\w+|parties"
    r"|agreement|regulation|directive|statute|jurisdiction|lessee|lessor|licensor|licensee|data subject"
    r"|vertrag\w*|haftung|gesetz\w*|kündigung|contrat|loi|contrato|ley)\b",
    re.IGNORECASE,
)
_QUESTIONS_TITLE = re.compile(r"\b(?:faqs?|q ?& ?a|frequently asked|häufige fragen)\b", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6} +\S.*$", re.MULTILINE)


def marks(text: str, document_type: str) -> list[Mark]:
    """Where something begins, in order, no two at one place. Nothing in tables and in what is general."""
    find = _MARKS.get(document_type)
    by_start = {mark.start: mark for mark in find(text)} if find else {}
    return [by_start[start] for start in sorted(by_start)]


def document_type_of(metadata: Mapping[str, Any], text: str, kind: str | None, title: str) -> str:
    """What metadata call it, if that is a type; else what it looks like.

    General, unless it is clear. A table: what was a spreadsheet, or has five rows or more and little else.
    Academic: an abstract near the beginning and references near the end. Legal: three different articles,
    sections or the like, and a word in a hundred from the language of laws, five at least. Questions and
    answers: three questions with answers that say so, or by a title that says so, or as most of the headings.
    """
    declared = metadata.get("document_type")
    if isinstance(declared, str) and declared in DOCUMENT_TYPES:
        return declared
    if kind in TABLES or _is_table(text):
        return "table"
    if has_the_parts_of_a_paper(text):
        return "academic"
    if _is_legal(text):
        return "legal"
    return "qa" if _asks(text, title) else "general"


def _is_table(text: str) -> bool:
    rows = sum(1 for _ in _ROW.finditer(text)) if "|" in text else 0
    return rows >= 5 and rows >= 0.8 * sum(1 for _ in _SHOWN.finditer(text))


def _is_legal(text: str) -> bool:
    if len(named(text)) < 3:
        return False
    return sum(1 for _ in _LEGAL_WORDS.finditer(text)) >= max(5, text.count(" ") / 100)


def _asks(text: str, title: str) -> bool:
    if "?" not in text:
        return False
    question_lines = questions(text)
    if len(question_lines) < 3:
        return False
    headings = sum(1 for _ in _HEADING.finditer(text))
    question_headings = sum(mark.alone for mark in question_lines)
    return (
        answers(text) >= max(3, len(question_lines) // 2)
        or _QUESTIONS_TITLE.search(title) is not None
        or (question_headings >= 3 and question_headings >= 0.6 * headings)
    )
