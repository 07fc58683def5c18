"""Attacks on the graph: names that two orgs share, names of private documents, deleted names; over
HTTP and straight through PostgREST."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from shared.models.embedding_roles import Role
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
        "query_vector": embed(web.services.embedder, [question], Role.QUESTION)[0],
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
    return web_of(services, people)


@pytest.fixture(scope="module")
def shared_web(services: Services, shared_people: People) -> Web:
    """For attacks that change nothing."""
    return web_of(services, shared_people)


def web_of(services: Services, people: People) -> Web:
    return Web(
        services,
        people,
        acme=put(services, people.ann, "Billing Service", ACME),
        bolt=put(services, people.bob, "Billing Service", BOLT),
        ann=put(services, people.ann, "Kestrel", PRIVATE, private=True),
    )


def test_a_name_shared_with_another_org_reveals_nothing(shared_web: Web):
    people = shared_web.people
    for actor, visible in (
        (people.ann, {"acme", "ann"}), (people.ada, {"acme", "ann"}), (people.alf, {"acme"}),
        (people.bob, {"bolt"}), (people.kim, {"acme"}),
    ):  # fmt: skip
        results = shared_web.seen(actor)
        if actor is people.kim:
            # She belongs to both, and PostgREST was told of none.
            assert results.pop("rag_graph_search") == {"acme", "bolt"}
        assert results == dict.fromkeys(results, visible), (actor, results)


def test_hidden_documents_do_not_change_visible_scores(web: Web):
    people = web.people
    before = web.ways(people.alf)
    assert before["rag_graph_search"]["edges"]
    for number in range(6):
        messages = (PRIVATE, BOLT, PRIVATE) if number % 2 else (ACME, PRIVATE)
        put(web.services, people.ann, f"Kestrel: Billing Service {number}", *messages, private=True)
        put(web.services, people.bob, f"Billing Service ({number})", *messages)
    assert web.ways(people.alf) == before


GUESSES = [
    "Who is Wren Secretive?", "Who owns Wren Secretiv?", "Who leads Ren Secretive?",
    "What depends on Albatros?", "who owns “Boltpay”?", "Secretive Osprey Albatross Boltpay Wren",
]  # fmt: skip


def test_guessed_names_reveal_nothing(shared_web: Web, subtests: pytest.Subtests):
    people = shared_web.people
    for question in GUESSES:
        with subtests.test(question):
            ways = shared_web.ways(people.alf, question=question)
            for name in ("search", "auto", "answer", "rag_graph_search"):
                graph = ways[name]["rationale"]["graph"] if "rationale" in ways[name] else ways[name]
                assert (graph["entities"], graph["edges"]) == ([], []), name
            owner = people.bob if "Boltpay" in question else people.ann
            assert searched(shared_web, owner, None, question)["entities"], "who may see it is told"


def test_a_bound_key_uses_only_its_collection_s_graph(web: Web):
    ann, services = web.people.ann, web.services
    inside = NamedText(
        "Kestrel of Inside owns a Billing Service.",
        {"Kestrel": "team", "Inside": "place", "Billing Service": "service"},
        [("Billing Service", "OWNED_BY", "Kestrel")],
    )
    narrow = replace(web, acme=put(services, ann, "Narrow", inside, collection="narrow"))
    token = key(ann, "retrievals:read", "chat:read", collection="narrow")
    home = workspace_of(ann, "narrow").removeprefix("ws_")
    at_postgrest = ann.key_token(scopes=["retrievals:read"], collection=home)

    def ways() -> dict[str, Any]:
        return {
            name: way(narrow, ann, at_postgrest if name.startswith("rag_") else token, QUESTION)
            for name, way in WAYS.items()
        }

    before = ways()
    assert {name: whose(result) for name, result in before.items()} == {name: set() for name in before}
    assert "inside" in str(before["rag_graph_search"]["entities"])
    put(services, ann, "Kestrel", ACME, PRIVATE)
    put(services, ann, "Billing Service", ACME, PRIVATE, private=True)
    assert ways() == before
    outside = {"workspaceId": workspace_of(ann), "q": QUESTION, "mode": "graph"}
    error_of(ann.post("/v1/search", outside, token=token), 404, "NOT_FOUND")
