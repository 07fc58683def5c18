"""documents over HTTP, on the real stack: brought as files and texts, worked on, listed, changed, deleted."""

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from functions import documents
from shared.config import Settings
from shared.services import Services
from tests.actors import NOBODYS, Actor, World, client, vector
from tests.conftest import People
from tests.deploy.conftest import event
from tests.functions.app_server import NO_METADATA, client_of, invoke, json_of, proxy_to, services_with
from tests.functions.app_server import platform_error as error

COLLECTIONS, PATH, INGEST = "/api/v1/collections", "/api/v1/documents", "/functions/v1/ingest"
FIELDS = {
    "id", "org_id", "collection_id", "user_id", "owner_id", "title", "filename", "content_type", "size_bytes",
    "status", "error", "chunk_count", "content_hash", "unique_identifier_hash", "metadata", "processing_info",
    "notes", "created_at", "updated_at",
}  # fmt: skip
Row = dict[str, Any]
# The worker finds no other test's jobs.
pytestmark = pytest.mark.usefixtures("no_jobs")


@pytest.fixture
def home(people: People) -> str:
    return collection(people.ann, "docs")


def collection(actor: Actor, name: str) -> str:
    return str(json_of(actor.request("POST", COLLECTIONS, {"name": name}), 201)["id"])


def upload(
    actor: Actor, collection_id: str | None, data: bytes = b"The kiln is hot.", name: str = "kiln.txt",
    sent_as: str = "text/plain", **form: str,
) -> httpx.Response:  # fmt: skip
    fields = {**form, **({"collection_id": collection_id} if collection_id else {})}
    address = f"{actor.stack.url}{PATH}"
    return client().post(address, data=fields, files={"file": (name, data, sent_as)}, headers=actor.headers())


def write(actor: Actor, collection_id: str, content: str = "The kiln is hot.", **more: Any) -> httpx.Response:
    return actor.request("POST", f"{PATH}/text", {"collection_id": collection_id, "content": content, **more})


def accepted(response: httpx.Response, status: int = 202) -> Row:
    assert response.status_code == status, response.text
    body: Row = response.json()
    assert set(body) == FIELDS
    return body


def work(actor: Actor) -> Row:
    """What a schedule does: call the worker, with its token."""
    headers = {"Authorization": f"Bearer {actor.stack.state.worker_token}"}
    body = json_of(client().post(f"{actor.stack.url}{INGEST}", headers=headers))
    assert body["idle"] is True
    return body


def get(actor: Actor, document: Row) -> Row:
    return accepted(actor.request("GET", f"{PATH}/{document['id']}"), 200)


def titles(actor: Actor, collection_id: str, query: str = "") -> list[str]:
    body = json_of(actor.request("GET", f"{PATH}?collection_id={collection_id}{query}"))
    return [row["title"] for row in body["data"]]


def test_a_file_is_accepted_at_once_and_searchable_after_processing(people: People, home: str):
    document = accepted(upload(people.ann, home, metadata='{"author": "Ann", "category": "ovens"}'))
    expected = {
        "status": "processing", "filename": "kiln.txt", "content_type": "text/plain", "size_bytes": 16,
        "metadata": {"author": "Ann", "category": "ovens"},
    }  # fmt: skip
    assert {name: document[name] for name in expected} == expected
    assert document["content_hash"] == f"sha256:{hashlib.sha256(b'The kiln is hot.').hexdigest()}"
    unused = dict.fromkeys(("failed", "postponed", "delivered", "undelivered", "read", "sources"), 0)
    assert work(people.ann) == {"completed": 1, "idle": True, **unused}
    response = get(people.alf, document)
    assert (response["status"], response["chunk_count"], response["error"]) == ("completed", 1, None)
    assert response["processing_info"]["embedding_model"] == "all-MiniLM-L6-v2"
    body = people.alf.search("How hot is the kiln?").json()
    assert body["results"][0]["source_id"] == document["id"]
    assert body["results"][0]["source_title"] == "kiln.txt"


