"""A folder and a collection: what is missing there is sent, what is being worked on is waited for.

Nothing is remembered on this side. A document carries its file's path as its external id, and the API lists
digests of that and of its content: so whoever runs it again, and wherever, sends what is new or changed.
"""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from local.api_client import PAGE, Deployment, Refused, Row
from local.folder_scan import File, Folder, TooLarge, Unreadable, digest_of, too_large
from local.processes import StackError
from shared import errors
from shared.documents.documents import MAX_BYTES, external_id_of, file_name

PATH = "/api/v1/documents"
# What a deployment says that takes nothing larger than a request, or that is older than uploads.
NO_UPLOADS = {"storage_off", "not_found", "method_not_allowed"}
# What is known of an upload's content until the worker has read it.
UNKNOWN = f"sha256:{'0' * 64}"
TOO_LARGE = errors.BodyTooLarge.status
# Codes of failures that may pass: of a service, rights, a limit, a setting. All others are of the content.
MAY_PASS = {"original_gone", "duplicate_document", "unknown_embedding_model"} | {
    error.code
    for error in vars(errors).values()
    if isinstance(error, type)
    and issubclass(error, errors.RagError)
    and not issubclass(error, errors.InvalidRequest | errors.BodyTooLarge)
}
SENDERS = 4
# Between two looks at how far the worker is, for each request that a look takes.
PAUSE_SECONDS = 1.0


@dataclass
class Outcome:
    """What became of the files."""

    sent: int = 0
    completed: int = 0
    unchanged: int = 0
    # New, with the content of a document that the collection has already.
    same: int = 0
    # Documents of files that are gone.
    pruned: int = 0
    # Not sent, since the same content cannot be read or is too large. Each with a code and a sentence.
    skipped: list[tuple[File, str, str]] = field(default_factory=list)
    # Also with a code and a sentence; those of the worker come after the others.
    failed: list[tuple[File, str, str]] = field(default_factory=list)


