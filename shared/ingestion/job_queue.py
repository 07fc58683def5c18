"""The worker's side of the job queue: claims, leases, failures.

Jobs are claimed under a role that sees jobs alone. Each is done in the name of the user who added the
document, with a token that names the job's lease. The leases of a worker that dies run out, and others go on.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from shared.access.token_signer import Signer, worker_principal
from shared.clients.postgrest import Database
from shared.errors import Conflict, DatabaseBusy, RagError
from shared.types import Principal

log = logging.getLogger("rag")
LEASE_SECONDS = 300
# After which all leases are renewed, at the next opportunity.
RENEWED_AFTER = 60
ATTEMPTS = 12
# Before the next attempt, in seconds: doubled each time.
FIRST_PAUSE = 2
LONGEST_PAUSE = 600
# Before a job is claimed again that met another transaction's lock, which is no attempt.
BUSY_PAUSE = 5
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed job and its lease."""

    id: str
    org_id: str
    user_id: str
    lease: str = field(repr=False)
    attempts: int = 1
    # It is done for somebody else, as only an admin of the org may.
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
        return BatchResult(
            self.claimed + other.claimed,
            self.completed + other.completed,
            self.failed + other.failed,
            self.postponed + other.postponed,
        )


class Jobs:
    """The worker's calls of the database."""

    def __init__(self, database: Database, signer: Signer) -> None:
        self._database = database
        self._signer = signer

    def claim(self, count: int) -> list[Job]:
        """Lease at most `count` jobs. Raises a RagError."""
        rows = self.claimed("rag_claim_jobs", {"wanted": count, "lease_seconds": LEASE_SECONDS})
        return [
            Job(row["job_id"], row["org_id"], row["user_id"], row["lease"], row["attempts"], row["as_admin"])
            for row in rows
        ]

    def claimed(self, function: str, arguments: Row) -> list[Row]:
        """The rows that a claiming function returns to the worker's role. Raises a RagError."""
        return list(self._database.call(worker_principal(self._signer), function, arguments))

    def call(self, job: Job, function: str, arguments: Row) -> Any:
        """A call in the name of the job's user, with the lease."""
        return self._database.call(self.caller(job, lease=job.lease), function, arguments, patient=True)

    def caller(self, job: Job, **more: str) -> Principal:
        """The job's user, with the scopes to read and write documents, and the claims in `more`."""
        scopes = ["documents:read", "documents:write", *(["admin"] if job.as_admin else [])]
        claims = {"org": job.org_id, "scopes": scopes, **more}
        return Principal(job.user_id, self._signer.token(sub=job.user_id, rag=claims))

    def report(self, job: Job, step: str) -> None:
        """Write the job's step and renew its lease."""
        self.call(job, "rag_extend_job", {"step": step, "lease_seconds": LEASE_SECONDS})

    def give_up(self, job: Job, code: str, message: str, pause: int | None, is_attempt: bool = True) -> None:
        """Write why the job was not done, and after how many seconds it is due again; never, for None.
        Without `is_attempt` the attempt does not count."""
        arguments = {"code": code, "message": message[:500], "retry_seconds": pause, "is_attempt": is_attempt}
        try:
            self.call(job, "rag_fail_job", arguments)
        except RagError as error:
            # Then the lease runs out.
            log.warning("job %s: its end could not be written (%s)", job.id, error.because)


class LeaseRenewer:
    """The leases of one round, which its worker renews now and then."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._renewed = time.monotonic()

    def keep(self, jobs: Sequence[Job], step: str) -> dict[str, RagError]:
        """Renew the leases of all jobs that are left, if it is time to. Returns the errors of those that are
        lost, by job."""
        if time.monotonic() - self._renewed <= RENEWED_AFTER:
            return {}
        self._renewed = time.monotonic()
        return self.report(jobs, step)

    def report(self, jobs: Sequence[Job], step: str) -> dict[str, RagError]:
        """Write the jobs' step, which renews their leases. Returns as `keep`."""
        lost: dict[str, RagError] = {}
        for job in jobs:
            try:
                self._jobs.report(job, step)
            except RagError as error:
                lost[job.id] = error
        return lost


class FailureSink(Protocol):
    """Writes why a job was not done."""

    def give_up(
        self, job: Job, code: str, message: str, pause: int | None, is_attempt: bool = True
    ) -> None: ...


class JobScope:
    """An exception inside ends or postpones this job, and no other."""

    def __init__(self, jobs: FailureSink, job: Job) -> None:
        self._jobs = jobs
        self._job = job
        self.became = BatchResult()

    def __enter__(self) -> "JobScope":
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None, _: object) -> bool:
        if raised is None or not isinstance(raised, Exception):
            return False
        error = raised if isinstance(raised, RagError) else RagError(because=type(raised).__name__)
        log.warning("job %s: %s (%s)", self._job.id, error.code, error.because)
        if isinstance(error, Conflict) and error.code == "lease_lost":
            # Another worker has the job, or it was deleted.
            return True
        is_attempt = not isinstance(error, DatabaseBusy)
        # A fault of the document stays; a fault of a service, or of the settings in the database, may pass.
        may_pass = error.status >= 500 or error.code == "unknown_embedding_model"
        pause = BUSY_PAUSE if not is_attempt else self._job.pause if may_pass else None
        self.became = BatchResult(failed=1) if pause is None else BatchResult(postponed=1)
        self._jobs.give_up(self._job, error.code, str(error), pause, is_attempt)
        return True
