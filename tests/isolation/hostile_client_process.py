"""A member's attacks, repeated on several connections.

A process that reads its task from stdin, sends to this machine alone, stops after the task's seconds, and
writes counts of the responses. Its priority is low: elsewhere an attacker has processors of its own.
"""

import json
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import uuid4

import httpx

MOST_REQUESTS = 1_000_000
SECONDS_TO_WAIT = 30.0
LINES = "\n".join(f"Line {number}." for number in range(50_000))
LONG_QUERY = " ".join(f"word{number}" for number in range(1200))
# A collection of the attackers' org that they do not delete, besides "attack".
LASTING = "lasting"
Row = dict[str, Any]


@cache
def numbers(size: int) -> str:
    """A JSON array of about so many bytes. As text, each of its numbers has 131,072 digits."""
    return f"[{','.join(['1e131071'] * (size // 9))}]"


NUMBERS = numbers(17_100)


@dataclass(frozen=True)
class Task:
    """The addresses that the process attacks, the user that it acts as, and its duration."""

    url: str
    # The attacker's own address.
    source: str
    headers: dict[str, str]
    org_id: str
    collection_id: str
    document_ids: list[str]
    chunk_ids: list[str]
    vector: list[float]
    seconds: float
    seed: int
    connections: int = 16


class Attacker:
    """One connection."""

    def __init__(self, task: Task, number: int) -> None:
        self._task = task
        self._draw = random.Random(task.seed * 1000 + number)  # noqa: S311  # not a secret
        transport = httpx.HTTPTransport(local_address=task.source)
        self._client = httpx.Client(headers=task.headers, timeout=SECONDS_TO_WAIT, transport=transport)
        self._session: str | None = None
        self.answers: Counter[str] = Counter()

    def run(self, until: float) -> None:
        for _ in range(MOST_REQUESTS):
            attack = self._draw.choice(self.attacks)
            if time.monotonic() > until:
                break
            try:
                result = str(attack().status_code)
            except httpx.TransportError as error:
                result = type(error).__name__
            self.answers[f"{attack.__name__} {result}"] += 1
        self._client.close()

    @property
    def attacks(self) -> list[Callable[[], httpx.Response]]:
        return [
            self.huge_numbers_in_filters, self.unreadable_rows, self.same_document, self.same_document,
            self.unknown_hosts, self.snapshots, self.long_searches, self.long_searches, self.graph_searches,
            self.large_body, self.every_document, self.long_messages, self.long_messages,
            self.shared_collection, self.leave_before_the_answer,
        ]  # fmt: skip

    def _sql(self, function: str, arguments: Row | str) -> httpx.Response:
        content = arguments if isinstance(arguments, str) else json.dumps(arguments)
        headers = {"Content-Type": "application/json"}
        return self._client.post(
            f"{self._task.url}/rest/v1/rpc/{function}", content=content.encode(), headers=headers
        )

    def _http(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return self._client.request(method, f"{self._task.url}{path}", json=body, headers=headers)

    # -- values that SQL must refuse ------------------------------------------------------------------

    def huge_numbers_in_filters(self) -> httpx.Response:
        filters = f'{{"metadata": {{"a": {NUMBERS}}}}}'
        return self._sql("rag_search", f'{{"query_text": "kettle", "mode": "keyword", "filters": {filters}}}')

    def unreadable_rows(self) -> httpx.Response:
        """Numbers that no reader expects, in a chunk's location and in a document's processing_info."""
        if self._draw.random() < 0.5:
            chunk = '{"span_start": 0, "span_end": 1, "token_count": 1, "metadata": {"page_number": 1e5000}}'
            document = f'{{"title": "odd", "content": "x", "chunks": [{chunk}]}}'
            place = f'"org_id": "{self._task.org_id}", "collection": "default"'
            return self._sql("rag_put_documents", f'{{{place}, "documents": [{document}]}}')
        document = '{"title": "odd", "content": "x", "processing_info": {"x": 1e5000}}'
        return self._sql("rag_complete_job", f'{{"document": {document}, "chunks": []}}')

    # -- work that keeps connections ------------------------------------------------------------------

    def same_document(self) -> httpx.Response:
        """One slow change in ten, and small changes of the same document."""
        text = "The kettle is hot. " * (4000 if self._draw.random() < 0.1 else 1)
        body = {"documents": [{"document_id": "same", "text": f"{text}{self._draw.random()}"}]}
        return self._http("POST", "/api/v1/knowledge/attack/documents", body)

    def long_searches(self) -> httpx.Response:
        arguments = {"query_vector": self._task.vector, "top_k": 300}
        if self._draw.random() < 0.5:
            return self._sql("rag_match", arguments)
        return self._sql("rag_search", {**arguments, "query_text": LONG_QUERY, "expand_context": 10})

    def graph_searches(self) -> httpx.Response:
        match self._draw.randrange(4):
            case 0:
                arguments: Row = {"query_text": LONG_QUERY, "query_vector": self._task.vector, "top_k": 300}
                return self._sql("rag_graph_search", arguments)
            case 1:
                arguments = {"document_ids": self._task.document_ids[:20], "hops": 2}
                return self._sql("rag_graph_of", {"org_id": self._task.org_id, **arguments})
            case 2:
                similar = {"document_id": self._task.document_ids[0], "top_k": 300}
                return self._sql("rag_similar", similar)
            case _:
                return self._sql("rag_widen", {"chunk_ids": self._task.chunk_ids[:100], "neighbours": 10})

    # -- requests that the HTTP APIs must refuse or bound ---------------------------------------------

    def large_body(self) -> httpx.Response:
        """Two megabytes; seldom 30, which PostgREST reads for four seconds."""
        size = (30 if self._draw.random() < 0.02 else 2) << 20
        return self._sql("rag_match", f'{{"query_vector": "[1]", "filters": {{"a": {numbers(size)}}}}}')

    def every_document(self) -> httpx.Response:
        if self._draw.random() < 0.5:
            return self._sql("rag_list_named", {"collection": LASTING, "limit": 1000})
        return self._http("GET", f"/indexes/{LASTING}/documents?limit=100&max_text_length=100000")

    def long_messages(self) -> httpx.Response:
        """Stored messages of the largest size, sometimes in one session, which its writers lock."""
        messages = {"messages": [{"role": "assistant", "content": LONG_QUERY * 6}] * 4}
        if self._session and self._draw.random() < 0.5:
            return self._http("POST", f"/api/v1/chat/sessions/{self._session}/messages", messages)
        answer = self._http("POST", "/api/v1/chat/sessions", messages)
        if answer.is_success:
            self._session = answer.json()["session_id"]
        return answer

    def shared_collection(self) -> httpx.Response:
        """A collection with private documents of both users, which each of them deletes."""
        collections = self._http("GET", "/api/v1/collections?limit=100")
        if collections.is_error:
            return collections
        homes = [row["id"] for row in collections.json()["data"] if row["name"] == "shelf"]
        if not homes:
            return self._http("POST", "/api/v1/collections", {"name": "shelf"})
        if self._draw.random() < 0.5:
            return self._http("DELETE", f"/api/v1/collections/{homes[0]}?cascade=true")
        document = {"collection_id": homes[0], "title": "private", "content": "A text.", "private": True}
        return self._http("POST", "/api/v1/documents/text", document)

    def leave_before_the_answer(self) -> httpx.Response:
        body = {"index_name": "attack", "documents": [{"text": LINES}]}
        return self._client.post(f"{self._task.url}/index", json=body, timeout=1)

    def unknown_hosts(self) -> httpx.Response:
        """Addresses whose hosts do not exist, for documents and webhooks."""
        url = f"https://{uuid4()}.hostile.example/page"
        if self._draw.random() < 0.5:
            body = {"collection_id": self._task.collection_id, "url": url}
            return self._http("POST", "/api/v1/documents/url", body)
        return self._http("POST", "/api/v1/webhooks", {"url": url, "events": ["document.ready"]})

    def snapshots(self) -> httpx.Response:
        if self._draw.random() < 0.5:
            return self._http("POST", f"/persist/{LASTING}")
        home: Row = {"collection_id": self._task.collection_id}
        if self._draw.random() < 0.5:
            return self._sql("rag_read_snapshot_documents", home | {"document_ids": self._task.document_ids})
        first: Row = {"document_id": self._task.document_ids[0], "updated_at": None, "first": 0}
        return self._sql("rag_read_snapshot_chunks", home | first)


def main() -> None:
    task = Task(**json.load(sys.stdin))
    if not task.url.startswith("http://127.0.0.1:"):
        raise SystemExit("The task has an address of another machine.")
    os.nice(19)
    until = time.monotonic() + task.seconds
    attackers = [Attacker(task, number) for number in range(task.connections)]
    threads = [threading.Thread(target=attacker.run, args=[until]) for attacker in attackers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total: Counter[str] = sum((attacker.answers for attacker in attackers), Counter())
    json.dump(dict(sorted(total.items())), sys.stdout)


if __name__ == "__main__":
    main()
