"""Clients that others generate from openapi/: they sign in and call each contract."""

import json
import os
import subprocess
from pathlib import Path

from local import ROOT
from tests.conftest import People

BIN = ROOT / ".venv-frameworks" / "bin"
CONTRACTS = ("platform", "knowledge", "index", "search", "rag", "dify", "operations")


def output_of(*command: str | Path) -> str:
    process = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_a_generated_python_client_calls_each_contract(people: People, tmp_path: Path):
    config = tmp_path / "config.json"
    config.write_text('{"post_hooks": []}')
    for contract in CONTRACTS:
        document, target = ROOT / "openapi" / f"{contract}.json", tmp_path / f"{contract}_client"
        command: list[str | Path] = [
            BIN / "openapi-python-client",
            "generate",
            "--meta",
            "none",
            "--config",
            config,
        ]
        output = output_of(*command, "--path", document, "--output-path", target)
        assert "WARNING" not in output.upper(), output
    script = ROOT / "tests" / "clients" / "generated_clients.py"
    output = output_of(BIN / "python", script, tmp_path, people.ann.stack.url, people.ann.token())
    results = json.loads(output)
    assert "steel" in results.pop("answer")
    failed = {name: row for name, row in results.items() if row[0] >= 300}
    assert failed == {}
    assert not [name for name, (_, parsed) in results.items() if "Error" in parsed]
