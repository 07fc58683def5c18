"""/webhooks over HTTP: made, shown, changed, turned off and on, deleted; deliveries; refusals."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from standardwebhooks import Webhook

from tests.actors import NOBODYS, Actor, World
from tests.conftest import People
from tests.functions.app_server import json_of
from tests.functions.app_server import platform_error as error

PATH = "/api/v1/webhooks"
EVENTS = ["document.processing_started", "document.processing_failed"]
FIELDS = {
    "id", "org_id", "url", "description", "events", "collection_id", "enabled", "failing_since", "created_at",
    "updated_at",
}  # fmt: skip
Row = dict[str, Any]
pytestmark = pytest.mark.usefixtures("no_jobs")


def make(actor: Actor, **more: Any) -> Row:
    body = {"url": "https://hooks.example/in", "events": EVENTS, **more}
    return json_of(actor.request("POST", PATH, body), 201)


def bring(actor: Actor) -> str:
    """A document in a new collection of the actor's."""
    collection = actor.request("POST", "/v1/collections", {"name": f"kilns {uuid4()}"}).json()["id"]
    body = {"collection_id": collection, "content": "The kiln is hot."}
    return str(json_of(actor.request("POST", "/v1/documents/text", body), 202)["id"])


def test_a_webhook_is_created_and_its_secret_shown_once(people: People):
    webhook = make(people.ada, description="the intranet")
    assert set(webhook) == FIELDS | {"secret"}
    fields = "url", "events", "enabled", "description", "collection_id", "failing_since"
    values = "https://hooks.example/in", EVENTS, True, "the intranet", None, None
    assert tuple(webhook[field] for field in fields) == values
    assert Webhook(webhook["secret"])
    assert make(people.ada)["secret"] != webhook["secret"]
    body = json_of(people.ada.request("GET", f"{PATH}/{webhook['id']}"))
    assert body == {name: webhook[name] for name in FIELDS}
    listed = people.ada.request("GET", PATH)
    assert json_of(listed)["data"][0]["id"] == webhook["id"]
    assert "whsec_" not in listed.text


def test_a_webhook_may_be_limited_to_one_collection(people: People):
    home = people.ann.request("POST", "/v1/collections", {"name": "docs"}).json()["id"]
    assert make(people.ada, collection_id=f"col_{home}")["collection_id"] == home
    elsewhere = {"url": "https://hooks.example/", "events": EVENTS, "collection_id": str(uuid4())}
    assert error(people.ada.request("POST", PATH, elsewhere), 404)["code"] == "collection_not_found"


def test_an_update_changes_only_the_given_fields(people: People):
    webhook = make(people.ada, description="the intranet")
    where = f"{PATH}/{webhook['id']}"
    assert json_of(people.ada.request("PATCH", where, {"description": None}))["description"] == "the intranet"
    changed = json_of(people.ada.request("PATCH", where, {"url": "https://other.example/", "enabled": False}))
    expected = ("https://other.example/", False, EVENTS)
    assert (changed["url"], changed["enabled"], changed["events"]) == expected
    events = ["document.deleted"]
    assert json_of(people.ada.request("PATCH", where, {"events": events}))["events"] == events


def test_a_secret_is_renewed_and_the_old_one_signs_for_one_more_day_by_default(people: People, world: World):
    webhook = make(people.ada)
    body = json_of(people.ada.request("POST", f"{PATH}/{webhook['id']}/rotate", {"overlap_seconds": 60}), 201)
    assert body["secret"].startswith("whsec_")
    assert body["secret"] != webhook["secret"]
    lasts = "old_secret_until - now() between interval '23 hours' and interval '1 day'"
    for default in (None, dict[str, Any]()):
        json_of(people.ada.request("POST", f"{PATH}/{webhook['id']}/rotate", default), 201)
        assert world.sql(f"select {lasts} from rag.endpoints") == [(True,)]
    too_long = people.ada.request("POST", f"{PATH}/{webhook['id']}/rotate", {"overlap_seconds": 700_000})
    assert error(too_long, 400)["code"] == "invalid_field_value"


