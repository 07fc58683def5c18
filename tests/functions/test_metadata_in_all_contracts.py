"""Metadata that Python takes for JSON and Postgres or a client does not, in all contracts."""

import pytest

from tests.conftest import People
from tests.functions.app_server import NO_METADATA, json_of, platform_error


def test_metadata_that_is_not_json_is_refused_by_field(subtests: pytest.Subtests, people: People):
    home = json_of(people.ann.post("/v1/collections", {"name": "docs"}), 201)["id"]
    place = f'"collection_id": "{home}"'
    text = {"collection_id": home, "content": "x"}
    document = json_of(people.ann.post("/v1/documents/text", text), 202)["id"]
    requests = (
        ("POST", "/v1/collections", '"name": "x", "metadata": %s'),
        ("PATCH", f"/v1/collections/{home}", '"metadata": %s'),
        ("POST", "/v1/documents/text", f'{place}, "content": "x", "metadata": %s'),
        ("POST", "/v1/documents/upload", f'{place}, "filename": "a.pdf", "size_bytes": 1, "metadata": %s'),
        ("PATCH", f"/v1/documents/{document}", '"title": "x", "metadata": %s'),
        ("POST", "/v1/retrievals", '"query": "x", "metadata_filter": %s'),
        ("POST", "/api/v1/knowledge/docs/documents", '"documents": [{"text": "x", "metadata": %s}]'),
        ("POST", "/index", '"index_name": "docs", "documents": [{"text": "x", "metadata": %s}]'),
    )
    for number, (method, path, body) in enumerate(requests):
        for metadata in NO_METADATA[:: 4 if number else 1]:
            with subtests.test(path=path, metadata=metadata):
                response = people.ann.raw(method, path, f"{{{body % metadata}}}")
                if "documents" in body:
                    assert json_of(response, 422)["detail"][0]["loc"][-1] == "metadata"
                else:
                    field = platform_error(response, 400)["details"]["field"]
                    assert f'"{field}": %s' in body
    assert people.ann.request("GET", f"/v1/documents/{document}").json()["metadata"] == {}
    (listed,) = people.ann.request("GET", "/v1/collections").json()["data"]
    assert (listed["name"], listed["metadata"]) == ("docs", {})
