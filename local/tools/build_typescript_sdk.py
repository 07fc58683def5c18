"""Build of the npm package of sdk/typescript, as it would be published. `make sdk`."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from local import ROOT
from local.npm_tools import npm_path

SOURCE = ROOT / "sdk" / "typescript"
FOLDER = ROOT / "build" / "sdk"


def pack(folder: Path = FOLDER) -> Path:
    """Build the tarball in `folder`; its path. Raises CalledProcessError with the compiler's output."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rag-sdk-") as temporary:
        # A copy, which has no files of an earlier build. npm runs `prepack`, the compiler.
        package = Path(temporary) / "sdk"
        shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("dist", "node_modules"))
        output = _run("npm", "pack", package, "--offline", "--loglevel=error", f"--pack-destination={folder}")
    return folder / output.splitlines()[-1]


def install(folder: Path, *scripts: Path) -> None:
    """Install the package into the folder, and copy scripts there that import it by name."""
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
    process = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PATH": npm_path()},
    )
    return process.stdout


def main() -> int:
    try:
        print(pack().relative_to(ROOT))
    except subprocess.CalledProcessError as error:
        print(error.stdout, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
