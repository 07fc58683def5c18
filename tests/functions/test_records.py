"""Records of answered requests over HTTP, in all contracts."""

from typing import Any

import psycopg
import pytest

from functions import chat_completions
from shared.config import Settings
from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import client_of, json_of, platform_error
from tests.functions.chat_completions_client import (
    MODEL_ANSWER,
    encode,
    events_of,
    piece,
    streams,
    with_model,
)
from tests.functions.platform_chat_client import result_of
from tests.functions.search_workspace import Row, put, workspace_id
from tests.functions.test_answers_without_a_model import HOME, answers
from tests.functions.test_confidence_in_all_contracts import APPS
from tests.sql.schema_changes import schema_change
from tests.stand_in_server import Reply, StandIn

KETTLE = "The kettle K-300 switches off at 100 degrees."
QUESTION = "At how many degrees does the kettle K-300 switch off?"
UNANSWERABLE = "How do penguins raise their chicks in Antarctica?"
SLUGS = {
    "rag": "rag-answer", "index": "index-query", "completions": "chat-completions", "knowledge": "knowledge",
    "platform": "chat", "search": "v1-answer",
}  # fmt: skip


def record_requests(actor: Actor, days: int | None = 30) -> None:
    """Set the retention of the actor's org, whose admin the actor is."""
    body = json_of(actor.request("PATCH", "/v1/records/settings", {"retention_days": days}))
    assert body == {"org_id": actor.org and actor.org.id, "retention_days": days}


def ask(actor: Actor, question: str = QUESTION, **headers: str) -> str:
    """The request id of an answer of the rag pair."""
    response = actor.request("POST", "/api/rag/answer", {"query_text": question}, **headers)
    assert response.status_code == 200, response.text
    return str(response.headers["x-request-id"])


def record_of(actor: Actor, record_id: str) -> Row:
    return result_of(actor.request("GET", f"/v1/records/{record_id}"))


@pytest.fixture
def members(people: People, services: Services) -> People:
    """Acme records its requests, and has a document."""
    record_requests(people.ada)
    put(services, people.ann, HOME, "Kettle manual", KETTLE)
    return people


def test_every_contract_records_a_model_s_answer_alike(
    subtests: pytest.Subtests, members: People, settings: Settings
):
    choice: Row = {"index": 0, "finish_reason": "stop"}
    text = "The kettle K-300 switches off at 100 degrees [1]."
    with StandIn() as gateway, with_model(settings, gateway) as deployment:
        reply = {**MODEL_ANSWER, "choices": [{**choice, "message": {"role": "assistant", "content": text}}]}
        gateway.replies(Reply(json=reply))
        ids: dict[str, str] = {}

        def post(contract: str, path: str, body: Row) -> Any:
            with client_of(APPS[contract], deployment) as client:
                response = client.post(path, json=body, headers=members.ann.headers())
            ids[contract] = response.headers["x-request-id"]
            return response

        for contract, answer, _ in answers(members.ann, QUESTION, post=post):
            with subtests.test(contract=contract):
                record = record_of(members.ann, ids[contract])
                assert (record["function"], record["question"]) == (SLUGS[contract], QUESTION)
                assert record["user_id"] == members.ann.id
                assert record["answered"]
                assert record["answer"] == answer
                assert record["is_complete"]
                assert record["confidence"]["level"] == "high"
                assert [query["text"] for query in record["queries"]] == [QUESTION]
                (passage,) = record["passages"]
                assert (passage["rank"], passage["title"], passage["text"]) == (1, "Kettle manual", KETTLE)
                legs = {leg["leg"]: leg["rank"] for leg in passage["legs"]}
                assert legs == ({"semantic": 1} if contract == "rag" else {"semantic": 1, "keyword": 1})
                generation = record["generation"]
                assert (generation["prompt_tokens"], generation["completion_tokens"]) == (12, 5)
                prompt = "\n".join(message["content"] for message in generation["prompt"])
                assert "[passage 1]" in prompt
                assert QUESTION in prompt
                # The passage is not stored with the prompt.
                assert "100 degrees" not in prompt


