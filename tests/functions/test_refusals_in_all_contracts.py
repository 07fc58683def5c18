"""Refusals in every contract's own form: malformed fields by name, unknown ids, large bodies, methods."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.actors import NOBODYS
from tests.conftest import People
from tests.functions.app_server import platform_error
from tests.functions.search_workspace import Row, Workspace, error_of

# As a value: the field is left out of the request.
ABSENT = object()
CHUNK, TEXT = {"kind": "chunk", "id": NOBODYS}, {"kind": "text", "text": "x"}
EVENTS = ["document.deleted"]
HOOK = {"url": "https://hooks.example/", "events": EVENTS}
QUESTION = {"role": "user", "content": "a"}
NO_NUMBERS: list[tuple[str, Any]] = [("top_k", 0), ("top_k", 101), ("top_k", "5")]
# A path, its valid request, and invalid values. The name of a field within another one follows a point; the
# value is that of the outer field.
REQUESTS: list[tuple[str, Row, list[tuple[str, Any]]]] = [
    ("/api/rag/search", {"query_text": "x"}, [
        *(("query_text", text) for text in (" \n\t ", "x" * 501, 7, ABSENT)),
        *(("top_k", top_k) for top_k in (0, 51, 2.5, True)),
        ("filters", "doc"), ("filters.source_type", {"source_type": "blog"}), ("filters.lang", {"lang": 5}),
        ("filters.org_id", {"org_id": "acme"}), ("filters.date_from", {"date_from": 1_700_000_000}),
        ("filters.date_to", {"date_to": "2026-02-30"}),
    ]),
    ("/api/rag/answer", {"query_text": "x"}, [("query_text", None), ("top_k", 51)]),
    ("/api/keys", {"name": "CI", "scopes": ["retrievals:read"]}, [
        *(("name", name) for name in ("  \n", "x" * 101, 7, ABSENT)), ("scopes", ABSENT), ("scopes", []),
        ("scopes.1", ["chat:read", 7]), ("scopes", ["chat:read"] * 7), ("kind", "root"), ("org_id", "acme"),
        ("collection", "x" * 201), ("expires_at", "2999-01-01T00:00:00"),
        # Unknown fields: a misspelled restriction, and a column of the key.
        ("collection_id", "manuals"), ("owner_id", NOBODYS),
    ]),
    ("/v1/collections", {"name": "x"}, [
        *(("name", name) for name in (" ", 7, "x" * 256, ABSENT)),
        # The second and third cannot be stored.
        *(("description", text) for text in ("y" * 2001, "a\0b", "a\ud800b")),
        ("metadata", [1]), ("metadata", {"a": "b" * 10_000}), ("config.chunk_size", {"chunk_size": 10}),
        ("config", {"chunk_size": 100, "chunk_overlap": 100}), ("org_id", "acme"),
        ("config.embedding_model", {"embedding_model": "text-embedding-3-small"}),
    ]),
    ("/v1/documents/text", {"collection_id": NOBODYS, "content": "x"}, [
        ("content", ""), ("content", 1), ("content", ABSENT), ("collection_id", ABSENT), ("title", " "),
        ("metadata", 1), ("external_id", "x" * 501),
        *((field, text) for field in ("content", "title", "external_id") for text in ("\0", "\ud800")),
    ]),
    ("/v1/webhooks", HOOK, [
        ("events", ABSENT), ("events", []), ("events.0", ["document.read"]), ("events", EVENTS * 10),
        *(("url", url) for url in (ABSENT, 1, "")), ("description", "x" * 501), ("org_id", "acme"),
    ]),
    ("/v1/retrievals", {"query": "x"}, [
        *(("query", text) for text in (" \n ", "x" * 1001, "a\0b", 7, None, ABSENT)), *NO_NUMBERS,
        ("mode", "vector"), ("rerank", "yes"), ("document_type", " "), ("collection_id", 7),
        ("metadata_filter", []), ("metadata_filter", {"a": "x" * 11_000}),
    ]),
    ("/v1/chat", {"message": "a", "stream": False}, [
        *(("message", message) for message in ("x" * 10_001, " ", "a\0", 7)), ("messages", [QUESTION]),
        ("preset", "poetic"), ("temperature", 2.1), ("max_tokens", 8193), ("max_tokens", 0),
        ("stream", "yes"), ("retrieval.top_k", {"top_k": 51}), ("generation.top_p", {"top_p": 2}),
        ("retrieval.metadata_filter", {"metadata_filter": {"a": {"$in": 1}}}),
    ]),
    ("/v1/chat", {"messages": [QUESTION], "stream": False}, [
        ("messages", ABSENT), ("messages", []), ("messages", [{**QUESTION, "content": "x" * 10_001}]),
        ("messages", [{"role": "system", "content": "a"}]), ("messages", [QUESTION] * 501),
        ("messages", [QUESTION, {"role": "assistant", "content": "b"}]),
        ("messages.0.role", [{"role": "robot", "content": "a"}]),
        ("messages.0.content", [{"role": "user", "content": [{"type": "image_url"}]}]),
    ]),
    ("/v1/chat/sessions", {"messages": [QUESTION]}, [
        ("messages", ABSENT), ("messages", []), ("messages", [QUESTION] * 101),
        ("messages", [{**QUESTION, "content": "é" * 66_000}] * 2),
        ("messages.0.role", [{**QUESTION, "role": "system"}]),
        *(("messages.0.content", [{**QUESTION, "content": text}]) for text in ("", 7, "a\0", "x" * 100_001)),
    ]),
    ("/v1/records/x/feedback", {"rating": "up"}, [
        ("rating", "so-so"), ("rating", ABSENT), ("reason", "a" * 2001),
    ]),
    ("/v1/members", {"user_id": NOBODYS}, [("user_id", ABSENT), ("user_id", "sam"), ("role", "owner")]),
    ("/v1/jobs/retry", {"job_ids": [NOBODYS]}, [("job_ids", []), ("job_ids", [NOBODYS] * 101)]),
    ("/v1/search", {"q": "x"}, [
        *(("q", text) for text in ("", "   ", "x" * 2001, 7, "a\0b", None, ABSENT)),
        *(("topK", top_k) for top_k in (51, 0, "10")), ("mode", "magic"), ("scope", "world"),
        ("autoprompt", "yes"), ("include.document", {"document": 1}), ("filters.after", {"after": "soon"}),
        ("filters.after", {"after": "0001-01-01T00:00:00+23:59"}), ("filters.types.0", {"types": ["a b"]}),
        ("filters", {"after": "2026-01-02", "before": "2026-01-01"}),
        ("filters.sources", {"sources": ["x"] * 101}), ("moderation", True),
        ("filters.metadata", {"metadata": {"a": {"$gt": []}}}),
    ]),
    ("/v1/answer", {"question": "x"}, [
        *(("question", text) for text in (ABSENT, None, "")), ("maxTokens", 15), ("maxTokens", 4097),
        ("answerType", "poem"), ("mode", "magic"), ("constraints.before", {"before": "never"}),
        ("constraints.metadata", {"metadata": {"a": {"$gt": []}}}), ("stream", "yes"), ("citations", 1),
    ]),
    ("/v1/similar", {"subject": TEXT}, [
        ("subject", ABSENT), ("subject", {"kind": "song"}), ("subject.chunkId", {"kind": "chunk"}),
        *(("subject.text", {"kind": "text", "text": text}) for text in (" ", "x" * 8001)),
        ("mode", "graph"), ("by", "words"), ("topK", 51),
        ("filters.metadata", {"metadata": {"a": {"$gt": None}}}),
    ]),
    ("/v1/contents", {"ids": [CHUNK]}, [
        ("ids", ABSENT), ("ids", "doc_1"), ("ids", []), ("ids", [CHUNK] * 101),
        ("ids.0.kind", [{**CHUNK, "kind": "folder"}]), ("ids.0.id", [{"kind": "document"}]),
        *(("expand.graph.hops", {"graph": {"hops": hops}}) for hops in (3, -1)),
        ("expand.graph.include.0", {"graph": {"include": ["all"]}}), ("includeRaw", "yes"),
    ]),
    ("/index", {"index_name": "x", "documents": []}, [
        *(("index_name", name) for name in ("", None, 7, "x" * 256, "nul\0", ".", "..", "...")),
        ("documents", [{"text": "x"}] * 1001),
        *(("documents.0.text", [document]) for document in ({}, {"text": None}, {"text": 7})),
        ("documents.0.metadata", [{"text": "x", "metadata": []}]),
        ("documents.0.metadata", [{"text": "x", "metadata": {"a": "y" * 10_000}}]),
    ]),
    ("/query", {"index_name": "x", "query": "x"}, [
        *NO_NUMBERS, *(("query", text) for text in ("x" * 10_001, " ")), ("index_name", ""),
        ("llm_params", []),
        *((f"llm_params.{field}", {field: value}) for field, value in (
            ("temperature", 3), ("temperature", "hot"), ("max_tokens", 0), ("top_p", 2),
        )),
    ]),
    ("/retrieve", {"index_name": "x", "query": "x"}, [
        ("max_node_count", 0), ("max_node_count", 301), ("query", 7), ("query", "\n\t"),
        ("metadata_filter", "author"),
    ]),
    ("/api/v1/knowledge/support/retrieve", {"query": "x"}, [
        *NO_NUMBERS, ("top_k", True), ("filters", []), ("include_citations", "yes"),
        *(("query", text) for text in (" \n", None, "x" * 10_001, "\0")),
    ]),
    ("/api/v1/knowledge/support/query", {"question": "x"}, [*NO_NUMBERS, ("question", "\0")]),
    ("/api/v1/knowledge/support/documents", {"documents": []}, [
        ("documents", [{"text": "x", "document_id": "a"}] * 2),
        *(("documents.0.document_id", [{"text": "x", "document_id": name}]) for name in (
            "a/documents/b", "..", "a/../b", "", "x" * 501, "\0", 7,
        )),
    ]),
    ("/v1/chat/completions", {"messages": [QUESTION], "index_name": "x"}, [
        ("messages", []), ("messages.0", ["Hello"]), ("temperature", 2.1), ("temperature", True),
        ("top_k", 0), ("top_k", 101), ("stream", "yes"), ("index_name", ""), ("tools", "all"),
        ("model", f"rag/{'x' * 256}"), ("model", "rag/\ud800"),
    ]),
]  # fmt: skip
# Queries of lists, whose parameter is the field.
PAGES: dict[str, str] = {
    "/v1/collections": "limit=0 limit=101 limit=x offset=-1 sort_by=id order=up",
    "/v1/documents": "limit=101",
    "/v1/chat/sessions": f"limit=0 limit=101 limit=x offset=-1 offset={2**31}",
    f"/v1/chat/sessions/{NOBODYS}/messages": "limit=0 limit=1001",
    "/v1/events": "limit=101 offset=-1 namespace= event=login",
    "/v1/usage": "days=91 days=0",
    "/v1/members": "limit=101",
    "/indexes/x/documents": "limit=0 limit=101 limit=x offset=-1 max_text_length=0 max_text_length=100001",
    "/api/v1/knowledge/support/documents": "limit=0 limit=1001 limit=x offset=-1 offset=2147483648",
}
ASKING = {"message": "a", "stream": False}
# Path, body (None: GET), and the code of the platform contract.
UNKNOWN: list[tuple[str, Row | None, str]] = [
    *(("/v1/search", {"q": "x", "workspaceId": name}, "") for name in (f"ws_{NOBODYS}", "ws_", "garbage")),
    ("/v1/contents", {"ids": [CHUNK], "workspaceId": NOBODYS}, ""),
    *(("/v1/similar", {"subject": subject}, "") for subject in (
        {"kind": "document", "documentId": f"doc_{NOBODYS}"}, {"kind": "document", "documentId": "garbage"},
        {"kind": "chunk", "chunkId": f"chnk_{NOBODYS}"},
    )),
    ("/v1/retrievals", {"query": "x", "collection_id": f"col_{NOBODYS}"}, "collection_not_found"),
    *(("/v1/chat", {**ASKING, f"{name}_id": value}, f"{name}_not_found")
      for name in ("session", "collection") for value in (NOBODYS, "no id")),
    ("/v1/documents/text", {"collection_id": "col_abc", "content": "x"}, "collection_not_found"),
    (f"/v1/documents?collection_id={NOBODYS}", None, "collection_not_found"),
    ("/v1/collections/col_abc", None, "collection_not_found"),
    *((f"/v1/webhooks/{name}", None, "webhook_not_found")
      for name in ("nonsense", "web_", f"{NOBODYS}/deliveries")),
]  # fmt: skip
LARGE = {
    "/api/rag/search": 257 * 1024, "/v1/search": 257 * 1024, "/v1/contents": 257 * 1024, "/mcp": 300_000,
    "/v1/similar": 257 * 1024, "/v1/answer": 257 * 1024, "/v1/chat": 1_100_000,
    "/v1/chat/completions": 2_100_000,
}  # fmt: skip


def invalid_requests() -> Iterator[tuple[str, Row, str, Any]]:
    """Path, body, field and value."""
    for path, valid, rows in REQUESTS:
        for field, value in rows:
            outer = field.partition(".")[0]
            changed = {**valid, outer: value}
            yield path, {name: sent for name, sent in changed.items() if sent is not ABSENT}, field, value


def named(response: Any) -> str:
    """The field that the error names."""
    body = response.json()
    if isinstance(body.get("detail"), list):
        assert response.status_code == 422
        return ".".join(map(str, body["detail"][0]["loc"][1:]))
    assert response.status_code == 400, response.text
    error = body.get("error", {})
    message = (body.get("detail") or error["message"]).removeprefix("Invalid request format: ")
    return str(error.get("details", {}).get("field") or message.partition(": ")[0])


def test_a_malformed_field_is_named_and_nothing_is_stored(
    subtests: pytest.Subtests, home: Workspace, shared_people: People
):
    for path, body, field, value in invalid_requests():
        with subtests.test(path=path, field=field, value=str(value)[:40]):
            if path in ("/v1/search", "/v1/answer", "/v1/similar", "/v1/contents"):
                body["workspaceId"] = home.id
            response = shared_people.ada.raw("POST", path, json.dumps(body))
            assert named(response) == field, response.text
            assert "xxxx" not in response.text
            error = response.json().get("error", {})
            if "workspaceId" in body:
                error_of(response, 400, "INVALID_ARGUMENT")
            elif "type" in error and path != "/v1/chat/completions":
                code = "missing_required_field" if value in (ABSENT, None) else "invalid_field_value"
                assert platform_error(response, 400)["code"] == code
            elif "status" in response.json():
                assert error["code"] == "invalid_request"
    assert shared_people.ada.request("GET", "/api/keys").json() == {"keys": []}
    (collection,) = shared_people.ada.request("GET", "/v1/collections").json()["data"]
    assert (collection["name"], collection["document_count"]) == (home.name, len(home.documents))


def test_an_invalid_page_is_named(subtests: pytest.Subtests, shared_people: People):
    for path, queries in PAGES.items():
        for query in queries.split():
            with subtests.test(path=path, query=query):
                prefix = f"collection_id={NOBODYS}&" if path == "/v1/documents" else ""
                response = shared_people.ada.request("GET", f"{path}?{prefix}{query}")
                assert named(response) == query.partition("=")[0], response.text


def test_a_body_that_is_no_object_is_refused(subtests: pytest.Subtests, shared_people: People):
    for path in ("/api/rag/search", "/api/keys", "/v1/search", "/v1/chat/completions"):
        for body in ("[]", "null", "{", ""):
            with subtests.test(path=path, body=body):
                assert shared_people.ada.raw("POST", path, body).status_code == 400


def test_an_unknown_id_is_404(subtests: pytest.Subtests, home: Workspace, shared_people: People):
    for path, body, code in UNKNOWN:
        with subtests.test(path=path, body=body):
            sent = {"workspaceId": home.id, **(body or {})} if path == "/v1/similar" else body
            response = shared_people.ada.request("GET" if body is None else "POST", path, sent)
            if code:
                error = platform_error(response, 404)
                assert (error["type"], error["code"]) == ("not_found_error", code)
            else:
                error_of(response, 404, "NOT_FOUND")


def test_a_large_body_is_413(subtests: pytest.Subtests, shared_people: People):
    for path, size in LARGE.items():
        with subtests.test(path=path):
            assert shared_people.ann.post(path, {"pad": "x" * size}).status_code == 413


def test_another_method_is_405_with_the_contract_s_code(shared_people: People):
    for path, code in (
        ("/api/rag/search", "method_not_allowed"), ("/functions/v1/rag-search", "method_not_allowed"),
        ("/v1/search", "METHOD_NOT_ALLOWED"),
    ):  # fmt: skip
        for method in ("GET", "PUT", "DELETE"):
            response = shared_people.ann.request(method, path)
            assert (response.status_code, response.json()["error"]["code"]) == (405, code)


def test_null_counts_as_absent(subtests: pytest.Subtests, home: Workspace):
    search = ("scope", "mode", "autoprompt", "context", "filters", "topK", "include", "quality", "model")
    chat = ("messages", "session_id", "collection_id", "model", "preset", "retrieval", "generation")
    for path, body, names in (
        ("/v1/search", {"workspaceId": home.id, "q": "billing"}, search), ("/v1/chat", ASKING, chat),
        ("/api/rag/search", {"query_text": "x"}, ("top_k", "filters")),
    ):  # fmt: skip
        with subtests.test(path=path):
            response = home.actor.post(path, {**body, **dict.fromkeys(names)})
            assert response.status_code == 200, response.text
