"""The playground as the local gateway serves it: static files under a strict policy, and, for those who have
the address that `serve` printed, the demo's users with a token and sample questions each.

Deployed, the folder playground/ is put behind any web server as it is; there no user is offered.
"""

import hmac
import json
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from local import tokens

FOLDER = Path(__file__).parent / "playground"
QUESTIONS = Path(__file__).parent / "questions.toml"
# As supabase/seed.sql has them.
PEOPLE = (
    ("00000000-0000-4000-8000-000000000102", "tomas@halden.example", "member of Halden Instruments"),
    ("00000000-0000-4000-8000-000000000101", "ines@halden.example", "admin of Halden Instruments"),
    ("00000000-0000-4000-8000-000000000202", "emil@brightwater.example", "member of Brightwater Dairy"),
    ("00000000-0000-4000-8000-000000000201", "rosa@brightwater.example", "admin of Brightwater Dairy"),
    ("00000000-0000-4000-8000-000000000301", "kofi@consulting.example", "member of both"),
    ("00000000-0000-4000-8000-000000000401", "sam@nowhere.example", "member of none"),
)
# The page carries the same policy itself, for servers that say nothing; a frame is a header's to forbid.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def address(url: str, door: str) -> str:
    """Where a person opens it. The door stands in the fragment, which no server and no log sees."""
    return f"{url}/#door={door}"


async def page(request: Request) -> Response:
    name = request.url.path.removeprefix("/") or "index.html"
    file = FOLDER / name
    return FileResponse(file, headers=HEADERS, media_type=TYPES[file.suffix])


async def people(request: Request) -> Response:
    """A day's token for each: to who has the door's key, which no page of another origin has."""
    given = request.headers.get("X-Playground-Door", "")
    if not hmac.compare_digest(given.encode(), os.environ["LOCAL_DOOR"].encode()):
        return JSONResponse({"message": "open the address that `serve` printed"}, status_code=403)
    key, url = json.loads(os.environ["LOCAL_SIGNING_KEY"]), os.environ["SUPABASE_URL"]
    questions = samples()
    offered = [
        {
            "email": email,
            "about": about,
            "token": tokens.user_token(key, url, user_id, email),
            "questions": questions.get(email, []),
        }
        for user_id, email, about in PEOPLE
    ]
    return JSONResponse(offered, headers={"Cache-Control": "no-store"})


def samples() -> dict[str, list[str]]:
    """By user the demo's questions that the user's documents answer without a filter."""
    questions: dict[str, list[str]] = {}
    for question in tomllib.loads(QUESTIONS.read_text())["question"]:
        if "expects" in question and "filters" not in question:
            questions.setdefault(question["asker"], []).append(question["text"])
    return questions


def routes() -> Sequence[Route]:
    """Of each file by its name, and of nothing else."""
    names = sorted(file.name for file in FOLDER.iterdir() if file.suffix in TYPES)
    return [Route("/", page), *(Route(f"/{name}", page) for name in names), Route("/people.json", people)]
