"""index-snapshots in this process, on a store of a test's own, and what the database then holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fastapi.testclient import TestClient

from functions import index_snapshots
from shared.clients.snapshot_store import SnapshotFolder
from shared.config import Settings
from shared.documents.snapshots.manifest import Manifest
from shared.services import Services
from tests.actors import Actor, World, vector
from tests.functions.app_server import client_of, services_with

OF_DOCUMENTS = """
    select external_id, source_type, title, uri, lang, occurred_at, origin, author, state, labels,
      own.metadata, content, content_hash, status, filename, content_type, size_bytes, processing_info,
      own.created_at, own.updated_at
    from rag.documents as own join rag.collections on collections.id = collection_id
    where collections.org_id = %s and collections.name = %s and deleted_at is null
    order by own.created_at, own.id
"""
OF_CHUNKS = """
    select external_id, ordinal, chunks.content, span_start, span_end, token_count, embedding_model,
      encode(extensions.halfvec_send(embedding), 'hex'), chunks.metadata, chunks.source_type, chunks.lang,
      chunks.occurred_at
    from rag.chunks join rag.documents on documents.id = document_id
    join rag.collections on collections.id = documents.collection_id
    where collections.org_id = %s and collections.name = %s and deleted_at is null
    order by external_id, ordinal
"""


@dataclass(frozen=True)
class Snapshots:
    """The function, and its caller."""

    app: TestClient
    services: Services
    world: World
    url: str

    def post(self, who: Actor, verb: str, index: str, *, token: str | None = None, **query: Any) -> Any:
        address = f"/{verb}/{quote(index, safe='/')}"
        return self.app.post(address, params=query, headers=who.headers(token))

    def persist(self, who: Actor, index: str, **query: Any) -> str:
        return message(self.post(who, "persist", index, **query))

    def load(self, who: Actor, index: str, **query: Any) -> str:
        return message(self.post(who, "load", index, **query))

    def documents(self, who: Actor, index: str) -> list[tuple[Any, ...]]:
        assert who.org
        return self.world.sql(OF_DOCUMENTS, who.org.id, index)

    def chunks(self, who: Actor, index: str) -> list[tuple[Any, ...]]:
        assert who.org
        return self.world.sql(OF_CHUNKS, who.org.id, index)

    def collections(self, who: Actor) -> set[str]:
        """The names of all there are, those that are being loaded too."""
        assert who.org
        undeleted = "select name from rag.collections where org_id = %s and deleted_at is null"
        rows = self.world.sql(undeleted, who.org.id)
        return {name for (name,) in rows}

    def folder(self, who: Actor, *segments: str) -> SnapshotFolder:
        assert who.org
        return self.services.require_snapshots().folder(who.org.id, segments)

    def data(self, who: Actor, *segments: str) -> list[str]:
        """The names of the files of data in a snapshot's folder."""
        return sorted(name for name in self.folder(who, *segments).names() if name.startswith("data-"))


@contextmanager
def snapshot_client(settings: Settings, world: World, url: str) -> Iterator[Snapshots]:
    with (
        services_with(settings, rag_snapshot_url=url) as services,
        client_of(index_snapshots.app, services) as app,
    ):
        yield Snapshots(app, services, world, url)


def message(answer: Any) -> str:
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"message"}
    text: str = answer.json()["message"]
    return text


def detail(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    text: str = answer.json()["detail"]
    assert isinstance(text, str)
    return text


def put(who: Actor, index: str, seeds: range = range(3), **fields: Any) -> None:
    who.put([vector(seed) for seed in seeds], collection=index, **fields)


def rewrite_manifest(folder: SnapshotFolder, **changes: Any) -> None:
    """Give the snapshot a manifest with changes, whose own checksum is right."""
    content = folder.manifest()
    assert content
    manifest = Manifest.parse(content)
    folder.replace_manifest(manifest.model_copy(update=changes).to_bytes())
