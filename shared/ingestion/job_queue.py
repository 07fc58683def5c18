"""Client of the job queue: claims, leases, failures.

The role that claims jobs sees nothing else. Each job runs in the name of the user who added the document,
with a token for the job's lease. The leases of a dead worker expire, and other workers continue.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from operator import add
from threading import Condition
from typing import Any, Literal, TypeVar

from shared.access.token_signer import Signer, worker_principal
from shared.access.token_usage import TokenUsage, record, seconds_until_midnight
from shared.clients.postgrest import Database
from shared.errors import (
    Conflict,
    DatabaseBusy,
    EmbeddingFailed,
    EmbeddingQuotaExceeded,
    FetchFailed,
    RagError,
    TooManyCalls,
    UnsupportedFileType,
    logged,
)
from shared.types import Principal, Row

log = logging.getLogger("rag")
LEASE_SECONDS = 300
# The age at which leases are renewed.
RENEWED_AFTER = 60
ATTEMPTS = 12
# Seconds before the next attempt, doubled each time.
FIRST_PAUSE = 2
LONGEST_PAUSE = 600
# Seconds after a conflict with another transaction's lock, which does not count as an attempt.
BUSY_PAUSE = 5
# The longest pause that the server of an address, or an embedder, may ask for.
LONGEST_WAIT = 6 * 3600
# The pause before the next claim while nothing is due.
PAUSE_SECONDS = 0.5
# The longest time of a source that was claimed at the end. With a round after it, less than the 600 seconds
# of a request of the worker (Lambda, Cloud Run).
LATEST_CLAIM_SECONDS = 250
JobKind = Literal["ingestion", "extraction"]


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    org_id: str
    user_id: str
    lease: str = field(repr=False)
    attempts: int = 1
    # The document belongs to another user: an admin of the org added it.
    as_admin: bool = False

    @property
    def pause(self) -> int | None:
        """Seconds until the next attempt; None when this was the last."""
        return None if self.attempts >= ATTEMPTS else min(LONGEST_PAUSE, FIRST_PAUSE * 2**self.attempts)


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The results of one round's jobs."""

    claimed: int = 0
    completed: int = 0
    failed: int = 0
    postponed: int = 0

    def __add__(self, other: "BatchResult") -> "BatchResult":
        return BatchResult(*map(add, astuple(self), astuple(other)))


Item = TypeVar("Item")


class BusyOrgs:
    """The orgs whose jobs threads of this process work on: each has one thread at most."""

    def __init__(self) -> None:
        self._changed = Condition()
        # By claim: an org may have two for a moment, if its first was deleted.
        self._since: dict[object, tuple[str, float]] = {}
        self._last_claim_was_empty = False

    @contextmanager
    def round(
        self, claim: Callable[[list[str]], list[Item]], org_of: Callable[[Item], str]
    ) -> Iterator[list[Item]]:
        """The result of `claim` for the busy orgs. Its orgs are busy until the end."""
        with self._changed:
            self._changed.notify_all()
            self._last_claim_was_empty = True
            items = claim(sorted({org_id for org_id, _ in self._since.values()}))
            self._last_claim_was_empty = not items
            own = {object(): (org_of(item), time.monotonic()) for item in items}
            self._since |= own
        try:
            yield items
        finally:
            with self._changed:
                self._changed.notify_all()
                for key in own:
                    del self._since[key]

    def are_busy(self, seconds: float, claimed_by: float) -> bool:
        """Whether a thread still works on something that it claimed by that time of time.monotonic. Waits at
        most `seconds` until none does."""
        with self._changed:
            return not self._changed.wait_for(
                lambda: all(since > claimed_by for _, since in self._since.values()), seconds
            )

    def has_work(self, seconds: float) -> bool:
        """Whether a thread works on something, or the last claim was not empty. Waits at most `seconds` until
        neither is so."""
        with self._changed:
            return not self._changed.wait_for(lambda: self._last_claim_was_empty and not self._since, seconds)


