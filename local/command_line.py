"""Names and options of the commands."""

import argparse
from pathlib import Path

from local import stack_commands, verify_command
from local.command_targets import Command, on_api, on_database, on_database_as_user, on_database_with_settings
from local.operations import (
    bulk_load,
    calibrate_command,
    change_model,
    ingest_command,
    keys_command,
    mcp_command,
    rebuild_keywords,
)
from local.operations.org_data import erase_command, export_command, import_command
from local.postgres import VERSIONS
from local.stack import DEFAULT_FOLDER, DEFAULT_PORT, KEYS
from verify import options as verify_options


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m local", description="The stack without Docker, and an operator's commands."
    )
    top.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="DIR", help="the stack's folder")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Command, help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help)
        sub.set_defaults(command=run)
        # The option is also accepted after the command.
        sub.add_argument(
            "--data", type=Path, default=argparse.SUPPRESS, metavar="DIR", help=argparse.SUPPRESS
        )
        return sub

    for name, start, help_text in (
        ("up", stack_commands.up, "start the stack; returns when ready"),
        ("serve", stack_commands.serve, "run the stack until Ctrl-C"),
    ):
        start_parser = command(name, start, help_text)
        start_parser.add_argument("--port", type=_port, help=f"default {DEFAULT_PORT}, or the next free one")
        start_parser.add_argument(
            "--postgres", type=int, choices=sorted(VERSIONS), help="version of a new stack; default 18"
        )
        start_parser.add_argument(
            "--keys", choices=KEYS, help="algorithm of a new stack's tokens; default es256"
        )
    command("down", stack_commands.down, "stop the stack").add_argument(
        "--remove", action="store_true", help="also delete its data"
    )
    command("status", stack_commands.status, "print addresses, keys, process ids and versions").add_argument(
        "--json", action="store_true"
    )
    command("token", stack_commands.token, "print a user's JWT").add_argument(
        "--user", required=True, metavar="EMAIL"
    )
    command("psql", stack_commands.psql, "open psql on the stack's database; further arguments are psql's")
    command("demo", stack_commands.run_demo, "run the demo on a temporary stack")
    for name, module, run, help_text in (
        (
            "verify",
            verify_options,
            verify_command.run,
            "prove on the running stack that orgs are kept apart",
        ),
        (
            "ingest",
            ingest_command,
            stack_commands.ingest,
            "ingest a file or folder, or without PATH the demo's documents",
        ),
        ("keys", keys_command, on_api(keys_command.run), "create, list, rotate and revoke API keys"),
        (
            "mcp",
            mcp_command,
            on_api(mcp_command.run),
            "serve MCP over standard input and output, from a deployment",
        ),
        (
            "bulk-load",
            bulk_load,
            on_database_with_settings(bulk_load.run),
            "load the first documents of a database",
        ),
        (
            "change-model",
            change_model,
            on_database_with_settings(change_model.run),
            "embed all chunks by another model, while the deployment is in use",
        ),
        (
            "calibrate",
            calibrate_command,
            on_database_as_user(calibrate_command.run),
            "fit confidence to labelled questions, or without FOLDER to those of the product",
        ),
        (
            "rebuild-keywords",
            rebuild_keywords,
            on_database(rebuild_keywords.run),
            "write the keyword index anew, while the deployment is in use",
        ),
        ("export", export_command, on_database(export_command.run), "write an org's data to a file"),
        ("import", import_command, on_database(import_command.run), "read a file that export wrote"),
        ("erase", erase_command, on_database(erase_command.run), "erase an org or a user, with a report"),
    ):
        module.add_arguments(command(name, run, help_text))
    return top


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text} is no port; choose one from 1 to 65535")
    return int(text)
