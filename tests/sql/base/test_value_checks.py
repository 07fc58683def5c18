"""JSON that callers supply: numbers are compared and never rendered, known keys have their types."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.actors import LEASED, READING, World, put_arguments, store_arguments, vector
from tests.conftest import People
from tests.process_faults import private_bytes

# As JSON text: Python cannot hold it. 17 kB, of which each number has 131,072 digits.
BOMB = f'{{"a": [{", ".join(["1e131071"] * 1900)}]}}'
NESTED = f'{{"a": {"[" * 5000}{"]" * 5000}}}'
OTHER_BOMBS = (BOMB.replace("1e131071", "1e-16383"), NESTED)
MOST_MEMORY = 100_000_000

# value, may it be metadata
VALUES: list[tuple[str, bool]] = [
    ("{}", True),
    ('{"a": 1e299, "b": [-1e299, {"c": 9.99e299}]}', True),
    ('{"a": 1e300}', False),
    ('{"a": [[[{"b": 1e131071}]]]}', False),
    # Zero is no larger with 16,383 digits behind the point, but its text is.
    ('{"a": 0e-16383}', False),
    # Digits in a text are no number.
    (f'{{"a": "{"9" * 1000}", "1e5000": 1}}', True),
    (BOMB, False),
    ('{"a":' * 31 + "1" + "}" * 31, True),
    ('{"a":' * 32 + "1" + "}" * 32, False),
    (f'{{"a": "{"x" * 65_536}"}}', False),
    ("[]", False),
]
CONFIGS: list[tuple[str, bool]] = [
    ("{}", True),
    ('{"chunk_size": 32, "chunk_overlap": 0, "embedding_model": "m", "other": [1]}', True),
    ('{"chunk_size": 8000, "chunk_overlap": 4000, "enable_hybrid_search": false}', True),
    *((f'{{"chunk_size": {size}}}', False) for size in ('"x"', -1, 31, 8001, "64.0", "1e3000", "null", "[]")),
    *((f'{{"chunk_overlap": {size}}}', False) for size in ('"x"', -1, 4001, 512, "true")),
    ('{"chunk_size": 64, "chunk_overlap": 64}', False),
    *((f'{{"embedding_model": {model}}}', False) for model in (1, '""', f'"{"m" * 101}"', "null")),
    *((f'{{"enable_hybrid_search": {switch}}}', False) for switch in (0, '"no"')),
    *((f'{{"enable_knowledge_graph": {switch}}}', False) for switch in (0, '"no"')),
    ('{"enable_hybrid_search": null, "enable_knowledge_graph": null}', True),
    (f'{{"a": "{"x" * 2000}"}}', False),
]
PLACES: list[tuple[str, bool]] = [
    ("{}", True),
    ('{"page_number": 0, "page_end": 2147483647, "section": "A > B", "row": 7}', True),
    *((f'{{"page_number": {page}}}', False) for page in ("1e5000", -1, 1.5, '"7"', 2**31, "null")),
    *((f'{{"page_end": {page}}}', False) for page in ("1e5000", "[]")),
    ('{"section": 1}', False),
    (f'{{"a": "{"x" * 4000}"}}', False),
]
CHECKS = {"rag.is_metadata": VALUES, "rag.is_config": CONFIGS, "rag.is_chunk_location": PLACES}


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_accepts_only_readable_values(world: World, check: str):
    for value, is_valid in CHECKS[check]:
        assert world.sql(f"select {check}(%s)", value) == [(is_valid,)], value[:60]


def leased(people: People, world: World, function: str) -> str:
    """Ann's token with a lease of her document: of the job that stores it, or of its extraction."""
    world.sql("delete from rag.jobs")
    name = str(uuid4())
    home = people.ann.rpc("rag_create_collection", {"name": name}).json()[0]["id"]
    if function == "rag_complete_job":
        document = {"title": "x", "bytes": "eA==", "content_hash": "0" * 64}
        added = people.ann.rpc("rag_add_document", {"collection_id": home, "document": document})
        assert added.status_code == 200, added.text
        kind = "ingestion"
    else:
        people.ann.put([vector(1)], collection=name)
        kind = "extraction"
    claim = "select lease::text from public.rag_claim_jobs(%s, 1, 60)"
    ((lease,),) = world.as_role("rag_worker", claim, kind)
    return people.ann.token(rag={"org": people.acme.id, "scopes": ["documents:write"], "lease": lease})