@dataclass(frozen=True)
class Jobs:
    """The worker's calls of the database."""

    _database: Database
    _signer: Signer

    def claim(self, kind: JobKind, count: int, busy_orgs: Sequence[str] = ()) -> list[Job]:
        """Lease at most `count` jobs of a kind, of one org that is not busy."""
        arguments = {
            "kind": kind,
            "max_items": count,
            "lease_seconds": LEASE_SECONDS,
            "busy_orgs": list(busy_orgs),
        }
        return [
            Job(row["job_id"], row["org_id"], row["user_id"], row["lease"], row["attempts"], row["as_admin"])
            for row in self.call_as_worker("rag_claim_jobs", arguments)
        ]

    def call_as_worker(self, function: str, arguments: Row) -> Any:
        """A call in the worker's role."""
        return self._database.call(worker_principal(self._signer), function, arguments)

    def call(self, job: Job, function: str, arguments: Row) -> Any:
        """A call in the name of the job's user, with the lease."""
        return self._database.call(self.caller(job, lease=job.lease), function, arguments, long_timeout=True)

    def caller(self, job: Job, **more: str) -> Principal:
        """The job's user, with the scopes to read and write documents, and the claims in `more`."""
        scopes = ["documents:read", "documents:write", *(["admin"] if job.as_admin else [])]
        claims = {"org": job.org_id, "scopes": scopes, **more}
        return Principal(job.user_id, self._signer.token(sub=job.user_id, rag=claims))

    def record_tokens(self, job: Job, usage: TokenUsage) -> None:
        """Add the tokens to those of the job's org."""
        record(self._database, self.caller(job, lease=job.lease), usage)

    def report(
        self, job: Job, step: str, passages_hash: str | None = None, embeddings: Sequence[str] | None = None
    ) -> Job:
        """Write the job's step and renew its lease. `embeddings`: the vectors of the first passages, for the
        next attempt. Returns the job with its count of attempts, which begins anew with more vectors than
        before."""
        arguments = {"step": step, "lease_seconds": LEASE_SECONDS}
        if embeddings is not None:
            arguments |= {"passages_hash": passages_hash, "embeddings": embeddings}
        return replace(job, attempts=self.call(job, "rag_extend_job", arguments))

    def postpone(self, job: Job) -> BatchResult:
        """End the job's turn without an error: it keeps its place, and the attempt does not count. Raises a
        RagError."""
        self.call(job, "rag_fail_job", {"retry_seconds": 0, "is_attempt": False})
        return BatchResult(postponed=1)

    def fail(self, job: Job, error: RagError, pause: int | None, is_attempt: bool = True) -> None:
        """Write the error, and the seconds until the job is due again; None for never. Without `is_attempt`
        the attempt does not count. A file that no deployment can read is deleted."""
        arguments = {
            "code": error.code,
            "message": str(error)[:500],
            "retry_seconds": pause,
            "is_attempt": is_attempt,
            "discards_original": isinstance(error, UnsupportedFileType) and error.is_permanent,
        }
        with logged(f"job {job.id}: its end could not be written (%s); it is repeated after its lease"):
            self.call(job, "rag_fail_job", arguments)


class LeaseRenewer:
    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._renewed = time.monotonic()

    def renew(self, jobs: Sequence[Job], step: str) -> dict[str, RagError]:
        """Renew the leases of these jobs when it is time. Returns the errors of lost leases, by job."""
        if time.monotonic() - self._renewed <= RENEWED_AFTER:
            return {}
        self._renewed = time.monotonic()
        return self.report(jobs, step)

    def report(self, jobs: Sequence[Job], step: str) -> dict[str, RagError]:
        """Write the jobs' step, which renews their leases. Returns as `renew`."""
        lost: dict[str, RagError] = {}
        for job in jobs:
            try:
                self._jobs.report(job, step)
            except RagError as error:
                lost[job.id] = error
        return lost


def work_until(
    work: Callable[[], BatchResult],
    end: float,
    wait_for_more: Callable[[float], bool] = lambda _: False,
    latest_claim: float = 0.0,
) -> tuple[BatchResult, bool]:
    """Repeat rounds until nothing is due or the time `end` of time.monotonic has come, and longer while
    `wait_for_more`, which receives the seconds to wait, returns true. Nothing is claimed later than
    `latest_claim` seconds after the end. Returns the results, and whether nothing is due. A failed claim is
    logged if another one follows; else its RagError is raised."""
    total, is_idle = BatchResult(), False
    failure: RagError | None = None
    while time.monotonic() <= end + latest_claim:
        if failure:
            reason = f"{failure.code} ({failure.log_reason})"
            log.warning("no job could be claimed: %s; the worker tries again", reason)
        batch, failure = BatchResult(), None
        try:
            batch = work()
        except RagError as error:
            failure = error
        total += batch
        is_over = not batch.claimed or time.monotonic() > end
        if is_over and not wait_for_more(0 if batch.claimed else PAUSE_SECONDS):
            is_idle = not batch.claimed
            break
    if failure:
        raise failure
    return total, is_idle


def attempt(jobs: Jobs, job: Job, action: Callable[[], BatchResult]) -> BatchResult:
    """The result of an action on a job. An exception ends or postpones this job alone."""
    try:
        return action()
    except Exception as raised:
        error = raised if isinstance(raised, RagError) else RagError(log_reason=type(raised).__name__)
    return end_attempt(jobs, job, error)


def end_attempt(jobs: Jobs, job: Job, error: RagError) -> BatchResult:
    """End or postpone a job whose attempt failed."""
    log.warning("job %s: %s (%s)", job.id, error.code, error.log_reason)
    if isinstance(error, Conflict) and error.code == "lease_lost":
        # Another worker has the job, or the job was deleted.
        return BatchResult()
    if error.code == EmbeddingQuotaExceeded.code:
        jobs.fail(job, error, seconds_until_midnight(), is_attempt=False)
        return BatchResult(postponed=1)
    is_attempt = not isinstance(error, DatabaseBusy | TooManyCalls)
    # Errors of services, and of the settings in the database, are temporary; errors of documents are not.
    is_temporary = error.status >= 500 or error.code == "unknown_embedding_model"
    pause = BUSY_PAUSE if not is_attempt else job.pause if is_temporary else None
    if pause is not None and isinstance(error, FetchFailed | EmbeddingFailed):
        pause = max(pause, min(LONGEST_WAIT, int(error.headers.get("Retry-After", 0))))
    jobs.fail(job, error, pause, is_attempt)
    return BatchResult(failed=1) if pause is None else BatchResult(postponed=1)
