"""Worker that lists due sources and queues the documents of new and changed items.

A run is divided into time slices of some seconds, so that the worker serves the sources of all orgs.
Only a complete listing deletes. After a crash the next worker repeats the time slice, and finds its stored
items unchanged.
"""

import base64
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shared.errors import DatabaseBusy, FetchFailed, Forbidden, RagError, RateLimited, TooManyCalls, logged
from shared.ingestion.filter_fields import fields_of
from shared.ingestion.job_queue import LEASE_SECONDS, LONGEST_WAIT, BatchResult, Job, Jobs
from shared.ingestion.sources.source import (
    ClaimedSource,
    Content,
    Item,
    ItemGone,
    ItemLeftOut,
    ItemsGone,
    NothingListed,
    Source,
    too_many_items,
)
from shared.text.normalize import clean_line

log = logging.getLogger("rag")
SLICE_SECONDS = 30.0
# A source waits while so many documents of its org wait for the worker: other documents come between.
MAX_WAITING_JOBS = 200
# The pauses until the next time slice: of a source that waits, and after an error that may pass.
WAITING_PAUSE, ERROR_PAUSE = 15, 600
# Pauses that a server asks for, before an item fails.
MAX_WAITS = 3
DELETED_AT_ONCE = 100
# Failures in a row after which the listing ends.
MAX_FAILURES = 20
# If so many listed items do not exist, and most of the listing, the fault is the source's.
FEW_ITEMS = 3


class SourceUserLeft(Forbidden, code="source_user_left"):
    """The admin who last changed or ran this source is no admin of the org now. Run it as another admin."""


class SliceEnded(Exception):
    """The listing continues in another time slice, after `pause` seconds."""

    def __init__(self, pause: int = 0) -> None:
        super().__init__()
        self.pause = pause


@dataclass(frozen=True, slots=True)
class SourceWorker:
    """Several workers, and several threads of one, never run a source twice, nor two sources of an org at
    once. `open_source` makes the source of a claimed row."""

    jobs: Jobs
    open_source: Callable[[ClaimedSource], Source]

    def work(self) -> BatchResult:
        """One round: a time slice of a due source. Raises a RagError for a failed claim."""
        arguments = {"max_items": 1, "lease_seconds": LEASE_SECONDS}
        rows: list[ClaimedSource] = self.jobs.call_as_worker("rag_claim_sources", arguments)
        return BatchResult(claimed=len(rows), completed=sum(map(self._run, rows)))

    def _run(self, row: ClaimedSource) -> bool:
        """One time slice. Returns whether the listing is complete."""
        time_slice = _TimeSlice(self.jobs, row)
        resume_after: str | None = None
        pause: int | None = None
        error: RagError | None = None
        try:
            pause = time_slice.run(self.open_source)
        except SliceEnded as over:
            resume_after, pause = time_slice.after, over.pause
        except (DatabaseBusy, TooManyCalls):
            resume_after, pause = time_slice.after, WAITING_PAUSE
        except Exception as raised:
            error = raised if isinstance(raised, RagError) else RagError(log_reason=type(raised).__name__)
            if error.code == "lease_lost":
                # If another worker has the source, the next call changes nothing.
                error = SourceUserLeft()
            log.warning("source %s: %s (%s)", row["source_id"], error.code, error.log_reason)
            longer = max(ERROR_PAUSE, int(error.headers.get("Retry-After", 0)))
            pause = longer if error.status >= 500 else None
        self._end(row, time_slice, error, resume_after, pause)
        return resume_after is None and error is None

    def _end(
        self,
        row: ClaimedSource,
        time_slice: "_TimeSlice",
        error: RagError | None,
        resume_after: str | None,
        pause: int | None,
    ) -> None:
        code, message = (error.code, str(error)) if error else time_slice.first_error
        arguments = {
            "org_id": row["org_id"],
            "source_id": row["source_id"],
            "lease": row["lease"],
            "counts": {**time_slice.counts, "left_out": time_slice.left_out},
            "resume_after": resume_after,
            "error_code": code,
            "error_message": clean_line(message)[:500] if message else None,
            "retry_seconds": pause,
        }
        with logged(
            f"source {row['source_id']}: its end could not be written (%s); it continues after its lease"
        ):
            self.jobs.call_as_worker("rag_end_source", arguments)