class Sending:
    """One run. `home` is the collection, as the API shows it. Methods raise StackError for what ends the run;
    what is wrong with one file is in `outcome`."""

    def __init__(self, api: Deployment, home: Row) -> None:
        self._api = api
        self._home = home
        self.outcome = Outcome()
        self.to_send: list[File] = []
        # By their documents' ids, those that the worker has still to end.
        self.awaited: dict[str, File] = {}
        self._known: dict[str, Row] = {}
        # By digest, the errors of contents that were sent before and could not be read.
        self._unread: dict[str, Row] = {}
        # That the tier has no room for one more.
        self._full: Refused | None = None

    def look(self, folder: Folder, *, prune: bool, retry: bool) -> None:
        """Choose the files to send; with `retry`, also those that could not be read before. With `prune`,
        delete the documents of files that are gone."""
        # Others' private documents, which an admin sees, are other documents.
        rows = (row for row in self._rows() if row["owner_id"] == self._home["owner_id"])
        self._known = {row["unique_identifier_hash"]: row for row in rows}
        if prune:
            self._prune(folder)
        contents = {row["content_hash"] for row in self._known.values() if row["status"] == "completed"}
        if not retry:
            failed = [row for row in self._known.values() if row["status"] == "failed"]
            unread = [row for row in failed if row["error"]["code"] not in MAY_PASS]
            self._unread = {row["content_hash"]: row["error"] for row in unread}
        for file in folder.files:
            try:
                self._place(file, file.digest(), contents)
            except Unreadable as error:
                self._not_sent(file, error)

    def run(self, *, waits: bool, tick: Callable[[int], None]) -> None:
        """Send, and if it `waits` until all has ended. `tick` is called now and then, with how many files are
        still to be sent. On Ctrl-C what is being sent is sent whole, and nothing further."""
        with ThreadPoolExecutor(SENDERS) as pool:
            try:
                sending = {pool.submit(self._send, file): file for file in self.to_send}
                look_at = time.monotonic()
                while sending or (waits and self.awaited):
                    for future in wait(sending, 0.2, FIRST_COMPLETED).done:
                        self._sent(sending.pop(future), future)
                    if waits and self.awaited and time.monotonic() > look_at:
                        look_at = self._look_again() * PAUSE_SECONDS + time.monotonic()
                    elif not sending:
                        time.sleep(0.1)
                    tick(len(sending))
            except BaseException:
                self._api.stop()
                pool.shutdown(cancel_futures=True)
                raise

    def _rows(self) -> Iterator[Row]:
        return self._api.pages(PATH, collection_id=self._home["id"])

    def _prune(self, folder: Folder) -> None:
        if folder.prefix is None:
            raise StackError("--prune takes a folder")
        # What is passed over this time is not gone.
        here = {file.identifier for file in (*folder.files, *folder.others)}
        for identifier, row in list(self._known.items()):
            path = row["metadata"].get("path")
            if identifier in here or not isinstance(path, str) or not path.startswith(folder.prefix):
                continue
            # Anybody may call a document's metadata that: what was brought from a file is also known by it.
            if digest_of(external_id_of(path).encode(errors="replace")) == identifier:
                self._delete(row["id"])
                del self._known[identifier]
                self.outcome.pruned += 1

    def _delete(self, document: str) -> None:
        try:
            self._api.request("DELETE", f"{PATH}/{document}")
        except Refused as refused:
            # (It may have been gone, or was deleted by an attempt whose answer was lost.)
            if refused.status != 404:
                raise StackError(f"{refused.code}: {refused}") from None

    def _not_sent(self, file: File, error: Refused | Unreadable) -> None:
        is_too_large = isinstance(error, TooLarge) or (
            isinstance(error, Refused) and error.status == TOO_LARGE
        )
        files = self.outcome.skipped if is_too_large else self.outcome.failed
        files.append((file, error.code, str(error)))

    def _place(self, file: File, digest: str, contents: set[str]) -> None:
        row = self._known.get(file.identifier)
        if error := self._unread.get(digest):
            self.outcome.skipped.append((file, error["code"], error["message"]))
        elif digest in contents and (row is None or (row["status"] == "failed" and not row["chunk_count"])):
            self.outcome.same += 1
        elif (
            row
            and row["status"] == "processing"
            and row["content_hash"] == UNKNOWN
            and row["size_bytes"] == file.size
        ):
            self.awaited[row["id"]] = file
        elif row is None or row["status"] == "failed" or row["content_hash"] != digest:
            contents.add(digest)
            self.to_send.append(file)
        elif row["status"] == "completed":
            self.outcome.unchanged += 1
        elif row["chunk_count"]:
            # It is being replaced by something else: the digest is that of what is still found.
            self.to_send.append(file)
        else:
            self.awaited[row["id"]] = file

    def _send(self, file: File) -> Row | None:
        """The document; None where the collection has the same content. Raises Refused, Unreadable."""
        new = file.identifier not in self._known
        if new and self._full:
            raise self._full
        try:
            row: Row = self._upload(file) if file.size > MAX_BYTES else self._post(file)
        except Refused as refused:
            if new and refused.code == "duplicate_document":
                return None
            if refused.status == 429:
                self._full = refused
            raise
        return row

    def _post(self, file: File) -> Row:
        form = {
            "collection_id": self._home["id"],
            "external_id": file.external_id,
            "metadata": json.dumps({"path": file.name}),
        }
        row: Row = self._api.request(
            "POST", PATH, data=form, files={"file": (file_name(file.name), file.read())}
        )
        return row

    def _upload(self, file: File) -> Row:
        """One that is too large for a request, where the deployment says."""
        said = {
            "collection_id": self._home["id"],
            "external_id": file.external_id,
            "metadata": {"path": file.name},
            "filename": file_name(file.name),
            "size_bytes": file.size,
        }
        try:
            begun = self._api.request("POST", f"{PATH}/upload", json=said)
        except Refused as refused:
            if refused.code in NO_UPLOADS:
                raise too_large(MAX_BYTES) from None
            raise
        self._api.upload(begun["upload_url"], file)
        row: Row = self._api.request("POST", f"{PATH}/uploaded", json={"upload": begun["upload"]})
        return row

    def _sent(self, file: File, future: Future[Row | None]) -> None:
        try:
            row = future.result()
        except (Refused, Unreadable) as error:
            self._not_sent(file, error)
            return
        if row is None:
            self.outcome.same += 1
        else:
            self.outcome.sent += 1
            self.awaited[row["id"]] = file

    def _look_again(self) -> int:
        """See what has ended; how many requests that took."""
        pages: int = 1 + self._home["document_count"] // PAGE
        # One by one, where these are fewer than the list has pages.
        if len(self.awaited) > pages:
            rows = list(self._rows())
            self._home["document_count"] = len(rows)
        else:
            pages = len(self.awaited)
            rows = [row for document in list(self.awaited) for row in self._row(document)]
        for row in rows:
            if row["status"] == "processing" or (file := self.awaited.pop(row["id"], None)) is None:
                continue
            if row["status"] == "completed":
                self.outcome.completed += 1
            elif row["error"]["code"] == "duplicate_document" and not row["chunk_count"]:
                # Of an upload only its reader learns that.
                self.outcome.same += 1
            else:
                self.outcome.failed.append((file, row["error"]["code"], row["error"]["message"]))
        return pages

    def _row(self, document: str) -> list[Row]:
        try:
            return [self._api.request("GET", f"{PATH}/{document}")]
        except Refused as refused:
            self.outcome.failed.append((self.awaited.pop(document), refused.code, str(refused)))
            return []
