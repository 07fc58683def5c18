"""Limit of the size of a request's body, whether or not the request declares the size."""

import json

import httpx

from tests.conftest import People


def test_a_body_over_256_kib_is_413_declared_or_not(people: People):
    url, headers = f"{people.ann.stack.url}/api/rag/search", people.ann.headers()
    body = json.dumps({"query_text": "x", "padding": "y" * 300_000}).encode()
    declared = httpx.post(url, content=body, headers={**headers, "Content-Type": "application/json"})
    pieces = (body[start : start + 10_000] for start in range(0, len(body), 10_000))
    streamed = httpx.post(url, content=pieces, headers={**headers, "Content-Type": "application/json"})
    for response in (declared, streamed):
        assert response.status_code == 413
        assert response.json()["error"]["code"] == "body_too_large"