def running_source(people: People, world: World) -> tuple[str, str]:
    """The id of a running source of ada, who administers the org, and ada's token with its lease."""
    home = people.ada.rpc("rag_create_collection", {"name": str(uuid4())}).json()[0]["id"]
    ((source_id, lease),) = world.sql(
        "insert into rag.sources (org_id, collection_id, user_id, kind, address, interval_seconds, "
        "max_items, state, lease, run_number, due_at) "
        "values (%s, %s, %s, 'website', 'https://a.example/', 86400, 10, "
        "'running', gen_random_uuid(), 1, now() + interval '1 day') returning id::text, lease::text",
        people.acme.id, home, people.ada.id,
    )  # fmt: skip
    scopes = ["documents:write", "admin"]
    return source_id, people.ada.token(rag={"org": people.acme.id, "scopes": scopes, "lease": lease})


def right_arguments(people: People) -> dict[str, dict[str, Any]]:
    """Valid arguments of each exposed function that takes JSON."""
    home = people.ann.rpc("rag_create_collection", {"name": "home"}).json()[0]["id"]
    document = people.ann.put([vector(1)], collection="home")
    begin = {"name": "loaded", "overwrite": False, "documents": 1, "collection": {}}
    load = people.ann.rpc("rag_begin_load", begin).json()
    put = put_arguments(people.acme, [vector(1)])
    return {
        "rag_add_document": {"collection_id": home, "document": {"title": "x"}},
        "rag_begin_load": {**begin, "name": "other"},
        "rag_complete_job": LEASED["rag_complete_job"],
        "rag_create_collection": {"name": "bomb", "metadata": {}, "config": {}},
        "rag_create_source": {
            "collection_id": home, "kind": "website", "address": "https://a.example/", "credentials": {},
        },
        "rag_list_source_items": {"items": []},
        "rag_put_source_item": {"item": "https://docs.example.com/a", "document": {}},
        "rag_record_request": {"record": {}},
        "rag_graph_search": {"query_text": "x", "query_vector": vector(1), "filters": {}},
        "rag_store_extraction": READING["rag_store_extraction"],
        "rag_save_turn": {
            "session_id": None, "org_id": None, "collection_id": None, "title": "x", "messages": [],
        },
        "rag_list_named": {"collection": "home", "limit": 1, "metadata": {}},
        "rag_load_chunks": {
            "collection_id": load, "document_id": document, "chunks": [], "embedding_model": "m",
            "last": True,
        },
        "rag_load_documents": {"collection_id": load, "documents": [], "first": 0},
        "rag_match": {"query_vector": vector(1), "filters": {}},
        "rag_record_metrics": {"measures": []},
        "rag_put_documents": store_arguments(**put),
        "rag_record_event": {"event": "knowledge.ingest", "namespace": "home", "measures": []},
        "rag_search": {"query_text": "x", "filters": {}},
        "rag_judged_search": {"query_text": "x", "query_vector": vector(1), "filters": {}},
        "rag_similar": {"query_vector": vector(1), "filters": {}},
        "rag_update_collection": {"collection_id": home, "metadata": {}, "config": {}},
        "rag_update_document": {"document_id": document, "changes": {}},
        "rag_put_access": {"collection_id": home, "restricted": True, "grants": []},
    }  # fmt: skip


def json_parameters(world: World) -> set[tuple[str, str]]:
    """The parameters of the exposed functions that are JSON, from the catalogue."""
    rows = world.sql(
        "select proname::text, name "
        "from pg_proc, unnest(proargnames, proargtypes::oid[]) as given (name, kind) "
        "where pronamespace = 'public'::regnamespace and starts_with(proname, 'rag_') "
        "and kind = 'jsonb'::regtype and has_function_privilege('authenticated', pg_proc.oid, 'execute')"
    )
    return {(str(function), str(name)) for function, name in rows}


