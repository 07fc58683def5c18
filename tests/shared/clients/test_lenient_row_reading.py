"""Rows that cannot be read cost themselves alone, and their ids are logged."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from shared.clients.lenient_row_reading import json_of, object_of, readable
from shared.models.chunk_sizes import configured_sizes

LONG = "9" * 5000


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """The records of the logger rag, whether or not it propagates them."""
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("rag")
    log.addHandler(handler)
    yield messages
    log.removeHandler(handler)


def test_a_number_that_python_cannot_read_becomes_null(logged: list[str]):
    first = f'{{"chunk_id": "a", "location": {{"page": {LONG}, "end": 2}}}}'
    text = f'[{first}, {{"chunk_id": "b", "location": {{}}}}]'
    expected = [{"chunk_id": "a", "location": {"page": None, "end": 2}}, {"chunk_id": "b", "location": {}}]
    assert json_of(text.encode()) == expected
    text = f'{{"total": 2, "documents": [{{"id": "c", "info": [-{LONG}]}}, {{"id": "d", "info": [1]}}]}}'
    expected_page = {"total": 2, "documents": [{"id": "c", "info": [None]}, {"id": "d", "info": [1]}]}
    assert json_of(text.encode()) == expected_page
    assert json_of(b'[1, "x", {"id": null}]') == [1, "x", {"id": None}]
    assert logged == [f"row {one} cannot be read (a number of too many digits)" for one in "ac"]
    for text in ("", "[", f"[{LONG}"):
        with pytest.raises(json.JSONDecodeError):
            json_of(text.encode())


def test_an_unreadable_row_is_left_out(logged: list[str]):
    rows: list[dict[str, Any]] = [
        {"id": one, "metadata": value} for one, value in zip("abcd", ({}, [], 1, {"x": 1}), strict=True)
    ]
    assert readable(rows, lambda row: object_of(row["metadata"])) == ({}, {"x": 1})
    assert logged == [f"row {one} cannot be read (ValueError)" for one in "bc"]


def test_an_impossible_chunk_size_is_none(logged: list[str]):
    assert configured_sizes({"chunk_size": 32, "chunk_overlap": 0}, "a") == (32, 0)
    assert configured_sizes({}, "a") == (None, None)
    assert logged == []
    wrongs: tuple[Any, ...] = ("x", -1, 31, 8001, 64.0, True, [], int(LONG[:400]))
    for wrong in wrongs:
        assert configured_sizes({"chunk_size": wrong, "chunk_overlap": 5}, "a") == (None, 5)
        assert configured_sizes({"chunk_size": 64, "chunk_overlap": -1}, "a") == (64, None)
    assert set(logged) == {"row a cannot be read (an invalid chunk size)"}


def test_a_number_out_of_range_is_unreadable(caplog: pytest.LogCaptureFixture):
    rows = json_of(b'[{"id": "a", "page": 1%s.5}, {"id": "b", "page": 2.5}]' % (b"0" * 400))
    assert readable(rows, lambda row: int(row["page"])) == (2,)
    assert "row a cannot be read (OverflowError)" in caplog.text
