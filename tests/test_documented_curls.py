"""The curl commands of README.md and docs/, run by curl in their order on the real stack: each succeeds."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from local import ROOT
from tests.conftest import People
from tests.isolation.test_api_keys import make
from tests.isolation.test_documents import add_text, collection

PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/**/*.md")))]
# A line that goes on ends with a backslash.
APPLICATION = "http://localhost:3000"
COMMAND = re.compile(r"^curl (?:.*\\\n)*.*\n", re.MULTILINE)


def commands(page: str) -> list[str]:
    """All but those of large files, which need a bucket (tests/functions/test_uploads.py), and of an
    application (tests/clients/test_ai_sdk.py)."""
    return [
        command
        for command in COMMAND.findall((ROOT / page).read_text())
        if "$UPLOAD" not in command and APPLICATION not in command
    ]


def with_address(command: str, url: str) -> str:
    return command.replace("curl ", "curl --fail-with-body ", 1).replace("http://127.0.0.1:54321", url)


def curl() -> str:
    if path := shutil.which("curl"):
        return path
    if os.environ.get("CI"):
        pytest.fail("CI has no curl: .ci/run installs it")
    pytest.skip("no curl on this machine")


def environment(people: People) -> dict[str, str]:
    """The variables of docs/api/overview.md. Ann is a member, ada an admin; the key is ann's."""
    scopes = ["documents:write", "collections:manage", "retrievals:read", "chat:read"]
    home = collection(people.ann)
    return {
        "PATH": f"{Path(curl()).parent}:{os.environ['PATH']}",
        "URL": people.ann.stack.url,
        "TOKEN": people.ann.token(),
        "ADMIN": people.ada.token(),
        "KEY": make(people.ann, scopes=scopes)["key"],
        "ORG": people.acme.id,
        "COLLECTION": home,
        "DOCUMENT": add_text(people.ann, home),
    }


def test_every_curl_command_is_answered(
    people: People, tmp_path: Path, no_jobs: None, subtests: pytest.Subtests
):
    variables = environment(people)
    (tmp_path / "guide.md").write_text("# The kiln\n\nThe kiln is fired for nine hours.")
    examples = [(page, command) for page in PAGES for command in commands(page)]
    assert len(examples) > 20
    for page, command in examples:
        with subtests.test(f"{page}: {command}"):
            process = subprocess.run(
                ["bash", "-c", with_address(command.strip(), variables["URL"])],
                capture_output=True,
                text=True,
                check=False,
                cwd=tmp_path,
                env=variables,
                timeout=60,
            )
            assert process.returncode == 0, process.stdout + process.stderr