class _TimeSlice:
    """One time slice of a source: its progress and counts."""

    def __init__(self, jobs: Jobs, row: ClaimedSource) -> None:
        self._jobs = jobs
        self._row = row
        self._job = Job(row["source_id"], row["org_id"], row["user_id"], row["lease"], row["attempts"], True)
        self._until: float | None = None
        self._free_jobs = MAX_WAITING_JOBS - row["waiting_jobs"]
        self._failures = 0
        self._is_full = False
        self._is_refused = False
        # The item after which the next time slice continues; empty: with the first one.
        self.after: str = row["resume_after"] or ""
        self.counts: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.first_error: tuple[str | None, str | None] = (None, None)

    def run(self, open_source: Callable[[ClaimedSource], Source]) -> int | None:
        """The seconds until the next listing, None for the source's interval. Raises SliceEnded, or the
        RagError that ends the listing."""
        if self._free_jobs <= 0:
            raise SliceEnded(WAITING_PAUSE)
        source = open_source(self._row)
        for batch in source.items(self.after):
            # The time of the listing before its first batch does not count: every time slice needs it again.
            self._until = self._until or time.monotonic() + SLICE_SECONDS
            self._process(source, batch)
        listed, gone = self._row["listed"] + self.counts["listed"], self._row["gone"] + self.counts["gone"]
        if not listed:
            raise NothingListed
        if gone >= FEW_ITEMS and 2 * gone > listed:
            raise ItemsGone
        return self._delete_missing() if source.lists_all else None

    def _process(self, source: Source, batch: Sequence[Item]) -> None:
        if self._row["listed"] + self.counts["listed"] + len(batch) > self._row["item_limit"]:
            raise too_many_items(self._row["item_limit"])
        listed = [{"item": item.id, "version": item.version} for item in batch]
        rows = self._call("rag_list_source_items", items=listed)
        versions = {row["item"]: row["version"] for row in rows}
        for item in batch:
            if item.id in versions:
                self._update(source, item, versions[item.id])
            self.after = item.id
            self.counts["listed"] += 1
            if item.id in versions:
                # After the item, so that every time slice processes at least one.
                self._require_time()
        self._require_time()

    def _require_time(self) -> None:
        if self._free_jobs <= 0:
            raise SliceEnded(WAITING_PAUSE)
        if self._until is not None and time.monotonic() > self._until:
            raise SliceEnded

    def _update(self, source: Source, item: Item, known_version: str | None) -> None:
        """Store the item, or note its error."""
        if self._is_full:
            self.counts["failed"] += 1
            return
        try:
            content = source.fetch(item, known_version)
            self._failures = 0
            if content is not None:
                self._store(item, content)
        except ItemLeftOut as left_out:
            self.left_out[left_out.reason] += 1
            if not left_out.keeps:
                self._call("rag_put_source_item", item=item.id)
        except RagError as error:
            if isinstance(error, DatabaseBusy | TooManyCalls) or error.code == "lease_lost":
                raise
            if isinstance(error, FetchFailed) and "Retry-After" in error.headers:
                self._wait(error)
            # No further document is accepted; the listing still finds what to delete.
            self._is_full = isinstance(error, RateLimited)
            is_gone = isinstance(error, ItemGone)
            self._failures = self._failures + 1 if is_gone or error.status >= 500 else 0
            if self._failures == MAX_FAILURES:
                raise (ItemsGone() if is_gone else error) from error
            if is_gone:
                self.counts["gone"] += 1
                self._call("rag_put_source_item", item=item.id)
            self._note(item, error)

    def _wait(self, error: FetchFailed) -> None:
        """Raise SliceEnded for the pause that the server asks for. Return after some pauses for one item, so
        that it fails; raise the error if the server refuses the next item too."""
        seconds = int(error.headers["Retry-After"])
        if seconds > LONGEST_WAIT:
            return
        if self._is_refused:
            raise error
        if self.counts["listed"] == 0:
            if self._row["attempts"] > MAX_WAITS:
                self._is_refused = True
                return
            self.counts["refused"] = 1
        raise SliceEnded(seconds)

    def _note(self, item: Item, error: RagError) -> None:
        self.counts["failed"] += 1
        if self.first_error == (None, None):
            self.first_error = (error.code, f"{error} ({item.id})")

    def _store(self, item: Item, content: Content) -> None:
        title = content.title or content.filename or item.id.rstrip("/").rpartition("/")[2] or item.id
        document = {
            **fields_of(content.metadata),
            "title": clean_line(title)[:512] or "Untitled",
            "has_title": content.title is not None,
            "metadata": content.metadata,
            "filename": content.filename,
            "content_type": content.content_type,
            "size_bytes": len(content.data),
            "bytes": base64.b64encode(content.data).decode(),
        }
        version = item.version or content.version
        result = self._call("rag_put_source_item", item=item.id, version=version, document=document)
        if result == "stored":
            self.counts["stored"] += 1
            self._free_jobs -= 1

    def _delete_missing(self) -> int | None:
        orphaned = 0
        while True:
            (row,) = self._call("rag_delete_missing_items", max_items=DELETED_AT_ONCE)
            self.counts["deleted"] += row["deleted"]
            orphaned += row["orphaned"]
            if row["deleted"] < DELETED_AT_ONCE:
                # Items of the same content as a deleted document need another listing.
                return 0 if orphaned else None
            self._require_time()

    def _call(self, function: str, **arguments: object) -> Any:
        return self._jobs.call(self._job, function, {**arguments, "lease_seconds": LEASE_SECONDS})
