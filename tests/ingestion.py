"""Ingestion of one document, as a user."""

from shared.clients.postgrest import Database
from shared.ingestion.synchronous_ingestion import NewDocument, StoredDocument, ingest_many
from shared.models.embeddings import Embedder
from shared.types import Principal


def ingest(
    database: Database,
    embedder: Embedder,
    caller: Principal,
    document: NewDocument,
    collection: str = "default",
) -> StoredDocument:
    (stored,) = ingest_many(database, embedder, caller, collection, [document])
    assert stored
    return stored
