"""Random changes of one index by four concurrent clients: no document is lost, no deleted one returns."""

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from functions import index_query, indexes
from shared.access.concurrent_ingestion_limit import IngestionLimit
from shared.config import Settings
from tests.actors import Actor
from tests.conftest import People
from tests.functions.app_server import client_of, json_of, services_with
from tests.functions.test_indexes import digest, path

CLIENTS = 4
NAME = "busy"
SYLLABLES = ("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu")


def sentence(draw: random.Random) -> str:
    """Words that no other document has."""
    return "The " + " ".join("".join(draw.choices(SYLLABLES, k=4)) for _ in range(4)) + "."


class Client:
    """Changes documents of its own, and knows what they say by now; and others that all clients change."""

    def __init__(self, number: int, contested: list[str], actor: Actor, api: Any) -> None:
        self._draw = random.Random(number)  # noqa: S311  # not a secret
        self._own = [sentence(self._draw) for _ in range(25)]
        self._contested = contested
        self._headers = actor.headers()
        self._api = api
        self.texts_by_name: dict[str, str] = {}

    def run(self, operations: int) -> None:
        for _ in range(operations):
            operation = self._draw.choices([self._index, self._update, self._delete], [4, 4, 2])[0]
            own = self._draw.random() < 0.8
            texts = self._draw.sample(self._own if own else self._contested, self._draw.randint(1, 3))
            operation(texts, own)

    def _index(self, texts: list[str], own: bool) -> None:
        body = {"index_name": NAME, "documents": [{"text": text} for text in texts]}
        rows = self._post("/index", body)
        assert [row["doc_id"] for row in rows] == [digest(text) for text in texts]
        if own:
            self.texts_by_name |= {digest(text): text for text in texts}

    def _update(self, texts: list[str], own: bool) -> None:
        expected = {digest(text): sentence(self._draw) for text in texts}
        documents = [{"doc_id": name, "text": text} for name, text in expected.items()]
        answer = self._post(path(NAME, "/documents"), {"documents": documents})
        updated = {row["doc_id"] for row in answer["updated_documents"]}
        if own:
            assert updated == {name for name in expected if name in self.texts_by_name}
            self.texts_by_name |= {name: expected[name] for name in updated}

    def _delete(self, texts: list[str], own: bool) -> None:
        expected = [digest(text) for text in texts]
        answer = self._post(path(NAME, "/documents/delete"), {"doc_ids": expected})
        if own:
            assert set(answer["deleted_doc_ids"]) == {name for name in expected if name in self.texts_by_name}
            for name in expected:
                self.texts_by_name.pop(name, None)

    def _post(self, address: str, body: Any) -> Any:
        return json_of(self._api.post(address, json=body, headers=self._headers))


@pytest.mark.parametrize("operations", [10, pytest.param(250, marks=pytest.mark.long)])
def test_concurrent_changes_lose_and_restore_no_document(people: People, settings: Settings, operations: int):
    unlimited = {"rag_rate_limit_api": "1000000/minute"}
    draw = random.Random("contested")  # noqa: S311  # not a secret
    contested = [sentence(draw) for _ in range(25)]
    with services_with(settings, **unlimited) as own:
        vars(own)["ingestions"] = IngestionLimit(CLIENTS)
        with client_of(indexes.app, own) as api, ThreadPoolExecutor(CLIENTS) as pool:
            assert people.ann.rpc("rag_create_collection", {"name": NAME}).is_success
            clients = [Client(number, contested, people.ann, api) for number in range(CLIENTS)]
            for end in [pool.submit(client.run, operations) for client in clients]:
                end.result()
            there = everything(api, people.ann)
        expected = {name: text for client in clients for name, text in client.texts_by_name.items()}
        names = {digest(text) for text in contested}
        assert {name: text for name, text in there.items() if name not in names} == expected
        assert len(expected) > min(operations, 50)
        with client_of(index_query.app, own) as api:
            for name, text in there.items():
                body = {"index_name": NAME, "query": text, "max_node_count": 300}
                results = api.post("/retrieve", json=body, headers=people.ann.headers()).json()["results"]
                assert (results[0]["doc_id"], results[0]["text"]) == (name, text)
                # Of all that is found nothing is dead, and each document is found once.
                assert {node["doc_id"]: node["text"] for node in results} == there
                assert len(results) == len(there)


def everything(api: Any, actor: Actor) -> dict[str, str]:
    """What all documents of the index say."""
    by_name: dict[str, str] = {}
    while True:
        query = f"/documents?limit=100&offset={len(by_name)}"
        page = api.get(path(NAME, query), headers=actor.headers()).json()
        by_name |= {row["doc_id"]: row["text"] for row in page["documents"]}
        if page["count"] < 100:
            assert len(by_name) == page["total_items"]
            return by_name
