"""From the entities of a question to chunks: hops, order of paths, chunks reached twice; and those
shown of the way, entities and edges with their evidence."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from local.stack import Stack
from tests.actors import Actor, World
from tests.conftest import People
from tests.sql import naming, passages
from tests.sql.naming import NamedChunk
from tests.sql.passages import Row

DOCUMENTS: dict[str, list[NamedChunk]] = {
    "Billing Service": [
        NamedChunk("invoices", ["Kestrel"], [("Billing Service", "OWNED_BY", "Kestrel", 0.8)])],
    "Kestrel": [
        NamedChunk("eleven people", ["Oslo"]),
        NamedChunk("led well", ["Priya Nair"], [("Kestrel", "LED_BY", "Priya Nair")]),
    ],
    "Priya Nair": [NamedChunk("chess", ["Bergen"], [("Priya Nair", "BORN_IN", "Bergen")])],
    "Bergen": [NamedChunk("rain")],
    "Ring": [
        NamedChunk("one", ["Alder", "Birch"], [("Alder", "PART_OF", "Birch")]),
        NamedChunk("two", ["Birch", "Cedar"], [("Birch", "PART_OF", "Cedar")]),
        NamedChunk("three", ["Cedar", "Alder"],
                   [("Cedar", "PART_OF", "Alder"), ("Alder", "PART_OF", "Alder")]),
    ],
    "Egret": [NamedChunk("fishing", ["Owner", "Maker", "Friend"], [
        ("Egret", "OWNED_BY", "Owner"), ("Egret", "MADE_BY", "Maker")])],
    "Owner": [NamedChunk("owns")],
    "Maker": [NamedChunk("makes")],
    "Friend": [NamedChunk("comes along")],
    "Unrelated": [NamedChunk("nothing of it")],
}  # fmt: skip


@dataclass(frozen=True)
class Web:
    world: World
    ann: Actor
    documents: dict[str, str]

    def graph(self, question: str, **arguments: Any) -> Row:
        return naming.graph(self.world, self.ann, question, top_k=100, **arguments)

    def evidence(self, title: str) -> list[str]:
        return naming.chunk_ids(self.world, self.documents[title])


@pytest.fixture(scope="module")
def web(stack: Stack) -> Iterator[Web]:
    world = World(stack)
    ann = world.user(world.org("web"))
    documents = {title: naming.put(world, ann, title, *chunk) for title, chunk in DOCUMENTS.items()}
    yield Web(world, ann, documents)
    world.close()


def reached(result: Row) -> dict[str, float]:
    """The texts that the graph led to, and how surely."""
    return {row["content"]: row["graph_score"] for row in result["matches"] if row["graph_score"] > 0}


def test_one_hop_reaches_documents_about_the_name_and_chunks_with_it(web: Web):
    result = web.graph("Kestrel", hops=1)
    scores = reached(result)
    assert set(scores) == {"eleven people", "led well", "invoices"}
    assert scores["eleven people"] > scores["invoices"]
    assert naming.ids(result) == ["kestrel"]
    assert naming.edges(result) == set()


def test_two_hops_reach_their_names_and_no_further(web: Web):
    result = web.graph("Who leads the team that owns the Billing Service?")
    scores = reached(result)
    assert set(scores) == {"invoices", "eleven people", "led well"}
    assert scores["invoices"] > scores["eleven people"]
    assert naming.ids(result) == ["billing_service", "kestrel"]
    result = web.graph("Who leads Kestrel?")
    assert set(reached(result)) == {"eleven people", "led well", "invoices", "chess"}
    assert "rain" not in reached(result)


def test_entities_have_their_name_and_whether_they_are_seeds(web: Web):
    result = web.graph("the billing service")
    seed, other = result["entities"]
    assert web.ann.org
    assert seed == {
        "id": "billing_service", "org_id": web.ann.org.id, "name": "Billing Service", "kind": "name",
        "aliases": [], "seed": True, "weight": 0.5,
    }  # fmt: skip
    assert (other["id"], other["name"], other["seed"]) == ("kestrel", "Kestrel", False)
    assert 0 < other["weight"] < 0.5


def test_edges_connect_returned_entities_and_have_their_chunks(web: Web):
    """The most confident edges come first, and stated ones before co-occurrences."""
    result = web.graph("Kestrel")
    edges = {(edge["from"], edge["type"], edge["to"]): edge["evidence"] for edge in result["edges"]}
    assert edges == {
        ("kestrel", "LED_BY", "priya_nair"): web.evidence("Kestrel")[1:],
        ("billing_service", "OWNED_BY", "kestrel"): web.evidence("Billing Service"),
        ("kestrel", "RELATED_TO", "oslo"): web.evidence("Kestrel")[:1],
    }
    assert [edge["type"] for edge in result["edges"]] == ["LED_BY", "OWNED_BY", "RELATED_TO"]
    assert sorted(result["evidence"]) == sorted(one for chunks in edges.values() for one in chunks)
    assert {one for edge in edges for one in (edge[0], edge[2])} <= set(naming.ids(result))
    by_type = {edge["type"]: edge["confidence"] for edge in result["edges"]}
    assert by_type["OWNED_BY"] == pytest.approx(0.8)
    assert 0 < by_type["RELATED_TO"] < 0.5


def test_cycles_end_and_no_entity_is_related_to_itself(web: Web):
    for hops in (1, 2):
        result = web.graph("Alder", hops=hops)
        assert set(reached(result)) >= {"one", "three"}
        assert len({row["chunk_id"] for row in result["matches"]}) == len(result["matches"])
    assert naming.edges(result) == {
        ("alder", "PART_OF", "birch"), ("birch", "PART_OF", "cedar"), ("cedar", "PART_OF", "alder"),
    } | {edge for edge in naming.edges(result) if edge[1] == "RELATED_TO"}  # fmt: skip
    assert all(edge["from"] != edge["to"] for edge in result["edges"])


def test_several_paths_to_a_chunk_raise_its_score(web: Web):
    alone = reached(web.graph("Billing Service", hops=1))["invoices"]
    assert alone < reached(web.graph("Billing Service and Kestrel", hops=1))["invoices"] < 1


def test_several_documents_of_one_title_share_its_weight(world: World, people: People):
    scores = []
    for number in range(3):
        naming.put(world, people.ann, "Heron", NamedChunk(f"heron {number}"))
        result = naming.graph(world, people.ann, "Heron")
        scores.append(max(reached(result).values()))
        assert len(reached(result)) == number + 1
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3


def test_a_name_of_two_chunks_connects_them_more_than_a_frequent_name(world: World, people: People):
    naming.put(world, people.ann, "Log 1", NamedChunk("grebe dives", ["Grebe", "Wherry", "Harbour"]))
    naming.put(world, people.ann, "Log 2", NamedChunk("first", ["Wherry"]))
    naming.put(world, people.ann, "Log 3", NamedChunk("second", ["Harbour"]))
    for number in range(4, 10):
        naming.put(world, people.ann, f"Log {number}", NamedChunk(f"more {number}", ["Harbour"]))
    scores = reached(naming.graph(world, people.ann, "Grebe", top_k=100))
    assert scores["grebe dives"] > scores["first"] > 1.3 * scores["second"] > 0


def test_a_relation_in_several_chunks_has_the_highest_confidence_and_all_evidence(
    world: World, people: People
):
    confidences = {1: 0.5, 2: 0.6, 3: 0.6, 7: 0.6}
    documents: list[str] = []
    for number in range(1, 8):
        confidence = 0.6 if number == 2 else 0.5
        chunk = NamedChunk("x", ["Heron", "Kestrel"], [("Heron", "OWNED_BY", "Kestrel", confidence)])
        documents.append(naming.put(world, people.ann, "t", chunk))
        if number in confidences:
            result = naming.graph(world, people.ann, "Heron and Kestrel")
            (edge,) = result["edges"]
            assert edge["confidence"] == pytest.approx(confidences[number], abs=3e-3)
            chunks = {naming.chunk_ids(world, one)[0] for one in documents}
            assert len(edge["evidence"]) == min(5, number)
            assert set(edge["evidence"]) <= chunks
            assert sorted(result["evidence"]) == sorted(edge["evidence"])
    for one in documents[1:]:
        passages.delete(world, people.ann, one)
    (edge,) = naming.graph(world, people.ann, "Heron and Kestrel")["edges"]
    assert (edge["confidence"], edge["evidence"]) == (0.5, naming.chunk_ids(world, documents[0]))


def test_the_nearest_chunks_of_a_long_document_are_reached(world: World, people: People):
    texts = [NamedChunk(f"part {number}") for number in range(40)]
    vectors = [passages.written(number) for number in range(40)]
    naming.put(world, people.ann, "Heron", *texts, vectors=vectors)
    for near, expected in ((5, "part 5"), (31, "part 31"), (35, None)):
        result = naming.graph(world, people.ann, "Heron", query_vector=vectors[near], hops=1)
        scores = reached(result)
        assert len(scores) == 2
        assert expected is None or max(scores, key=lambda one: scores[one]) == expected


def test_aliases_are_other_spellings_in_documents(world: World, people: People):
    curtiz = {"name": "Michael Curtiz", "kind": "person", "surfaces": ["M. Curtiz", "Curtiz"], "weight": 0.9}
    other = {"name": "MICHAEL CURTIZ", "kind": "name", "surfaces": ["Michael Curtiz"], "weight": 0.2}
    naming.put(world, people.ann, "t", NamedChunk("x", [curtiz]), NamedChunk("y", [other]))
    (entity,) = naming.graph(world, people.ann, "Michael Curtiz")["entities"]
    assert (entity["name"], entity["kind"]) == ("Michael Curtiz", "person")
    assert entity["aliases"] == ["Curtiz", "M. Curtiz", "MICHAEL CURTIZ"]


def test_all_seeds_and_at_most_sixteen_other_entities_are_returned(world: World, people: People):
    names = [f"Bird {chr(65 + number)}" for number in range(26)]
    relations = [("Heron", "RELATIVE_OF", name) for name in names]
    naming.put(world, people.ann, "Heron", NamedChunk("x", names, relations))
    result = naming.graph(world, people.ann, "Heron")
    assert len(naming.ids(result)) == 17
    assert [entity["seed"] for entity in result["entities"]] == [True] + [False] * 16
    assert len(result["edges"]) == 16


def test_at_the_time_limit_a_partial_result_is_returned_and_marked(world: World, people: People):
    """A thousand places of ten names take longer than a millisecond."""
    names = [f"{chr(65 + number)}bird" for number in range(10)]
    naming.put(world, people.ann, "t", *[NamedChunk(f"x{number}", names) for number in range(100)])
    question = " ".join(names)
    with passages.deployed_with(world, graph_milliseconds=1):
        result = naming.graph(world, people.ann, question)
    assert result["complete"] is False
    assert len(result["matches"]) == 10
    assert len(reached(result)) > 0
    assert {entity["seed"] for entity in result["entities"]} == {True}
    with passages.deployed_with(world, graph_milliseconds=10_000):
        assert naming.graph(world, people.ann, question)["complete"] is True
