"""Fields for search filters, from a document's metadata."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from shared.text.normalize import has_invisible

MAX_LABELS, MAX_LABEL = 100, 100
# The metadata values that the columns accept.
_FIELDS = {
    "source_type": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "lang": re.compile(r"(?=.{2,35}$)[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*"),
    "uri": re.compile(r"https?://\S{1,1990}"),
    "url": re.compile(r"https?://\S{1,1990}"),
    "date": re.compile(r".{10,40}"),
    "source": re.compile(r".{1,200}"),
    "author": re.compile(r".{1,200}"),
    "state": re.compile(r".{1,200}"),
}


def fields_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that searches filter by, from the metadata with the names of fields, so that the filters of
    every API work on all documents. A date that cannot be parsed stays metadata only."""
    texts = {
        name: value
        for name, value in metadata.items()
        if isinstance(value, str)
        and (field := _FIELDS.get(name))
        and field.fullmatch(value)
        and not has_invisible(value)
    }
    return {
        "source_type": texts.get("source_type"),
        "lang": texts.get("lang"),
        "uri": texts.get("uri") or texts.get("url"),
        "occurred_at": _timestamp(texts.get("date")),
        "origin": texts.get("source"),
        "author": texts.get("author"),
        "state": texts.get("state"),
        "labels": _labels(metadata.get("labels")),
    }


def _timestamp(date: str | None) -> str | None:
    """An ISO 8601 date or timestamp with an offset, by default UTC; None for another text."""
    try:
        moment = datetime.fromisoformat(date or "")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _labels(value: object) -> list[str]:
    """The labels if all are valid; else they stay metadata only."""
    if not isinstance(value, list) or len(value) > MAX_LABELS:
        return []
    labels = [
        label
        for label in value
        if isinstance(label, str) and 0 < len(label) <= MAX_LABEL and not has_invisible(label)
    ]
    return labels if len(labels) == len(value) else []
