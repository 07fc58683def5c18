"""The playground in the local gateway: only its files, under a policy, and tokens that need a secret."""

import re

import httpx
import pytest

from local import playground_server
from local.stack import Stack
from tests.actors import World, client

HEADER = "X-Playground-Secret"


def get(stack: Stack, path: str, **headers: str) -> httpx.Response:
    return client().get(f"{stack.url}{path}", headers=headers)


def test_every_file_is_served_under_the_policy(stack: Stack):
    files = [
        file for file in playground_server.FOLDER.rglob("*.*") if file.is_file() and file.name != "index.html"
    ]
    assert len(files) > 10
    for path, file in [
        ("/", playground_server.FOLDER / "index.html"),
        *((f"/{file.relative_to(playground_server.FOLDER)}", file) for file in files),
    ]:
        answer = get(stack, path)
        assert answer.status_code == 200, path
        assert answer.content == file.read_bytes()
        assert answer.headers["content-type"].startswith(playground_server.TYPES[file.suffix])
        for name, value in playground_server.HEADERS.items():
            assert answer.headers[name] == value


def test_the_page_has_the_same_policy_for_other_servers():
    page = (playground_server.FOLDER / "index.html").read_text()
    (own,) = re.findall(r'content="(default-src[^"]+)"', page)
    header = playground_server.HEADERS["Content-Security-Policy"]
    # Only a header can forbid frames.
    assert set(own.split("; ")) == set(header.split("; ")) - {"frame-ancestors 'none'"}


def test_every_module_is_loaded_by_the_page_and_nothing_is_inline():
    page = (playground_server.FOLDER / "index.html").read_text()
    named = set(re.findall(r'(?:href|src)="([\w.]+\.js)"', page))
    assert named == {file.name for file in playground_server.FOLDER.glob("*.js")}
    assert not re.search(r"<style|<script(?![^>]*src=)|\son\w+=|style=", page)


@pytest.mark.parametrize(
    "path", ["/stack.py", "/..%2fstack.py", "/%2e%2e/stack.py", "/nothing.js", "/playground"]
)
def test_nothing_else_is_served(stack: Stack, path: str):
    assert get(stack, path).status_code == 404


@pytest.mark.parametrize("secret", [None, "", "x", "\u00fc"])
def test_tokens_need_the_secret(stack: Stack, secret: str | None):
    headers = {} if secret is None else {HEADER.encode(): secret.encode("latin-1")}
    answer = client().get(f"{stack.url}/users.json", headers=headers)
    assert answer.status_code == 403
    assert "token" not in answer.text


def test_a_page_of_another_origin_gets_no_tokens(stack: Stack):
    # The header makes a browser send a preflight, which gets no permission.
    headers = {
        "Origin": "https://evil.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": HEADER,
    }
    preflight = client().options(f"{stack.url}/users.json", headers=headers)
    assert "access-control-allow-origin" not in preflight.headers
    answer = get(
        stack, "/users.json", Origin="https://evil.example", **{HEADER: stack.state.playground_secret}
    )
    assert "access-control-allow-origin" not in answer.headers


def test_the_demo_users_have_working_tokens(stack: Stack, world: World):
    answer = get(stack, "/users.json", **{HEADER: stack.state.playground_secret})
    assert answer.headers["cache-control"] == "no-store"
    seeded = dict(world.sql("select email, id::text from auth.users where email like '%%.example'"))
    offered = answer.json()
    assert {person["email"] for person in offered} <= set(seeded)
    assert {user_id for user_id, *_ in playground_server.USERS} == {
        seeded[person["email"]] for person in offered
    }
    by_email = {person["email"]: person["questions"] for person in offered}
    assert by_email["tomas@halden.example"][0] == "What does error code E-42 on the logger mean?"
    assert by_email["sam@nowhere.example"] == []
    for person in offered:
        headers = {"Authorization": f"Bearer {person['token']}"}
        rows = client().get(f"{stack.url}/api/v1/chat/sessions", headers=headers)
        expected = 403 if person["email"] == "sam@nowhere.example" else 200
        assert rows.status_code == expected, person["email"]


def test_the_printed_url_has_the_secret_in_its_fragment(stack: Stack):
    assert stack.playground == f"{stack.url}/#secret={stack.state.playground_secret}"
