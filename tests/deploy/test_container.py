"""The container's process, started as the Dockerfile says over the files that it copies; no Docker here."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

import httpx
import pytest

from functions.server import DRAIN_SECONDS
from local import ROOT
from local.child_processes import free_port
from local.stack import Stack
from local.tools.lambda_package import python_version
from tests.actors import Actor, vector
from tests.conftest import People
from tests.deploy.conftest import deployer_of, embedding_reply
from tests.stand_in_server import StandIn

DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
IGNORED = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
PATIENCE = 300.0


def instructions(name: str) -> list[str]:
    """What follows that instruction, each time it stands there."""
    return re.findall(rf"^{name}\s+(.+?)\s*$", DOCKERFILE, re.MULTILINE)


def exec_form(text: str) -> list[str]:
    """A command that no shell stands before. Raises ValueError for the shell form."""
    command: list[str] = json.loads(text)
    return command


COMMAND = exec_form(instructions("CMD")[-1])
HEALTHCHECK = exec_form(instructions("HEALTHCHECK")[0].partition("CMD")[2])
# Copies from outside the build: from, to.
COPIES = [
    (shlex.split(copy)[:-1], Path(shlex.split(copy)[-1]))
    for copy in instructions("COPY")
    if "--from" not in copy
]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of the working directory as the Dockerfile fills them."""
    root = tmp_path_factory.mktemp("image")
    (workdir,) = {folder for folder in instructions("WORKDIR") if folder != "/build"}
    for sources, target in COPIES:
        if target.is_relative_to(workdir):
            copied = root / target.relative_to("/")
            for source in map(ROOT.joinpath, sources):
                if source.is_file():
                    copied.mkdir(exist_ok=True)
                    shutil.copy(source, copied)
                else:
                    # With the bytecode, which the Dockerfile compiles.
                    shutil.copytree(source, copied)
    return root / Path(workdir).relative_to("/")


class Container:
    """The process, and how to reach it."""

    def __init__(self, process: "subprocess.Popen[str]", port: int, environment: Mapping[str, str]) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._environment = environment

    def takes_connections(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
        except ConnectionRefusedError:
            return False
        return True

    def is_healthy(self) -> bool:
        """By the Dockerfile's own check."""
        return (
            subprocess.run(HEALTHCHECK, env=self._environment, capture_output=True, check=False).returncode
            == 0
        )

    def end(self) -> tuple[int, str]:
        """Wait until it has ended by itself: its exit code, and what it said."""
        _, output = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, output


@contextmanager
def started(image: Path, settings: Mapping[str, str]) -> Iterator[Container]:
    port = free_port()
    # The image's PATH leads to its packages, as this one to ours.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {"PATH": path, "PORT": str(port), "PYTHONDONTWRITEBYTECODE": "1", **settings}
    with subprocess.Popen(
        COMMAND, cwd=image, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield Container(process, port, environment)
        finally:
            # A container ends with all of its processes.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def settings_given(stack: Stack, embeddings: StandIn, gateway: StandIn) -> dict[str, str]:
    return deployer_of(stack, embeddings, gateway)


def wait_for(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def ready(container: Container) -> None:
    wait_for(lambda: container.process.poll() is not None or container.takes_connections(), "it listens")
    assert container.process.poll() is None
    assert httpx.get(f"{container.url}/health", timeout=PATIENCE).status_code == 200


def search(container: Container, actor: Actor, text: str = "What does 1 say?") -> httpx.Response:
    return httpx.post(
        f"{container.url}/api/rag/search",
        json={"query_text": text},
        headers=actor.headers(),
        timeout=PATIENCE,
    )


# -- what the files say -------------------------------------------------------------------------------------


def test_the_images_are_pinned_by_digest_and_have_the_tested_python():
    stages = [image.partition(" AS ") for image in instructions("FROM")]
    images = {image for image, _, _ in stages} - {name for _, _, name in stages}
    assert len(images) == 1
    digest = "@sha256:[0-9a-f]{64}"
    assert re.fullmatch(rf"python:{python_version()}-slim-[a-z]+{digest}", images.pop())
    others = [line for line in instructions("COPY") if line.startswith("--from=") and "/" in line.split()[0]]
    assert [bool(re.fullmatch(rf"--from=\S+:[\d.]+{digest}", line.split()[0])) for line in others] == [True]


def test_the_image_has_the_server_s_packages_at_the_tested_versions():
    (install,) = [run for run in instructions("RUN") if "pip install" in run]
    assert "--constraint constraints.txt --requirement requirements-server.txt" in " ".join(install.split())
    assert "--only-binary=:all: --require-hashes --excludes requirements-excluded.txt" in " ".join(
        install.split()
    )


def test_the_image_has_only_explicitly_copied_files():
    copied = {source for sources, _ in COPIES for source in sources}
    assert IGNORED[0] == "*"
    assert {line.removeprefix("!") for line in IGNORED if line.startswith("!")} == copied
    assert not copied & {"tests", "local", ".env", ".git", "."}


def test_the_process_does_not_run_as_root():
    user = instructions("USER")[-1]
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)
    # It is the last to change it: what runs, runs as that user.
    assert DOCKERFILE.index("\nUSER ") < DOCKERFILE.index("\nCMD ")


def test_it_drains_within_cloud_run_s_grace_period():
    assert 0 < DRAIN_SECONDS < 10


# -- the process --------------------------------------------------------------------------------------------


def test_it_serves_all_functions_and_its_health_check_agrees(
    image: Path, settings_given: dict[str, str], people: People
):
    document_id = people.ann.put([vector(1)], embedding_model="text-embedding-3-small")
    with started(image, settings_given) as container:
        ready(container)
        assert container.is_healthy()
        results = search(container, people.ann)
        assert results.status_code == 200
        assert [result["source_id"] for result in results.json()["results"]] == [document_id]
        assert "server" not in results.headers
        url, body = f"{container.url}/functions/v1/rag-answer", {"query_text": "What does 1 say?"}
        answered = httpx.post(url, json=body, headers=people.ann.headers(), timeout=PATIENCE)
        assert answered.json()["answer"]["text"].endswith("It is 1.")
        container.process.terminate()
        assert container.end()[0] == 0
        assert not container.is_healthy()


@pytest.mark.long
def test_sigterm_finishes_running_requests_and_accepts_no_more(
    image: Path, settings_given: dict[str, str], embeddings: StandIn, people: People
):
    people.ann.put([vector(1)], embedding_model="text-embedding-3-small")
    release = Event()
    embeddings.replies(embedding_reply(vector(1), after=release))
    with started(image, settings_given) as container, ThreadPoolExecutor(1) as pool:
        ready(container)
        assert search(container, people.ann).status_code == 200
        slow = pool.submit(search, container, people.ann, "And what does it not say?")
        embeddings.wait_for_requests(2)
        container.process.send_signal(signal.SIGTERM)
        wait_for(lambda: not container.takes_connections(), "it takes no more connections")
        assert not slow.done()
        assert container.process.poll() is None
        release.set()
        answer = slow.result(timeout=PATIENCE)
        assert (answer.status_code, len(answer.json()["results"])) == (200, 1)
        code, output = container.end()
    assert code == 0, output
    assert "Traceback" not in output
    assert "timeout graceful shutdown exceeded" not in output
