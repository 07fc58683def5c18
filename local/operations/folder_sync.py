"""Synchronisation of a folder with a collection: sends new and changed files and waits for the worker.

No state is stored on this side. A document's external id is its file's path, and the API lists digests of the
external id and of the content. So a second run, on any machine, sends only new and changed files.
"""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from local.errors import CommandError
from local.operations.api_client import PAGE_SIZE, ApiClient, ApiError, Row
from local.operations.folder_scan import (
    File,
    Folder,
    TooLarge,
    UnreadableFile,
    sha256_digest,
    too_large_error,
)
from shared import errors
from shared.documents.documents import MAX_BYTES, external_id_of, file_name

PATH = "/api/v1/documents"
# Error codes of a deployment without direct uploads.
NO_UPLOADS = {"storage_off", "not_found", "method_not_allowed"}
# Content hash of an upload until the worker has read it.
UNKNOWN_HASH = f"sha256:{'0' * 64}"
TOO_LARGE = errors.BodyTooLarge.status
# Error codes caused by a service, rights, a limit or a setting. All other codes are caused by the content.
TRANSIENT_CODES = {"original_gone", "duplicate_document", "unknown_embedding_model"} | {
    error.code
    for error in vars(errors).values()
    if isinstance(error, type)
    and issubclass(error, errors.RagError)
    and not issubclass(error, errors.InvalidRequest | errors.BodyTooLarge)
}
UPLOAD_THREADS = 4
# Pause between two polls, for each request of a poll.
POLL_SECONDS = 1.0


@dataclass
class Outcome:
    """Counts of files by result."""

    sent: int = 0
    completed: int = 0
    unchanged: int = 0
    # New files with the content of a document of the collection.
    duplicates: int = 0
    # Deleted documents of deleted files.
    pruned: int = 0
    # Not sent: too large, or the same content failed before. Each with an error code and a message.
    skipped: list[tuple[File, str, str]] = field(default_factory=list)
    # Each file with a code and a message; failures in the worker come last.
    failed: list[tuple[File, str, str]] = field(default_factory=list)
    # Each completed file with a sentence about what of it was not read.
    notes: list[tuple[File, str]] = field(default_factory=list)


