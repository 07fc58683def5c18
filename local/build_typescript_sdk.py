"""Builds the npm package of sdk/typescript, compiled and packed as it would be published. `make sdk`."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from local import ROOT
from local.npm_tools import npm_program

SOURCE = ROOT / "sdk" / "typescript"
FOLDER = ROOT / "build" / "sdk"


def pack(folder: Path = FOLDER) -> Path:
    """The tarball, in `folder`. Raises CalledProcessError, with what the compiler says in its output."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rag-sdk-") as workplace:
        made = Path(workplace)
        _run(npm_program("tsc"), "--project", SOURCE, "--outDir", made / "dist")
        for name in ("package.json", "README.md"):
            shutil.copy(SOURCE / name, made)
        said = _run("npm", "pack", made, "--offline", "--loglevel=error", f"--pack-destination={folder}")
    return folder / said.splitlines()[-1]


def install(folder: Path, *scripts: Path) -> None:
    """Install the package into the folder as users do, and copy scripts there that import it by its name."""
    _run(
        "npm",
        "install",
        pack(folder),
        "--offline",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        f"--prefix={folder}",
    )
    (folder / "package.json").write_text('{"type": "module"}')
    for script in scripts:
        shutil.copy(script, folder)


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return done.stdout


def main() -> int:
    try:
        print(pack().relative_to(ROOT))
    except subprocess.CalledProcessError as failed:
        print(failed.stdout, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
