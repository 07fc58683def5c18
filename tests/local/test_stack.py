"""The stack from the command line: up, down, status, token; crashes, Ctrl-C, neighbours."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest
from jose import jwt

from functions.server import process_count
from local import ROOT
from local.child_processes import Child, free_port, port_is_free, wait_for_end
from local.errors import CommandError
from local.postgres import (
    VERSIONS,
    Postgres,
    can_use_namespace,
    installation,
    reason_of,
)
from local.stack import Stack
from local.worker_supervision import restart_dead_worker
from tests.databases import add_installation
from tests.external_programs import completed
from tests.local.command_line import run_local

# A shell in which libpq, the locale, the terminal and every proxy are set for something else.
SHELL = {
    **dict.fromkeys(("HTTP_PROXY", "https_proxy"), "http://127.0.0.1:9"),
    **{"ALL_PROXY": "socks://127.0.0.1:9", "NO_PROXY": "corp.example"},
    **{"PGHOST": "nowhere.invalid", "PGSSLMODE": "verify-full", "PGOPTIONS": "-c search_path=nowhere"},
    **{"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu", "TERM": "dumb", "NO_COLOR": "1"},
    **{"SUPABASE_URL": "https://other.example", "DATABASE_URL": "postgresql://nowhere.invalid/db"},
}


def run_program(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m local` on the stack in `folder`, as a process of its own in that shell."""
    command = [sys.executable, "-m", "local", *arguments, "--data", str(folder)]
    return completed(command, env={**os.environ, **SHELL})


def processes_of(folder: Path) -> list[psutil.Process]:
    """Living processes whose command line or environment names that stack's folder."""
    state = json.loads((folder / "stack.json").read_text())
    pids = [child["pid"] for child in state["children"].values()]
    return [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]


