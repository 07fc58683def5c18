"""Operators on metadata, straight through PostgREST, in every mode of every function that takes filters."""

import json
import random
import re
from decimal import Decimal
from typing import Any

import pytest

from shared.api.contracts.metadata import check_metadata_filter
from tests.actors import MODEL, Actor, World, vector
from tests.conftest import People
from tests.metadata_filters import MATCHES, METADATA, REFUSED
from tests.sql import naming
from tests.sql.naming import NamedChunk

MODES = ["semantic", "keyword", "hybrid", "hierarchical", "graph"]


@pytest.fixture(scope="module")
def shelf(world: World, shared_people: People) -> Actor:
    for title, metadata in METADATA.items():
        naming.put(world, shared_people.ann, title, NamedChunk("Heron", ["Heron"]), metadata=metadata)
    return shared_people.ann


def search(actor: Actor, mode: str, metadata: Any) -> Any:
    filters = {"model": MODEL, "metadata": metadata}
    arguments = {"query_text": "Heron", "query_vector": vector(1), "mode": mode, "top_k": 50}
    function = "rag_graph_search" if mode == "graph" else "rag_search"
    return actor.direct().rpc(function, {**arguments, "filters": filters})


def test_each_operator_finds_its_documents_in_every_mode(shelf: Actor, subtests: pytest.Subtests):
    """Each filter in two modes: one function reads all filters, and each leg of a search applies them."""
    for number, (metadata, titles) in enumerate(MATCHES):
        for mode in (MODES[number % 5], MODES[(number + 2) % 5]):
            with subtests.test(metadata=metadata, mode=mode):
                answer = search(shelf, mode, metadata)
                assert answer.status_code == 200, answer.text
                body = answer.json()
                rows = body["matches"] if mode == "graph" else body
                assert sorted(row["title"] for row in rows) == sorted(titles.split())
                # The name is known as far as a document within the filter has it.
                assert mode != "graph" or bool(body["entities"]) is bool(titles)


def test_an_invalid_filter_is_refused_as_the_apis_refuse_it(shelf: Actor, subtests: pytest.Subtests):
    by_text: dict[str, Any] = {"query_text": "x", "query_vector": vector(1)}
    functions = ("rag_match", "rag_search", "rag_similar", "rag_graph_search")
    for number, (metadata, message) in enumerate(REFUSED):
        # Each function refuses some; one function reads all filters.
        function = functions[number % len(functions)]
        with subtests.test(metadata=metadata, function=function):
            arguments = {"query_vector": vector(1)} if function == "rag_match" else by_text
            answer = shelf.direct().rpc(function, {**arguments, "filters": {"metadata": metadata}})
            assert answer.status_code == 400, answer.text
            assert answer.json()["details"] == "invalid_filters"
            with pytest.raises(ValueError, match=re.escape(message)) as refused:
                check_metadata_filter(metadata)
            assert answer.json()["message"] == f"filters.metadata: {refused.value}"


def test_the_numbers_and_levels_of_a_filter_are_bounded_before_they_are_read(shelf: Actor):
    deep = f'{{"$in": {"[" * 200}{"]" * 200}}}'
    for operand in ('{"$gt": 1e131071}', '{"$in": [1e131071]}', '{"$ne": -1e300}', '{"$lt": 1e-301}', deep):
        body = f'{{"query_text": "x", "filters": {{"metadata": {{"year": {operand}}}}}}}'
        answer = shelf.raw("POST", "/rest/v1/rpc/rag_search", body)
        assert (answer.status_code, answer.json()["details"]) == (400, "unreadable_json"), operand


def test_a_changed_document_is_found_by_its_new_values(world: World, people: People):
    def put(**metadata: Any) -> None:
        naming.put(world, people.ann, "t", NamedChunk("Heron"), external_id="x", metadata=metadata)

    def finds(**metadata: Any) -> bool:
        return bool(search(people.ann, "keyword", metadata).json())

    put(year=2019, owner="eve")
    assert finds(year={"$lt": 2020}, owner={"$exists": True})
    put(year=2021)
    assert not finds(year={"$lt": 2020})
    assert not finds(owner={"$exists": True})
    assert finds(year={"$gt": 2020}, owner={"$exists": False})


def test_sort_keys_order_numbers_exactly(world: World):
    draw = random.Random(7)  # noqa: S311  # not a secret

    def number() -> Decimal:
        digits = str(draw.randint(0, 10 ** draw.randint(0, 25)))
        return Decimal(draw.choice("+-") + digits).scaleb(draw.randint(-40, 30))

    numbers = [number() for _ in range(300)]
    edges = ("0", "-0.0", "1e299", "-1e299", "1e-300", "-1e-300", "9007199254740992", "9007199254740993",
             "9" * 300, "9" * 299 + "8", "-0.1", "-0.10", "-12", "-12.5", "12", "12.5", "120")  # fmt: skip
    numbers += map(Decimal, edges)
    keys = sort_keys(world, [f"{one:f}" for one in numbers])
    for one, key in zip(numbers, keys, strict=True):
        for other, other_key in zip(numbers, keys, strict=True):
            assert (one < other) == (key < other_key), (one, other)


def test_sort_keys_order_strings_by_their_bytes_as_far_as_a_bound_reaches(world: World):
    longest = "x" * 200
    strings = ["", "\u0001", "A", "Z", "a", "a\u0001", "aa", "a b", "é", "z", "\uffff", "😀",
               longest, longest + "\u0001", longest[:-1]]  # fmt: skip
    keys = sort_keys(world, [json.dumps(text) for text in strings])
    for text, key in zip(strings, keys, strict=True):
        for other, other_key in zip(strings, keys, strict=True):
            assert (text.encode() < other.encode()) == (key.encode() < other_key.encode()), (text, other)


def sort_keys(world: World, values: list[str]) -> list[str]:
    statement = "select rag.sort_key(value::jsonb) from unnest(%s::text[]) as value"
    return [key for (key,) in world.sql(statement, values)]
