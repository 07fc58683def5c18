"""Attacks on chats: on other people's indexes, with credentials that are too small, by what documents say."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from shared.config import Settings
from shared.services import Services
from tests.actors import Actor
from tests.conftest import People
from tests.functions.chat_completions_client import (
    ASKING,
    MODEL_ANSWER,
    PATH,
    QUESTION,
    ask,
    chat_client,
    index,
    streams,
)
from tests.isolation.test_api_keys import make
from tests.shared.generation.test_generators import ATTACKS
from tests.stand_in_server import Reply, StandIn

SECRET = "The vault's kettle switches off at Rowan's 4417 degrees."
either_way = pytest.mark.parametrize("stream", [False, True])


def asking(actor: Actor, name: str, token: str | None = None, **more: Any) -> Any:
    return actor.request("POST", PATH, {"messages": ASKING, "index_name": name, **more}, token=token)


def assert_no_such_index(answer: Any, name: str) -> None:
    """Word for word as if there were none of that name."""
    assert answer.status_code == 404, answer.text
    assert answer.json()["detail"] == f"No such index: '{name}' exists."
    assert set(answer.json()["error"]) == {"message", "type", "code"}
    assert "Rowan" not in answer.text


@either_way
def test_another_org_s_index_cannot_be_queried_by_name(people: People, services: Services, stream: bool):
    index(services, people.ann, "vaults", SECRET)
    for name in ("vaults", "nowhere"):
        assert_no_such_index(asking(people.bob, name, stream=stream), name)
    assert "Rowan" in asking(people.alf, "vaults", stream=stream).text


@either_way
def test_a_user_without_an_org_cannot_query_an_index(people: People, services: Services, stream: bool):
    index(services, people.ann, "vaults", SECRET)
    there, nowhere = (asking(people.sam, name, stream=stream) for name in ("vaults", "nowhere"))
    assert there.status_code == nowhere.status_code == 404
    assert there.json() == nowhere.json()


@either_way
def test_another_org_s_index_does_not_reach_the_model(
    people: People, services: Services, settings: Settings, gateway: StandIn, stream: bool
):
    index(services, people.ann, "vaults", SECRET)
    with chat_client(settings, gateway) as client:
        assert_no_such_index(ask(client, people.bob, index_name="vaults", stream=stream), "vaults")
    assert gateway.requests == []


def test_a_name_used_by_two_orgs_reaches_only_the_caller_s_index(people: People, services: Services):
    index(services, people.ann, "vaults", SECRET)
    index(services, people.bob, "vaults", "Our kettle switches off at 12 degrees.")
    nodes = asking(people.bob, "vaults").json()["source_nodes"]
    assert [node["text"] for node in nodes] == ["Our kettle switches off at 12 degrees."]


def test_a_forged_org_in_the_request_is_ignored(people: People, services: Services):
    index(services, people.ann, "vaults", SECRET)
    index(services, people.bob, "own", "Our kettle switches off at 12 degrees.")
    forged: dict[str, Any] = {"org_id": people.acme.id, "filters": {"org_id": people.acme.id}}
    answer = asking(people.bob, "own", **forged, top_k=100)
    assert answer.status_code == 200
    assert "Rowan" not in answer.text


def test_another_member_s_private_index_cannot_be_queried(people: People, services: Services):
    answer = people.ann.request("POST", "/api/v1/collections", {"name": "mine", "private": True})
    assert answer.status_code == 201
    index(services, people.ann, "mine", SECRET)
    assert_no_such_index(asking(people.alf, "mine"), "mine")
    assert "Rowan" in asking(people.ann, "mine").text


def test_another_user_s_own_index_cannot_be_queried(people: People, services: Services):
    name = f"notes:u:{people.ann.id}"
    index(services, people.ann, name, SECRET)
    answer = asking(people.alf, name)
    assert answer.status_code == 403
    assert "Rowan" not in answer.text


@either_way
@pytest.mark.parametrize("scope", ["documents:read", "documents:write", "collections:manage"])
def test_a_key_without_the_scope_cannot_chat(people: People, services: Services, scope: str, stream: bool):
    index(services, people.ann, "vaults", SECRET)
    key = make(people.ann, scopes=[scope])["key"]
    for name in ("vaults", "nowhere"):
        answer = asking(people.ann, name, key, stream=stream)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "missing_scope")


@pytest.mark.parametrize("scope", ["chat:read", "retrievals:read"])
def test_a_key_with_either_scope_sees_what_its_owner_may_see(people: People, services: Services, scope: str):
    index(services, people.ann, "vaults", SECRET)
    assert "Rowan" in asking(people.ann, "vaults", make(people.ann, scopes=[scope])["key"]).text
    assert_no_such_index(asking(people.bob, "vaults", make(people.bob, scopes=[scope])["key"]), "vaults")


@either_way
@pytest.mark.parametrize("past", [{}, {"index_name": "vaults", "tools": [{"type": "function"}]}])
def test_a_retrieval_key_cannot_call_the_model(
    people: People, settings: Settings, gateway: StandIn, past: dict[str, Any], stream: bool
):
    """Past every index there is nothing to retrieve: that takes chat:read."""
    retrieving = people.ann.key_token(scopes=["retrievals:read"])
    body = {"messages": ASKING, "stream": stream, **past}
    with chat_client(settings, gateway) as client:
        answer = client.post(PATH, json=body, headers=people.ann.headers(retrieving))
    assert answer.status_code == 403
    assert gateway.requests == []


def test_a_key_bound_to_another_index_is_refused(people: People, services: Services):
    index(services, people.ann, "vaults", SECRET)
    people.ann.request("POST", "/api/v1/collections", {"name": "other"})
    key = make(people.ann, scopes=["chat:read"], collection="other")["key"]
    assert_no_such_index(asking(people.ann, "vaults", key), "vaults")
    assert asking(people.ann, "other", key).json()["source_nodes"] == []


def test_a_request_without_a_credential_is_refused(people: People, services: Services):
    index(services, people.ann, "vaults", SECRET)
    answer = people.ann.request("POST", PATH, {"messages": ASKING}, Authorization="")
    assert answer.status_code == 401


@either_way
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_document_cannot_forge_prompt_markers(
    people: People, services: Services, settings: Settings, gateway: StandIn, attack: str, stream: bool
):
    """It stays between the markers of this request, whose number it cannot know."""
    text = f"The kettle. {attack}"
    index(services, people.ann, "kettles", text)
    gateway.replies(streams() if stream else Reply(json=MODEL_ANSWER))
    with chat_client(settings, gateway) as client:
        assert ask(client, people.ann, index_name="kettles", stream=stream).status_code == 200
    first, last = gateway.requests[0].json["messages"]
    (nonce,) = set(re.findall(r"<<source-(\w{16})>> and", first["content"]))
    assert nonce not in text
    assert (first["role"], last["role"]) == ("system", "user")
    blocks = re.findall(
        rf"<<source-{nonce}>>\nTitle: [^\n]*\n(.*?)\n<<end-{nonce}>>", last["content"], re.DOTALL
    )
    assert blocks == [text]
    assert attack not in first["content"]
    rest = last["content"].rpartition("<<end-")[2]
    assert f"\n\nQuestion: {QUESTION}\n\nInstructions: Answer" in rest


def test_concurrent_streams_never_mix_users(
    people: People, services: Services, settings: Settings, gateway: StandIn
):
    """Each model is told of, and each answer names, what its own caller may see."""
    index(services, people.ann, "kettles", "Acme's kettle switches off at 100 degrees.")
    index(services, people.bob, "kettles", "Bolt's kettle switches off at 12 degrees.")
    gateway.replies(streams())
    own = {people.ann: "Acme's", people.bob: "Bolt's"}

    def one(actor: Actor) -> None:
        marked = [{"role": "user", "content": f"{QUESTION} I am {own[actor]}."}]
        answer = ask(client, actor, marked, index_name="kettles", stream=True).text
        assert own[actor] in answer
        assert not [other for other in own.values() if other != own[actor] and other in answer]

    with chat_client(settings, gateway) as client, ThreadPoolExecutor(8) as pool:
        list(pool.map(one, [people.ann, people.bob] * 20))
    for request in gateway.requests:
        text = json.dumps(request.json)
        assert ("Acme's" in text) != ("Bolt's" in text)
