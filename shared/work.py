"""The worker: documents that were brought become chunks that are found.

    claim -> open -> (fetch) -> convert -> cut -> embed -> store

Jobs are claimed under a role that sees jobs alone; each is then done in the name of who brought the document,
with a token that names the job's lease. The passages of several documents are embedded together. Whatever
happens to a worker, its leases run out and others go on.
"""

import base64
import hashlib
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.chunk import Chunk
from shared.convert import convert
from shared.embed import Embedder, embed
from shared.errors import Conflict, NotFound, RagError, StorageFailed, UnreadableDocument
from shared.fetch import fetch
from shared.ingest import passages_of, rows_of
from shared.kinds import language_of_file
from shared.networks import Networks
from shared.outline import Outline
from shared.postgrest import Database
from shared.sign import CALL_SECONDS, Signer
from shared.splitting.plan import Plan
from shared.splitting.split import headings
from shared.storage import Storage
from shared.transcribe import Transcriber
from shared.types import Principal

log = logging.getLogger("rag")
LEASE_SECONDS = 300
# After which all leases are renewed, at the next opportunity.
RENEWED_AFTER = 60
# A document of more has no minute to be stored in.
MAX_CHUNKS = 10_000
# After which the rest of a round's documents is left for another: slow ones must not cost the others theirs.
READING_SECONDS = 60
# How many passages are embedded between two looks at the clock.
EMBEDDED_AT_ONCE = 64
ATTEMPTS = 12
# Before the next attempt, in seconds: doubled each time.
FIRST_PAUSE = 2
LONGEST_PAUSE = 600
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """What was claimed, and who holds it."""

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
class Read:
    """A document that was read and cut: what is stored of it, and the passages still to be embedded."""

    job: Job
    document: Row
    chunks: Sequence[Chunk]
    passages: Sequence[str]
    outline: Outline
    started: float


@dataclass(frozen=True, slots=True)
class Done:
    """What became of the jobs of one round."""

    claimed: int = 0
    completed: int = 0
    failed: int = 0
    postponed: int = 0

    def __add__(self, other: "Done") -> "Done":
        return Done(
            self.claimed + other.claimed,
            self.completed + other.completed,
            self.failed + other.failed,
            self.postponed + other.postponed,
        )


