"""python -m local keys: a key's life from the command line, as its owner."""

import re
from subprocess import CompletedProcess

import httpx

from local.stack import Stack
from tests.local.command_line import run_local

OWNER = "ines@halden.example"


def keys(stack: Stack, *arguments: str, **variables: str) -> CompletedProcess[str]:
    return run_local(stack.folder, "keys", *arguments, **variables)


def status(stack: Stack, key: str) -> int:
    return httpx.get(f"{stack.url}/api/keys", headers={"Authorization": f"Bearer {key}"}).status_code


def test_a_key_is_created_listed_rotated_and_revoked(stack: Stack):
    made = keys(stack, "create", "--user", OWNER, "--name", "from a shell", "--scope", "admin", "--days", "1")
    assert made.returncode == 0, made.stderr
    key = made.stdout.removesuffix("\n")
    assert status(stack, key) == 200
    (identity,) = re.findall(r"^id (\S+);", made.stderr, re.MULTILINE)

    listed = keys(stack, "list", "--user", OWNER, COLUMNS="40").stdout
    (row,) = [line for line in listed.splitlines() if identity in line]
    assert "from a shell" in row
    assert "works" in row
    assert key not in listed

    rotated = keys(stack, "rotate", identity, "--user", OWNER)
    new = rotated.stdout.removesuffix("\n")
    (identity,) = re.findall(r"^id (\S+);", rotated.stderr, re.MULTILINE)
    assert new != key
    assert keys(stack, "revoke", identity, "--user", OWNER).stdout == "revoked\n"
    assert status(stack, new) == 401


def test_another_deployment_needs_its_url_and_the_owner_s_token(stack: Stack):
    token = stack.token(OWNER)
    arguments = ("create", "--url", stack.url, "--name", "from afar", "--scope", "chat:read")
    assert keys(stack, *arguments, RAG_TOKEN=token).stdout.startswith("mn_live_")
    without = keys(stack, *arguments)
    assert (without.returncode, without.stdout) == (1, "")
    assert "RAG_TOKEN" in without.stderr


def test_an_api_error_is_printed_in_one_line(stack: Stack):
    refused = keys(stack, "create", "--user", "tomas@halden.example", "--name", "x", "--scope", "admin")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert (
        refused.stderr
        == "error: 403: Only admins of the org may give a key the scope admin. Choose other scopes.\n"
    )
    assert "Traceback" not in keys(stack, "revoke", "not-an-id", "--user", OWNER).stderr
    assert (
        keys(stack, "list").stderr
        == "error: name a user of the local stack with --user EMAIL, or a deployment with --url\n"
    )
