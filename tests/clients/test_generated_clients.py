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


# One process for all contracts: the generator is imported in a second.
GENERATE = """
import sys
from openapi_python_client.cli import app
config, documents, target, *contracts = sys.argv[1:]
for contract in contracts:
    places = ["--path", f"{documents}/{contract}.json", "--output-path", f"{target}/{contract}_client"]
    app(["generate", "--meta", "none", "--config", config, *places], standalone_mode=False)
"""


def test_a_generated_python_client_calls_each_contract(people: People, tmp_path: Path):
    config = tmp_path / "config.json"
    config.write_text('{"post_hooks": []}')
    generated = output_of(BIN / "python", "-c", GENERATE, config, ROOT / "openapi", tmp_path, *CONTRACTS)
    assert "WARNING" not in generated.upper(), generated
    script = ROOT / "tests" / "clients" / "generated_clients.py"
    output = output_of(BIN / "python", script, tmp_path, people.ann.stack.url, people.ann.token())
    results = json.loads(output)
    assert "steel" in results.pop("answer")
    failed = {name: row for name, row in results.items() if row[0] >= 300}
    assert failed == {}
    assert not [name for name, (_, parsed) in results.items() if "Error" in parsed]
