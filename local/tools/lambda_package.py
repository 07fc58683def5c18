"""Build of the folder for Lambda: the functions, shared/ and their dependencies.

`make package`. The parsers are in a folder that only functions which parse files carry, the libraries for
sources in one that only the worker carries: osls leaves them out of the other zips (serverless.yml). Wheels
are for the runtime in serverless.yml, not for the Python that builds, with the versions of constraints.txt.
Builds are reproducible: two builds of one tree have the same bytes.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from local import ROOT

FOLDER = ROOT / "build" / "lambda"
CONFIGURATION = "serverless.yml"
# Roles, alarms and the streaming container, which serverless.yml includes.
RESOURCES = "deploy/lambda_resources.cjs"
# On the path of the process that parses alone (shared/ingestion/parser_sandbox.py).
PARSERS, SOURCES = "parsers", "sources"
# Files that uv writes, some with paths of the build machine; and the former pydantic, which FastAPI
# would import, where it exists, to refuse its models; the server that mcp requires and does not import; and
# names of languages, by which trafilatura could choose pages, and most services of AWS but S3.
EXCLUDED = (
    ".lock",
    "bin",
    "*.dist-info/RECORD",
    "*.dist-info/INSTALLER",
    "*.dist-info/REQUESTED",
    "pydantic/v1",
    "uvicorn",
    "uvicorn-*.dist-info",
    "babel/locale-data",
    "botocore/data/[!s]*/",
)


def build(folder: Path = FOLDER) -> None:
    """Empty and fill `folder`. Raises CalledProcessError when a wheel for Lambda is missing."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _install(folder, "requirements.txt")
    _install(folder / PARSERS, "requirements-parsers.txt")
    _install(folder / SOURCES, "requirements-sources.txt")
    _remove_duplicates(folder / PARSERS, folder)
    _remove_duplicates(folder / SOURCES, folder, folder / PARSERS)
    # Programs of the container.
    _copy("functions", folder, "server.py", "schedule.py")
    _copy("shared", folder)
    for file in ("LICENSE", "NOTICE"):
        shutil.copy(ROOT / file, folder)
    _compile(folder)
    # osls needs them in the folder that it packages, and does not add them to the zip.
    for file in (CONFIGURATION, RESOURCES):
        (folder / file).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / file, folder / file)


def python_version() -> str:
    """The Python of the Lambda runtime, such as 3.11."""
    text = (ROOT / CONFIGURATION).read_text()
    (version,) = re.findall(r"^  runtime: python(3\.\d+)$", text, re.MULTILINE)
    return str(version)


def size(folder: Path) -> int:
    """The bytes of all files in it."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _install(folder: Path, requirements: str) -> None:
    wheels = [
        "--only-binary=:all:",
        f"--python-version={python_version()}",
        "--python-platform=x86_64-manylinux2014",
    ]
    files = ["--require-hashes", "--constraint=constraints.txt", f"--requirement={requirements}"]
    files.append("--excludes=requirements-excluded.txt")
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--system-certs"]
    subprocess.run([*uv, f"--target={folder}", *wheels, *files], cwd=ROOT, check=True)
    for pattern in EXCLUDED:
        for path in folder.glob(pattern):
            _remove(path)


def _remove_duplicates(folder: Path, *others: Path) -> None:
    """Remove from the folder what one of the others has."""
    for path in folder.iterdir():
        if any((other / path.name).exists() for other in others):
            _remove(path)


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _compile(folder: Path) -> None:
    """Compile to bytecode, which halves a cold start: Lambda's folder is read-only, so Python cannot cache
    it.

    Python does not check the bytecode against the sources' modification times, which differ between builds.
    With a Python other than the runtime's there is no bytecode, and the functions start more slowly.
    """
    if f"{sys.version_info.major}.{sys.version_info.minor}" != python_version():
        print(
            f"built without bytecode, which needs Python {python_version()}: cold starts are slower",
            file=sys.stderr,
        )
        return
    # Fixed hashes: a constant set is written in the order of its hashes.
    compileall = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    paths = ["-s", str(folder), "-p", "/var/task", str(folder)]
    subprocess.run([*compileall, *paths], env={"PYTHONHASHSEED": "0"}, check=True)


def _copy(package: str, folder: Path, *excluded: str) -> None:
    for path in (ROOT / package).rglob("*"):
        if path.suffix in {".py", ".toml", ".tsv", ".jsonl"} and path.name not in excluded:
            target = folder / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


if __name__ == "__main__":
    build()
    parsers, sources = size(FOLDER / PARSERS), size(FOLDER / SOURCES)
    print(
        f"{FOLDER.relative_to(ROOT)}: {(size(FOLDER) - parsers - sources) / 1e6:.1f} MB, "
        f"{parsers / 1e6:.1f} MB of parsers, and {sources / 1e6:.1f} MB for sources, of the 250 that Lambda "
        "takes, unpacked"
    )