@contextmanager
def largest_growth(world: World) -> Iterator[list[int]]:
    """The largest growth of a backend's private memory (RssAnon) meanwhile, in bytes.

    A backend that served earlier tests keeps some of their memory."""
    largest = [0]
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            for pid, before in sizes.items():
                largest[0] = max(largest[0], private_bytes(pid) - before)
            time.sleep(0.005)

    pids = world.sql("select pid from pg_stat_activity where datname = current_database()")
    sizes = {pid: private_bytes(pid) for (pid,) in pids}
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield largest
    finally:
        done.set()
        watcher.join()


def test_every_exposed_function_refuses_a_json_bomb(people: People, world: World, subtests: pytest.Subtests):
    """None of them needs much memory for that. A member calls each through PostgREST."""
    calls = right_arguments(people)
    source_id, of_source = running_source(people, world)
    calls["rag_update_source"] = {"source_id": source_id, "credentials": {}}
    parameters = json_parameters(world)
    assert {function for function, _ in parameters} == set(calls)
    # PostgREST's pool is open by now.
    with largest_growth(world) as largest:
        for number, (function, name) in enumerate(sorted(parameters)):
            is_leased = function in ("rag_complete_job", "rag_store_extraction")
            token = leased(people, world, function) if is_leased else None
            if function in ("rag_list_source_items", "rag_put_source_item", "rag_update_source"):
                token = of_source
            for bomb in (BOMB, OTHER_BOMBS[number % 2]):
                with subtests.test(function=function, parameter=name):
                    is_list = isinstance(calls[function][name], list)
                    arguments = {**calls[function], name: ["BOMB"] if is_list else "BOMB"}
                    answer = bombed(people, function, arguments, bomb, token)
                    assert (answer.status_code, answer.json()["code"]) == (400, "PT400"), answer.text[:200]
                    details = ("unreadable_json", "json_too_large", "invalid_config")
                    assert answer.json()["details"] in details
    assert largest[0] < MOST_MEMORY


# Where a conversion would render the numbers, in a document, in changes or in filters.
PLACES_OF_BOMBS: dict[tuple[str, str], str] = {
    ("rag_put_documents", "documents"): "title labels metadata content unknown",
    ("rag_put_documents", "chunks"): "content metadata names relations unknown",
    ("rag_add_document", "document"): "labels metadata bytes path unknown",
    ("rag_update_document", "changes"): "labels metadata title unknown",
    ("rag_search", "filters"): "origins metadata labels model document_type unknown",
}


def test_no_function_renders_numbers_as_text_or_accepts_deep_values(people: People, world: World):
    calls = right_arguments(people)
    with largest_growth(world) as largest:
        for (function, name), fields in PLACES_OF_BOMBS.items():
            for field, bomb in product(fields.split(), (BOMB[len('{"a": ') : -1], NESTED)):
                value = {field: "BOMB"}
                if function == "rag_put_documents":
                    (document,) = calls[function]["documents"]
                    changed = {**document, **(value if name == "documents" else {"chunks": [value]})}
                    wrong: dict[str, Any] = {"documents": [changed]}
                else:
                    wrong = {name: {**calls[function][name], **value}}
                answer = bombed(people, function, {**calls[function], **wrong}, bomb)
                # ("bytes" that is no string is ignored, and a document without an original is refused.)
                assert answer.status_code == 400, (function, value, bomb[:20], answer.text[:200])
    assert largest[0] < MOST_MEMORY


def bombed(
    people: People, function: str, arguments: dict[str, Any], bomb: str, token: str | None = None
) -> httpx.Response:
    """The call with the bomb, which Python cannot hold as numbers, in the place of "BOMB"."""
    body = json.dumps(arguments).replace('"BOMB"', bomb)
    return people.ann.raw("POST", f"/rest/v1/rpc/{function}", body, token=token)
