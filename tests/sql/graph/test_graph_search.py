"""rag_graph_search: the graph joined with each mode's legs; its arguments, filters, errors; who sees what."""

from typing import Any
from uuid import UUID

import pytest

from tests.actors import World, vector
from tests.conftest import People
from tests.sql import naming, passages
from tests.sql.naming import NamedChunk
from tests.sql.passages import Row

MODES = ["graph", "semantic", "keyword", "hybrid", "hierarchical"]
QUESTION = "Who owns the Billing Service?"


def fill(world: World, people: People) -> None:
    """What answers says nothing of the question's words, and lies behind thirty that are nearer to it."""
    put = naming.put
    chunk = NamedChunk("invoices and bills", ["Kestrel"], [("Billing Service", "OWNED_BY", "Kestrel")])
    put(world, people.ann, "Billing Service", chunk, vectors=[vector(1)])
    put(world, people.ann, "Kestrel", NamedChunk("eleven people in Oslo"), vectors=[vector(2)])
    near = vector(7)
    for number in range(30):
        mixed = [one / 7 + other for one, other in zip(near, vector(100 + number), strict=True)]
        put(world, people.ann, "t", NamedChunk(f"who owns what {number}"), vectors=[mixed])


@pytest.fixture(scope="module")
def shelf(world: World, shared_people: People) -> People:
    """For tests that only read."""
    fill(world, shared_people)
    return shared_people


def graph(world: World, people: People, question: str = QUESTION, **arguments: Any) -> Row:
    return naming.graph(world, people.ann, question, **{"query_vector": vector(7), **arguments})


def test_the_graph_adds_results_in_every_mode(world: World, shelf: People, subtests: pytest.Subtests):
    for mode in MODES:
        with subtests.test(mode=mode):
            result = graph(world, shelf, mode=mode, top_k=10)
            texts = naming.contents(result["matches"])
            assert len(texts) == 10
            assert {"invoices and bills", "eleven people in Oslo"} <= set(texts)
            sourced = {row["content"] for row in result["matches"] if row["graph_sourced"]}
            legs = {"graph": "hybrid"}.get(mode, mode)
            alone = passages.search(world, shelf.ann, QUESTION, mode=legs, query_vector=vector(7))
            assert sourced == set(texts) - set(naming.contents(alone))
            assert texts[0] == naming.contents(alone)[0]
            assert "eleven people in Oslo" in sourced
            for row in result["matches"]:
                assert 0 <= row["score"] <= 1
                assert 0 <= row["graph_score"] < 1
                assert row["similarity"] is not None
                worded = mode != "semantic" and (mode != "keyword" or not row["graph_sourced"])
                assert (row["word_score"] is not None) is worded
            scores = [row["score"] for row in result["matches"]]
            assert scores == sorted(scores, reverse=True)
            assert naming.edges(result) == {("billing_service", "OWNED_BY", "kestrel")}


def test_a_score_combines_the_legs_and_the_graph_by_its_share(world: World, shelf: People):
    for share in (0.0, 0.3, 1.0):
        with passages.deployed_with(world, graph_share=share, similarity_share=0.4):
            matches = graph(world, shelf, top_k=100)["matches"]
            surest = max(row["graph_score"] for row in matches)
            best_of_legs = max(0.4 * row["similarity"] + 0.6 * row["word_score"] for row in matches)
            for row in matches:
                legs = 0.4 * row["similarity"] + 0.6 * row["word_score"]
                reached = surest if legs == best_of_legs else row["graph_score"]
                curve = reached**2 / (reached**2 + 0.06)
                assert row["score"] == pytest.approx((1 - share) * legs + share * curve, abs=1e-6)


