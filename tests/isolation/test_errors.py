"""Attacks by what an error says."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.actors import World
from tests.isolation.library import (
    HTTP_DOORS,
    Library,
    assert_refused,
    every_http_door,
)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b'{"query_text": NaN}',
        {},
        {"query_text": None},
        {"query_text": ""},
        {"query_text": "   "},
        {"query_text": "x" * 501},
        {"query_text": ["x"]},
        {"query_text": "x", "top_k": 0},
        {"query_text": "x", "top_k": 51},
        {"query_text": "x", "top_k": "many"},
        {"query_text": "x", "filters": "all"},
        {"query_text": "x", "filters": {"org_id": "x"}},
        {"query_text": "x", "filters": {"lang": "\u0000"}},
        {"query_text": "x", "filters": {"date_from": "9999999-01-01"}},
        b'{"query_text": "\\ud800"}',
        b'{"query_text": "x", "filters": {"lang": "\\ud800"}}',
    ],
    ids=lambda body: str(body)[:40],
)
def test_an_error_of_the_callers_tells_nothing(library: Library, body: Any):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {**library.people.ann.headers(), "Content-Type": "application/json"}
    for door in HTTP_DOORS:
        assert_refused(library.client.post(door, content=content, headers=headers), 400, library)


@every_http_door
def test_an_error_never_echoes_what_was_sent(library: Library, door: str):
    """It may be somebody's secret, and it may be markup."""
    marker = "<script>marker-3141</script>"
    people = library.people
    for filters in ({"org_id": marker}, {"source_type": marker}, {"date_from": marker}, {"lang": marker * 5}):
        answer = library.ask(door, people.ann.headers(), **filters)
        assert_refused(answer, 400, library)
        assert "marker" not in answer.text
    answer = library.ask(door, people.ann.headers("marker-3141"))
    assert "marker" not in answer.text


@every_http_door
def test_a_body_too_large_and_a_wrong_method_tell_nothing(library: Library, door: str):
    people = library.people
    too_large = library.client.post(door, json={"query_text": "x" * 300_000}, headers=people.ann.headers())
    assert_refused(too_large, 413, library)
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        assert_refused(library.client.request(method, door, headers=people.ann.headers()), 405, library)


@pytest.fixture
def without_chunks(world: World) -> Iterator[None]:
    """A database in which something is badly wrong."""
    world.sql("alter table rag.chunks rename to chunks_elsewhere")
    yield
    world.sql("alter table rag.chunks_elsewhere rename to chunks")


@every_http_door
def test_a_fault_in_the_database_tells_nothing(library: Library, without_chunks: None, door: str):
    assert_refused(library.ask(door, library.people.ann.headers()), 500, library)


@pytest.fixture
def without_grant(world: World) -> Iterator[None]:
    """A deployment that forgot a grant."""
    function = "public.rag_match(extensions.vector, integer, jsonb)"
    world.sql(f"revoke execute on function {function} from authenticated")
    yield
    world.sql(f"grant execute on function {function} to authenticated")


@every_http_door
def test_a_missing_grant_tells_nothing(library: Library, without_grant: None, door: str):
    answer = library.ask(door, library.people.ann.headers())
    assert answer.status_code >= 400
    assert_refused(answer, answer.status_code, library)
