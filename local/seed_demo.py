"""Put the demo's documents into a running stack through the core, as its users, with a progress bar."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rich.console import Console
from rich.progress import Progress, TextColumn

from local.corpus import ADMINS, CORPUS, ORGS, CorpusFile, read_folder
from local.progress import columns
from local.stack import Stack
from shared.config import read_settings
from shared.ingestion.ingest import ingest
from shared.services import Services
from shared.types import Principal

COLLECTION = "demo"
Authorise = Callable[[str], Principal]


def core_of(stack: Stack, **settings: Any) -> Services:
    """The core as the stack's functions have it, in this process, or with other settings. Raises
    ConfigurationError."""
    environment = {name.lower(): value for name, value in stack.function_environment().items()}
    core = Services(read_settings(**{**environment, **settings}))
    core.prepare()
    return core


def authorise(stack: Stack) -> Authorise:
    """Principals of the stack's users by e-mail, each signed in once."""
    known: dict[str, Principal] = {}

    def principal(email: str) -> Principal:
        if email not in known:
            known[email] = Principal(stack.user_id(email), stack.token(email))
        return known[email]

    return principal


def demo_corpus() -> list[tuple[CorpusFile, str]]:
    """The demo's documents, each with the e-mail of who ingests it: its owner, or the org's admin."""
    return [
        (file, file.owner or ADMINS[org])
        for org, org_id in ORGS.items()
        for file in read_folder(CORPUS / org, org_id, COLLECTION)
    ]


def put(
    core: Services, files: Sequence[tuple[CorpusFile, str]], principal: Authorise, console: Console
) -> tuple[int, int]:
    """Ingest the files, each as its user; how many documents and chunks. Raises the first RagError."""
    title = TextColumn("{task.fields[title]}", style="dim")
    people = {email: principal(email) for _, email in files}

    def one(file: CorpusFile, email: str) -> int:
        return ingest(core.database, core.embedder, people[email], file.document).chunks

    chunks = 0
    # Two at a time: while the database stores one document, the next is embedded.
    with Progress(*columns(), title, console=console) as progress, ThreadPoolExecutor(2) as pool:
        task = progress.add_task("ingesting", total=len(files), title="")
        try:
            for (file, _), count in zip(files, pool.map(one, *zip(*files, strict=True)), strict=True):
                chunks += count
                progress.update(task, advance=1, title=file.document.title)
        except BaseException:
            # Ctrl-C, or a document refused: what waits is not begun.
            pool.shutdown(cancel_futures=True)
            raise
        progress.update(task, title=f"{chunks} chunks")
    return len(files), chunks
