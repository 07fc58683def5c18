"""rag_graph_of: the graph around documents, for those who see them; and straight from the rows of 75."""

from typing import Any

import pytest

from tests.actors import NOBODYS, Actor, World
from tests.conftest import People
from tests.sql import naming
from tests.sql.naming import NamedChunk
from tests.sql.passages import Row

OWNED = ("billing_service", "OWNED_BY", "kestrel")
LED = ("kestrel", "LED_BY", "priya_nair")
BORN = ("priya_nair", "BORN_IN", "bergen")


def graph_of(world: World, actor: Actor, document_ids: list[str], **arguments: Any) -> Row:
    org_id = arguments.pop("org_id", actor.org.id if actor.org else None)
    more = "".join(f", {name} => %s" for name in arguments)
    ((graphs,),) = world.as_user(
        actor, f"select public.rag_graph_of(%s, %s::uuid[]{more})", org_id, document_ids, *arguments.values()
    )
    graph: Row = graphs
    return graph


@pytest.fixture
def chain(world: World, people: People) -> list[str]:
    """Three documents, each of which leads to the next."""
    documents = {
        "Billing Service": NamedChunk("a", ["Kestrel"], [("Billing Service", "OWNED_BY", "Kestrel", 0.8)]),
        "Kestrel": NamedChunk("b", ["Priya Nair"], [("Kestrel", "LED_BY", "Priya Nair")]),
        "Priya Nair": NamedChunk("c", ["Bergen"], [("Priya Nair", "BORN_IN", "Bergen")]),
    }
    return [naming.put(world, people.ann, title, chunk) for title, chunk in documents.items()]


HOPS: list[tuple[int, set[Any], set[str]]] = [
    (0, {OWNED}, set()),
    (1, {OWNED, LED}, {"priya_nair"}),
    (2, {OWNED, LED, BORN}, {"priya_nair", "bergen"}),
]


def test_a_document_s_graph_extends_with_each_hop_to_other_documents(
    world: World, people: People, chain: list[str], subtests: pytest.Subtests
):
    for hops, edges, others in HOPS:
        with subtests.test(hops=hops):
            graphs = graph_of(world, people.ann, chain[:1], hops=hops)
            assert set(graphs) == {chain[0]}
            graph = graphs[chain[0]]
            assert naming.edges(graph) == edges
            own = {entity["id"] for entity in graph["entities"] if entity["seed"]}
            assert own == {"billing_service", "kestrel"}
            assert set(naming.ids(graph)) == own | others
            document_of = dict(zip((OWNED, LED, BORN), chain, strict=True))
            for edge in graph["edges"]:
                document_id = document_of[edge["from"], edge["type"], edge["to"]]
                assert edge["evidence"] == naming.chunk_ids(world, document_id)
            evidence = [one for edge in graph["edges"] for one in edge["evidence"]]
            assert sorted(graph["evidence"]) == sorted(evidence)


def test_subjects_come_first_and_weights_are_shares(world: World, people: People, chain: list[str]):
    for graph in graph_of(world, people.ann, chain).values():
        weights = [entity["weight"] for entity in graph["entities"]]
        assert all(0 < weight <= 1 for weight in weights)
    first = graph_of(world, people.ann, chain[:1], hops=0)[chain[0]]["entities"]
    assert naming.ids({"entities": first}) == ["billing_service", "kestrel"]
    assert [entity["name"] for entity in first] == ["Billing Service", "Kestrel"]


def test_each_document_has_its_own_graph_and_missing_ones_have_none(
    world: World, people: People, chain: list[str]
):
    graphs = graph_of(world, people.ann, [*chain, *chain, NOBODYS], hops=0)
    edges = {one: naming.edges(graph) for one, graph in graphs.items()}
    assert edges == dict(zip(chain, ({OWNED}, {LED}, {BORN}), strict=True))
    assert graph_of(world, people.ann, []) == {}
    empty = naming.put(world, people.ann, "🚀", NamedChunk("nothing"))
    nothing: Row = {"entities": [], "edges": [], "evidence": []}
    assert graph_of(world, people.ann, [empty], hops=2) == {empty: nothing}


def test_another_org_or_collection_has_no_graph(world: World, people: People, chain: list[str]):
    assert graph_of(world, people.bob, chain, org_id=people.acme.id) == {}
    assert graph_of(world, people.bob, chain) == {}
    assert graph_of(world, people.kim, chain, org_id=people.bolt.id) == {}
    assert set(graph_of(world, people.kim, chain, org_id=people.acme.id)) == set(chain)
    chunk = NamedChunk("d", ["Osprey"], [("Kestrel", "PART_OF", "Osprey")])
    other = naming.put(world, people.ann, "Kestrel", chunk, collection="other")
    homes = dict(world.sql("select name, id::text from rag.collections where org_id = %s", people.acme.id))
    within = graph_of(world, people.ann, [*chain, other], collection_id=homes["other"], hops=2)
    edges = {one: naming.edges(graph) for one, graph in within.items()}
    assert edges == {other: {("kestrel", "PART_OF", "osprey")}}
    across = graph_of(world, people.ann, [other], hops=1)[other]
    assert OWNED in naming.edges(across)


def test_cycles_end(world: World, people: People):
    names = ["Alder", "Birch", "Cedar"]
    ring = [(one, "PART_OF", other) for one, other in zip(names, names[1:] + names[:1], strict=True)]
    document_id = naming.put(world, people.ann, "t", NamedChunk("x", names, ring))
    for hops in [0, 1, 2]:
        graph = graph_of(world, people.ann, [document_id], hops=hops)[document_id]
        assert naming.edges(graph) == {(one.lower(), kind, other.lower()) for one, kind, other in ring}, hops
        assert len(graph["edges"]) == 3, hops


def test_a_graph_is_limited_for_a_document_with_many_names(world: World, people: People):
    """All ends of edges are among the entities all the same."""
    chunks = [
        NamedChunk(f"x{part}", [f"Name {part} {number}" for number in range(100)],
             [(f"Name {part} {number}", "PART_OF", f"Name {part} {number + 1}") for number in range(99)])
        for part in range(20)
    ]  # fmt: skip
    document_id = naming.put(world, people.ann, "Heron", *chunks)
    for hops in (0, 1, 2):
        graph = graph_of(world, people.ann, [document_id], hops=hops)[document_id]
        assert naming.ids(graph)[0] == "heron"
        assert sum(entity["seed"] for entity in graph["entities"]) == 32
        assert len(graph["entities"]) <= 32 + 2 * 128
        assert len(graph["edges"]) <= 128
        ends = {one for edge in graph["edges"] for one in (edge["from"], edge["to"])}
        assert ends <= set(naming.ids(graph))
