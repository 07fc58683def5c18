"""index-snapshots over HTTP, on the real stack: what is persisted is what is loaded, or nothing is."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fsspec
import httpx
import pytest
from fastapi.testclient import TestClient

from functions import index_snapshots
from shared.config import Settings
from shared.pipeline import Pipeline
from tests.actors import Actor, World, vector
from tests.conftest import People
from tests.functions.serving import made, served

Row = dict[str, Any]
OF_DOCUMENTS = """
    select external_id, source_type, title, uri, lang, occurred_at, origin, author, state, labels,
      own.metadata, content, content_hash, status, filename, content_type, size_bytes, processing_info,
      own.created_at, own.updated_at
    from rag.documents as own join rag.collections on collections.id = collection_id
    where collections.org_id = %s and collections.name = %s order by own.created_at, own.id
"""
OF_CHUNKS = """
    select external_id, ordinal, chunks.content, span_start, span_end, token_count, embedding_model,
      encode(extensions.halfvec_send(embedding), 'hex'), chunks.metadata, chunks.source_type, chunks.lang,
      chunks.occurred_at
    from rag.chunks join rag.documents on documents.id = document_id
    join rag.collections on collections.id = documents.collection_id
    where collections.org_id = %s and collections.name = %s order by external_id, ordinal
"""


@dataclass(frozen=True)
class Served:
    """The function, in this process, on a store of its own."""

    app: TestClient
    core: Pipeline
    world: World
    url: str

    def post(
        self, who: Actor, verb: str, index: str, *, token: str | None = None, **query: Any
    ) -> httpx.Response:
        address = f"/{verb}/{quote(index, safe='/')}"
        answer: httpx.Response = self.app.post(address, params=query, headers=who.headers(token))
        return answer

    def persist(self, who: Actor, index: str, **query: Any) -> str:
        return _message(self.post(who, "persist", index, **query))

    def load(self, who: Actor, index: str, **query: Any) -> str:
        return _message(self.post(who, "load", index, **query))

    def documents(self, who: Actor, index: str) -> list[tuple[Any, ...]]:
        assert who.org
        return self.world.sql(OF_DOCUMENTS, who.org.id, index)

    def chunks(self, who: Actor, index: str) -> list[tuple[Any, ...]]:
        assert who.org
        return self.world.sql(OF_CHUNKS, who.org.id, index)

    def collections(self, who: Actor) -> set[str]:
        assert who.org
        return {
            name
            for (name,) in self.world.sql("select name from rag.collections where org_id = %s", who.org.id)
        }


def _message(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"message"}
    message: str = answer.json()["message"]
    return message


def detail(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    said: str = answer.json()["detail"]
    assert isinstance(said, str)
    return said


@pytest.fixture(params=["file", "memory"])
def running(
    request: pytest.FixtureRequest, settings: Settings, world: World, tmp_path: Path
) -> Iterator[Served]:
    url = f"file://{tmp_path}/snapshots" if request.param == "file" else f"memory://{tmp_path.name}"
    with made(settings, rag_snapshot_url=url) as core, served(index_snapshots.app, core) as app:
        yield Served(app, core, world, url)
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]


def put(who: Actor, index: str, seeds: range = range(3), **fields: Any) -> None:
    who.put([vector(seed) for seed in seeds], collection=index, **fields)


def fill(who: Actor, index: str) -> None:
    """Two documents that say everything a document can say, and one that says little and has no name."""
    put(
        who, index, range(3), external_id="a/ä", source_type="mail", uri="https://example.com/a",
        lang="fr-CA", occurred_at="2024-02-29T12:00:00.123456Z", origin="slack", author="Zoë", state="open",
        labels=["x", "y z"],
        metadata={"n": 1.5, "deep": {"list": [None, True, "ü\u2028\"\\"]}, "huge": 2**70},
    )  # fmt: skip
    put(who, index, range(300, 700), external_id="long")
    put(who, index, range(0))


def test_a_member_loads_what_a_member_persisted_bit_for_bit(running: Served, people: People):
    fill(people.ann, "rag_index")
    said = running.persist(people.ann, "rag_index", path="./custom_path")
    assert said == "Successfully persisted index rag_index to ./custom_path/rag_index."
    said = running.load(people.alf, "copy", path="./custom_path/rag_index")
    assert said == "Successfully loaded index copy from ./custom_path/rag_index."
    documents = running.documents(people.ann, "rag_index")
    copied = running.documents(people.ann, "copy")
    assert [row[1:] for row in copied] == [row[1:] for row in documents]
    # The one without a name goes by its id, and keeps that.
    assert [row[0] for row in documents] == ["a/ä", "long", None]
    ((nameless,),) = running.world.sql(
        "select id::text from rag.documents where external_id is null and org_id = %s", people.acme.id
    )
    assert [row[0] for row in copied] == ["a/ä", "long", nameless]
    assert running.chunks(people.ann, "copy") == running.chunks(people.ann, "rag_index")
    assert len(running.chunks(people.ann, "copy")) == 403


def test_a_copy_is_independent_and_found(running: Served, people: People):
    put(people.ann, "first", external_id="a")
    running.persist(people.ann, "first")
    running.load(people.ann, "second", path="first")
    put(people.ann, "first", range(5, 6), external_id="a")
    assert len(running.chunks(people.ann, "second")) == 3
    found = {(row["collection_id"], row["content"]) for row in people.alf.match(vector(1))}
    assert len(found) == 1 + 3
    assert people.alf.rpc("rag_list_names").json() == ["first", "second"]
