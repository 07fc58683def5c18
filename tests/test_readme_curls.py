"""The README's curl lines, by curl itself and in their order, on the real stack: each is answered well."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from local import ROOT
from tests.conftest import People
from tests.isolation.test_api_keys import make
from tests.isolation.test_documents import collection

TOKEN_OF_TOMAS = "$(.venv/bin/python -m local token --user tomas@halden.example)"
# A line that goes on ends with a backslash.
COMMAND = re.compile(r"^    curl (?:.*\\\n)*.*\n", re.MULTILINE)


def commands() -> list[str]:
    """All but those of large files, which need a bucket (tests/functions/test_uploads.py)."""
    groups = COMMAND.findall((ROOT / "README.md").read_text())
    return [command for command in groups if "$SAID" not in command]


def curl() -> str:
    if path := shutil.which("curl"):
        return path
    if os.environ.get("CI"):
        pytest.fail("CI has no curl: .ci/run installs it")
    pytest.skip("no curl on this machine")


def test_every_curl_command_is_answered(people: People, tmp_path: Path, no_jobs: None):
    """ann's, with a key of hers; where the README says $ADMIN, ada's."""
    stack, home = people.ann.stack, collection(people.ann)
    scopes = ["documents:write", "collections:manage", "retrievals:read"]
    messages = {
        "http://127.0.0.1:54321": stack.url,
        TOKEN_OF_TOMAS: people.ann.token(),
        '"collection_id": "..."': f'"collection_id": "{home}"',
        "collection_id=...": f"collection_id={home}",
        "collections/...": f"collections/{home}",
        "ws_…": f"ws_{home}",
    }
    environment = {
        "PATH": f"{Path(curl()).parent}:{os.environ['PATH']}",
        "KEY": make(people.ann, scopes=scopes)["key"],
        "TOKEN": people.ann.token(),
        "ADMIN": people.ada.token(),
        "SUPABASE_ANON_KEY": stack.anon_key,
    }
    (tmp_path / "guide.md").write_text("# The kiln\n\nThe kiln is fired for nine hours.")
    request = commands()
    assert len(request) > 12
    for command in request:
        line = command.strip().replace("curl ", "curl --fail-with-body ", 1)
        for written, meant in messages.items():
            line = line.replace(written, meant)
        process = subprocess.run(
            ["bash", "-c", line],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=environment,
            timeout=60,
        )
        assert process.returncode == 0, f"{command}{process.stdout}{process.stderr}"
