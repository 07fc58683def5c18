"""Where strangers' files are read: a process for each, with no secrets in its environment, no files to write,
and so much time and memory and no more. Whatever a file does to its reader, the worker goes on."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from shared.errors import RagError, UnreadableDocument
from shared.ingestion.parsers.base import READY
from shared.ingestion.parsers.ocr import PROGRAM

SECONDS = 60
# Of addresses, the libraries' own included; what is really used is a fraction.
MEGABYTES = 2048


def parse_in_subprocess(
    kind: str, data: bytes, *, seconds: int = SECONDS, megabytes: int = MEGABYTES
) -> dict[str, Any]:
    """{"parts": [[page or null, text], ...], "title": ...} by the reader of that kind (readers/).

    Raises UnreadableDocument, whatever became of the reader; RagError when there was none.
    """
    # -P: no module comes from the folder that it happens to be in.
    command = [sys.executable, "-P", "-m", "shared.ingestion.parsers", kind, str(seconds), str(megabytes)]
    environment = {
        # The last is for a process that was started in the folder of the project.
        "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(Path(__file__).parents[2])]),
        "PYTHONDONTWRITEBYTECODE": "1",
        # Where programs are that readers use.
        "PATH": f"{Path(shutil.which(PROGRAM) or '/bin/none').parent}:{os.defpath}",
    }
    # Longer than its processor time, for a machine with much else to do.
    out, code = _run(command, environment, data, 2 * seconds + 5)
    ready, _, answer = out.partition(READY.encode())
    if ready or not out or code == -signal.SIGKILL:
        # None, or one that the machine had no memory for: the file may be as it should.
        raise RagError(because=f"no reader, exit {code}")
    try:
        said: dict[str, Any] = json.loads(answer.decode(errors="surrogatepass"))
    except ValueError:
        raise UnreadableDocument("The file is broken.", because=f"exit {code}") from None
    if "code" in said:
        raise UnreadableDocument(said["message"], code=said["code"], because=said.get("because"))
    return said


def _run(command: list[str], environment: dict[str, str], data: bytes, seconds: float) -> tuple[bytes, int]:
    """What it says, and how it ends. Whatever it has started ends with it."""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd="/",
        start_new_session=True,
    ) as process:
        try:
            out, _ = process.communicate(data, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise UnreadableDocument("The file took too long to read.", because="timeout") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return out, process.returncode
