"""Commands of the local stack and its demo."""

import json
import os
import signal
from argparse import Namespace
from contextlib import closing

from rich.console import Console

from functions.server import process_count
from local import demo
from local.command_targets import on_api
from local.operations import ingest_command
from local.seed_demo import make_services
from local.shell_environment import isolate_demo
from local.stack import DEFAULT_PORT, Stack
from local.worker_supervision import watch


def up(stack: Stack, options: Namespace) -> None:
    stack.choose_postgres(options.postgres)
    stack.choose_keys(options.keys)
    stack.up(options.port, worker=True)
    print(f"up at {stack.url}")


def down(stack: Stack, options: Namespace) -> None:
    stack.down()
    if options.remove:
        stack.remove()


def status(stack: Stack, options: Namespace) -> None:
    report = stack.status()
    if options.json:
        print(json.dumps(report, indent=2))
        return
    for name, value in report.items():
        print(f"{name:13} {json.dumps(value) if isinstance(value, dict) else value}")


def token(stack: Stack, options: Namespace) -> None:
    print(stack.token(options.user))


def psql(stack: Stack, options: Namespace) -> None:
    stack.require_up()
    (program, *arguments, host), environment = stack.postgres.psql()
    terminal = {name: os.environ[name] for name in ("HOME", "TERM", "PAGER") if name in os.environ}
    os.execve(
        program, [program, *arguments, f"{host}/postgres", *options.further], {**environment, **terminal}
    )


def ingest(stack: Stack, options: Namespace) -> None:
    if options.path is not None:
        on_api(ingest_command.run)(stack, options)
        return
    console = Console()
    with closing(make_services(stack)) as services:
        documents, chunks = demo.ingest(stack, services, console)
    console.print(f"{documents} documents, {chunks} chunks")


def serve(stack: Stack, options: Namespace) -> None:
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
            if stack.up(options.port, worker=True, processes=process_count()):
                console.print(
                    f"Port {DEFAULT_PORT} is taken, perhaps by `supabase start`: this stack uses "
                    f"{stack.state.port}.",
                    soft_wrap=True,
                )
            with closing(make_services(stack)) as services:
                demo.try_models(services, console)
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


def run_demo(stack: Stack, options: Namespace) -> None:
    """Run the demo on a temporary stack on free ports."""
    console, asks_models = Console(), isolate_demo()
    with Stack.temporary() as temporary:
        # SIGTERM ends in `finally`, as Ctrl-C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if asks_models:
            with closing(make_services(temporary)) as services:
                demo.line(console, f"Models of your shell, which may cost: {demo.models_of(services)}")
        temporary.up(0, durable=False)
        with closing(make_services(temporary)) as services:
            demo.run(temporary, services, console)