def test_a_text_is_accepted_and_titled_by_its_start(people: People, home: str):
    document = accepted(write(people.ann, f"col_{home}", "# The kiln\n\nIt is hot.", metadata={"lang": "en"}))
    assert document["title"] == "The kiln"
    assert document["filename"] is None
    assert accepted(write(people.ann, home, "Other words.", title="Named"))["title"] == "Named"
    waiting = people.ann.request("GET", f"{PATH}/doc_{document['id']}/status").json()
    assert (waiting["status"], waiting["total_tokens"], waiting["processed_at"]) == ("processing", 0, None)
    work(people.ann)
    status = people.ann.request("GET", f"{PATH}/doc_{document['id']}/status").json()
    response = get(people.ann, document)
    assert status == {
        "document_id": document["id"], "status": "completed", "step": None, "attempts": 1, "error": None,
        "error_message": None, "chunk_count": 1, "total_tokens": 8, "created_at": document["created_at"],
        **{name: response[name] for name in ("processing_info", "updated_at")},
        "notes": [], "processed_at": status["processed_at"],
    }  # fmt: skip
    assert status["created_at"] < status["processed_at"]
    changed = people.ann.request("PATCH", f"{PATH}/{document['id']}", {"title": "Oven"}).json()
    second = people.ann.request("GET", f"{PATH}/{document['id']}/status").json()
    assert (second["processed_at"], second["updated_at"]) == (status["processed_at"], changed["updated_at"])


def test_retrievals_filter_by_the_given_or_detected_document_type(people: People, home: str):
    rows = b"oven,degrees\nkiln,1280\n"
    # A type that the metadata name is no type that documents are read as: it is read as a table all the same.
    named = {"metadata": '{"document_type": "price list"}'}
    accepted(upload(people.ann, home, rows, "seen.csv", "text/csv"))
    accepted(upload(people.ann, home, rows + b"oven,250\n", "both.csv", "text/csv", **named))
    accepted(upload(people.ann, home, b"The kiln is not cold.", "plain.txt"))
    assert work(people.ann)["completed"] == 3
    for kind, found in (
        ("table", {"seen.csv", "both.csv"}), ("price list", {"both.csv"}), ("general", {"plain.txt"}),
    ):  # fmt: skip
        body = json_of(people.alf.post("/v1/retrievals", {"query": "kiln oven", "document_type": kind}))
        assert {result["document"]["title"] for result in body["results"]} == found


def test_a_url_is_accepted_at_once(people: People, home: str):
    body = {
        "collection_id": f"col_{home}",
        "url": " https://docs.example/kilns#firing ",
        "metadata": {"a": 1},
    }
    document = accepted(people.ann.request("POST", f"{PATH}/url", body))
    assert (document["title"], document["status"]) == ("https://docs.example/kilns", "processing")
    assert (document["size_bytes"], document["metadata"]) == (None, {"a": 1})
    identifier = hashlib.sha256(b"https://docs.example/kilns").hexdigest()
    assert document["unique_identifier_hash"] == f"sha256:{identifier}"
    second = accepted(people.alf.request("POST", f"{PATH}/url", {**body, "title": "Kilns"}))
    assert second["id"] == document["id"]


def test_an_internal_or_malformed_url_is_refused_at_once(people: People, home: str):
    for url in ("http://127.0.0.1/", "kilns", "https://ann:secret@docs.example/"):
        refused = error(people.ann.request("POST", f"{PATH}/url", {"collection_id": home, "url": url}), 400)
        assert (refused["code"], refused["details"]) == ("url_not_allowed", {"field": "url"}), url
        assert "secret" not in refused["message"]
    assert titles(people.ann, home) == []


