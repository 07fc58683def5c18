"""Attacks on the graph: names that two orgs share, names of private documents, deleted names; over
HTTP and straight through PostgREST."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from shared.models.embeddings import embed
from shared.services import Services
from tests.actors import Actor
from tests.conftest import People
from tests.functions.search_workspace import Row, error_of
from tests.graph_documents import NamedText, put
from tests.isolation.test_knowledge import key
from tests.isolation.test_search_api import everywhere, workspace_of

QUESTION = "Who owns the Billing Service, and who leads Kestrel?"
# Words that stand in the documents of one owner alone.
WORDS = {"acme": ("teal",), "bolt": ("osprey", "boltpay"), "ann": ("wren", "albatross", "secretive")}
ACME = NamedText(
    "Kestrel of Teal looks after the Billing Service.",
    {"Billing Service": "service", "Kestrel": "team", "Teal": "place"},
    [("Billing Service", "OWNED_BY", "Kestrel")],
)
BOLT = NamedText(
    "The Billing Service, or Boltpay, is Osprey's, not Kestrel's.",
    {"Billing Service": "service", "Osprey": "team", "Boltpay": "service", "Kestrel": "team"},
    [("Billing Service", "OWNED_BY", "Osprey"), ("Boltpay", "ALIAS_OF", "Billing Service")],
)
# It says of the same names what the others say as well, and more.
PRIVATE = NamedText(
    "Kestrel, which owns the Billing Service, is led by Wren Secretive. The Billing Service needs Albatross.",
    {"Kestrel": "person", "Billing Service": "work", "Wren Secretive": "person", "Albatross": "service"},
    [
        ("Billing Service", "OWNED_BY", "Kestrel"),
        ("Kestrel", "LED_BY", "Wren Secretive"),
        ("Billing Service", "DEPENDS_ON", "Albatross"),
        ("Wren Secretive", "ALIAS_OF", "Kestrel"),
    ],
)


@dataclass(frozen=True)
class Web:
    """Three documents of three owners that name the same; their ids."""

    services: Services
    people: People
    acme: str
    bolt: str
    ann: str

    def ways(self, actor: Actor, token: str | None = None, question: str = QUESTION) -> dict[str, Any]:
        """Every way to the graph, as the actor takes it, without what differs from one time to the next."""
        return {name: way(self, actor, token, question) for name, way in WAYS.items()}

    def seen(self, actor: Actor, token: str | None = None, question: str = QUESTION) -> dict[str, set[str]]:
        """Whose words are told on each way."""
        return {name: whose(result) for name, result in self.ways(actor, token, question).items()}


def whose(result: Any) -> set[str]:
    text = str(result).lower()
    return {owner for owner, words in WORDS.items() if any(word in text for word in words)}


def untimed(body: Row) -> Row:
    for timed in ("requestId", "usage", "generation", "graph_ms"):
        body.pop(timed, None)
    body.get("retrieval", {}).pop("latencyMs", None)
    for match in body.get("matches", []):
        match |= {"vector_ms": None, "lexical_ms": None}
    return body


def over_http(path: str, **body: Any) -> Callable[[Web, Actor, str | None, str], Row]:
    def ask(web: Web, actor: Actor, token: str | None, question: str) -> Row:
        request = {"q": question, "question": question, "topK": 50, "include": {"rationale": True}, **body}
        answer = actor.post(path, {**request, **everywhere(actor)}, token=token)
        assert answer.status_code == 200, answer.text
        return untimed(answer.json())

    return ask


def contents(web: Web, actor: Actor, token: str | None, question: str) -> Row:
    ids = [{"kind": "document", "id": entry} for entry in (web.acme, web.bolt, web.ann)]
    request = {"ids": ids, "expand": {"graph": {"hops": 2}}, **everywhere(actor)}
    answer = actor.post("/v1/contents", request, token=token)
    assert answer.status_code == 200, answer.text
    return untimed(answer.json())


def searched(web: Web, actor: Actor, token: str | None, question: str, **more: Any) -> Row:
    arguments = {
        "query_text": question,
        "query_vector": embed(web.services.embedder, [question])[0],
        "top_k": 100,
        "filters": {"model": web.services.embedder.model, **more.pop("filters", {})},
        **more,
    }
    answer = actor.rpc("rag_graph_search", arguments, token=token)
    assert answer.status_code == 200, answer.text
    return untimed(answer.json())


def around(web: Web, actor: Actor, token: str | None, question: str, **more: Any) -> Row:
    assert actor.org
    ids = [web.acme, web.bolt, web.ann]
    request = {"org_id": actor.org.id, "document_ids": ids, "hops": 2, **more}
    answer = actor.rpc("rag_graph_of", request, token=token)
    assert answer.status_code == 200, answer.text
    body: Row = answer.json()
    return body


WAYS: dict[str, Callable[[Web, Actor, str | None, str], Row]] = {
    "search": over_http("/v1/search", mode="graph"),
    "auto": over_http("/v1/search"),
    "answer": over_http("/v1/answer", mode="graph"),
    "contents": contents,
    "rag_graph_search": searched,
    "rag_graph_of": around,
}


@pytest.fixture
def web(services: Services, people: People) -> Web:
    return Web(
        services,
        people,
        acme=put(services, people.ann, "Billing Service", ACME),
        bolt=put(services, people.bob, "Billing Service", BOLT),
        ann=put(services, people.ann, "Kestrel", PRIVATE, private=True),
    )


def test_a_name_shared_with_another_org_reveals_nothing(web: Web):
    people = web.people
    for actor, visible in (
        (people.ann, {"acme", "ann"}), (people.ada, {"acme", "ann"}), (people.alf, {"acme"}),
        (people.bob, {"bolt"}), (people.kim, {"acme"}),
    ):  # fmt: skip
        results = web.seen(actor)
        if actor is people.kim:
            # She belongs to both, and PostgREST was told of none.
            assert results.pop("rag_graph_search") == {"acme", "bolt"}
        assert results == dict.fromkeys(results, visible), (actor, results)


def test_a_name_in_two_orgs_connects_nothing_for_a_member_of_both(web: Web):
    people = web.people
    body = searched(web, people.kim, None, QUESTION)
    chunks = {match["chunk_id"]: match["org_id"] for match in body["matches"]}
    assert {entity["org_id"] for entity in body["entities"]} == {people.acme.id, people.bolt.id}
    ends = {(entity["org_id"], entity["id"]) for entity in body["entities"]}
    assert len(ends) == len(body["entities"])
    for edge in body["edges"]:
        assert {(edge["org_id"], edge["from"]), (edge["org_id"], edge["to"])} <= ends
        assert {chunks[chunk] for chunk in edge["evidence"]} == {edge["org_id"]}
    names = {entity["org_id"]: {entity["id"]} for entity in body["entities"]}
    for entity in body["entities"]:
        names[entity["org_id"]].add(entity["id"])
    assert "osprey" not in names[people.acme.id]
    assert "teal" not in names[people.bolt.id]
    by_org = {edge["org_id"]: edge["to"] for edge in body["edges"] if edge["type"] == "OWNED_BY"}
    assert by_org == {people.acme.id: "kestrel", people.bolt.id: "osprey"}


@pytest.mark.parametrize("who", ["alf", "bob"])
def test_hidden_documents_do_not_change_visible_scores(web: Web, who: str):
    """However much hidden documents say of the same names, and however often: no name, alias, kind, weight,
    confidence, evidence, score or order changes by it."""
    people = web.people
    actor = {"alf": people.alf, "bob": people.bob}[who]
    other, private = (people.bob, False) if who == "alf" else (people.alf, False)
    before = web.ways(actor)
    assert before["rag_graph_search"]["edges"]
    for number in range(6):
        messages = (PRIVATE, BOLT, PRIVATE) if number % 2 else (ACME, PRIVATE)
        put(web.services, people.ann, f"Kestrel: Billing Service {number}", *messages, private=True)
        put(web.services, other, f"Billing Service ({number})", *messages, private=private)
    assert web.ways(actor) == before


@pytest.mark.parametrize(
    "question",
    [
        "Who is Wren Secretive?",
        "Who owns Wren Secretiv?",
        "Who leads Ren Secretive?",
        "What depends on Albatros?",
        "who owns “Boltpay”?",
        "Secretive Osprey Albatross Boltpay Wren",
    ],
)
def test_guessed_names_reveal_nothing(web: Web, question: str):
    """Hidden rows are as if they were not there."""
    people = web.people
    ways = web.ways(people.alf, question=question)
    for name in ("search", "auto", "answer", "rag_graph_search"):
        graph = ways[name]["rationale"]["graph"] if "rationale" in ways[name] else ways[name]
        assert (graph["entities"], graph["edges"]) == ([], []), name
    owner = people.bob if "Boltpay" in question else people.ann
    assert searched(web, owner, None, question)["entities"], "who may see it is told"


def test_a_bound_key_uses_only_its_collection_s_graph(web: Web):
    """The graph is no larger than what the key sees, and does not change by its surroundings."""
    ann = web.people.ann
    inside = NamedText(
        "Kestrel of Inside owns a Billing Service.",
        {"Kestrel": "team", "Inside": "place", "Billing Service": "service"},
        [("Billing Service", "OWNED_BY", "Kestrel")],
    )
    narrow = Web(
        web.services,
        web.people,
        put(web.services, ann, "Narrow", inside, collection="narrow"),
        web.bolt,
        web.ann,
    )
    token = key(ann, "retrievals:read", "chat:read", collection="narrow")
    at_postgrest = ann.key_token(
        scopes=["retrievals:read"], collection=workspace_of(ann, "narrow").removeprefix("ws_")
    )

    def ways() -> dict[str, Any]:
        over = {
            name: WAYS[name](narrow, ann, token, QUESTION)
            for name in ("search", "auto", "answer", "contents")
        }
        straight = {
            name: WAYS[name](narrow, ann, at_postgrest, QUESTION)
            for name in ("rag_graph_search", "rag_graph_of")
        }
        return over | straight

    before = ways()
    assert {name: whose(result) for name, result in before.items()} == {name: set() for name in before}
    assert "inside" in str(before["rag_graph_search"]["entities"])
    put(web.services, ann, "Kestrel", ACME, PRIVATE)
    put(web.services, ann, "Billing Service", ACME, PRIVATE, private=True)
    assert ways() == before
    outside = {"workspaceId": workspace_of(ann), "q": QUESTION, "mode": "graph"}
    error_of(ann.post("/v1/search", outside, token=token), 404, "NOT_FOUND")


def test_adversarial_questions_reveal_nothing(subtests: pytest.Subtests, web: Web):
    """Answered, in time, and of nothing that is another's."""
    for text in [
        "Kestrel " * 1_250,
        "K" * 10_000,
        " ".join(f"Name{number} Of{number}" for number in range(700))[:10_000],
        "(" * 10_000,
        "« Kestrel » ' \" \\ % _ $1 {} --",
        "%' or true --",
        "\u202eKestrel\u0301\u200b",
        "金庫" * 5_000,
        " ",
        "🙂",
    ]:
        with subtests.test(text=text):
            people = web.people
            body = searched(web, people.alf, None, text)
            assert whose(body) <= {"acme"}
            assert body["complete"] in (True, False)