class Worker:
    """Holds nothing between rounds. Several at once never do a document twice."""

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        signer: Signer,
        networks: Networks | None = None,
        transcriber: Transcriber | None = None,
        storage: Storage | None = None,
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._signer = signer
        self._networks = networks or Networks()
        self._transcriber = transcriber
        self._storage = storage

    def work(self, wanted: int = 8) -> Done:
        """One round: at most so many jobs, each done, or failed with a reason, or put off. Raises a RagError
        when nothing can be claimed."""
        jobs = self._claim(wanted)
        done = Done(claimed=len(jobs))
        read: list[Read] = []
        leases = _Leases(self)
        until = time.monotonic() + READING_SECONDS
        for place, job in enumerate(jobs):
            if place and time.monotonic() > until:
                done += Done(postponed=self._leave(jobs[place:]))
                break
            # One that is lost is noticed when its turn comes.
            leases.keep([*(item.job for item in read), *jobs[place:]], "converting")
            with _Outcome(self, job) as outcome:
                read.append(self._read(job))
            done += outcome.became
        for place, (item, vectors) in enumerate(self._embedded(read, leases)):
            leases.keep([later.job for later in read[place:]], "storing")
            with _Outcome(self, item.job) as outcome:
                if isinstance(vectors, RagError):
                    raise vectors
                self._store(item, vectors)
                done += Done(completed=1)
            done += outcome.became
        return done

    def _claim(self, wanted: int) -> list[Job]:
        worker = Principal("", self._signer.token(CALL_SECONDS, role="rag_worker"))
        arguments = {"wanted": wanted, "lease_seconds": LEASE_SECONDS}
        rows = self._database.call(worker, "rag_claim_jobs", arguments)
        return [
            Job(row["job_id"], row["org_id"], row["user_id"], row["lease"], row["attempts"], row["as_admin"])
            for row in rows
        ]

    def call(self, job: Job, function: str, arguments: Row) -> Any:
        """A call in the name of who brought the document, with the lease."""
        return self._database.call(self._caller(job, lease=job.lease), function, arguments, patient=True)

    def _caller(self, job: Job, **more: str) -> Principal:
        scopes = ["documents:read", "documents:write", *(["admin"] if job.as_admin else [])]
        claims = {"org": job.org_id, "scopes": scopes, **more}
        return Principal(job.user_id, self._signer.token(sub=job.user_id, rag=claims))

    def report(self, job: Job, step: str) -> None:
        """What the job is at; its lease lasts from now."""
        self.call(job, "rag_report_job", {"step": step, "lease_seconds": LEASE_SECONDS})

    def give_up(self, job: Job, code: str, message: str, pause: int | None) -> None:
        """Why it was not done, and in how many seconds somebody tries again: nobody, for None."""
        arguments = {"code": code, "message": message[:500], "retry_seconds": pause}
        try:
            self.call(job, "rag_fail_job", arguments)
        except RagError as error:
            # Then the lease runs out.
            log.warning("job %s: its end could not be written (%s)", job.id, error.because)

    def _leave(self, jobs: Sequence[Job]) -> int:
        """Jobs that nobody has begun are for the next round; how many."""
        for job in jobs:
            self.give_up(job, "left_for_later", "Other documents took too long. It is next.", 0)
        return len(jobs)

    def _read(self, job: Job) -> Read:
        started = time.perf_counter()
        (opened,) = self.call(job, "rag_open_job", {})
        said: Row = opened["document"]
        data = self._original(job, opened, said)
        converted = convert(data, said.get("filename"), said.get("content_type"), self._transcriber)
        if converted.title and not said.get("has_title"):
            said["title"] = converted.title
        config = opened["config"]
        language = language_of_file(said.get("filename")) if converted.kind == "code" else None
        metadata = said.get("metadata") or {}
        plan = Plan.of(metadata, converted.text, converted.kind, said["title"], language)
        chunks, passages = passages_of(
            self._embedder,
            said["title"],
            converted.text,
            said.get("lang"),
            size=config.get("chunk_size"),
            overlap=config.get("chunk_overlap"),
            plan=plan,
        )
        if len(chunks) > MAX_CHUNKS:
            raise UnreadableDocument(
                f"The document makes more than {MAX_CHUNKS:,} chunks; divide it, or make them larger.",
                code="document_too_large",
            )
        document = {
            **said,
            "content": converted.text,
            "content_hash": hashlib.sha256(data).hexdigest(),
            "embedding_model": self._embedder.model,
            "processing_info": {
                "service_used": converted.kind,
                "chunk_strategy": plan.strategy,
                "document_type": plan.document_type,
                "embedding_model": self._embedder.model,
            },
        }
        outline = Outline(converted.text, converted.pages, headings(converted.text, plan))
        return Read(job, document, chunks, passages, outline, started)

    def _original(self, job: Job, opened: Row, said: Row) -> bytes:
        """What the document is made of. What is only known now is added to what was said of it."""
        if not opened["url"] and not opened["path"]:
            self.report(job, "converting")
            return base64.b64decode(opened["bytes"])
        self.report(job, "fetching")
        if opened["path"]:
            data = self._object(job, opened["path"], opened["file_bytes"])
            said["size_bytes"] = len(data)
            self.call(job, "rag_keep_content", {"content_hash": hashlib.sha256(data).hexdigest()})
        else:
            fetched = fetch(opened["url"], self._networks, opened["file_bytes"])
            data = fetched.data
            # Kept as the original that it was made of.
            said |= {"content_type": fetched.content_type, "filename": fetched.filename}
            said |= {"size_bytes": len(data), "bytes": base64.b64encode(data).decode()}
        self.report(job, "converting")
        return data

    def _object(self, job: Job, path: str, max_bytes: int | None) -> bytes:
        """Raises UnreadableDocument for one that is gone, or larger than the tier takes, StorageFailed."""
        if self._storage is None:
            raise StorageFailed(because="no bucket is set")
        try:
            return self._storage.download(self._caller(job), path, max_bytes)
        except NotFound:
            message = "The file is not where it was uploaded any more: bring it again."
            raise UnreadableDocument(message, code="original_gone") from None

    def _embedded(
        self, read: Sequence[Read], leases: "_Leases"
    ) -> Iterator[tuple[Read, list[list[float]] | RagError]]:
        """Each with its vectors, or with why there are none. Documents share the embedder's batches."""
        waiting = [(item.job.id, passage) for item in read for passage in item.passages]
        vectors: dict[str, list[list[float]]] = {item.job.id: [] for item in read}
        failed = leases.renew([item.job for item in read], "embedding")
        for start in range(0, len(waiting), EMBEDDED_AT_ONCE):
            # All of them: those whose turn comes later must not lose their leases meanwhile.
            failed |= leases.keep([item.job for item in read if item.job.id not in failed], "embedding")
            turn = waiting[start : start + EMBEDDED_AT_ONCE]
            part = [(job_id, passage) for job_id, passage in turn if job_id not in failed]
            try:
                found = embed(self._embedder, [passage for _, passage in part])
            except RagError as error:
                failed |= {job_id: error for job_id, _ in part}
                continue
            for (job_id, _), vector in zip(part, found, strict=True):
                vectors[job_id].append(vector)
        for item in read:
            yield item, failed.get(item.job.id) or vectors[item.job.id]

    def _store(self, item: Read, vectors: list[list[float]]) -> None:
        self.report(item.job, "storing")
        took = {"processing_time_ms": round((time.perf_counter() - item.started) * 1000)}
        document = {**item.document, "processing_info": {**item.document["processing_info"], **took}}
        rows = rows_of(item.chunks, vectors, item.outline)
        self.call(item.job, "rag_complete_job", {"document": document, "chunks": rows})