def test_an_unreadable_document_reports_the_reason(people: People, home: str):
    document = accepted(upload(people.ann, home, b"MZ\0\0", "a.exe", "image/gif"))
    assert work(people.ann)["failed"] == 1
    failed = get(people.ann, document)
    assert failed["status"] == "failed"
    assert failed["error"]["code"] == "unsupported_file_type"
    status = people.ann.request("GET", f"{PATH}/{document['id']}/status").json()
    assert (status["status"], status["error_message"]) == ("failed", failed["error"]["message"])
    assert status["processed_at"] is not None
    assert titles(people.ann, home, "&status=failed") == ["a.exe"]
    assert titles(people.ann, home, "&status=completed") == []


def test_equal_content_is_one_document_of_a_collection(people: People, home: str):
    document = accepted(upload(people.ann, home))
    second = error(upload(people.alf, home, name="other.txt"), 409)
    assert second["code"] == "duplicate_document"
    assert second["details"] == {"collection_id": home, "document_id": document["id"]}
    accepted(upload(people.ann, collection(people.ann, "other")))
    accepted(upload(people.bob, collection(people.bob, "docs")))
    accepted(upload(people.ann, home, private="true"))
    accepted(upload(people.alf, home, private="true"))


@pytest.mark.parametrize("bring", [upload, write])
def test_an_external_id_replaces_its_earlier_document(people: People, home: str, bring: Any):
    document = accepted(bring(people.ann, home, external_id="shelf/kiln"))
    named = hashlib.sha256(b"shelf/kiln").hexdigest()
    assert document["unique_identifier_hash"] == f"sha256:{named}"
    work(people.ann)
    text = "The oven is cold."
    changed: Any = text.encode() if bring is upload else text
    second = accepted(bring(people.alf, home, changed, external_id="shelf/kiln"))
    assert (second["id"], second["status"]) == (document["id"], "processing")
    # The old one is found until the new one is.
    assert people.ann.search("kiln").json()["results"][0]["snippet"] == "The kiln is hot."
    work(people.ann)
    assert people.ann.search("kiln").json()["results"][0]["snippet"] == text
    assert len(titles(people.ann, home)) == 1
    # In another collection, or as a private document, the same name is another document.
    for other in (
        upload(people.ann, home, external_id="shelf/kiln", private="true"),
        upload(people.ann, collection(people.ann, "other"), external_id="shelf/kiln"),
        upload(people.bob, collection(people.bob, "docs"), external_id="shelf/kiln"),
    ):
        assert accepted(other)["id"] != document["id"]


def test_lists_are_paged_in_any_order(people: People, home: str):
    for name, size in (("b", 3), ("a", 1), ("c", 2)):
        accepted(upload(people.ann, home, name.encode() * size, name))
    for query, names in (
        ("", "cab"), ("&sort_by=title&order=asc", "abc"), ("&sort_by=size_bytes&order=asc", "acb"),
        ("&status=processing&sort_by=title&order=asc&limit=1&offset=1", "b"),
    ):  # fmt: skip
        assert titles(people.ann, home, query) == list(names)
    page = people.ann.request("GET", f"{PATH}?collection_id={home}&limit=2").json()["pagination"]
    assert page == {"total": 3, "limit": 2, "offset": 0, "has_more": True}
    assert people.ann.request("GET", f"{COLLECTIONS}/{home}").json()["document_count"] == 3