@pytest.mark.parametrize("usage", [{"prompt_tokens": 9, "completion_tokens": 4}, None])
def test_a_streamed_answer_is_recorded(members: People, settings: Settings, world: World, usage: Row | None):
    with StandIn() as gateway, with_model(settings, gateway) as deployment:
        last = piece(usage=usage) if usage else piece()
        gateway.replies(streams([*encode(piece("At 100 degrees."), last), b"data: [DONE]\n\n"]))
        with client_of(chat_completions.app, deployment) as client:
            texts = ("user", "What is a kettle?"), ("assistant", "A vessel of secrets."), ("user", QUESTION)
            messages = [{"role": role, "content": text} for role, text in texts]
            body = {"index_name": HOME, "stream": True, "messages": messages}
            response = client.post("/v1/chat/completions", json=body, headers=members.ann.headers())
            assert events_of(response.text)[-1] == "[DONE]"
    record = record_of(members.ann, response.headers["x-request-id"])
    assert record["answer"] == "At 100 degrees."
    tokens = (record["generation"]["prompt_tokens"], record["generation"]["completion_tokens"])
    # Our own count includes the passage.
    assert tokens == (9, 4) if usage else tokens[0] > 20 and tokens[1] >= 3
    # Earlier answers may repeat documents: their length alone is stored.
    row = "select to_jsonb(r)::text from rag.request_records r where id = %s"
    ((stored,),) = world.sql(row, record["id"])
    assert "vessel of secrets" not in stored
    assert "[20 characters]" in stored