def is_absent(web: Web, actor: Actor, *words: str) -> bool:
    text = str(web.ways(actor)).lower()
    return not any(word in text for word in words)


def test_a_deleted_document_leaves_the_graph(web: Web):
    people = web.people
    assert not is_absent(web, people.ada, "wren", "albatross")
    assert people.ann.rpc("rag_delete_document", {"document_id": web.ann}).json()
    assert is_absent(web, people.ada, "wren", "albatross", "secretive")
    assert is_absent(web, people.ann, "wren", "albatross", "secretive")
    assert people.ann.rpc("rag_delete_document", {"document_id": web.acme}).json()
    body = searched(web, people.ann, None, QUESTION)
    assert (body["matches"], body["entities"], body["edges"], body["evidence"]) == ([], [], [], [])
    assert whose(web.ways(people.bob)) == {"bolt"}, "what is another's stays"


def test_a_replaced_document_leaves_the_graph(web: Web, services: Services):
    people = web.people
    first = NamedText(
        "Teal is led by Heron.", {"Teal": "place", "Heron": "person"}, [("Teal", "LED_BY", "Heron")]
    )
    second = NamedText("Teal is a colour.", {"Teal": "place"})
    put(services, people.ann, "Teal", first, external_id="teal")
    question = "Who leads Teal?"
    assert "heron" in str(searched(web, people.alf, None, question)["edges"])
    put(services, people.ann, "Teal", second, external_id="teal")
    body = searched(web, people.alf, None, question)
    assert "heron" not in str(body).lower()
    assert "LED_BY" not in {edge["type"] for edge in body["edges"]}