def test_a_webhook_is_deleted_with_its_pending_deliveries(people: People, world: World):
    webhook = make(people.ada)
    bring(people.ann)
    assert people.ada.request("DELETE", f"{PATH}/{webhook['id']}").status_code == 204
    assert world.sql("select count(*) from rag.deliveries") == [(0,)]
    assert error(people.ada.request("DELETE", f"{PATH}/{webhook['id']}"), 404)["code"] == "webhook_not_found"


def test_deliveries_are_listed_and_can_be_repeated(people: People, world: World):
    webhook = make(people.ada)
    bring(people.ann)
    bring(people.ann)
    where = f"{PATH}/web_{webhook['id']}/deliveries"
    page = json_of(people.ada.request("GET", f"{where}?limit=1"))
    assert page["pagination"] == {"total": 2, "limit": 1, "offset": 0, "has_more": True}
    (newest,) = page["data"]
    assert set(newest) == {
        "id", "event_id", "type", "data", "status", "attempts", "response_status", "error", "next_attempt_at",
        "created_at", "finished_at",
    }  # fmt: skip
    assert newest["data"]["object"]["status"] == "processing"
    assert (newest["type"], newest["status"], newest["attempts"]) == (EVENTS[0], "waiting", 0)
    assert newest["event_id"].startswith("evt_")
    assert newest["next_attempt_at"] is not None
    # One that is under way is not begun anew.
    second = f"{where}/{newest['id']}/repeat"
    assert error(people.ada.request("POST", second), 409)["code"] == "delivery_under_way"
    nothing = f"{where}/{NOBODYS}/repeat"
    assert error(people.ada.request("POST", nothing), 404)["code"] == "delivery_not_found"
    ended = "state = 'failed', attempts = 10, response_status = 500, error = 'refused', finished_at = now()"
    world.sql(f"update rag.deliveries set {ended} where id = %s", newest["id"])
    failed = json_of(people.ada.request("GET", where))["data"][0]
    assert (failed["status"], failed["response_status"], failed["error"]) == ("failed", 500, "refused")
    assert failed["next_attempt_at"] is None
    assert people.ada.request("POST", second).status_code == 202
    assert json_of(people.ada.request("GET", where))["data"][0]["status"] == "waiting"
    assert people.ada.request("PATCH", f"{PATH}/{webhook['id']}", {"enabled": False}).status_code == 200
    assert error(people.ada.request("POST", second), 409)["code"] == "webhook_disabled"


def test_the_worker_sends_deliveries(people: People):
    """As a schedule calls it; and to no address of this machine."""
    webhook = make(people.ada)
    bring(people.ann)
    # Straight into the table, since no address of this machine is taken over HTTP.
    world = World(people.ann.stack)
    world.sql("update rag.endpoints set url = 'http://127.0.0.1:9/'")
    world.close()
    headers = {"Authorization": f"Bearer {people.ann.stack.state.worker_token}"}
    answer = httpx.post(f"{people.ann.stack.url}/functions/v1/ingest", headers=headers).json()
    assert (answer["completed"], answer["delivered"], answer["undelivered"]) == (1, 0, 1)
    (row,) = json_of(people.ada.request("GET", f"{PATH}/{webhook['id']}/deliveries"))["data"]
    assert (row["status"], row["attempts"], row["error"]) == ("waiting", 1, "address_refused")
    assert json_of(people.ada.request("GET", f"{PATH}/{webhook['id']}"))["failing_since"] is not None


BAD_ADDRESSES = ["http://169.254.169.254/", "https://a..b/", "https://ann:secret@hooks.example/"]


def test_an_internal_or_malformed_url_is_refused_at_once(subtests: pytest.Subtests, people: People):
    webhook = make(people.ada)
    for url in BAD_ADDRESSES:
        with subtests.test(url=url):
            refused = error(people.ada.request("POST", PATH, {"url": url, "events": EVENTS}), 400)
            assert (refused["code"], refused["details"]) == ("url_not_allowed", {"field": "url"})
            changed = people.ada.request("PATCH", f"{PATH}/{webhook['id']}", {"url": url})
            assert error(changed, 400)["code"] == "url_not_allowed"


def test_an_org_has_at_most_twenty_webhooks(people: People):
    for _ in range(20):
        make(people.ada)
    refused = people.ada.request("POST", PATH, {"url": "https://hooks.example/", "events": EVENTS})
    assert error(refused, 400)["code"] == "too_many_webhooks"
