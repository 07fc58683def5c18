"""Labelled sets of questions.

A set is a folder of three files: corpus.jsonl, {"id", "title", "text"} a line; queries.jsonl, {"id",
"text", "meta"} a line; and qrels.tsv, a heading and then "query-id corpus-id score" a line, separated by
tabs, for the questions that the corpus answers. meta.label may say of all questions whether they are
"answerable", "out_of_corpus" (on another subject) or "on_topic" (on the subject, but without an answer), or
meta.answerable whether they are true or false. Without corpus.jsonl, the questions are about documents that
are stored already, whose ids are the names that the caller gave them.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from shared.generation.calibration_fit import ANSWERABLE, FOREIGN, ON_TOPIC
from shared.types import Match

# A calibration asks no more of a set.
QUESTIONS_OF_A_KIND = 500
CORPUS, QUESTIONS, JUDGEMENTS = "corpus.jsonl", "queries.jsonl", "qrels.tsv"


class InvalidSet(Exception):
    """The message names file, line and fault."""


@dataclass(frozen=True, slots=True)
class Item:
    """A document of a corpus, or a question, whose title is empty."""

    id: str
    text: str
    title: str = ""
    label: str | None = None


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """`relevant`: by question and then by document, how much it tells, 1 or more. `published`: what others
    found in the small corpus, by who they are and then by question."""

    name: str
    documents: Sequence[Item]
    questions: Sequence[Item]
    relevant: Mapping[str, Mapping[str, int]]
    published: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)

    def kind_of(self, question: Item) -> str | None:
        """That of calibration_fit; None for a question without a label whose answer no judgement names."""
        if question.label is None:
            return ANSWERABLE if self.relevant.get(question.id) else None
        return {ANSWERABLE: ANSWERABLE, "out_of_corpus": FOREIGN}.get(question.label, ON_TOPIC)


def sample(questions: Iterable[Item], limit: int) -> list[Item]:
    """Of each label at most so many, those whose ids hash lowest."""
    by_label: dict[str | None, list[Item]] = {}
    for item in sorted(questions, key=lambda item: crc32(item.id.encode())):
        by_label.setdefault(item.label, []).append(item)
    return [item for group in by_label.values() for item in group[:limit]]


def match_of(
    document: Item,
    text: str,
    ordinal: int = 0,
    start: int = 0,
    similarity: float | None = None,
    lang: str | None = None,
) -> Match:
    """The document's passage of that text as a match of a search without a database."""
    return Match(
        chunk_id=f"{document.id} {ordinal}",
        document_id=document.id,
        org_id="",
        ordinal=ordinal,
        text=text,
        span=(start, start + len(text)),
        similarity=similarity,
        score=similarity or 0.0,
        source_type="doc",
        title=document.title,
        uri=None,
        lang=lang,
        occurred_at=None,
        metadata={},
        collection_id="",
        origin=None,
        author=None,
        state=None,
        labels=(),
        document_name=document.id,
        location={},
        created_by="",
    )


def sets_in(folder: Path) -> list[LabelledSet]:
    """The set that a folder is, or those that it holds. Raises InvalidSet, OSError."""
    if not folder.is_dir():
        raise InvalidSet(f"{folder} is no folder")
    folders = [folder] if (folder / QUESTIONS).exists() else sorted(folder.iterdir())
    results = [read(each) for each in folders if (each / QUESTIONS).exists()]
    if not results:
        raise InvalidSet(f"no {QUESTIONS} in {folder}, nor in its folders")
    return results


def read(folder: Path) -> LabelledSet:
    """Raises InvalidSet, OSError."""
    published = folder / "published_rankings.json"
    documents = _items(folder / CORPUS) if (folder / CORPUS).exists() else None
    questions = _items(folder / QUESTIONS)
    return LabelledSet(
        folder.name,
        [item for item in documents or () if item.text.strip() or item.title],
        [item for item in questions if item.text.strip()],
        _judgements(folder / JUDGEMENTS, questions, documents),
        json.loads(published.read_text()) if published.exists() else {},
    )


def _items(path: Path) -> list[Item]:
    items: dict[str, Item] = {}
    for where, line in _lines(path):
        try:
            fields: Any = json.loads(line)
        except ValueError:
            raise InvalidSet(f"{where}: no JSON") from None
        if not isinstance(fields, dict) or not isinstance(fields.get("id"), str):
            raise InvalidSet(f'{where}: no object with an "id" of text')
        text, title, meta = fields.get("text"), fields.get("title") or "", fields.get("meta") or {}
        if not isinstance(text, str) or not isinstance(title, str) or not isinstance(meta, dict):
            raise InvalidSet(f'{where}: "text" and "title" are texts, and "meta" is an object')
        if fields["id"] in items:
            raise InvalidSet(f'{where}: the id "{fields["id"]}" stands twice')
        label = meta.get("label")
        if label is None and isinstance(meta.get("answerable"), bool):
            label = ANSWERABLE if meta["answerable"] else ON_TOPIC
        items[fields["id"]] = Item(fields["id"], text, title, label)
    return list(items.values())


def _judgements(
    path: Path, questions: Sequence[Item], documents: Sequence[Item] | None
) -> Mapping[str, Mapping[str, int]]:
    ids_of_questions = {item.id for item in questions}
    ids_of_documents = None if documents is None else {item.id for item in documents}
    relevant: dict[str, dict[str, int]] = defaultdict(dict)
    for where, line in list(_lines(path))[1:] if path.exists() else ():
        fields = line.split("\t")
        if len(fields) != 3 or not fields[2].strip().lstrip("-").isdecimal():
            raise InvalidSet(f"{where}: not a question's id, a document's id and a whole number, by tabs")
        question, document, score = fields
        for name, ids, file in (
            (question, ids_of_questions, QUESTIONS),
            (document, ids_of_documents, CORPUS),
        ):
            if ids is not None and name not in ids:
                raise InvalidSet(f'{where}: {file} has no "{name}"')
        if int(score) > 0:
            relevant[question][document] = int(score)
    return relevant


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Each line that is not empty, after its file and number."""
    try:
        # Not splitlines, which also divides at characters that a JSON text may contain.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise InvalidSet(f"{path}: no UTF-8") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield f"{path}, line {number}", line
