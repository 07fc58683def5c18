"""Import of a snapshot as an index.

The snapshot is read twice: first to validate it, then into a collection without a name. This gets the name at
the end, so that no user sees a partial index, and a failure leaves nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from shared.clients.postgrest import Database
from shared.clients.snapshot_paths import DEFAULT, directory_of, segments_of
from shared.clients.snapshot_store import SnapshotFolder, Store
from shared.documents.snapshots.jsonl import SnapshotChunk, SnapshotDocument, records
from shared.documents.snapshots.load_session import LoadSession
from shared.documents.snapshots.manifest import Manifest
from shared.errors import InvalidRequest, NotFound, SnapshotRefused
from shared.types import PrincipalSource


def load(
    database: Database,
    store: Store,
    caller: PrincipalSource,
    index: str,
    path: str | None,
    *,
    model: str,
    overwrite: bool,
) -> str:
    """Load the snapshot at the path, at path/index, or the only one in the path; without a path that in the
    index's own folder. `model`: that of this deployment. Returns the path, as the caller gave it.

    Raises Conflict for an index that exists, without `overwrite`; NotFound for a path without a snapshot;
    SnapshotRefused; Forbidden to overwrite private documents of others; RateLimited above the limit of the
    org's tier; InvalidRequest, SnapshotFailed.
    """
    directory = directory_of(index)
    label = f"{DEFAULT}/{directory}" if path is None else path
    segments = (DEFAULT, directory) if path is None else segments_of(path)
    loading = LoadSession(database, caller, index, overwrite)
    paths = [segments] if path is None else [segments, (*segments, directory)]
    snapshots = [*islice(_snapshots(store, loading.org_id, paths), 1)]
    if not snapshots and path is not None:
        names = store.folder(loading.org_id, segments).folders()
        inside = ((*segments, name) for name in names)
        snapshots = [*islice(_snapshots(store, loading.org_id, inside), 2)]
        if len(snapshots) > 1:
            raise InvalidRequest(
                f"path: {label} has several snapshots, and none is called {directory}. Name one of them."
            )
    if not snapshots:
        raise NotFound(f"Path does not exist: {label}", code="path_not_found")
    ((folder, content),) = snapshots
    manifest = Manifest.parse(content)
    _require_fit(manifest, model)
    _read(folder, manifest, lambda _: None)
    loading.begin(manifest)
    try:
        _read(folder, manifest, loading.take)
        loading.finish()
    except BaseException:
        loading.abandon()
        raise
    return label


def _snapshots(
    store: Store, org_id: str, paths: Iterable[Sequence[str]]
) -> Iterator[tuple[SnapshotFolder, bytes]]:
    """The snapshots in these folders, each with its manifest."""
    for segments in paths:
        folder = store.folder(org_id, segments)
        if (content := folder.manifest()) is not None:
            yield folder, content


def _require_fit(manifest: Manifest, model: str) -> None:
    if manifest.embedding_model not in (None, model):
        raise SnapshotRefused(
            f"The snapshot's embeddings are of {manifest.embedding_model}, but this deployment uses {model}. "
            "Index the documents again."
        )


def _is_of(document: SnapshotDocument, manifest: Manifest) -> bool:
    """Whether the snapshot's model embedded the document. A document without chunks has no model."""
    if document.embedding_model is None:
        return document.chunks == 0
    return document.embedding_model == manifest.embedding_model


def _read(
    folder: SnapshotFolder, manifest: Manifest, take: Callable[[SnapshotDocument | SnapshotChunk], None]
) -> None:
    try:
        with folder.reading(manifest.data.file) as file:
            for record in records(file, manifest):
                if isinstance(record, SnapshotDocument) and not _is_of(record, manifest):
                    raise SnapshotRefused(
                        "Persist the index again, because its documents have another embedding model than "
                        "its manifest."
                    )
                take(record)
    except FileNotFoundError:
        raise SnapshotRefused("The snapshot lacks its data. Try again if it is being replaced now.") from None
