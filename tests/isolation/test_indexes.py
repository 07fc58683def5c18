"""Attacks on indexes, which go by names: by the name of another org's, and without a credential."""

from uuid import uuid4

from functions import index_query, indexes
from shared.config import Settings
from shared.text.prefixed_ids import NIL
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import client_of, services_with
from tests.functions.test_indexes import index, listed, path, retrieve

SECRET = "The code of the vault door is ACME-4417."


def assert_untouched(actor: Actor, name: str = "plans") -> None:
    assert [row["text"] for row in listed(actor, name=name)["documents"]] == [SECRET]
    assert retrieve(actor, "vault", name)[0]["text"] == SECRET


def test_an_index_of_the_same_name_in_another_org_is_separate(people: People):
    """A text's name is its hash: guessing the text reveals nothing."""
    index(people.ann, SECRET, name="plans", author="ann")
    other = "The vault of Bolt has no door."
    index(people.bob, other, name="plans")
    assert [row["text"] for row in retrieve(people.bob, "vault", "plans")] == [other]
    (row,) = index(people.bob, SECRET, name="plans")
    assert row["metadata"] == {}
    assert people.bob.request("DELETE", path("plans")).status_code == 200
    assert_untouched(people.ann)


def test_anonymous_access_needs_a_configured_user(people: People, settings: Settings, world: World):
    index(people.ann, SECRET, name="plans")
    index(people.bob, "The vault of Bolt has no door.", name="plans")
    question = {"index_name": "plans", "query": "vault"}
    with services_with(settings) as services, client_of(index_query.app, services) as client:
        assert client.post("/retrieve", json=question).status_code == 401
    own = {"rag_index_anonymous_org": people.acme.id, "rag_index_anonymous_user": str(uuid4())}
    with services_with(settings, **own) as services, client_of(index_query.app, services) as client:
        answer = client.post("/retrieve", json=question)
        assert answer.status_code == 403, "the anonymous user needs a membership"
        assert "ACME" not in answer.text
    own["rag_index_anonymous_user"] = world.user(people.acme).id
    with services_with(settings, **own) as services, client_of(index_query.app, services) as client:
        answer = client.post("/retrieve", json=question)
        assert [node["text"] for node in answer.json()["results"]] == [SECRET]
        # A credential counts, and a wrong one does not become an anonymous one.
        wrong = client.post("/retrieve", json=question, headers={"Authorization": "Bearer x"})
        assert wrong.status_code == 401
        # Nor a page that a user in the private network opened, wherever it is from.
        for origin in ("https://evil.example", "null"):
            page = client.post("/retrieve", json=question, headers={"Origin": origin})
            assert page.status_code == 401
        bobs = client.post("/retrieve", json=question, headers=people.bob.headers())
        assert "ACME" not in bobs.text
    with services_with(settings, **own) as services, client_of(indexes.app, services) as client:
        assert client.get("/indexes").json() == ["plans"]
        own_text = {"index_name": "new", "documents": [{"text": "The vault has a key."}]}
        assert client.post("/index", json=own_text).status_code == 200
        made_by = "select created_by::text from rag.collections where name = 'new' and org_id = %s"
        assert world.sql(made_by, people.acme.id) == [(NIL,)]
        assert client.delete(path(f"notes:u:{people.ann.id}")).status_code == 403


def test_a_metric_is_counted_for_the_caller_only(people: People, world: World):
    measure = {"name": "rag_query_requests_total", "value": 1, "user_id": people.bob.id, "label": "success"}
    assert people.ann.rpc("rag_record_metrics", {"measures": [measure]}).status_code == 204
    rows = world.sql("select user_id::text from rag.api_metrics where user_id = any (%s::uuid[])",
        [people.ann.id, people.bob.id])  # fmt: skip
    assert rows == [(people.ann.id,)]
    assert world.as_user(people.bob, "select count(*) from rag.api_metrics") == [(0,)]
