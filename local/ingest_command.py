"""python -m local ingest PATH: a file, or a folder's files, as documents of a collection, over the API.

As a user of the local stack by default; at any deployment with --url and a token or key in RAG_TOKEN.
"""

import argparse
import signal
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TextColumn

from local.api_client import Deployment, Refused, Row, client_of
from local.corpus import ADMINS, ORGS, org_id_of
from local.folder_scan import File, kinds_of, read_folder, shown
from local.folder_sync import Outcome, Sending
from local.processes import StackError
from local.progress import columns
from local.stack import Stack

COLLECTIONS = "/api/v1/collections"
# Nothing ended for so long: perhaps nobody is working.
QUIET_SECONDS = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", type=Path, nargs="?", metavar="PATH", help="a file, or a folder with all below"
    )
    parser.add_argument("--collection", default="default", metavar="NAME", help="made if need be; default")
    parser.add_argument("--user", metavar="EMAIL", default=ADMINS["halden"], help="who asks; %(default)s")
    parser.add_argument("--org", metavar="ORG", help=f"{', '.join(ORGS)}, or an id: for members of several")
    parser.add_argument("--url", help="another deployment; a token or key is then in RAG_TOKEN")
    parser.add_argument("--all", action="store_true", help="send files of kinds that are passed over, too")
    parser.add_argument("--prune", action="store_true", help="delete the documents of files that are gone")
    parser.add_argument("--retry", action="store_true", help="send files again that could not be read before")
    parser.add_argument("--no-wait", action="store_true", help="leave when all is sent")


def run(stack: Stack, options: argparse.Namespace) -> None:
    """Raises StackError when a file failed, after all others are done. A skipped file did not fail."""
    # Whoever starts it in the background lets it begin deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    console = Console(highlight=False)
    folder = read_folder(options.path, everything=options.all)
    try:
        with client_of(stack, options.url, options.user) as client:
            api = Deployment(client)
            with console.status("looking at what is there") as status:
                api.say = lambda text: status.update(escape(shown(text)) or "looking at what is there")
                sending = Sending(api, _home(api, options))
                sending.look(folder, prune=options.prune, retry=options.retry)
            if sending.to_send or sending.awaited:
                _run(sending, api, console, waits=not options.no_wait)
    except Refused as refused:
        raise StackError(f"{refused.code}: {refused}") from None
    except KeyboardInterrupt:
        console.print("stopped; what was sent is kept. The same command again goes on from here.")
        raise
    outcome = sending.outcome
    summary = _summary(outcome, folder.others, waits=not options.no_wait)
    console.print(summary, markup=False, soft_wrap=True)
    for word, files in (("skipped", outcome.skipped), ("failed", outcome.failed)):
        for file, code, message in files:
            line = f"{word}: {shown(file.name)}: {shown(code)}: {shown(message)}"
            console.print(line, markup=False, soft_wrap=True)
    if outcome.skipped:
        console.print("A skipped file is sent again once it has changed, or with --retry.", soft_wrap=True)
    if outcome.failed:
        raise StackError(f"{len(outcome.failed)} of {len(folder.files)} files failed")


def _home(api: Deployment, options: argparse.Namespace) -> Row:
    """The collection of that name or id, made if there is none. A name means one that is the whole org's."""
    name, org = options.collection.strip(), options.org and org_id_of(options.org)
    found = [
        row
        for row in api.pages(COLLECTIONS)
        if (row["id"] == name or (row["name"] == name and row["owner_id"] is None))
        and org in (None, row["org_id"])
    ]
    if len(found) > 1:
        raise StackError(f"several orgs have a collection {name}: --org says which is meant")
    made: Row = found[0] if found else api.request("POST", COLLECTIONS, json={"name": name, "org_id": org})
    return made


def _run(sending: Sending, api: Deployment, console: Console, *, waits: bool) -> None:
    """Under two bars: how many files are sent, and how many documents the worker has ended."""
    note = TextColumn("{task.fields[note]}", style="dim", markup=False)
    outcome, refused_here = sending.outcome, len(sending.outcome.failed)
    last = (-1, time.monotonic())
    with Progress(*columns(), note, console=console) as progress:
        sent = progress.add_task("sent", total=len(sending.to_send), note="")
        read = progress.add_task("read", total=None, note="", visible=waits)
        api.say = lambda text: progress.update(sent, note=shown(text))

        def tick(waiting: int) -> None:
            nonlocal last
            failed = len(outcome.failed) - refused_here
            ended = outcome.completed + failed
            if ended != last[0] or waiting:
                last = ended, time.monotonic()
            quiet = sending.awaited and time.monotonic() - last[1] > QUIET_SECONDS
            text = f"{outcome.completed} completed, {failed} failed"
            text += "; is the worker running?" if quiet else ""
            progress.update(sent, completed=len(sending.to_send) - waiting)
            total = ended + waiting + len(sending.awaited)
            progress.update(read, completed=ended, total=total, note=text)

        tick(len(sending.to_send))
        sending.run(waits=waits, tick=tick)


def _summary(outcome: Outcome, others: list[File], *, waits: bool) -> str:
    counts = {
        "completed" if waits else "sent": outcome.completed if waits else outcome.sent,
        "unchanged": outcome.unchanged,
        "with content that is there already": outcome.same,
        "skipped": len(outcome.skipped),
        "failed": len(outcome.failed),
        f"of kinds that are not read, passed over ({kinds_of(others)})": len(others),
        "of files that are gone, deleted": outcome.pruned,
    }
    # The first always, the rest where there is any.
    return ", ".join(
        f"{count} {what}" for place, (what, count) in enumerate(counts.items()) if count or not place
    )