def test_documents_are_found_by_a_part_of_their_name(people: People, home: str):
    for name in ("100%.txt", "Kiln_A.txt", "kiln-b.txt"):
        accepted(upload(people.ann, home, name.encode(), name))
    renamed = accepted(upload(people.ann, home, b"c", "scan.txt"))
    people.ann.request("PATCH", f"{PATH}/{renamed['id']}", {"title": "About the kiln"})
    order = "&sort_by=title&order=asc"
    assert titles(people.ann, home, f"&name=KILN{order}") == ["About the kiln", "Kiln_A.txt", "kiln-b.txt"]
    # Its file name; and characters that a pattern would read otherwise.
    for part, found in (("scan", "About the kiln"), ("kiln_", "Kiln_A.txt"), ("0%25", "100%.txt")):
        assert titles(people.ann, home, f"&name={part}") == [found]
    assert titles(people.ann, home, "&name=kiln&status=completed") == []
    # macOS decomposes the letters of names.
    accepted(upload(people.ann, home, b"d", "Pru\u0308fbericht.txt"))
    for part in ("Pr\u00fcf", "Pru\u0308f"):
        assert titles(people.ann, home, f"&name={part}") == ["Pr\u00fcfbericht.txt"]
    assert_named(people.ann.request("GET", f"{PATH}?collection_id={home}&name="), "name")
    response = people.ann.rpc("rag_list_documents", {"collection_id": home, "name": "x" * 201})
    assert (response.status_code, response.json()["details"]) == (400, "invalid_name")


def test_several_documents_are_deleted_at_once(people: People, home: str):
    mine = [accepted(upload(people.ann, home, name.encode(), name))["id"] for name in ("a", "b", "c")]
    private = accepted(upload(people.alf, home, b"d", "d", private="true"))["id"]
    theirs = accepted(write(people.bob, collection(people.bob, "docs")))["id"]
    ids = [*mine[:2], private, theirs, NOBODYS]
    response = people.ann.request("POST", f"{PATH}/delete", {"document_ids": ids})
    assert (response.status_code, set(response.json()["document_ids"])) == (200, set(mine[:2]))
    assert titles(people.ann, home) == ["c"]
    assert titles(people.alf, home) == ["d", "c"]
    # An admin deletes private documents of the org too.
    response = people.ada.request("POST", "/v1/documents/delete", {"document_ids": [private, theirs]})
    assert response.json() == {"document_ids": [private]}
    assert people.bob.request("GET", f"{PATH}/{theirs}").status_code == 200
    for ids in ([], [mine[2]] * 101):
        error(people.ann.request("POST", f"{PATH}/delete", {"document_ids": ids}), 400)
        refused = people.ann.rpc("rag_delete_documents", {"document_ids": ids})
        assert (refused.status_code, refused.json()["details"]) == (400, "invalid_ids")
    error(people.ann.request("POST", f"{PATH}/delete", {"document_ids": ["doc_x"]}), 404)


def test_metadata_can_be_changed_and_filters_results(people: People, home: str):
    document = accepted(upload(people.ann, home, metadata='{"source_type": "email", "a": 1}'))
    work(people.ann)

    def changed(**changes: Any) -> tuple[str, Row]:
        body = json_of(people.ann.request("PATCH", f"{PATH}/{document['id']}", changes))
        return body["title"], body["metadata"]

    def count(source_type: str) -> int:
        return len(people.alf.search("the kiln", filters={"source_type": source_type}).json()["results"])

    assert changed(metadata={"source_type": "faq"}) == ("kiln.txt", {"source_type": "faq"})
    assert (count("faq"), count("email")) == (1, 0)
    assert changed(metadata={}) == ("kiln.txt", {})
    assert count("doc") == 1
    changed(metadata={"source_type": "faq"})
    assert changed(title="Ovens", metadata=None) == ("Ovens", {"source_type": "faq"})


def link_of(actor: Actor, document: Row, **more: Any) -> str:
    body = json_of(actor.request("GET", f"{PATH}/{document['id']}/url", **more))
    assert set(body) == {"url", "expires_in", "expires_at", "filename"}
    return str(body["url"])