def test_a_question_without_names_uses_the_legs_only(world: World, shelf: People):
    questions = ["who owns what", "and of the", "who owns what", "unheard", "🚀"]
    for question, mode in zip(questions, MODES, strict=True):
        result = graph(world, shelf, question, mode=mode, top_k=7)
        legs = {"graph": "hybrid"}.get(mode, mode)
        alone = passages.search(world, shelf.ann, question, mode=legs, query_vector=vector(7), top_k=7)
        rest = {"graph_score": 0, "graph_sourced": False}
        assert passages.untimed(result["matches"]) == [row | rest for row in passages.untimed(alone)], mode
        assert (result["entities"], result["edges"], result["evidence"]) == ([], [], []), mode
        assert result["complete"] is True


LEADS: dict[tuple[float, ...], float] = {
    (): 0,
    (0.0,): 0,
    (0.6,): 1,
    (0.6, 0.6, 0.6, 0.6, 0.6): 0,
    (0.6, 0.5, 0.5, 0.5, 0.45, 0.4): 0.5,
    (0.6, 0.5, 0.4, 0.3, 0.2): 1,
}


def test_the_names_of_the_best_hit_count_by_its_lead(world: World, subtests: pytest.Subtests):
    """A second chunk of the best document is no other document."""
    statement = (
        "select rag.lead_of_best_hit(array(select rag.candidate(org_id => %s, document_id => id, "
        "ordinal => 0, score => score) from unnest(%s::uuid[], %s::float8[]) as hit (id, score)))"
    )
    for scores, lead in LEADS.items():
        with subtests.test(scores=scores):
            documents = [str(UUID(int=place)) for place in range(len(scores))]
            rows = documents + documents[:1], [*scores, *scores[:1]]
            assert world.sql(statement, str(UUID(int=0)), *rows) == [(pytest.approx(lead),)]


def test_keyword_mode_needs_no_vector(world: World, shelf: People):
    result = graph(world, shelf, mode="keyword", query_vector=None)
    assert {row["similarity"] for row in result["matches"]} == {None}
    assert {"invoices and bills", "eleven people in Oslo"} <= set(naming.contents(result["matches"]))


def test_collections_without_hybrid_search_use_vectors_and_the_graph(world: World, people: People):
    fill(world, people)
    change = "update rag.collections set config = %s where org_id = %s returning id::text"
    ((home,),) = world.sql(change, '{"enable_hybrid_search": false}', people.acme.id)
    result = graph(world, people, filters={"collection_id": home})
    assert {row["word_score"] for row in result["matches"]} == {None}
    assert any(row["graph_sourced"] for row in result["matches"])


def test_a_long_page_has_every_result_once(world: World, shelf: People):
    result = graph(world, shelf, top_k=300)
    assert len(result["matches"]) == len({row["chunk_id"] for row in result["matches"]}) == 32
    assert not any(row["graph_sourced"] for row in result["matches"])
    assert len(graph(world, shelf, top_k=1)["matches"]) == 1


def test_neighbours_and_recency_apply(world: World, people: People):
    for date in ("2001-01-01T00:00:00Z", "2051-01-01T00:00:00Z"):
        year, heron = date[:4], NamedChunk(f"heron {date[:4]}", ["Heron"])
        naming.put(world, people.ann, "t", f"before {year}", heron, f"after {year}", occurred_at=date)
    result = naming.graph(world, people.ann, "Heron", mode="keyword", query_vector=None)
    old, new = sorted(result["matches"], key=lambda row: row["content"])
    assert old["score"] == pytest.approx(new["score"])
    arguments: Row = {"mode": "keyword", "query_vector": None, "half_life_days": 10, "expand_context": 1}
    result = naming.graph(world, people.ann, "Heron", **arguments)
    assert naming.contents(result["matches"]) == [
        f"before {year}\nheron {year}\nafter {year}" for year in ("2051", "2001")
    ]
    assert result["matches"][1]["score"] == pytest.approx(old["score"] / 2, rel=1e-3)
    assert [row["graph_score"] > 0 for row in result["matches"]] == [True, True]