def gone(processes: list[psutil.Process]) -> bool:
    return wait_for_end(processes, seconds=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A stack that the command line brought up in a folder of its own, on a free port. Tokens have HS256."""
    place = tmp_path_factory.mktemp("stack") / "Ein Ordner mit Umläuten" / ("long" * 20)
    process = run_program(place, "up", "--port", str(free_port()), "--keys", "hs256")
    assert process.returncode == 0, process.stderr
    yield place
    assert run_local(place, "down", "--remove").returncode == 0


def test_up_returns_when_ready_and_at_once_when_running(folder: Path):
    url = Stack(folder).url
    assert httpx.get(f"{url}/health").status_code == 200
    before = processes_of(folder)
    second = run_local(folder, "up", "--port", url.rsplit(":", 1)[1])
    assert second.returncode == 0
    assert second.stdout == f"up at {url}\n"
    assert processes_of(folder) == before


def test_status_prints_addresses_processes_and_versions_as_json(folder: Path):
    report = json.loads(run_local(folder, "status", "--json").stdout)
    assert report["url"] == Stack(folder).url
    assert report["database_url"].startswith("postgresql://postgres:")
    assert (report["keys"], jwt.get_unverified_header(report["anon_key"])["alg"]) == ("hs256", "HS256")
    assert set(report["pids"]) == {"postgres", "postgrest", "gateway", "worker"}
    assert all(psutil.pid_exists(pid) for pid in report["pids"].values())
    assert report["versions"]["postgres"].startswith("18.")
    assert report["versions"]["pgvector"].startswith("0.8.")
    assert report["versions"]["postgrest"].startswith("12.")
    assert report["versions"]["supabase"]
    assert report["embedder"]["model"] == "all-MiniLM-L6-v2"


def test_a_command_whose_reader_has_left_ends_without_a_traceback(folder: Path):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as output:
        process = subprocess.run(
            [sys.executable, "-m", "local", "status", "--data", str(folder)],
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
            cwd=ROOT,
            timeout=600,
        )
    assert (process.returncode, process.stderr) == (0, b"")


def test_token_prints_a_working_token_only(folder: Path):
    process = run_local(folder, "token", "--user", "tomas@halden.example")
    token = process.stdout.removesuffix("\n")
    assert token.count(".") == 2
    assert "\n" not in token
    answer = httpx.post(
        f"{Stack(folder).url}/api/rag/search",
        json={"query_text": "x"},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 200


def test_token_lists_the_known_users_for_an_unknown_one(folder: Path):
    process = run_local(folder, "token", "--user", "nobody@nowhere.example")
    assert process.returncode == 1
    assert process.stdout == ""
    assert "tomas@halden.example" in process.stderr
    assert "Traceback" not in process.stderr


def test_psql_reaches_the_database(folder: Path):
    process = run_program(folder, "psql", "-Atc", "select count(*) from rag.orgs")
    assert process.stdout.strip() == "2", process.stderr


def test_a_second_stack_is_independent(folder: Path, stack: Stack):
    first = Stack(folder)
    assert first.url != stack.url
    assert httpx.get(f"{first.url}/health").status_code == httpx.get(f"{stack.url}/health").status_code == 200
    token = first.token("tomas@halden.example")
    for path, headers in (("/api/rag/search", {}), ("/rest/v1/rpc/rag_match", {"apikey": stack.anon_key})):
        stranger = {"Authorization": f"Bearer {token}", **headers}
        assert httpx.post(f"{stack.url}{path}", json={"query_text": "x"}, headers=stranger).status_code == 401


@pytest.mark.parametrize(
    "survivor", ["gateway", *(pytest.param(name, marks=pytest.mark.long) for name in ("none", "postgres"))]
)
def test_a_stack_starts_after_a_crash(folder: Path, survivor: str):
    stack = Stack(folder)
    for name, child in stack.state.children.items():
        if name != survivor and (process := child.process()) is not None:
            family = [process, *process.children(recursive=True)]
            for one in family:
                # Killing the postmaster takes its workers along.
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
            gone(family)
    outcome = run_local(folder, "up", "--port", str(stack.state.port))
    assert outcome.returncode == 0, outcome.stderr
    assert Stack(folder).is_up()


def test_a_port_in_use_is_named(folder: Path, tmp_path: Path):
    taken = Stack(folder).state.port
    process = run_local(tmp_path / "late", "up", "--port", str(taken))
    assert process.returncode == 1
    assert f"port {taken} is taken" in process.stderr
    named = re.search(r"make serve PORT=(\d+)", process.stderr)
    assert named
    assert port_is_free(int(named[1]))
    # Of make it is an argument, and no variable of the environment.
    for arguments, options in (((f"PORT={named[1]}",), f"--port {named[1]}"), ((), "")):
        command = ["make", "--no-print-directory", "--dry-run", "serve", *arguments]
        made = completed(command, env={**os.environ, "PORT": "8080"})
        assert made.stdout.splitlines()[-1].strip() == f".venv/bin/python -m local serve {options}".strip()
    assert not processes_of(tmp_path / "late")


def test_a_second_serve_is_refused_and_leaves_the_first_running(folder: Path):
    stack, running = Stack(folder), processes_of(folder)
    remembered = (folder / "stack.json").read_bytes()
    with stack.serve_lock():
        # Neither where it is, nor elsewhere; nor may another command move it.
        for command, port in (("serve", stack.state.port), ("up", free_port())):
            process = run_program(folder, command, "--port", str(port))
            assert process.returncode == 1
            assert f"process {os.getpid()} serves {folder} already, at {stack.url}" in process.stderr
    assert (folder / "stack.json").read_bytes() == remembered
    assert processes_of(folder) == running
    assert stack.is_up()


def test_a_dead_worker_is_restarted_and_reported(folder: Path):
    stack = Stack(folder)
    assert restart_dead_worker(stack) is None
    worker = stack.state.children["worker"].process()
    assert worker is not None
    worker.kill()
    assert gone([worker])
    report = restart_dead_worker(stack)
    restarted = Stack(folder).state.children["worker"]
    assert restarted.process() is not None
    assert report == (
        f"The worker (process {worker.pid}) stopped; see {folder}/logs/worker.log. "
        f"The worker runs again (process {restarted.pid})."
    )
    assert stack.is_up()


def test_down_stops_every_process_and_keeps_the_data(folder: Path):
    stack, running = Stack(folder), processes_of(folder)
    assert len(running) == 4
    secret = stack.anon_key
    with psycopg.connect(stack.database_url()) as connection:
        connection.execute("insert into rag.orgs (name) values ('Kept')")
    assert run_local(folder, "down").returncode == 0
    assert gone(running)
    assert port_is_free(stack.state.port)
    assert run_local(folder, "status").returncode == 1
    assert run_local(folder, "up", "--port", stack.state.port).returncode == 0
    second = Stack(folder)
    assert second.anon_key == secret, "a token handed out yesterday still works"
    with psycopg.connect(second.database_url()) as connection:
        assert connection.execute("select from rag.orgs where name = 'Kept'").rowcount == 1


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a stack that `serve` fills once and finds filled the next time."""
    place = tmp_path_factory.mktemp("served")
    yield place
    Stack(place).remove()


@pytest.mark.long
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_serve_prints_commands_restarts_its_worker_and_stops_every_child(
    served: Path, tmp_path: Path, name: str
):
    output = tmp_path / "output"
    command = [sys.executable, "-m", "local", "--data", str(served), "serve", "--port", str(free_port())]
    with output.open("w") as out:
        serve = subprocess.Popen(
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )

        def wait_for(sentence: str) -> None:
            deadline = time.monotonic() + 120
            while sentence not in output.read_text() and serve.poll() is None:
                assert time.monotonic() < deadline, output.read_text()
                time.sleep(0.1)

        wait_for("Ctrl-C stops everything")
        killed = Stack(served).state.children["worker"]
        psutil.Process(killed.pid).kill()
        wait_for(f"The worker (process {killed.pid}) stopped")
        wait_for("The worker runs again")
        restarted = Stack(served).state.children["worker"]
        assert f"The worker runs again (process {restarted.pid})." in output.read_text()
        running = processes_of(served)
        gateway = psutil.Process(Stack(served).state.children["gateway"].pid)
        servers = [child for child in gateway.children() if "spawn_main" in str(child.cmdline())]
        assert len(servers) == (count if (count := process_count()) > 1 else 0)
        serve.send_signal(signal.Signals[name])
        assert serve.wait(120) == 0, output.read_text()
    assert len(running) == 4
    assert gone([*running, *servers])
    text = output.read_text()
    for expected in (
        "URL ",
        "publishable key ",
        "tomas@halden.example",
        "emil@brightwater.example",
        "curl -s http",
    ):
        assert expected in text
    curl = next(line for line in text.splitlines() if line.startswith("curl"))
    assert "/functions/v1/rag-answer" in curl


def test_a_reused_pid_is_not_signalled():
    child = Child(os.getpid(), started=1.0)
    assert child.process() is None
    child.stop()


def test_a_missing_postgres_version_is_named(tmp_path: Path):
    with pytest.raises(CommandError, match="versions 16 and 18"):
        Postgres.at(tmp_path, 9, 1, "x")


def test_a_folder_with_another_postgres_is_used_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = installation(16)
    monkeypatch.delitem(VERSIONS, 16)
    assert add_installation(folder) == 16
    assert Postgres.at(tmp_path, 16, 1, "x").binaries == folder


def test_the_reason_of_a_failed_program_of_postgres_is_one_line():
    full = (
        "FATAL:  could not write to file: No space left on device\n"
        "PANIC:  cannot abort transaction 1, it was already committed\n"
    )
    denied = "initdb: error: could not create directory: Permission denied\ninitdb: removing data directory\n"
    assert reason_of(full).startswith("the disk is full; free some space")
    assert reason_of(denied) == "initdb: error: could not create directory: Permission denied"
    assert reason_of("") == "without a message"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")
def test_as_root_without_namespaces_postgres_runs_as_nobody_outside_the_checkout(tmp_path: Path):
    cluster = Postgres.at(tmp_path, 18, free_port(), "secret", drop_to="nobody")
    assert can_use_namespace() == (Postgres.at(tmp_path, 18, 1, "x").user is None)
    try:
        postmaster = cluster.start(durable=False)
        process = postmaster.process()
        assert process is not None
        assert process.username() == "nobody"
        assert ROOT not in cluster.data.parents
        cluster.script(ROOT / "local" / "bootstrap.sql")
    finally:
        cluster.stop()
        cluster.remove()
    assert not cluster.data.parent.exists()


def test_a_stack_keeps_the_postgres_version_of_its_data(folder: Path):
    process = run_local(folder, "up", "--postgres", "16")
    assert process.returncode == 1
    assert "holds data of Postgres 18" in process.stderr
