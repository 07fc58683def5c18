"""Attacks by what an error says."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.actors import World
from tests.isolation.victim_documents import HTTP_ROUTES, Library, assert_refused, every_http_route

BODIES: list[Any] = [
    b"{", b"", b"query_text=x", b"[" * 5000, b'"text"', b"\xff\xfe", b'{"query_text": NaN}',
    b'{"query_text": "\\ud800"}', b'{"query_text": "x", "filters": {"lang": "\\ud800"}}',
    {}, {"query_text": "x" * 501}, {"query_text": "x", "filters": {"org_id": "x"}},
    {"query_text": "x", "filters": {"lang": "\u0000"}},
    {"query_text": "x", "filters": {"date_from": "9999999-01-01"}},
]  # fmt: skip


def test_a_client_error_reveals_nothing(subtests: pytest.Subtests, shared_library: Library):
    headers = {**shared_library.people.ann.headers(), "Content-Type": "application/json"}
    for body in BODIES:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        for route in HTTP_ROUTES:
            with subtests.test(body=body, route=route):
                answer = shared_library.client.post(route, content=content, headers=headers)
                assert_refused(answer, 400, shared_library)
                assert answer.json()["error"]["code"] == "invalid_request"


@every_http_route
def test_an_error_never_echoes_the_request(shared_library: Library, route: str):
    """It may be a user's secret, and it may be markup."""
    marker = "<script>marker-3141</script>"
    people = shared_library.people
    for filters in ({"org_id": marker}, {"source_type": marker}, {"date_from": marker}, {"lang": marker * 5}):
        answer = shared_library.ask(route, people.ann.headers(), **filters)
        assert_refused(answer, 400, shared_library)
        assert "marker" not in answer.text
    answer = shared_library.ask(route, people.ann.headers("marker-3141"))
    assert "marker" not in answer.text


@pytest.fixture
def without_chunks(world: World) -> Iterator[None]:
    """A database in which something is badly wrong."""
    world.sql("alter table rag.chunks rename to chunks_elsewhere")
    yield
    world.sql("alter table rag.chunks_elsewhere rename to chunks")


@every_http_route
def test_a_database_error_reveals_nothing(shared_library: Library, without_chunks: None, route: str):
    assert_refused(shared_library.ask(route, shared_library.people.ann.headers()), 500, shared_library)


@pytest.fixture
def without_grant(world: World) -> Iterator[None]:
    """A deployment that forgot a grant."""
    functions = "public.rag_match, public.rag_judged_search"
    world.sql(f"revoke execute on function {functions} from authenticated")
    yield
    world.sql(f"grant execute on function {functions} to authenticated")


@every_http_route
def test_a_missing_grant_reveals_nothing(shared_library: Library, without_grant: None, route: str):
    answer = shared_library.ask(route, shared_library.people.ann.headers())
    assert answer.status_code >= 400
    assert_refused(answer, answer.status_code, shared_library)