def ask_model(members: People, settings: Settings, text: str, question: str, **more: Any) -> str:
    """The request id of a chat completion whose model answers with the text."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    with StandIn() as gateway, with_model(settings, gateway) as deployment:
        gateway.replies(Reply(json={**MODEL_ANSWER, "choices": [choice]}))
        with client_of(chat_completions.app, deployment) as client:
            body = {"index_name": HOME, "messages": [{"role": "user", "content": question}], **more}
            response = client.post("/v1/chat/completions", json=body, headers=members.ann.headers())
    assert response.status_code == 200, response.text
    return str(response.headers["x-request-id"])


def test_reasons_quote_nothing_of_a_deleted_document(
    members: People, services: Services, settings: Settings, world: World
):
    for year, price in ((2025, 45), (2026, 55)):
        sentence = f"The small meeting room costs {price} euros a day."
        put(services, members.ann, HOME, f"Prices {year}", sentence)
    text = "The small meeting room costs 55 euros a day."
    request_id = ask_model(members, settings, text, "What does the small meeting room cost a day?")
    assert "45 euros" in str(record_of(members.ann, request_id)["confidence"]["because"])
    world.sql("delete from rag.documents where title = 'Prices 2025'")
    for actor in (members.ann, members.ada):
        record = record_of(actor, request_id)
        assert record["confidence"]["because"] == []
        assert "45 euros" not in str(record)


def test_a_withheld_answer_is_recorded_without_a_model(members: People):
    record = record_of(members.ann, ask(members.ann, UNANSWERABLE))
    assert (record["answered"], record["answer"], record["generation"]) == (False, None, None)
    assert record["confidence"]["level"] == "low"
    assert record["passages"]


def test_an_org_records_nothing_by_default(people: People, services: Services, world: World):
    put(services, people.ann, HOME, "Kettle manual", KETTLE)
    request_id = ask(people.ann)
    assert people.ann.request("GET", "/v1/records/settings").json()["retention_days"] is None
    missing = platform_error(people.ann.request("GET", f"/v1/records/{request_id}"), 404)
    assert missing["code"] == "record_not_found"
    assert world.sql("select count(*) from rag.request_records where org_id = %s", people.acme.id) == [(0,)]


def test_a_failure_to_record_does_not_fail_the_request(members: People, settings: Settings, world: World):
    insert = "insert on rag.request_records"
    with schema_change(world, f"revoke {insert} from authenticated", f"grant {insert} to authenticated"):
        request_id = ask(members.ann)
    assert members.ann.request("GET", f"/v1/records/{request_id}").status_code == 404
    assert record_of(members.ann, ask(members.ann))["answered"]


def test_requests_with_one_id_are_named_by_their_records(members: People, world: World):
    ann, ada = members.ann, members.ada
    by_time = "select id::text from rag.request_records where request_id = 'mine' order by created_at desc"
    ask(ann, UNANSWERABLE, **{"X-Request-Id": "mine"})
    assert record_of(ann, "mine")["question"] == UNANSWERABLE
    ask(ada, **{"X-Request-Id": "mine"})
    # Ann does not see the record of the admin, and the admin sees both.
    assert record_of(ann, "mine")["user_id"] == ann.id
    ((of_ada,), (of_ann,)) = world.sql(by_time)
    ask(ann, **{"X-Request-Id": "mine"})
    for actor, count in ((ann, 2), (ada, 3)):
        for method, path, body in (
            ("GET", "", None),
            ("POST", "/replay", None),
            ("POST", "/feedback", {"rating": "up"}),
            ("POST", "/label", {"verdict": "wrong"}),
        ):
            if path == "/label" and actor is ann:
                continue
            refused = platform_error(actor.request(method, f"/v1/records/mine{path}", body), 409)
            assert refused["code"] == "request_id_repeated"
            listed = [record_id for (record_id,) in world.sql(by_time) if actor is ada or record_id != of_ada]
            assert len(listed) == count
            assert refused["message"].endswith(f": {', '.join(listed)}")
    # Each is labelled and rated by the id of its record.
    assert label(ada, of_ann, "wrong").status_code == 204
    assert record_of(ada, of_ada)["label"] is None
    assert record_of(ann, of_ann)["label"]["verdict"] == "wrong"


def test_nothing_of_a_deleted_passage_is_readable(members: People, world: World):
    request_id = ask(members.ann)
    assert "100 degrees" in record_of(members.ann, request_id)["answer"]
    world.sql("delete from rag.documents where org_id = %s", members.acme.id)
    for actor in (members.ann, members.ada):
        record = record_of(actor, request_id)
        assert (record["is_complete"], record["answered"]) == (False, True)
        assert record["answer"] is record["passages"][0]["text"] is None
        assert [query["text"] for query in record["queries"]] == [QUESTION]
        assert "100 degrees" not in str(record)


def test_retention_and_erasure(members: People, world: World):
    request_id = ask(members.ann)
    created = "update rag.request_records set created_at = now() - interval '10 days' where org_id = %s"
    world.sql(created, members.acme.id)
    record_requests(members.ada, 11)
    assert record_of(members.ann, request_id)
    record_requests(members.ada, 9)
    assert members.ann.request("GET", f"/v1/records/{request_id}").status_code == 404
    ask(members.ann)
    ask(members.ada)
    assert members.ann.request("DELETE", "/v1/records").json() == {"deleted": 1}
    # A change in SQL shortens the retention, too.
    world.sql(created, members.acme.id)
    world.sql("update rag.orgs set record_days = 8 where id = %s", members.acme.id)
    assert world.sql("select count(*) from rag.request_records where org_id = %s", members.acme.id) == [(0,)]
    record_requests(members.ada)
    ask(members.ada)
    # Turning the records off deletes them.
    record_requests(members.ada, None)
    assert world.sql("select count(*) from rag.request_records where org_id = %s", members.acme.id) == [(0,)]


def test_a_request_during_a_change_of_the_retention_leaves_no_record(members: People, world: World):
    with psycopg.connect(world.stack.database_url()) as connection:
        connection.execute("update rag.orgs set record_days = null where id = %s", [members.acme.id])
        ask(members.ann)
    assert world.sql("select count(*) from rag.request_records where org_id = %s", members.acme.id) == [(0,)]


def test_a_retention_that_is_invalid_or_left_out_deletes_no_record(members: People):
    request_id = ask(members.ann)
    invalid: list[Row] = [{}, *({"retention_days": days} for days in (0, 3651, 1.5, "30", True))]
    for body in invalid:
        error = platform_error(members.ada.request("PATCH", "/v1/records/settings", body), 400)
        assert error["details"]["field"] == "retention_days"
    assert members.ada.rpc("rag_update_record_settings", {"org_id": members.acme.id}).status_code == 404
    assert record_of(members.ann, request_id)


def test_an_asker_rates_an_answer(members: People):
    request_id = ask(members.ann)
    assert record_of(members.ann, request_id)["feedback"] is None
    for rating, reason in (("up", None), ("down", "It is 95 degrees."), (None, None)):
        body = {"rating": rating, "reason": reason}
        assert members.ann.request("POST", f"/v1/records/{request_id}/feedback", body).status_code == 204
        assert record_of(members.ada, request_id)["feedback"] == (rating and body)


def test_a_replay_in_the_same_documents_changes_nothing(subtests: pytest.Subtests, members: People):
    ids: dict[str, str] = {}

    def post(contract: str, path: str, body: Row) -> Any:
        response = members.ann.post(path, body)
        ids[contract] = response.headers["x-request-id"]
        return response

    # Only the rag contract has a rule of its own for withheld answers.
    for question, contracts in ((QUESTION, None), (UNANSWERABLE, ("rag", "search"))):
        for contract, _, _ in answers(members.ann, question, contracts, post=post):
            with subtests.test(contract=contract, question=question):
                replayed = result_of(members.ann.post(f"/v1/records/{ids[contract]}/replay"))
                before, after = replayed["before"], replayed["after"]
                assert replayed["passages"] == []
                assert before["answered"] is after["answered"] is (question == QUESTION)
                assert before["confidence"]["level"] == after["confidence"]["level"]


def test_a_replay_shows_what_changed(members: People, services: Services, world: World):
    request_id = ask(members.ann)
    (old,) = record_of(members.ann, request_id)["passages"]
    world.sql("delete from rag.documents where org_id = %s", members.acme.id)
    gone = result_of(members.ann.post(f"/v1/records/{request_id}/replay"))
    assert (gone["after"]["answered"], gone["after"]["confidence"]["level"]) == (False, "low")
    lost = {"chunk_id": old["chunk_id"], "document_id": old["document_id"], "title": None}
    assert gone["passages"] == [{**lost, "before": 1, "after": None}]
    put(services, members.ann, HOME, "Kettle manual, new edition", KETTLE.replace("100", "98"))
    replayed = result_of(members.ada.post(f"/v1/records/{request_id}/replay"))
    assert (replayed["before"]["answered"], replayed["before"]["answer"]) == (True, None)
    assert "98 degrees" in replayed["after"]["answer"]
    gained, again = replayed["passages"]
    assert (gained["title"], gained["before"], gained["after"]) == ("Kettle manual, new edition", None, 1)
    assert again == gone["passages"][0]
    # A replay is not members.
    assert world.sql("select count(*) from rag.request_records where org_id = %s", members.acme.id) == [(1,)]


def test_a_replay_without_the_text_of_a_rewritten_question_keeps_its_filters(
    members: People, services: Services, world: World
):
    home = workspace_id(members.ann, HOME).removeprefix("ws_")
    body = {"message": QUESTION, "stream": False, "collection_id": home}
    request_id = members.ann.post("/v1/chat", body).headers["x-request-id"]
    rewrite = "update rag.request_records set queries = jsonb_set(queries, '{0,text}', '\"At 100?\"')"
    world.sql(f"{rewrite} where request_id = %s", request_id)
    before = record_of(members.ann, request_id)["queries"]
    world.sql("delete from rag.documents where org_id = %s", members.acme.id)
    after = record_of(members.ann, request_id)["queries"]
    assert [(query["text"], query["options"]) for query in after] == [(None, before[0]["options"])]
    put(services, members.ann, "other", "Kettle in another collection", KETTLE)
    put(services, members.ann, HOME, "Kettle at home", KETTLE)
    replayed = result_of(members.ann.post(f"/v1/records/{request_id}/replay"))
    titles = [passage["title"] for passage in replayed["passages"] if passage["after"]]
    assert titles == ["Kettle at home"]
    assert "100 degrees" in replayed["after"]["answer"]


def test_a_replay_of_deep_reasoning_repeats_its_searches(members: People):
    question = f"{QUESTION} Compare the kettle K-300 and the kettle K-900."
    body = {"message": question, "stream": False, "reasoning_mode": "deep"}
    request_id = members.ann.post("/v1/chat", body).headers["x-request-id"]
    assert len(record_of(members.ann, request_id)["queries"]) > 1
    replayed = result_of(members.ann.post(f"/v1/records/{request_id}/replay"))
    assert (replayed["after"]["answered"], replayed["passages"]) == (None, [])
    assert replayed["before"]["confidence"]["score"] == replayed["after"]["confidence"]["score"]


def label(actor: Actor, record_id: str, verdict: str | None, *documents: str) -> Any:
    body = {"verdict": verdict, "document_ids": documents}
    return actor.request("POST", f"/v1/records/{record_id}/label", body)


def test_admins_list_filter_and_label_records(members: People, world: World):
    good, withheld, bad = (ask(members.ann, q) for q in (QUESTION, UNANSWERABLE, QUESTION))
    members.ann.post(f"/v1/records/{bad}/feedback", {"rating": "down", "reason": "old"})
    (document,) = world.sql("select id::text from rag.documents where org_id = %s", members.acme.id)[0]
    assert label(members.ada, withheld, "wrong", f"doc_{document}").status_code == 204
    slow = "update rag.request_records set milliseconds = 9000 where request_id = %s"
    world.sql(slow, withheld)

    def listed(query: str = "") -> list[str]:
        page = result_of(members.ada.request("GET", f"/v1/records?{query}"))
        assert page["pagination"]["total"] == len(page["data"])
        return [row["request_id"] for row in page["data"]]

    assert listed() == [bad, withheld, good]
    assert listed("answered=false") == listed("labelled=true") == [withheld]
    assert listed("rating=down") == [bad]
    assert listed("labelled=false&answered=true&rating=up") == []
    assert listed("sort_by=milliseconds")[0] == withheld
    (row,) = result_of(members.ada.request("GET", "/v1/records?labelled=true"))["data"]
    assert row["label"] == {"verdict": "wrong", "document_ids": [document]}
    assert record_of(members.ann, withheld)["label"] == row["label"]
    assert label(members.ada, withheld, None).status_code == 204
    assert record_of(members.ann, withheld)["label"] is None
    unknown = platform_error(label(members.ada, good, "right", "doc_unknown"), 404)
    assert unknown["code"] == "document_not_found"
    assert label(members.ada, good, None, document).status_code == 400


def test_a_summary_counts_the_records(members: People):
    good, _, _ = (ask(members.ann, q) for q in (QUESTION, UNANSWERABLE, f"  {UNANSWERABLE.upper()}"))
    members.ann.post(f"/v1/records/{good}/feedback", {"rating": "up"})
    label(members.ada, good, "right")
    summary = result_of(members.ada.request("GET", "/v1/records/summary?days=1"))
    assert summary["unanswered"] == [{"question": UNANSWERABLE.lower(), "requests": 2}]
    counts = (
        "requests", "answered", "withheld", "rated_up", "rated_down", "labelled_right", "labelled_wrong",
    )  # fmt: skip
    assert [summary[name] for name in counts] == [3, 1, 2, 1, 0, 1, 0]
    assert summary["confidence"]["low"] == 2
    assert summary["p95_ms"] >= summary["p50_ms"] >= 0


def test_a_record_names_the_api_key_that_asked(members: People):
    key = json_of(members.ann.post("/api/keys", {"name": "Importer", "scopes": ["chat:read"]}), 201)
    question = {"question": QUESTION, "workspaceId": workspace_id(members.ann, HOME)}
    answer = members.ann.post("/v1/answer", question, token=key["key"])
    request_of_key = answer.headers["x-request-id"]
    own = ask(members.ann)
    key_and_name, no_key = (key["id"], "Importer"), (None, None)
    for actor in (members.ann, members.ada):
        for request_id, expected in ((request_of_key, key_and_name), (own, no_key)):
            record = record_of(actor, request_id)
            assert (record["key_id"], record["key_name"]) == expected
    # A key without the scope admin lists no keys.
    by_key = json_of(members.ann.request("GET", f"/v1/records/{request_of_key}", token=key["key"]))
    assert (by_key["key_id"], by_key["key_name"]) == (key["id"], None)
    listed = json_of(members.ada.request("GET", "/v1/records"))["data"]
    assert [(row["key_id"], row["key_name"]) for row in listed] == [no_key, key_and_name]
    assert key["key"] not in answer.text + str(listed)
