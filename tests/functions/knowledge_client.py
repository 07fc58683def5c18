"""Requests of the tests to the knowledge API, as any caller."""

from typing import Any
from urllib.parse import quote

import httpx

from tests.actors import Actor
from tests.functions.app_server import json_of

PREFIX = "/api/v1/knowledge"
REFUNDS = "Our refund policy is 30 days from purchase."
SHIPPING = "Shipping is free for orders over $50."
QUESTION = "how many days from the purchase does the refund policy give?"
Row = dict[str, Any]


def at(namespace: str, rest: str) -> str:
    return f"{PREFIX}/{quote(namespace, safe='')}/{rest}"


def ingest(actor: Actor, *documents: Row, namespace: str = "support", **headers: str) -> list[str]:
    body = json_of(
        actor.request("POST", at(namespace, "documents"), {"documents": documents}, **headers), 201
    )
    assert set(body) == {"document_ids", "ingested"}
    assert body["ingested"] == len(body["document_ids"]) == len(documents)
    names: list[str] = body["document_ids"]
    return names


def list_page(actor: Actor, namespace: str = "support", query: str = "") -> Row:
    return json_of(actor.request("GET", at(namespace, f"documents{query}")))


def ids(actor: Actor, namespace: str = "support") -> list[str]:
    return [row["document_id"] for row in list_page(actor, namespace)["documents"]]


def retrieve(actor: Actor, query: str = QUESTION, namespace: str = "support", **more: Any) -> list[Row]:
    body = json_of(actor.request("POST", at(namespace, "retrieve"), {"query": query, **more}))
    chunks: list[Row] = body["chunks"]
    return chunks


def ask(actor: Actor, question: str = QUESTION, namespace: str = "support", **more: Any) -> Row:
    return json_of(actor.request("POST", at(namespace, "query"), {"question": question, **more}))


def delete(actor: Actor, name: str, namespace: str = "support") -> httpx.Response:
    return actor.request("DELETE", at(namespace, f"documents/{quote(name, safe='')}"))
