"""Dify's External Knowledge API over HTTP, on the real stack, with the requests of Dify's own client.

They are written after `check_endpoint_and_api_key` of its ExternalDatasetService, until 1.16.0 without a body
and later with empty fields, and after `fetch_external_knowledge_retrieval`. No code of Dify is copied.
"""

import json
from typing import Any

import httpx
import pytest

from shared.services import Services
from tests.actors import NOBODYS, Actor, World
from tests.conftest import People
from tests.functions.app_server import json_of
from tests.functions.search_workspace import MENU, OUTAGE, OWNERSHIP, put, workspace_id
from tests.functions.test_mcp import key_of
from tests.metadata_filters import METADATA

QUESTION = "what was the root cause of the billing outage?"
PLACE = {"page_number": 3, "page_end": 4, "section": "Incidents > Billing"}
PROBE = {"knowledge_id": "", "query": "", "retrieval_setting": {"top_k": 1, "score_threshold": 0.0}}
Row = dict[str, Any]


def post(actor: Actor, authorization: str | None, body: Any = None) -> httpx.Response:
    """A request to the endpoint that a user enters, with the path that Dify appends."""
    endpoint = f"{actor.stack.url}/api/dify"
    headers = {"Authorization": authorization} if authorization else {}
    content = None if body is None else json.dumps(body)
    headers |= {} if body is None else {"Content-Type": "application/json"}
    return httpx.post(f"{endpoint}/retrieval", content=content, headers=headers, follow_redirects=True)


def ask(actor: Actor, knowledge_id: str, **more: Any) -> httpx.Response:
    setting = {"top_k": 100, "score_threshold": 0.0}
    body = {"retrieval_setting": setting, "query": QUESTION, "knowledge_id": knowledge_id, **more}
    return post(actor, f"Bearer {actor.token()}", body)


def records_of(response: httpx.Response) -> list[Row]:
    body = json_of(response)
    assert set(body) == {"records"}
    assert all(set(record) == {"content", "score", "title", "metadata"} for record in body["records"])
    records: list[Row] = body["records"]
    return records


def refusal(response: httpx.Response, status: int, code: int) -> str:
    body = json_of(response, status)
    assert set(body) == {"error_code", "error_msg"}
    assert body["error_code"] == code
    return str(body["error_msg"])


def where(*rows: tuple[Any, str, Any], by: str | None = "and") -> Row:
    """`metadata_condition` of names, operators and values."""
    names = ("name", "comparison_operator", "value")
    return {"logical_operator": by, "conditions": [dict(zip(names, row, strict=True)) for row in rows]}


def test_the_check_of_a_new_connection_accepts_a_key_and_refuses_others(people: People):
    key = key_of(people.ann, "retrievals:read")
    for body in (None, PROBE):
        # Dify accepts every status but 403, 404 and 502.
        refusal(post(people.ann, f"Bearer {key}", body), 400, 400)
        for wrong in (f"mn_live_{'A' * 43}", "sk-of-another-product", people.ann.token(exp=1)):
            assert wrong not in refusal(post(people.ann, f"Bearer {wrong}", body), 403, 1002)
        for malformed in (None, key, f"Basic {key}", "Bearer"):
            assert "Bearer" in refusal(post(people.ann, malformed, body), 403, 1001)
    other = f"Bearer {key_of(people.ann, 'documents:read')}"
    assert "retrievals:read" in refusal(post(people.ann, other, PROBE), 403, 1002)
    refusal(httpx.get(f"{people.ann.stack.url}/api/dify/retrieval"), 405, 405)


def test_a_collection_is_found_by_its_id_and_its_name(people: People, services: Services, world: World):
    ann, own = people.ann, {"team": "billing", "uri": "ours", "document_id": "another"}
    fields = {"uri": "https://notion.example/a", "metadata": own}
    document = put(services, ann, "docs", "Billing outage", OUTAGE, **fields)
    put(services, ann, "others", "Elsewhere", OUTAGE)
    update = "update rag.chunks set metadata = %s::jsonb where org_id = %s"
    world.sql(update, json.dumps(PLACE), people.acme.id)
    collection = workspace_id(ann, "docs").removeprefix("ws_")
    for knowledge_id in (collection, f"col_{collection}", "docs"):
        (record,) = records_of(ask(ann, knowledge_id))
        assert (record["title"], record["content"]) == ("Billing outage", OUTAGE)
        assert 0 < record["score"] <= 1
        assert record["metadata"].pop("chunk_id")
        # Other keys of the document's own metadata stay as they are.
        assert record["metadata"] == {**PLACE, **own, "document_id": document.removeprefix("doc_")}
    (elsewhere,) = records_of(ask(ann, "others"))
    assert set(elsewhere["metadata"]) == {"document_id", "chunk_id", *PLACE}


def test_the_number_and_the_least_score_limit_the_records(
    subtests: pytest.Subtests, people: People, services: Services
):
    for title, text in (("Outage", OUTAGE), ("Owner", OWNERSHIP), ("Menu", MENU)):
        put(services, people.ann, "docs", title, text)
    scores = [record["score"] for record in records_of(ask(people.ann, "docs"))]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[1] > scores[2]
    settings: list[tuple[Any, int]] = [
        (None, 3), ({"top_k": None, "score_threshold": None}, 3), ({"top_k": 2, "score_threshold": 0}, 2),
        ({"top_k": "2", "score_threshold": "0.0"}, 2), ({"top_k": 1, "score_threshold": scores[1]}, 1),
        ({"top_k": 4, "score_threshold": scores[1]}, 2), ({"top_k": 4, "score_threshold": str(scores[0])}, 1),
        ({"top_k": 4, "score_threshold": 1}, 0),
    ]  # fmt: skip
    for setting, count in settings:
        with subtests.test(setting=setting):
            records = records_of(ask(people.ann, "docs", retrieval_setting=setting))
            assert [record["score"] for record in records] == scores[:count]
    for field, value in (("top_k", 0), ("top_k", 101), ("top_k", "two"), ("score_threshold", 1.5)):
        with subtests.test(field=field, value=value):
            message = refusal(ask(people.ann, "docs", retrieval_setting={field: value}), 400, 400)
            assert message.startswith(f"retrieval_setting.{field}: ")