def test_a_download_link_needs_no_credential(people: People, home: str):
    data = b"\x00\xff bytes"
    document = accepted(upload(people.ann, home, data, "kiln \u00e9.bin", "text/html; charset=x"))
    url = link_of(people.alf, document)
    assert url.startswith(f"{people.ann.stack.url}{PATH}/{document['id']}/original?token=")
    response = httpx.get(url)
    assert (response.status_code, response.content) == (200, data)
    for header, value in (
        ("Content-Type", "text/html; charset=x"),
        ("Content-Disposition", "attachment; filename*=UTF-8''kiln%20%C3%A9.bin"),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", "sandbox"),
    ):
        assert response.headers[header] == value
    assert "no-store" in response.headers["Cache-Control"]
    assert "X-RateLimit-Remaining" in response.headers
    for query, seconds in (("", 900), ("?expires_in=3600", 3600), ("?expires_in=86400", 86_400)):
        link = people.ann.request("GET", f"{PATH}/{document['id']}/url{query}").json()
        assert (link["expires_in"], link["filename"]) == (seconds, "kiln \u00e9.bin")
        left = datetime.fromisoformat(link["expires_at"]) - datetime.now(UTC)
        assert timedelta(seconds=seconds - 60) < left <= timedelta(seconds=seconds)
    for refused in ("0", "86401", "soon"):
        error(people.ann.request("GET", f"{PATH}/{document['id']}/url?expires_in={refused}"), 400)


def test_a_download_link_spends_no_limit_of_its_creator(people: People, world: World, home: str):
    """Its limits are the creator's, for each document."""
    world.tier(people.acme, day=8)
    first = accepted(upload(people.ann, home))
    second = accepted(upload(people.ann, home, b"The oven is hot.", "oven.txt"))
    url = link_of(people.ann, first)
    left = [httpx.get(url).headers["X-RateLimit-Remaining"] for _ in range(8)]
    assert left == [str(number) for number in range(7, -1, -1)]
    refused = httpx.get(url)
    assert error(refused, 429)["code"] == "rate_limit_exceeded"
    assert int(refused.headers["Retry-After"]) > 60
    # Ann has sent three requests.
    link = people.ann.request("GET", f"{PATH}/{second['id']}/url")
    assert link.headers["X-RateLimit-Remaining"] == "4"
    assert httpx.get(link.json()["url"]).status_code == 200
    assert httpx.get(link_of(people.alf, first)).status_code == 200


EVIL = "evil.example"


def test_on_lambda_a_link_has_the_host_name_of_the_request(people: People, services: Services, home: str):
    path = f"{PATH}/{accepted(upload(people.ann, home))['id']}/url"
    headers = {"authorization": f"Bearer {people.ann.token()}", "host": EVIL, "x-forwarded-host": EVIL}
    with client_of(documents.app, services):
        for kind in ("http_api", "function_url"):
            request = event(kind, "GET", path, headers=headers)
            answer = invoke(documents.handler, request)
            assert answer["statusCode"] == 200, answer
            name = request["requestContext"]["domainName"]
            assert json.loads(answer["body"])["url"].startswith(f"https://{name}{path[:-3]}original?token=")


def test_an_unsafe_content_type_is_not_served(people: People, world: World, home: str):
    document = accepted(upload(people.ann, home))
    for sent_as in ["text/html\tx", "nonsense", "a/b; charset=\u00e9", "x" * 200 + "/x"]:
        world.sql("update rag.documents set content_type = %s where id = %s", sent_as, document["id"])
        response = httpx.get(link_of(people.ann, document))
        assert response.headers["Content-Type"] == "application/octet-stream", sent_as


def test_a_document_without_an_original_has_no_link(people: People, home: str):
    url = {"collection_id": home, "url": "https://docs.example/kilns"}
    waiting = accepted(people.ann.request("POST", f"{PATH}/url", url))
    for document in ({"id": people.ann.put([vector(1)])}, waiting):
        assert error(httpx.get(link_of(people.ann, document)), 404)["code"] == "original_not_found"


def test_a_deleted_document_is_removed_with_everything_derived_from_it(
    people: People, world: World, home: str
):
    document = accepted(upload(people.ann, home))
    work(people.ann)
    assert people.ann.request("DELETE", f"{PATH}/{document['id']}").status_code == 204
    assert error(people.ann.request("GET", f"{PATH}/{document['id']}"), 404)["code"] == "document_not_found"
    assert people.ann.search("kiln").json()["results"] == []
    for table in ("chunks", "document_terms", "facets", "originals", "jobs"):
        assert world.sql(f"select count(*) from rag.{table} where document_id = %s", document["id"]) == [(0,)]
    accepted(upload(people.ann, home))


