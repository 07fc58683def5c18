"""Groups and grants over HTTP: HR sees HR, the rest of the org does not."""

from typing import Any

from tests.actors import Actor
from tests.conftest import People
from tests.functions.app_server import json_of
from tests.functions.app_server import platform_error as error

TEXT = "The bonus of the night shift is 312 euros."


def hr_of(people: People) -> str:
    """A collection with a document, whose creator restricts it to the group HR, of which ann is a member."""
    made = people.ada.post("/v1/collections", {"name": "hr"})
    collection = str(json_of(made, 201)["id"])
    document = {"document_id": "bonus", "text": TEXT, "title": "Bonus", "source": "hr"}
    json_of(people.ada.post("/api/v1/knowledge/hr/documents", {"documents": [document]}), 201)
    assert people.ada.post("/v1/groups", {"name": "HR", "user_ids": [people.ann.id]}).status_code == 204
    grants = [{"group": "HR", "access": "view"}]
    answer = json_of(people.ada.post(access_of(collection), {"restricted": True, "grants": grants}))
    assert answer["access"] == "manage"
    assert answer["grants"] == [{"group": "HR", "user_id": None, "access": "view", "original": True}]
    return collection


def access_of(collection: str) -> str:
    return f"/v1/collections/{collection}/access"


def found(actor: Actor) -> list[str]:
    """The texts that a search of the whole org finds."""
    return [row["snippet"] for row in json_of(actor.search("night shift bonus"))["results"]]


def names(actor: Actor) -> list[str]:
    return [row["name"] for row in json_of(actor.request("GET", "/v1/collections"))["data"]]


def test_a_group_sees_its_collection_and_the_others_do_not(people: People):
    collection = hr_of(people)
    assert found(people.ann) == found(people.ada) == [TEXT]
    assert (names(people.ann), names(people.alf)) == (["hr"], [])
    assert found(people.alf) == []
    assert json_of(people.ann.request("GET", access_of(collection)))["access"] == "view"
    for path in (access_of(collection), f"/v1/collections/{collection}"):
        assert error(people.alf.request("GET", path), 404)["code"] == "collection_not_found"
    # The name is free for those who do not see the collection.
    assert people.alf.post("/v1/collections", {"name": "hr"}).status_code == 201


def test_a_change_of_a_group_takes_effect_with_the_next_request(people: People):
    hr_of(people)
    people.ada.post("/v1/groups", {"name": "HR", "user_ids": [people.alf.id]})
    assert (found(people.ann), found(people.alf)) == ([], [TEXT])
    body = json_of(people.ada.request("GET", "/v1/groups"))
    assert body["groups"] == [{"name": "HR", "description": None, "user_ids": [people.alf.id]}]
    assert people.ada.request("DELETE", "/v1/groups?name=HR").status_code == 204
    assert (found(people.alf), found(people.ada)) == ([], [TEXT])
    assert error(people.ada.request("DELETE", "/v1/groups?name=HR"), 404)["code"] == "group_not_found"


def test_each_right_opens_what_it_names(people: People):
    collection = hr_of(people)
    document = {"document_id": "new", "text": "Another text.", "title": "New", "source": "hr"}

    def statuses() -> tuple[int, int, int]:
        added = people.ann.post("/api/v1/knowledge/hr/documents", {"documents": [document]})
        renamed = people.ann.request("PATCH", f"/v1/collections/{collection}", {"description": "new"})
        granted = people.ann.post(access_of(collection), {"restricted": True, "grants": grants})
        return added.status_code, renamed.status_code, granted.status_code

    for access, expected in (
        ("view", (403, 403, 403)),
        ("edit", (201, 403, 403)),
        ("manage", (201, 200, 200)),
    ):
        grants: list[dict[str, Any]] = [{"user_id": people.ann.id, "access": access}]
        json_of(people.ada.post(access_of(collection), {"restricted": True, "grants": grants}))
        assert statuses() == expected
    json_of(people.ann.post(access_of(collection), {"restricted": False}))
    assert TEXT in found(people.alf)


def test_wrong_input_is_named(people: People):
    collection = json_of(people.ann.post("/v1/collections", {"name": "mine"}), 201)["id"]
    path = access_of(collection)
    both = {"group": "HR", "user_id": people.ann.id, "access": "view"}
    for body, code in (
        ({"restricted": True, "grants": [both]}, "invalid_field_value"),
        ({"restricted": True, "grants": [{"group": "HR", "access": "own"}]}, "invalid_field_value"),
        ({"restricted": True}, "own_grant"),
        ({"restricted": False, "grants": [{"group": "HR", "access": "view"}]}, "invalid_grants"),
    ):
        assert error(people.ann.post(path, body), 400)["code"] == code
    assert json_of(people.ann.request("GET", path))["restricted"] is False
    assert error(people.alf.post(path, {"restricted": True}), 403)["code"] == "access_denied"
    for method, refused, sent in (
        ("POST", "/v1/groups", {"name": "HR", "user_ids": []}),
        ("GET", "/v1/groups", None),
        ("PATCH", f"/v1/orgs/{people.acme.id}", {"restricts_collections": True}),
    ):
        assert error(people.ann.request(method, refused, sent), 403)["code"] == "admin_required"


def test_an_org_may_restrict_new_collections_to_their_creators(people: People):
    path = f"/v1/orgs/{people.acme.id}"
    changed = json_of(people.ada.request("PATCH", path, {"restricts_collections": True}))
    assert changed == {"org_id": people.acme.id, "restricts_collections": True}
    assert json_of(people.ada.request("GET", "/v1/groups"))["restricts_collections"] is True
    collection = json_of(people.ann.post("/v1/collections", {"name": "mine"}), 201)["id"]
    answer = json_of(people.ann.request("GET", access_of(collection)))
    assert (answer["restricted"], answer["access"]) == (True, "manage")
    assert names(people.alf) == []
