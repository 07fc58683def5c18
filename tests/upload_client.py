"""Large files, as people bring them: a deployment's documents function beside a project with Storage."""

import hashlib
from dataclasses import dataclass
from typing import Any

from fastapi.testclient import TestClient

from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import BatchResult, Jobs
from shared.ingestion.maintenance import remove_due
from shared.models.embeddings import Embedder
from shared.services import Services
from tests.actors import Actor, World, client
from tests.storage_server import BUCKET, StorageServer

PATH = "/v1/documents"
Row = dict[str, Any]


def page(text: str, padding: int = 0) -> bytes:
    """A page that says so, and is so much larger than its text."""
    return f"<p>{text}</p><!--{'x' * padding}-->".encode()


@dataclass(frozen=True)
class Uploads:
    server: StorageServer
    services: Services
    app: TestClient
    embedder: Embedder
    world: World

    def post(self, actor: Actor, path: str, body: Any, token: str | None = None) -> Any:
        return self.app.post(f"{PATH}/{path}", json=body, headers=actor.headers(token))

    def begin(
        self, actor: Actor, collection: str, size: int = 16, name: str = "kiln.html", **more: Any
    ) -> Any:
        token = more.pop("token", None)
        body = {"collection_id": collection, "filename": name, "size_bytes": size, **more}
        return self.post(actor, "upload", body, token)

    def put(self, actor: Actor, collection: str, data: bytes, **more: Any) -> str:
        """Begun and uploaded; the ticket."""
        begun = self.begin(actor, collection, len(data), **more)
        assert begun.status_code == 201, begun.text
        assert client().put(begun.json()["upload_url"], content=data).status_code == 200
        return str(begun.json()["upload"])

    def finish(self, actor: Actor, ticket: str, token: str | None = None) -> Any:
        return self.post(actor, "uploaded", {"upload": ticket}, token)

    def bring(self, actor: Actor, collection: str, data: bytes, **more: Any) -> Row:
        """The whole way; the document."""
        answer = self.finish(actor, self.put(actor, collection, data, **more))
        assert answer.status_code == 202, answer.text
        row: Row = answer.json()
        return row

    def get(self, actor: Actor, path: str) -> Any:
        return self.app.get(f"{PATH}/{path}", headers=actor.headers(), follow_redirects=False)

    def state_of(self, actor: Actor, row: Row) -> Row:
        body: Row = self.get(actor, row["id"]).json()
        return body

    def work(self) -> BatchResult:
        services = self.services
        return Worker(
            Jobs(services.database, services.require_signer()), self.embedder, storage=services.storage
        ).work()

    def remove(self) -> int:
        return remove_due(
            self.services.database, self.services.require_signer(), self.services.require_storage()
        )

    def path_of(self, row: Row) -> str:
        """Of the document's object."""
        rows = self.world.sql("select path from rag.originals where document_id = %s", row["id"])
        return str(rows[0][0])

    @property
    def paths(self) -> set[str]:
        """Paths of all objects in Storage."""
        names = {name for (name,) in self.world.sql("select name from storage.objects")}
        assert {place.removeprefix(f"{BUCKET}/") for place in self.server.objects} == names
        return names

    def storage(self, method: str, path: str, token: str | None, body: Any = None, **headers: str) -> Any:
        """Straight to Storage, with whatever token; its answer."""
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        address = f"{self.server.url}/storage/v1/{path}"
        return client().request(method, address, headers={**bearer, **headers}, **content)


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
