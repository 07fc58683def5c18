"""Ingestion jobs of an org, for its admins: those that wait, run or have failed."""

from shared.clients.postgrest import Database
from shared.types import Principal, Row


def list_jobs(
    database: Database, caller: Principal, state: str | None, limit: int, offset: int
) -> tuple[list[Row], int]:
    """A page of the jobs of the orgs that the caller administers, newest first, and their total. Raises
    Forbidden."""
    arguments = {"state": state, "limit": limit, "offset": offset}
    return database.page(caller, "rag_list_jobs", "jobs", arguments)


def retry(database: Database, caller: Principal, jobs: list[str]) -> list[str]:
    """Run waiting and failed jobs again, now. Returns the ids of the retried jobs; running, finished and
    unknown jobs are ignored. Raises Forbidden."""
    return list(database.call(caller, "rag_retry_jobs", {"job_ids": jobs}))
