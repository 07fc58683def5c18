"""Routes of the playground in the local gateway: static files under a strict content security policy, and the
demo's users with tokens and sample questions, for clients with the secret of the URL that `serve` prints.

In a deployment any web server can serve the folder playground/, without the demo's users.
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

from local import access_tokens

FOLDER = Path(__file__).parent / "playground"
QUESTIONS = Path(__file__).parent / "questions.toml"
# The users of supabase/seed.sql.
USERS = (
    ("00000000-0000-4000-8000-000000000102", "tomas@halden.example", "member of Halden Instruments"),
    ("00000000-0000-4000-8000-000000000101", "ines@halden.example", "admin of Halden Instruments"),
    ("00000000-0000-4000-8000-000000000202", "emil@brightwater.example", "member of Brightwater Dairy"),
    ("00000000-0000-4000-8000-000000000201", "rosa@brightwater.example", "admin of Brightwater Dairy"),
    ("00000000-0000-4000-8000-000000000301", "kofi@consulting.example", "member of both"),
    ("00000000-0000-4000-8000-000000000401", "sam@nowhere.example", "member of none"),
)
# The page has the same policy for other servers; only a header can forbid frames.
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


def playground_url(url: str, secret: str) -> str:
    """The URL to open. The secret is in the fragment, which browsers do not send to servers."""
    return f"{url}/#secret={secret}"


async def page(request: Request) -> Response:
    name = request.url.path.removeprefix("/") or "index.html"
    file = FOLDER / name
    return FileResponse(file, headers=HEADERS, media_type=TYPES[file.suffix])


async def users(request: Request) -> Response:
    """The demo's users, each with a token for a day. Needs the secret, which no page of another origin
    has."""
    secret = request.headers.get("X-Playground-Secret", "")
    if not hmac.compare_digest(secret.encode(), os.environ["LOCAL_PLAYGROUND_SECRET"].encode()):
        return JSONResponse({"message": "open the address that `serve` printed"}, status_code=403)
    key, url = json.loads(os.environ["LOCAL_SIGNING_KEY"]), os.environ["SUPABASE_URL"]
    questions = sample_questions()
    body = [
        {
            "email": email,
            "about": role,
            "token": access_tokens.user_token(key, url, user_id, email),
            "questions": questions.get(email, []),
        }
        for user_id, email, role in USERS
    ]
    return JSONResponse(body, headers={"Cache-Control": "no-store"})


def sample_questions() -> dict[str, list[str]]:
    """The demo's answerable questions without filters, by user."""
    questions: dict[str, list[str]] = {}
    for question in tomllib.loads(QUESTIONS.read_text())["question"]:
        if "expects" in question and "filters" not in question:
            questions.setdefault(question["asker"], []).append(question["text"])
    return questions


def routes() -> Sequence[Route]:
    """One route for each file."""
    names = sorted(str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*") if file.suffix in TYPES)
    return [Route("/", page), *(Route(f"/{name}", page) for name in names), Route("/users.json", users)]
