"""Builds the folder that `osls package` makes the Lambda zip of: the functions, shared/, what they need.

`make package`. Wheels are chosen for the runtime that serverless.yml names, not for the Python that builds,
and at the versions of constraints.txt: two builds of one tree hold the same bytes.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from local import ROOT

FOLDER = ROOT / "build" / "lambda"
CONFIGURATION = "serverless.yml"
# Of the installer's own making: scripts and lists that name the machine that built.
LEFT_OUT = ("bin", "*.dist-info/RECORD", "*.dist-info/INSTALLER", "*.dist-info/REQUESTED")


def build(folder: Path = FOLDER) -> None:
    """Fill `folder` anew. Raises CalledProcessError when a wheel for Lambda is missing."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _install(folder)
    for pattern in LEFT_OUT:
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    # The server is the container's.
    _copy("functions", folder, leaving_out="server.py")
    _copy("shared", folder)
    _compile(folder)
    # osls looks for it where it packages, and leaves it out of the zip.
    shutil.copy(ROOT / CONFIGURATION, folder)


def python_version() -> str:
    """The Python of the Lambda runtime, such as 3.11."""
    text = (ROOT / CONFIGURATION).read_text()
    (version,) = re.findall(r"^  runtime: python(3\.\d+)$", text, re.MULTILINE)
    return str(version)


def size(folder: Path) -> int:
    """The bytes of all files in it."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _install(folder: Path) -> None:
    wheels = [
        "--only-binary=:all:",
        "--implementation=cp",
        f"--python-version={python_version()}",
        "--platform=manylinux2014_x86_64",
    ]
    files = [f"--constraint={ROOT / 'constraints.txt'}", f"--requirement={ROOT / 'requirements.txt'}"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-compile", f"--target={folder}", *wheels, *files], check=True)


def _compile(folder: Path) -> None:
    """Bytecode halves a cold start: Lambda's folder is read-only, so it would be made anew each time.

    It is not checked against its source, whose time of change differs between two builds. Where the
    runtime's Python is not the one at hand it is left out, and the functions start more slowly.
    """
    if f"{sys.version_info.major}.{sys.version_info.minor}" != python_version():
        print(f"built without bytecode: that takes Python {python_version()}", file=sys.stderr)
        return
    # A set among a module's constants is written in the order of its hashes.
    compiling = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    paths = ["-s", str(folder), "-p", "/var/task", str(folder)]
    subprocess.run([*compiling, *paths], env={"PYTHONHASHSEED": "0"}, check=True)


def _copy(package: str, folder: Path, leaving_out: str = "") -> None:
    for path in (ROOT / package).rglob("*.py"):
        if path.name != leaving_out:
            target = folder / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


if __name__ == "__main__":
    build()
    print(f"{FOLDER.relative_to(ROOT)}: {size(FOLDER) / 1e6:.1f} MB of the 250 that Lambda takes, unpacked")
