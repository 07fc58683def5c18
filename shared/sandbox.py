"""Where strangers' files are read: a process for each, with no secrets in its environment, no files to write,
and so much time and memory and no more. Whatever a file does to its reader, the worker goes on."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from shared.errors import RagError, UnreadableDocument
from shared.readers.common import READY
from shared.readers.picture import PROGRAM

SECONDS = 60
# Of addresses, the libraries' own included; what is really used is a fraction.
MEGABYTES = 2048


Read = dict[str, Any]


def read_apart(
    kind: str, data: bytes, *, seconds: int = SECONDS, megabytes: int = MEGABYTES
) -> dict[str, Any]:
    """{"parts": [[page or null, text], ...], "title": ...} by the reader of that kind (readers/).

    Raises UnreadableDocument, whatever became of the reader; RagError when there was none.
    """
    # -P: no module comes from the folder that it happens to be in.
    command = [sys.executable, "-P", "-m", "shared.readers", kind, str(seconds), str(megabytes)]
    environment = {
        # The last is for a process that was started in the folder of the project.
        "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(Path(__file__).parents[1])]),
        "PYTHONDONTWRITEBYTECODE": "1",
        # Where programs are that readers use.
        "PATH": f"{Path(shutil.which(PROGRAM) or '/bin/none').parent}:{os.defpath}",
    }
    try:
        # Longer than its processor time, for a machine with much else to do.
        done = subprocess.run(
            command, input=data, capture_output=True, env=environment, timeout=2 * seconds + 5, check=False
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UnreadableDocument("The file took too long to read.", because="timeout") from None
    ready, _, answer = done.stdout.partition(READY.encode())
    if ready or not done.stdout:
        raise RagError(because=f"no reader, exit {done.returncode}")
    try:
        said: Read = json.loads(answer)
    except ValueError:
        raise UnreadableDocument("The file is broken.", because=f"exit {done.returncode}") from None
    if "code" in said:
        raise UnreadableDocument(said["message"], code=said["code"], because=said.get("because"))
    return said
