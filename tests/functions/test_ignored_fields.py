"""Unknown fields of changes: the response of every PATCH names them."""

import json
from typing import Any

import pytest

from local import ROOT
from shared.services import Services
from tests.actors import NOBODYS, webhook_arguments
from tests.conftest import People
from tests.functions.app_server import json_of
from tests.functions.search_workspace import put, workspace_id


def test_a_change_names_the_fields_that_it_ignores(
    people: People, services: Services, no_jobs: None, subtests: pytest.Subtests
):
    put(services, people.ada, "docs", "Kettle manual", "The kettle switches off at 100 degrees.")
    collection = workspace_id(people.ada, "docs").removeprefix("ws_")
    documents = json_of(people.ada.request("GET", f"/v1/documents?collection_id={collection}"))["data"]
    site = {"collection_id": collection, "kind": "website", "address": "https://docs.example/"}
    source = json_of(people.ada.post("/v1/sources", site), 201)["id"]
    webhook = people.ada.rpc("rag_create_webhook", webhook_arguments()).json()[0]["id"]
    changes: dict[str, tuple[str, dict[str, Any]]] = {
        "/api/v1/documents/{document_id}": (documents[0]["id"], {"title": "Kettle"}),
        "/api/v1/collections/{collection_id}": (collection, {"description": "Manuals"}),
        "/api/v1/sources/{source_id}": (source, {"max_items": 7}),
        "/api/v1/webhooks/{webhook_id}": (webhook, {"description": "A hook"}),
        "/api/v1/records/settings": ("", {"retention_days": 7}),
    }
    paths = json.loads((ROOT / "openapi" / "platform.json").read_text())["paths"]
    assert changes.keys() == {
        path for path, methods in paths.items() if "patch" in methods and path.startswith("/api/v1/")
    }
    for path, (subject, change) in changes.items():
        with subtests.test(path=path):
            address = f"{path.partition('{')[0]}{subject}"
            body = json_of(people.ada.request("PATCH", address, change))
            assert "ignored_fields" not in body
            unknown = {"owner_id": NOBODYS, "ttile": "x", **change}
            body = json_of(people.ada.request("PATCH", address, unknown))
            assert body["ignored_fields"] == ["owner_id", "ttile"]
            assert change.items() <= body.items()
    config = {"config": {"chunk_sise": 64, "chunk_size": 64}}
    body = json_of(people.ada.request("PATCH", f"/v1/collections/{collection}", config))
    assert (body["config"]["chunk_size"], body["ignored_fields"]) == (64, ["config.chunk_sise"])
    moved = json_of(
        people.ada.request("PATCH", f"/v1/documents/{documents[0]['id']}", {"collection_id": NOBODYS})
    )
    assert (moved["collection_id"], moved["ignored_fields"]) == (collection, ["collection_id"])
