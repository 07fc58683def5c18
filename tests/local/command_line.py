"""Command line of the local stack, run in the test process: an interpreter takes a second to start."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from local.__main__ import main
from local.operations import folder_sync


def run_local(folder: Path, *arguments: object, **variables: str) -> CompletedProcess[str]:
    """Run `python -m local` on the stack in `folder`, with these variables and a wide terminal."""
    output, errors = io.StringIO(), io.StringIO()
    command = ["--data", str(folder), *map(str, arguments)]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(errors):
        patch.delenv("RAG_TOKEN", raising=False)
        # Tests upload few small files: poll more often.
        patch.setattr(folder_sync, "POLL_SECONDS", 0.1)
        for name, value in {"COLUMNS": "300", **variables}.items():
            patch.setenv(name, value)
        try:
            status = main(command)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
            print(end.code or "", file=errors)
    return CompletedProcess(command, status, output.getvalue(), errors.getvalue())