class _Leases:
    """Those of one round, which last as long as somebody renews them now and then."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._renewed = time.monotonic()

    def keep(self, jobs: Sequence[Job], step: str) -> dict[str, RagError]:
        """Renew them if it is time to; which could not be, and why."""
        return self.renew(jobs, step) if time.monotonic() - self._renewed > RENEWED_AFTER else {}

    def renew(self, jobs: Sequence[Job], step: str) -> dict[str, RagError]:
        self._renewed = time.monotonic()
        lost: dict[str, RagError] = {}
        for job in jobs:
            try:
                self._worker.report(job, step)
            except RagError as error:
                lost[job.id] = error
        return lost


class _Outcome:
    """What is raised while a job is done ends that job, or puts it off, and nothing else."""

    def __init__(self, worker: Worker, job: Job) -> None:
        self._worker = worker
        self._job = job
        self.became = Done()

    def __enter__(self) -> "_Outcome":
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None, _: object) -> bool:
        if raised is None or not isinstance(raised, Exception):
            return False
        error = raised if isinstance(raised, RagError) else RagError(because=type(raised).__name__)
        log.warning("job %s: %s (%s)", self._job.id, error.code, error.because)
        if isinstance(error, Conflict) and error.code == "lease_lost":
            # Somebody else does it, or nobody needs it.
            return True
        # What is wrong with a document stays wrong; what is wrong with a service may pass.
        pause = None if error.status < 500 else self._job.pause
        self.became = Done(failed=1) if pause is None else Done(postponed=1)
        self._worker.give_up(self._job, error.code, str(error), pause)
        return True
