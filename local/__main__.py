"""python -m local: the stack without Docker, from the command line."""

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import httpx
import psycopg
from rich.console import Console

from local import (
    bulk_load,
    change_model,
    configuration_page,
    declared_schema,
    demo,
    ingest_command,
    keys_command,
    mcp_command,
    messages_page,
    migrations,
    openapi,
    search_command,
    sql_reference,
    verify_command,
)
from local.child_processes import StackError, port_is_free
from local.org_data import erase_command, export_command, import_command
from local.postgres import VERSIONS
from local.seed_demo import make_services
from local.shell_environment import isolate_demo
from local.stack import DEFAULT_FOLDER, DEFAULT_PORT, KEYS, Stack
from local.worker_supervision import watch
from shared.errors import ConfigurationError, RagError
from verify import catalogue
from verify import command as verify_options

Command = Callable[[Stack, argparse.Namespace], None]


def up(stack: Stack, options: argparse.Namespace) -> None:
    stack.choose_postgres(options.postgres)
    stack.choose_keys(options.keys)
    stack.up(options.port, worker=True)
    print(f"up at {stack.url}")


def down(stack: Stack, options: argparse.Namespace) -> None:
    stack.down()
    if options.remove:
        stack.remove()


def status(stack: Stack, options: argparse.Namespace) -> None:
    report = stack.status()
    if options.json:
        print(json.dumps(report, indent=2))
        return
    for name, value in report.items():
        print(f"{name:13} {json.dumps(value) if isinstance(value, dict) else value}")


def token(stack: Stack, options: argparse.Namespace) -> None:
    print(stack.token(options.user))


def psql(stack: Stack, options: argparse.Namespace) -> None:
    stack.require_up()
    (program, *arguments, host), environment = stack.postgres.psql()
    terminal = {name: os.environ[name] for name in ("HOME", "TERM", "PAGER") if name in os.environ}
    os.execve(
        program, [program, *arguments, f"{host}/postgres", *options.further], {**environment, **terminal}
    )


def ingest(stack: Stack, options: argparse.Namespace) -> None:
    if options.path is not None:
        ingest_command.run(stack, options)
        return
    console = Console()
    with closing(make_services(stack)) as services:
        documents, chunks = demo.ingest(stack, services, console)
    console.print(f"{documents} documents, {chunks} chunks")


def serve(stack: Stack, options: argparse.Namespace) -> None:
    """Keep the stack up in the foreground, with the demo's documents, until Ctrl-C."""
    console = Console()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for name in signals:
        signal.signal(name, signal.default_int_handler)
    with stack.serve_lock():
        stack.choose_postgres(options.postgres)
        stack.choose_keys(options.keys)
        try:
            # Before the start, so that a wrong setting is a sentence.
            with closing(make_services(stack)) as services:
                _ = services.allows_anonymous
                demo.report_models(services, console)
            is_default_taken = not (options.port or stack.is_up() or port_is_free(DEFAULT_PORT))
            stack.up(options.port, worker=True)
            if is_default_taken:
                console.print(
                    f"Port {DEFAULT_PORT} is taken, perhaps by `supabase start`: this stack uses "
                    f"{stack.state.port}.",
                    soft_wrap=True,
                )
            with closing(make_services(stack)) as services:
                if not demo.is_ingested(stack, services):
                    if services.embedder.remote:
                        console.print("The demo's documents are not embedded yet: python -m local ingest")
                    else:
                        demo.ingest(stack, services, console)
            demo.introduce(stack, console)
            watch(stack, console)
        except KeyboardInterrupt:
            pass
        finally:
            # A second Ctrl-C must not interrupt the shutdown.
            for name in signals:
                signal.signal(name, signal.SIG_IGN)
            stack.down()


def run_demo(stack: Stack, options: argparse.Namespace) -> None:
    """Run the demo on a temporary stack on free ports."""
    console, asks_models = Console(), isolate_demo()
    with tempfile.TemporaryDirectory(prefix="rag-demo-") as folder:
        temporary = Stack(Path(folder))
        # SIGTERM ends in `finally`, as Ctrl-C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            if asks_models:
                with closing(make_services(temporary)) as services:
                    models = f"Models of your shell, which may cost: {demo.models_of(services)}"
                console.print(models, markup=False, highlight=False, soft_wrap=True)
            temporary.up(0, durable=False)
            with closing(make_services(temporary)) as services:
                demo.run(temporary, services, console)
        finally:
            temporary.remove()


def write_schema(stack: Stack, options: argparse.Namespace) -> None:
    print(declared_schema.write())


def write_sql_reference(stack: Stack, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="rag-reference-") as folder:
        temporary = Stack(Path(folder))
        try:
            temporary.postgres_only()
            sql_reference.write(temporary.postgres)
        finally:
            temporary.remove()


