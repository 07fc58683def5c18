"""Sandbox for parsers: a process for each file, with limits of time and memory.

The process has no secrets in its environment, and writes no file. The worker survives its crash.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from shared.errors import RagError, UnreadableDocument
from shared.ingestion.parsers import ocr
from shared.ingestion.parsers.parsed_file import READY, ParsedFile

ROOT = Path(__file__).parents[2]
SECONDS = 60
# The address space, libraries included; the used memory is a fraction.
MEGABYTES = 2048


def parse_in_subprocess(
    kind: str, data: bytes, *, seconds: int = SECONDS, megabytes: int = MEGABYTES
) -> ParsedFile:
    """The file as the parser of that kind reads it (parsers/). Raises UnreadableDocument for any failure of
    the parser; RagError if its process could not start."""
    # -P: no module is imported from the working directory.
    command = [sys.executable, "-P", "-m", "shared.ingestion.parsers", kind, str(seconds), str(megabytes)]
    program = shutil.which(ocr.PROGRAM)
    environment = {
        # The project's folder is for a process that was started there; Lambda's zip has the last two.
        "PYTHONPATH": os.pathsep.join(
            [*filter(None, sys.path), *(str(ROOT / name) for name in ("", "parsers", "sources"))]
        ),
        "PYTHONDONTWRITEBYTECODE": "1",
        # The parsers use tesseract alone, where this process finds it.
        "PATH": f"{Path(program).parent}:{os.defpath}" if program else "/nowhere",
    }
    # Longer than its processor time, for a busy machine.
    out, code = _run(command, environment, data, 2 * seconds + 5)
    ready, _, answer = out.partition(READY.encode())
    if ready or not out or code == -signal.SIGKILL:
        # The process did not start, or the machine lacked memory: the file may be valid.
        raise RagError(log_reason=f"no reader, exit {code}")
    try:
        reply = json.loads(answer.decode(errors="surrogatepass"))
        if "code" not in reply:
            return ParsedFile(**reply)
    except (ValueError, TypeError):
        raise UnreadableDocument(log_reason=f"exit {code}") from None
    raise UnreadableDocument(reply["message"], code=reply["code"], log_reason=reply.get("because"))


def _run(command: list[str], environment: dict[str, str], data: bytes, seconds: float) -> tuple[bytes, int]:
    """Output and exit code of the command. The processes that it started end too."""
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
            message = "Reading the file took too long. Divide it, and upload the parts."
            raise UnreadableDocument(message, log_reason="timeout") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return out, process.returncode