def test_a_failed_document_is_replaced_by_its_retry_at_the_quota(people: People, world: World, home: str):
    world.tier(people.acme, documents=1)
    accepted(upload(people.ann, home, b"GIF89a", "a.gif"))
    work(people.ann)
    accepted(upload(people.ann, home, b"GIF89a", "a.gif"))
    assert error(upload(people.ann, home), 429)["code"] == "rate_limit_exceeded"


def test_a_tier_limits_the_size_of_files(people: People, world: World, home: str):
    world.tier(people.acme, file_bytes=16)
    accepted(upload(people.ann, home, b"x" * 16))
    large = error(upload(people.ann, home, b"x" * 17), 413)
    assert (large["type"], large["code"]) == ("invalid_request_error", "file_too_large")
    assert large["details"] == {"collection_id": home}
    assert error(write(people.ann, home, "x" * 17), 413)["code"] == "file_too_large"
    # Whatever the caller says of its size.
    document = {"title": "x", "bytes": base64.b64encode(b"x" * 18).decode(), "size_bytes": 1}
    response = people.ann.rpc("rag_add_document", {"collection_id": home, "document": document})
    assert (response.status_code, response.json()["details"]) == (413, "file_too_large")
    assert len(titles(people.ann, home)) == 1


def test_a_user_s_uploads_are_limited_by_the_minute_over_all_keys(people: People, world: World, home: str):
    world.tier(people.acme, upload_bytes_per_minute=4096)
    accepted(upload(people.ann, home, b"a" * 2000))
    accepted(write(people.ann, home, "b" * 1000))
    key = json_of(people.ann.request("POST", "/api/keys", {"name": "k", "scopes": ["documents:write"]}), 201)
    text = {"collection_id": home, "content": "c" * 2000}
    response = people.ann.request("POST", f"{PATH}/text", text, token=key["key"])
    refused = error(response, 429)
    assert (refused["type"], refused["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    assert 1 <= int(response.headers["Retry-After"]) <= 60
    document = {"title": "x", "bytes": base64.b64encode(b"d" * 2000).decode()}
    direct = people.ann.rpc("rag_add_document", {"collection_id": home, "document": document})
    assert (direct.status_code, direct.json()["details"]) == (429, "upload_limit_reached")
    assert len(titles(people.ann, home)) == 2
    # A refused upload is not counted: a smaller one fits. Other members have minutes of their own.
    accepted(write(people.ann, home, "e" * 1000))
    accepted(upload(people.alf, home, b"f" * 4096))
    minute = "update rag.rate_limits set started_at = started_at - interval '1 minute' where caller_id = %s"
    world.sql(minute, people.ann.id)
    # A larger file takes a whole minute.
    accepted(upload(people.ann, home, b"g" * 9000))
    assert error(write(people.ann, home, "h"), 429)["code"] == "rate_limit_exceeded"


def test_a_large_file_that_would_be_refused_is_not_sent_to_the_database(
    settings: Settings, people: People, world: World, home: str
):
    world.tier(people.acme, upload_bytes_per_minute=1_000_000, file_bytes=600_000)
    with (
        proxy_to(settings.supabase_url) as (address, paths),
        services_with(settings, supabase_url=address, supabase_jwt_issuer=settings.issuer) as services,
        client_of(documents.app, services) as app,
    ):
        expected = {
            ("a", 500_000): (202, ["rag_check_upload", "rag_add_document"]),
            ("b", 600_001): (413, ["rag_check_upload"]),
            ("c", 600_000): (429, ["rag_check_upload"]),
            ("d", 1000): (202, ["rag_add_document"]),
        }
        for (letter, size), (status, calls) in expected.items():
            paths.clear()
            files = {"file": ("a.txt", letter.encode() * size)}
            headers = people.ann.headers()
            response = app.post("/v1/documents", data={"collection_id": home}, files=files, headers=headers)
            assert response.status_code == status, response.text
            called = [path.rpartition("/")[2] for path in paths]
            assert [name for name in called if name in ("rag_check_upload", "rag_add_document")] == calls
    arguments = {"collection_id": home, "size_bytes": 1}
    of_another_org = people.bob.rpc("rag_check_upload", arguments)
    assert (of_another_org.status_code, of_another_org.json()["details"]) == (404, "collection_not_found")
    world.tier(people.acme, storage_bytes=1000)
    of_a_full_org = people.ann.rpc("rag_check_upload", arguments)
    assert (of_a_full_org.status_code, of_a_full_org.json()["details"]) == (429, "storage_limit_reached")


def test_a_tier_limits_the_bytes_of_all_documents_and_files(people: People, world: World, home: str):
    world.tier(people.acme, storage_bytes=5000)
    first = accepted(upload(people.ann, home, b"a" * 2000, private="true"))
    accepted(upload(people.ann, home, b"b" * 2000))
    # Another member's private file counts too.
    full = error(upload(people.alf, home, b"c" * 2000), 429)
    assert (full["type"], full["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    assert people.ann.request("DELETE", f"{PATH}/{first['id']}").status_code == 204
    accepted(upload(people.alf, home, b"c" * 2000))
    # A text counts besides its file.
    work(people.ann)
    statuses = world.sql(
        "select status, error_code from rag.documents where collection_id = %s order by created_at", home
    )
    assert statuses == [("failed", "storage_limit_reached")] * 2


def test_a_file_name_loses_its_path(people: People, home: str):
    for name, stored in (
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\temp\\kiln.txt", "kiln.txt"),
        ("a\u202etxt.md", "atxt.md"),
    ):
        assert accepted(upload(people.ann, home, name.encode(), name))["filename"] == stored


BAD_METADATA: list[str] = ["{", "[1]", '"x"', "[" * 100_000, '{"a": "' + "b" * 10_001 + '"}', *NO_METADATA]


def test_form_metadata_is_a_small_json_object(subtests: pytest.Subtests, people: People, home: str):
    for metadata in BAD_METADATA:
        with subtests.test(metadata=metadata):
            assert_named(upload(people.ann, home, metadata=metadata), "metadata")
    assert_named(upload(people.ann, home, external_id="x" * 501), "external_id")
    assert titles(people.ann, home) == []
    assert_named(upload(people.ann, None), "collection_id", "missing_required_field")
    address = f"{people.ann.stack.url}{PATH}"
    answer = client().post(address, data={"collection_id": home}, headers=people.ann.headers())
    assert_named(answer, "file", "missing_required_field")


def assert_named(response: httpx.Response, field: str, code: str = "invalid_field_value") -> None:
    refused = error(response, 400)
    assert (refused["code"], refused["details"]) == (code, {"field": field})


def test_a_title_in_the_metadata_is_the_document_s_by_default(people: People, home: str):
    fields = {"title": " The\nkiln "}
    page = {"collection_id": home, "url": "https://docs.example/kilns", "metadata": fields}
    for response in (
        upload(people.ann, home, b"one", metadata=json.dumps(fields)),
        write(people.ann, home, "two", metadata=fields),
        people.ann.request("POST", f"{PATH}/url", page),
    ):
        assert accepted(response)["title"] == "The kiln"
    document = accepted(write(people.ann, home, "three", title="Named", metadata=fields))
    assert document["title"] == "Named"
    for title in ("Ovens", 1, " "):
        body = {"metadata": {"title": title}}
        assert json_of(people.ann.request("PATCH", f"{PATH}/{document['id']}", body))["title"] == "Ovens"
