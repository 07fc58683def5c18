"""Command `ingest`: sends a file or a folder's files to a collection through the API.

As a user of the local stack, or with --url and RAG_TOKEN (a token or an API key) to any deployment.
"""

import argparse
import signal
import time
from pathlib import Path

import httpx
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TextColumn

from local.demo_corpus import ADMINS, ORGS, org_id_of
from local.errors import CommandError
from local.operations.api_client import ApiClient, ApiError, Row
from local.operations.folder_scan import File, kinds_of, one_line, read_folder
from local.operations.folder_sync import FolderSync, Outcome
from local.progress_columns import columns

COLLECTIONS = "/api/v1/collections"
# After so long without a finished document the progress bar asks whether the worker runs.
NO_PROGRESS_SECONDS = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", type=Path, nargs="?", metavar="PATH", help="a file, or a folder with its subfolders"
    )
    parser.add_argument(
        "--collection", default="default", metavar="NAME", help="created if missing; default: default"
    )
    parser.add_argument(
        "--user", metavar="EMAIL", default=ADMINS["halden"], help="the user who sends; default %(default)s"
    )
    parser.add_argument(
        "--org", metavar="ORG", help=f"{', '.join(ORGS)}, or an id; required for members of several orgs"
    )
    parser.add_argument(
        "--url", help="a deployment, instead of the local stack; its token or key is in RAG_TOKEN"
    )
    parser.add_argument("--all", action="store_true", help="also send files of unsupported types")
    parser.add_argument("--prune", action="store_true", help="delete documents whose file was deleted")
    parser.add_argument("--retry", action="store_true", help="send files again that failed before")
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the worker")


def run(client: httpx.Client, options: argparse.Namespace) -> None:
    """Raises CommandError when a file failed, after all others are done. A skipped file did not fail."""
    # A process started in the background ignores SIGINT by default.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    console = Console(highlight=False)
    folder = read_folder(options.path, everything=options.all)
    try:
        api = ApiClient(client)
        with console.status("comparing with the collection") as status:
            api.on_wait = lambda text: status.update(
                escape(one_line(text)) or "comparing with the collection"
            )
            sync = FolderSync(api, _collection(api, options))
            sync.plan(folder, prune=options.prune, retry=options.retry)
        if sync.to_send or sync.pending:
            _sync_with_progress(sync, api, console, wait_for_worker=not options.no_wait)
    except ApiError as error:
        raise CommandError(f"{error.code}: {error}") from None
    except KeyboardInterrupt:
        console.print("Stopped. Sent documents are kept. Run the same command again to continue.")
        raise
    outcome = sync.outcome
    summary = _summary(outcome, folder.unsupported, wait_for_worker=not options.no_wait)
    console.print(summary, markup=False, soft_wrap=True)
    for file, note in outcome.notes:
        line = f"not all was read: {one_line(file.name)}: {one_line(note)}"
        console.print(line, markup=False, soft_wrap=True)
    for word, files in (("skipped", outcome.skipped), ("failed", outcome.failed)):
        for file, code, message in files:
            line = f"{word}: {one_line(file.name)}: {one_line(code)}: {one_line(message)}"
            console.print(line, markup=False, soft_wrap=True)
    if outcome.skipped:
        console.print("A skipped file is sent again once it has changed, or with --retry.", soft_wrap=True)
    if outcome.failed:
        raise CommandError(
            f"{len(outcome.failed)} of {len(folder.files)} files failed; correct and send them again"
        )


def _collection(api: ApiClient, options: argparse.Namespace) -> Row:
    """The collection of that name or id, created if missing. A name means a collection of the whole org."""
    name, org = options.collection.strip(), options.org and org_id_of(options.org)
    rows = [
        row
        for row in api.pages(COLLECTIONS)
        if (row["id"] == name or (row["name"] == name and row["owner_id"] is None))
        and org in (None, row["org_id"])
    ]
    if len(rows) > 1:
        raise CommandError(f"several of your orgs have a collection {name}; choose one with --org")
    collection: Row = (
        rows[0] if rows else api.request("POST", COLLECTIONS, json={"name": name, "org_id": org})
    )
    return collection


def _sync_with_progress(sync: FolderSync, api: ApiClient, console: Console, *, wait_for_worker: bool) -> None:
    """Send under two progress bars: files sent, and documents finished by the worker."""
    columns_note = TextColumn("{task.fields[note]}", style="dim", markup=False)
    outcome, failed_before = sync.outcome, len(sync.outcome.failed)
    latest = (-1, time.monotonic())
    with Progress(*columns(), columns_note, console=console) as progress:
        sent = progress.add_task("sent", total=len(sync.to_send), note="")
        read = progress.add_task("processed", total=None, note="", visible=wait_for_worker)
        api.on_wait = lambda text: progress.update(sent, note=one_line(text))

        def tick(waiting: int) -> None:
            nonlocal latest
            failed = len(outcome.failed) - failed_before
            processed = outcome.completed + failed
            if processed != latest[0] or waiting:
                latest = processed, time.monotonic()
            stalled = sync.pending and time.monotonic() - latest[1] > NO_PROGRESS_SECONDS
            text = f"{outcome.completed} completed, {failed} failed"
            text += "; is the worker running?" if stalled else ""
            progress.update(sent, completed=len(sync.to_send) - waiting)
            total = processed + waiting + len(sync.pending)
            progress.update(read, completed=processed, total=total, note=text)

        tick(len(sync.to_send))
        sync.run(wait_for_worker=wait_for_worker, tick=tick)


def _summary(outcome: Outcome, unsupported: list[File], *, wait_for_worker: bool) -> str:
    counts = {
        "completed" if wait_for_worker else "sent": outcome.completed if wait_for_worker else outcome.sent,
        "unchanged": outcome.unchanged,
        "duplicates of existing documents": outcome.duplicates,
        "skipped": len(outcome.skipped),
        "failed": len(outcome.failed),
        f"of unsupported types, not sent ({kinds_of(unsupported)})": len(unsupported),
        "documents of deleted files removed": outcome.pruned,
    }
    # The first count always, the others unless 0.
    return ", ".join(
        f"{count} {label}" for index, (label, count) in enumerate(counts.items()) if count or not index
    )