def test_an_old_title_leaves_the_graph(web: Web, services: Services):
    people = web.people
    telling = NamedText("It is led by Heron.", {"Heron": "person"}, [("Project Nightjar", "LED_BY", "Heron")])
    document = put(services, people.ann, "Project Nightjar", telling)
    question = "Who leads Project Nightjar?"
    assert "nightjar" in str(searched(web, people.alf, None, question)["edges"])
    changed = people.ann.rpc("rag_update_document", {"document_id": document, "changes": {"title": "Plans"}})
    assert changed.status_code == 200, changed.text
    body = searched(web, people.alf, None, question)
    assert "nightjar" not in str(body).lower()
    assert not [edge for edge in body["edges"] if edge["type"] == "LED_BY"]


NAMED = {"kind": "team", "surfaces": ["Kestrel"], "weight": 0.5}
POISON: dict[str, Row] = {
    "ten thousand names": {"names": [{"name": f"Kestrel {number}", **NAMED} for number in range(10_000)]},
    "one name a thousand times": {"names": [{"name": "Kestrel", **NAMED}] * 1_000},
    "no list": {"names": "Kestrel", "relations": {"subject": "Kestrel"}},
    "no objects": {"names": [7, None, "Kestrel", []], "relations": [7, None]},
    "a long name": {"names": [{"name": "K" * 100_000, **NAMED}]},
    "an empty name": {"names": [{"name": "", **NAMED}, {"name": "...", **NAMED}, {"name": None}]},
    "control characters": {"names": [{"name": "Kes\u202etrel\u0007", **NAMED}]},
    "another name of control characters": {
        "names": [{"name": "Kestrel", **NAMED, "surfaces": ["Kes\u202etrel\u0007"]}]
    },
    "a kind": {"names": [{"name": "Kestrel", **NAMED, "kind": "'; select 1 --"}]},
    "weights": {"names": [{"name": "Kestrel", **NAMED, "weight": 1e30}, {"name": "Teal", "weight": -5}]},
    "no number": {"names": [{"name": "Kestrel", **NAMED, "weight": "NaN"}]},
    "a relation to itself": {
        "names": [{"name": "Kestrel", **NAMED}],
        "relations": [{"subject": "Kestrel", "type": "PART_OF", "object": "the Kestrel", "confidence": 1}],
    },
    "a cycle": {
        "names": [{"name": "Kestrel", **NAMED}, {"name": "Teal", **NAMED}],
        "relations": [
            {"subject": "Kestrel", "type": "PART_OF", "object": "Teal", "confidence": 1},
            {"subject": "Teal", "type": "PART_OF", "object": "Kestrel", "confidence": 1},
        ],
    },
    "what nobody names": {
        "names": [],
        "relations": [{"subject": "Osprey", "type": "PART_OF", "object": "Wren", "confidence": 1}],
    },
    "a type": {
        "names": [{"name": "Kestrel", **NAMED}, {"name": "Teal", **NAMED}],
        "relations": [{"subject": "Kestrel", "type": "part of'", "object": "Teal", "confidence": 1}],
    },
    "a confidence": {
        "names": [{"name": "Kestrel", **NAMED}, {"name": "Teal", **NAMED}],
        "relations": [{"subject": "Kestrel", "type": "PART_OF", "object": "Teal", "confidence": 99}],
    },
}  # fmt: skip


@pytest.mark.parametrize("poison", POISON)
def test_a_poisoned_chunk_reveals_nothing(web: Web, poison: str):
    """Stored or refused: no graph breaks by it, and nothing in it is more than it may be."""
    people = web.people
    chunk = ACME.row(0, embed(web.services.embedder, ["x"])[0]) | POISON[poison]
    assert people.ann.org
    document = {
        "org_id": people.ann.org.id, "title": "Poison", "content": ACME.text,
        "embedding_model": web.services.embedder.model,
    }  # fmt: skip
    answer = people.ann.rpc("rag_put_document", {"document": document, "chunks": [chunk]})
    assert answer.status_code in (200, 400), answer.text
    assert set(web.seen(people.alf)) == set(WAYS)
    body = searched(web, people.alf, None, QUESTION)
    assert whose(body) == {"acme"}
    assert len(body["entities"]) <= 48
    for edge in body["edges"]:
        assert edge["from"] != edge["to"]
        assert 0 < edge["confidence"] <= 1
    for entity in body["entities"]:
        assert 0 <= entity["weight"] <= 1
        assert all(name.isprintable() and len(name) <= 200 for name in (entity["name"], *entity["aliases"]))