EVERY = " ".join(METADATA)
FOUND: list[tuple[Any, str]] = [
    (None, EVERY), ({"logical_operator": None, "conditions": None}, EVERY), (where(), EVERY),
    (where(("team", "is", "a"), by=None), "Old"), (where((["team"], "is", "a")), "Old"),
    (where(("team", "is not", "a")), "New Half Text Object Bare"),
    (where(("team", "in", ["a", "b"])), "Old New"), (where(("team", "in", "a, b")), "Old New"),
    (where(("team", "not in", ["a", "b"])), "Half Text Object Bare"),
    (where(("day", "start with", "202")), "New Half"), (where(("owner", "empty", None)), "Half Text Bare"),
    (where(("owner", "not empty", "")), "Old New Object"),
    (where(("year", "=", "2019")), "Old"), (where(("year", "=", 2020.5)), "Half"),
    (where(("year", "is", "2020")), "Text"), (where(("year", "≠", 2019)), "New Half Text Object Bare"),
    (where(("year", ">", "2019")), "New Half"), (where(("year", "<", 2020.5)), "Old"),
    (where(("year", "≥", 2019)), "Old New Half"), (where(("year", "≤", "2020.5")), "Old Half"),
    (where(("day", "before", "2020-01-01")), "Old"), (where(("day", "after", "2020")), "New Half"),
    (where(("day", "after", 20200000)), "Text"),
    (where(("year", "≥", 2019), ("year", "<", 2024), ("team", "is not", "c")), "Old"),
    (where(("team", "is not", "a"), ("team", "not in", ["b"])), "Half Text Object Bare"),
    (where(("team", "is", "a"), ("team", "in", ["c"]), by="or"), "Old Half"),
    (where(("team", "is not", "a"), by="or"), "New Half Text Object Bare"),
]  # fmt: skip
REFUSED: list[tuple[Row, str]] = [
    *((where(("team", name, "a")), f"team: the operator {name} is not supported. Use one of: is, is not,")
      for name in ("contains", "not contains", "end with", "null", "!=")),
    *((where(("team", name, "a")), f"team: the operator {name} takes a number") for name in "=≠><≥≤"),
    (where(("team", "is", None)), "team: the operator is takes a string or a number"),
    (where(("team", "is not", ["a"])), "team: the operator is not takes a string or a number"),
    (where(("team", "start with", 1)), "team: the operator start with takes a string"),
    (where(("team", "in", 1)), "team: the operator in takes a list"),
    (where(("team", "in", [])), "team $in takes a list of 1 to 100"),
    (where((["team", "day"], "is", "a")), "conditions.0.name: "),
    (where(("team", "is", "a"), ("team", "is", "b")), "team: two conditions are of one kind"),
    (where(("team", "is", "a"), ("day", "is", "b"), by="or"), "or is supported between"),
    (where(("year", "<", 1), ("year", ">", 2), by="or"), "or is supported between"),
    (where(("team", "is", "a"), by="not"), "logical_operator: "),
]  # fmt: skip


def test_conditions_filter_by_metadata_or_are_refused(
    subtests: pytest.Subtests, people: People, services: Services, world: World
):
    world.tier(people.acme, api=10**6)
    for title, metadata in METADATA.items():
        put(services, people.ann, "docs", title, OUTAGE, metadata=metadata)
    for condition, titles in FOUND:
        with subtests.test(condition=condition):
            records = records_of(ask(people.ann, "docs", metadata_condition=condition))
            assert {record["title"] for record in records} == set(titles.split())
    for condition, sentence in REFUSED:
        with subtests.test(condition=condition):
            message = refusal(ask(people.ann, "docs", metadata_condition=condition), 400, 400)
            assert message.startswith("metadata_condition")
            assert sentence in message


def test_a_caller_gets_the_passages_that_row_security_shows(people: People, services: Services, world: World):
    put(services, people.ann, "docs", "Shared", OUTAGE)
    put(services, people.ann, "docs", "Private", OUTAGE, private=True)
    put(services, people.bob, "secrets", "Foreign", OUTAGE)
    assert {record["title"] for record in records_of(ask(people.ann, "docs"))} == {"Shared", "Private"}
    # A key is its user.
    key = f"Bearer {key_of(people.alf, 'retrievals:read')}"
    body = {"knowledge_id": "docs", "query": QUESTION}
    assert [record["title"] for record in records_of(post(people.alf, key, body))] == ["Shared"]
    for unknown in (NOBODYS, "none", workspace_id(people.bob, "secrets").removeprefix("ws_"), "secrets"):
        assert refusal(ask(people.ann, unknown), 404, 2001).startswith("There is no such collection.")
    refusal(ask(people.alf, f"notes:u:{people.ann.id}"), 403, 1002)
    of_two_orgs = refusal(ask(people.kim, "docs"), 400, 400)
    assert of_two_orgs == "You belong to several orgs: use an API key of one of them."
    world.tier(people.bolt, api=1)
    assert ask(people.bob, "secrets").status_code == 200
    limited = ask(people.bob, "secrets")
    assert refusal(limited, 429, 429)
    assert int(limited.headers["Retry-After"]) > 0
