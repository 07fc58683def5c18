"""index-snapshots: KAITO RAGEngine's persist and load, in the org's own folder of the object store."""

from typing import Annotated

from fastapi import Path

from shared.api.app import create_app, lambda_handler
from shared.api.authentication import FreshCaller, with_scope
from shared.api.contracts.index import indexes as wire
from shared.api.contracts.shared_fields import CollectionName
from shared.api.dependencies import Container
from shared.clients.snapshot_paths import DEFAULT
from shared.documents.snapshots.load import load as load_snapshot
from shared.documents.snapshots.persist import persist as persist_snapshot
from shared.models.embeddings import model_of
from shared.observability.usage_metrics import timed
from shared.types import Principal, Scope

app = create_app(
    wire, "index-snapshots", errors=(400, 401, 403, 404, 409, 422, 429, 500, 503), searches=False
)

# A write scope: persist replaces an earlier snapshot.
Writer = Annotated[Principal, with_scope(Scope.DOCUMENTS_WRITE, anonymous=True)]
Loader = Annotated[
    Principal, with_scope(Scope.DOCUMENTS_WRITE, besides=Scope.COLLECTIONS_MANAGE, anonymous=True)
]
Name = Annotated[CollectionName, Path()]


@app.post("/persist/{index_name:path}")
def persist(
    caller: Writer,
    services: Container,
    fresh_caller: FreshCaller,
    index_name: Name,
    path: wire.SnapshotPath = DEFAULT,
) -> wire.Confirmation:
    with timed(services.database, fresh_caller, "persist"):
        place = persist_snapshot(
            services.database, services.require_snapshots(), fresh_caller, index_name, path
        )
        return wire.Confirmation(message=f"Successfully persisted index {index_name} to {place}.")


@app.post("/load/{index_name:path}")
def load(
    caller: Loader,
    services: Container,
    fresh_caller: FreshCaller,
    index_name: Name,
    path: wire.SnapshotPath | None = None,
    overwrite: bool = False,
) -> wire.Confirmation:
    with timed(services.database, fresh_caller, "load"):
        store, model = services.require_snapshots(), model_of(services.settings)
        place = load_snapshot(
            services.database, store, fresh_caller, index_name, path, model=model, overwrite=overwrite
        )
        return wire.Confirmation(message=f"Successfully loaded index {index_name} from {place}.")


handler = lambda_handler(app)