def test_a_preferred_type_comes_first_among_equals(world: World, people: People):
    for kind in ("doc", "email"):
        naming.put(world, people.ann, "t", NamedChunk("heron", ["Heron"]), source_type=kind)
    for kind in ("doc", "email"):
        result = naming.graph(world, people.ann, "Heron", prefer=[kind])
        assert result["matches"][0]["source_type"] == kind
    plain = naming.graph(world, people.ann, "Heron", prefer=[])
    assert naming.untimed(plain) == naming.untimed(naming.graph(world, people.ann, "Heron"))


FIELDS: dict[str, tuple[Row, Row]] = {
    "collection": ({"collection": "wanted"}, {"collection": "wanted"}),
    "source type": ({"source_type": "email"}, {"source_type": "email"}),
    "metadata range": ({"metadata": {"a": 2}}, {"metadata": {"a": {"$gt": 1}}}),
    "model": ({"embedding_model": "another"}, {"model": "another"}),
}


def test_filters_apply_to_seeds_hops_evidence_and_results(world: World, subtests: pytest.Subtests):
    relations = [("Heron", "OWNED_BY", "Kestrel", 0.5), ("Heron", "OWNED_BY", "Osprey", 0.5)]
    for field, (fields, filters) in FIELDS.items():
        with subtests.test(field=field):
            # An org for each filter: documents of another one would pass this one.
            ann = world.user(world.org())
            remaining = [
                naming.put(world, ann, "Heron", NamedChunk("a", ["Kestrel"], relations), **fields),
                naming.put(world, ann, "Kestrel", NamedChunk("b", ["Wren"]), **fields),
            ]
            naming.put(world, ann, "Heron", NamedChunk("c", ["Kestrel", "Osprey", "Petrel"], relations))
            naming.put(world, ann, "Kestrel", NamedChunk("d", ["Osprey"], [("Kestrel", "LED_BY", "Osprey")]))
            naming.put(world, ann, "Osprey", NamedChunk("e"))
            naming.put(world, ann, "Petrel", NamedChunk("f"))
            chunks = {chunk_id for one in remaining for chunk_id in naming.chunk_ids(world, one)}
            for question in ("Heron", "Who leads the owner of Heron?", "Heron and Kestrel"):
                result = naming.graph(world, ann, question, filters=filters, top_k=50)
                assert {row["document_id"] for row in result["matches"]} == set(remaining)
                assert set(result["evidence"]) <= chunks
                assert {one for edge in result["edges"] for one in edge["evidence"]} <= chunks
                assert set(naming.ids(result)) <= {"heron", "kestrel", "wren"}
                assert ("heron", "OWNED_BY", "kestrel") in naming.edges(result)
                owned = {edge["confidence"] for edge in result["edges"] if edge["type"] == "OWNED_BY"}
                assert owned == {0.5}
            if field != "model":
                result = naming.graph(world, ann, "Petrel and Osprey", filters=filters)
                assert (result["entities"], result["edges"]) == ([], [])
                assert {row["document_id"] for row in result["matches"]} <= set(remaining)


def test_evidence_of_an_entity_without_an_edge_is_within_the_filters(world: World, people: People):
    """The most prominent mention of the name is in a document that the filter excludes."""
    naming.put(world, people.ann, "t", NamedChunk("a", ["Heron"]), source_type="email")
    prominent = {"name": "Heron", "kind": "name", "surfaces": ["Heron"], "weight": 1}
    excluded = naming.put(world, people.ann, "t", NamedChunk("b", [prominent]), source_type="faq")
    assert naming.graph(world, people.ann, "Heron")["evidence"] == naming.chunk_ids(world, excluded)
    result = naming.graph(world, people.ann, "Heron", filters={"source_type": "email"})
    assert naming.ids(result) == ["heron"]
    assert not set(naming.chunk_ids(world, excluded)) & set(result["evidence"])
