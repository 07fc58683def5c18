"""Ingestion of the demo's documents into a running stack, as its users."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rich.console import Console
from rich.progress import Progress, TextColumn

from local.demo_corpus import ADMINS, CORPUS, ORGS, CorpusFile, read_folder
from local.progress_columns import columns
from local.shell_environment import settings_of_the_shell
from local.stack import Stack
from shared.config import Settings, read_settings
from shared.ingestion.synchronous_ingestion import ingest_many
from shared.services import Services
from shared.types import Principal

COLLECTION = "demo"
Authorise = Callable[[str], Principal]


def settings_of(stack: Stack, **others: Any) -> Settings:
    """The settings of the stack's functions, with optional other ones. Raises ConfigurationError."""
    return read_settings(settings_of_the_shell() | stack.function_environment(), **others)


def make_services(stack: Stack, **settings: Any) -> Services:
    """The services of the stack's functions, in this process, with optional other settings. Raises
    ConfigurationError."""
    services = Services(settings_of(stack, **settings))
    services.prepare(logs_defaults=False)
    return services


def principals_of(stack: Stack) -> Authorise:
    """A cached lookup of the stack's users by e-mail."""
    known: dict[str, Principal] = {}

    def principal(email: str) -> Principal:
        if email not in known:
            known[email] = Principal(stack.user_id(email), stack.token(email))
        return known[email]

    return principal


def demo_files() -> list[tuple[CorpusFile, str]]:
    """The demo's documents, each with the e-mail of the user that ingests it: its owner or the org's
    admin."""
    return [(file, file.owner or ADMINS[org]) for org in ORGS for file in read_folder(CORPUS / org)]


def ingest_files(
    services: Services, files: Sequence[tuple[CorpusFile, str]], principal: Authorise, console: Console
) -> tuple[int, int]:
    """Ingest each file as its user; the numbers of documents and chunks. Raises the first RagError."""
    title = TextColumn("{task.fields[title]}", style="dim")
    known_principals = {email: principal(email) for _, email in files}

    def ingest_one(file: CorpusFile, email: str) -> int:
        arguments = services.database, services.embedder, known_principals[email], COLLECTION
        (stored,) = ingest_many(*arguments, [file.document])
        return stored.chunks if stored else 0

    chunks = 0
    # Two at a time: while the database stores one document, the next is embedded.
    with Progress(*columns(), title, console=console) as progress, ThreadPoolExecutor(2) as pool:
        task = progress.add_task("ingesting", total=len(files), title="")
        try:
            for (file, _), count in zip(files, pool.map(ingest_one, *zip(*files, strict=True)), strict=True):
                chunks += count
                progress.update(task, advance=1, title=file.document.title)
        except BaseException:
            # Ctrl-C or a rejected document: do not start the documents that wait.
            pool.shutdown(cancel_futures=True)
            raise
        progress.update(task, title=f"{chunks} chunks")
    return len(files), chunks