def write_catalogue(stack: Stack, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="rag-catalogue-") as folder:
        temporary = Stack(Path(folder))
        try:
            temporary.postgres_only()
            with migrations.declared_database(temporary.postgres) as connection:
                print(catalogue.write(connection))
        finally:
            temporary.remove()


def migration(stack: Stack, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="rag-migration-") as folder:
        temporary = Stack(Path(folder))
        try:
            temporary.postgres_only()
            print(migrations.draft(temporary, options.name))
        finally:
            temporary.remove()


def write_messages(stack: Stack, options: argparse.Namespace) -> None:
    messages_page.write()


def write_configuration(stack: Stack, options: argparse.Namespace) -> None:
    configuration_page.write()


def write_openapi(stack: Stack, options: argparse.Namespace) -> None:
    print("\n".join(openapi.write()))


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m local", description=__doc__)
    top.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="DIR", help="the stack's folder")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(function: Command, help: str, name: str | None = None) -> argparse.ArgumentParser:
        sub = commands.add_parser(name or function.__name__, help=help)
        sub.set_defaults(command=function)
        # The option is also accepted after the command.
        sub.add_argument(
            "--data", type=Path, default=argparse.SUPPRESS, metavar="DIR", help=argparse.SUPPRESS
        )
        return sub

    for function, help_text in (
        (up, "start the stack; returns when ready"),
        (serve, "run the stack until Ctrl-C"),
    ):
        start_parser = command(function, help_text)
        start_parser.add_argument("--port", type=_port, help=f"default {DEFAULT_PORT}, or the next free one")
        start_parser.add_argument(
            "--postgres", type=int, choices=sorted(VERSIONS), help="version of a new stack; default 18"
        )
        start_parser.add_argument(
            "--keys", choices=KEYS, help="algorithm of a new stack's tokens; default es256"
        )
    command(down, "stop the stack").add_argument("--remove", action="store_true", help="also delete its data")
    command(status, "print addresses, keys, process ids and versions").add_argument(
        "--json", action="store_true"
    )
    command(token, "print a user's JWT").add_argument("--user", required=True, metavar="EMAIL")
    keys_command.add_arguments(command(keys_command.run, "create, list, rotate and revoke API keys", "keys"))
    command(psql, "open psql on the stack's database; further arguments are psql's")
    ingest_command.add_arguments(
        command(ingest, "ingest a file or folder, or without PATH the demo's documents")
    )
    bulk_load.add_arguments(command(bulk_load.run, "load the first documents of a database", "bulk-load"))
    change_model.add_arguments(
        command(
            change_model.run,
            "embed all chunks by another model, while the deployment is in use",
            "change-model",
        )
    )
    export_command.add_arguments(command(export_command.run, "write an org's data to a file", "export"))
    import_command.add_arguments(command(import_command.run, "read a file that export wrote", "import"))
    erase_command.add_arguments(command(erase_command.run, "erase an org or a user, with a report", "erase"))
    search_command.add_arguments(command(search_command.run, "search as a user, in any mode", "search"))
    mcp_command.add_arguments(
        command(mcp_command.run, "serve MCP over standard input and output, from a deployment", "mcp")
    )
    verify_options.add_arguments(
        command(verify_command.run, "prove on the running stack that orgs are kept apart", "verify")
    )
    command(run_demo, "run the demo on a temporary stack", "demo")
    command(write_schema, "write the migration in supabase/migrations from sql/", "schema")
    command(write_sql_reference, "write docs/sql-reference.md from the comments of sql/", "sql-reference")
    command(write_catalogue, "write verify/catalogue.json, which verify compares with", "catalogue")
    command(migration, "draft the migration from supabase/migrations to sql/").add_argument("name")
    command(write_messages, "write docs/messages.md from the errors that Python and SQL raise", "messages")
    command(write_configuration, "write docs/configuration.md from the settings", "configuration")
    command(write_openapi, "write the OpenAPI documents to openapi/", "openapi")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command from `arguments`, by default the process's own. Returns the exit status."""
    options, rest = parser().parse_known_args(arguments)
    if rest and options.command is not psql:
        parser().error(f"unrecognized arguments: {' '.join(rest)}")
    options.further = rest
    try:
        options.command(Stack(options.data), options)
    except (StackError, ConfigurationError, RagError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (OSError, psycopg.Error, httpx.HTTPError) as error:
        print(f"error: {_sentence(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return (
            f"{error.filename}: {error.strerror}; free some space, or choose another folder "
            "(TMPDIR for the demo, --data for a stack)"
        )
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text} is no port; choose one from 1 to 65535")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