class FolderSync:
    """One run. `collection` is the API's representation. Methods raise CommandError for an error that ends
    the run; an error of one file is in `outcome`."""

    def __init__(self, api: ApiClient, collection: Row) -> None:
        self._api = api
        self._collection = collection
        self.outcome = Outcome()
        self.to_send: list[File] = []
        # Files that the worker has not finished, by document id.
        self.pending: dict[str, File] = {}
        self._known: dict[str, Row] = {}
        # Errors of contents that failed in an earlier run, by digest.
        self._unreadable: dict[str, Row] = {}
        # The error after which no new document is accepted.
        self._quota_error: ApiError | None = None

    def plan(self, folder: Folder, *, prune: bool, retry: bool) -> None:
        """Choose the files to send; with `retry`, also those that failed before. With `prune`, delete the
        documents of deleted files."""
        # An admin also sees private documents of other users: they are not this collection's copies.
        rows = (row for row in self._rows() if row["owner_id"] == self._collection["owner_id"])
        self._known = {row["unique_identifier_hash"]: row for row in rows}
        if prune:
            self._prune(folder)
        contents = {row["content_hash"] for row in self._known.values() if row["status"] == "completed"}
        if not retry:
            failed = [row for row in self._known.values() if row["status"] == "failed"]
            unreadable = [row for row in failed if row["error"]["code"] not in TRANSIENT_CODES]
            self._unreadable = {row["content_hash"]: row["error"] for row in unreadable}
        for file in folder.files:
            try:
                self._classify(file, file.digest(), contents)
            except UnreadableFile as error:
                self._record_error(file, error)

    def run(self, *, wait_for_worker: bool, tick: Callable[[int], None]) -> None:
        """Send the files and, with `wait_for_worker`, wait until the worker has finished them. `tick` is
        called regularly with the number of files still to send. After Ctrl-C running requests finish, and no
        other request is sent."""
        with ThreadPoolExecutor(UPLOAD_THREADS) as pool:
            try:
                futures = {pool.submit(self._send, file): file for file in self.to_send}
                next_poll = time.monotonic()
                while futures or (wait_for_worker and self.pending):
                    for future in wait(futures, 0.2, FIRST_COMPLETED).done:
                        self._record_sent(futures.pop(future), future)
                    if wait_for_worker and self.pending and time.monotonic() > next_poll:
                        next_poll = self._poll() * POLL_SECONDS + time.monotonic()
                    elif not futures:
                        time.sleep(0.1)
                    tick(len(futures))
            except BaseException:
                self._api.stop()
                pool.shutdown(cancel_futures=True)
                raise

    def _rows(self) -> Iterator[Row]:
        return self._api.pages(PATH, collection_id=self._collection["id"])

    def _prune(self, folder: Folder) -> None:
        if folder.prefix is None:
            raise CommandError("--prune needs a folder, not a file")
        # An unsupported file still exists.
        identifiers = {file.identifier for file in (*folder.files, *folder.unsupported)}
        for identifier, row in list(self._known.items()):
            path = row["metadata"].get("path")
            if identifier in identifiers or not isinstance(path, str) or not path.startswith(folder.prefix):
                continue
            # Any document may have such metadata; only a document sent by this command has the matching id.
            if sha256_digest(external_id_of(path).encode(errors="replace")) == identifier:
                self._delete(row["id"])
                del self._known[identifier]
                self.outcome.pruned += 1

    def _delete(self, document: str) -> None:
        try:
            self._api.request("DELETE", f"{PATH}/{document}")
        except ApiError as error:
            # 404: deleted already, perhaps by an attempt whose response was lost.
            if error.status != 404:
                raise CommandError(f"{error.code}: {error}") from None

    def _record_error(self, file: File, error: ApiError | UnreadableFile) -> None:
        is_too_large = isinstance(error, TooLarge) or (
            isinstance(error, ApiError) and error.status == TOO_LARGE
        )
        files = self.outcome.skipped if is_too_large else self.outcome.failed
        files.append((file, error.code, str(error)))

    def _classify(self, file: File, digest: str, contents: set[str]) -> None:
        row = self._known.get(file.identifier)
        if error := self._unreadable.get(digest):
            self.outcome.skipped.append((file, error["code"], error["message"]))
        elif digest in contents and (row is None or (row["status"] == "failed" and not row["chunk_count"])):
            self.outcome.duplicates += 1
        elif (
            row
            and row["status"] == "processing"
            and row["content_hash"] == UNKNOWN_HASH
            and row["size_bytes"] == file.size
        ):
            self.pending[row["id"]] = file
        elif row is None or row["status"] == "failed" or row["content_hash"] != digest:
            contents.add(digest)
            self.to_send.append(file)
        elif row["status"] == "completed":
            self.outcome.unchanged += 1
        elif row["chunk_count"]:
            # Another version is replacing it: the digest is that of the version still searchable.
            self.to_send.append(file)
        else:
            self.pending[row["id"]] = file

    def _send(self, file: File) -> Row | None:
        """The document, or None if the collection has the same content. Raises ApiError, UnreadableFile."""
        new = file.identifier not in self._known
        if new and self._quota_error:
            raise self._quota_error
        try:
            row: Row = self._upload(file) if file.size > MAX_BYTES else self._post(file)
        except ApiError as error:
            if new and error.code == "duplicate_document":
                return None
            if error.status == 429:
                self._quota_error = error
            raise
        return row

    def _post(self, file: File) -> Row:
        form = {
            "collection_id": self._collection["id"],
            "external_id": file.external_id,
            "metadata": json.dumps({"path": file.name}),
        }
        row: Row = self._api.request(
            "POST", PATH, data=form, files={"file": (file_name(file.name), file.read())}
        )
        return row

    def _upload(self, file: File) -> Row:
        """Send a file that is too large for one request through a signed URL."""
        body = {
            "collection_id": self._collection["id"],
            "external_id": file.external_id,
            "metadata": {"path": file.name},
            "filename": file_name(file.name),
            "size_bytes": file.size,
        }
        try:
            upload = self._api.request("POST", f"{PATH}/upload", json=body)
        except ApiError as error:
            if error.code in NO_UPLOADS:
                raise too_large_error(MAX_BYTES) from None
            raise
        self._api.upload(upload["upload_url"], file)
        row: Row = self._api.request("POST", f"{PATH}/uploaded", json={"upload": upload["upload"]})
        return row

    def _record_sent(self, file: File, future: Future[Row | None]) -> None:
        try:
            row = future.result()
        except (ApiError, UnreadableFile) as error:
            self._record_error(file, error)
            return
        if row is None:
            self.outcome.duplicates += 1
        else:
            self.outcome.sent += 1
            self.pending[row["id"]] = file

    def _poll(self) -> int:
        """Move finished documents to `outcome`; the number of requests."""
        pages: int = 1 + self._collection["document_count"] // PAGE_SIZE
        # The list when it has fewer pages than there are pending documents, else document by document.
        if len(self.pending) > pages:
            rows = list(self._rows())
            self._collection["document_count"] = len(rows)
        else:
            pages = len(self.pending)
            rows = [row for document in list(self.pending) for row in self._row(document)]
        for row in rows:
            if row["status"] == "processing" or (file := self.pending.pop(row["id"], None)) is None:
                continue
            if row["status"] == "completed":
                self.outcome.completed += 1
                self.outcome.notes += [(file, note) for note in row["notes"]]
            elif row["error"]["code"] == "duplicate_document" and not row["chunk_count"]:
                # Only the worker can detect a duplicate upload.
                self.outcome.duplicates += 1
            else:
                self.outcome.failed.append((file, row["error"]["code"], row["error"]["message"]))
        return pages

    def _row(self, document: str) -> list[Row]:
        try:
            return [self._api.request("GET", f"{PATH}/{document}")]
        except ApiError as error:
            self.outcome.failed.append((self.pending.pop(document), error.code, str(error)))
            return []
