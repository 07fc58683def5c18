"""A new stack, whose tokens are signed with ES256: from the supabase CLI's key to the last row."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import pytest
from jose import jwt

from local import ROOT, access_tokens
from local.errors import CommandError
from local.npm_tools import npm_path, npm_program, supabase
from local.seed_demo import make_services
from local.stack import Stack
from local.verify_command import deployment_of
from shared.services import Services
from tests.actors import Actor, Org, World, vector
from tests.clients.test_supabase_clients import KETTLE
from tests.functions.test_rag_search import tell
from tests.isolation.bad_tokens import BAD_TOKENS, BAD_USERS, CONFUSED
from tests.local.command_line import run_local
from tests.stand_in_server import Reply, StandIn

ROUTES = ("/api/rag/search", "/functions/v1/rag-answer")
JWKS = "/auth/v1/.well-known/jwks.json"


@dataclass(frozen=True)
class Town:
    """The stack, an org, ann who belongs to it and has a document there, and bob, who belongs to none."""

    stack: Stack
    acme: Org
    ann: Actor
    bob: Actor


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A stack that the command line brought up."""
    folder = tmp_path_factory.mktemp("es256") / "stack"
    try:
        process = run_local(folder, "up", "--port", "0")
        assert process.returncode == 0, process.stderr
        stack = Stack(folder)
        world = World(stack)
        acme = world.org("Acme")
        town = Town(stack, acme, world.user(acme), world.user())
        world.close()
        services = make_services(stack)
        tell(services, town.ann, "Kettle manual", KETTLE)
        services.close()
        yield town
    finally:
        Stack(folder).remove()
    assert not folder.exists()


def titles(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [result["source_title"] for result in answer.json()["results"]]


def test_the_signing_key_is_the_supabase_cli_s_and_stays_private(town: Town):
    key = town.stack.signing_key
    assert not isinstance(key, str)
    assert (key["kty"], key["crv"], key["alg"]) == ("EC", "P-256", "ES256")
    held = json.dumps([town.stack.function_environment(), town.stack.status()])
    held += (
        httpx.get(f"{town.stack.url}{JWKS}").text + town.stack._postgrest_environment()["PGRST_JWT_SECRET"]
    )
    assert key["d"] not in held
    assert town.stack.state.jwt_secret not in held
    assert "SUPABASE_JWT_SECRET" not in town.stack.function_environment()


def test_the_public_key_is_published_like_supabase_auth_s(town: Town):
    answer = httpx.get(f"{town.stack.url}{JWKS}")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "public, max-age=600"
    (entry,) = answer.json()["keys"]
    key = town.stack.signing_key
    assert not isinstance(key, str)
    assert entry == {**{name: key[name] for name in key if name != "d"}, "key_ops": ["verify"]}


def test_an_api_key_can_be_created_and_used(town: Town):
    body = {"name": "files", "scopes": ["documents:read"]}
    response = town.ann.post("/api/keys", body)
    assert response.status_code == 201, response.text
    assert httpx.get(f"{town.stack.url}/api/keys/health").json() == {"api_keys": "ES256"}
    key = response.json()["key"]
    assert town.ann.request("GET", "/api/v1/collections", token=key).status_code == 200


def test_the_functions_accept_the_stack_s_users(town: Town):
    assert titles(town.ann.search("kettle")) == ["Kettle manual"]
    assert "100 degrees" in town.ann.answer("How hot is the kettle?").json()["answer"]["text"]
    for refused in (town.bob.search("kettle"), town.bob.answer("How hot is the kettle?")):
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "no_org")


def test_postgrest_accepts_the_stack_s_users(town: Town):
    assert [row["title"] for row in town.ann.match(vector(1))] == ["Kettle manual"]
    assert town.bob.rpc("is_org_member", {"org_id": town.acme.id}).json() is False
    assert town.ann.rpc("is_org_member", {"org_id": town.acme.id}).json() is True


def test_a_token_signed_by_the_supabase_cli_works_everywhere(town: Town, tmp_path: Path):
    project = tmp_path / "supabase"
    project.mkdir()
    (project / "signing_keys.json").write_text(json.dumps([town.stack.signing_key]))
    (project / "config.toml").write_text(
        'project_id = "test"\n[auth]\nsigning_keys_path = "./signing_keys.json"\n'
    )
    payload = json.dumps({"iss": access_tokens.issuer(town.stack.url), "aud": access_tokens.AUDIENCE})
    made = supabase(
        tmp_path, "gen", "bearer-jwt", "--workdir", str(tmp_path), "--role", "authenticated",
        "--sub", town.ann.id, "--valid-for", "1h", "--payload", payload,
    ).split()[0]  # fmt: skip
    assert jwt.get_unverified_header(made)["alg"] == "ES256"
    assert titles(town.ann.post("/api/rag/search", {"query_text": "kettle"}, token=made)) == ["Kettle manual"]
    assert town.ann.rpc("is_org_member", {"org_id": town.acme.id}, token=made).json() is True


def test_an_invalid_token_is_refused(subtests: pytest.Subtests, town: Town):
    for fault, make in (BAD_TOKENS | BAD_USERS | CONFUSED).items():
        with subtests.test(fault=fault):
            made = make(town.ann)
            for door in ROUTES:
                answer = town.ann.post(door, {"query_text": "kettle"}, token=made)
                assert answer.status_code == 401, answer.text
                assert answer.json()["error"]["code"] == "unauthorized"
                assert "Kettle" not in answer.text
            if fault not in BAD_USERS:
                answer = town.ann.rpc("rag_match", {"query_vector": vector(1)}, token=made)
                assert answer.status_code == 401, answer.text


def test_hs256_is_refused_even_with_the_stack_s_unused_secret(town: Town):
    for secret in (town.stack.state.jwt_secret, "super-secret-jwt-token-with-at-least-32-characters-long"):
        made = access_tokens.user_token(secret, town.stack.url, town.ann.id)
        for path, body in (("/api/rag/search", {"query_text": "x"}), ("/rest/v1/rpc/rag_match", {})):
            assert town.ann.post(path, body, token=made).status_code == 401


def test_a_stack_keeps_the_signing_algorithm_of_its_data(town: Town):
    for other in ("hs256", "rs256"):
        process = run_local(town.stack.folder, "up", "--keys", other)
        assert process.returncode == 1
        assert "signed with ES256" in process.stderr
        with pytest.raises(CommandError):
            Stack(town.stack.folder, keys=other)
    assert Stack(town.stack.folder, keys="es256").signing_key == town.stack.signing_key


def test_a_stack_with_a_shared_secret_publishes_no_key(stack: Stack):
    assert stack.signing_key == stack.state.jwt_secret
    assert httpx.get(f"{stack.url}{JWKS}").json() == {"keys": []}


def test_the_chosen_algorithm_survives_a_failed_start(town: Town, tmp_path: Path):
    taken = town.stack.state.port
    assert (
        run_local(tmp_path, "up", "--port", str(taken), "--postgres", "16", "--keys", "hs256").returncode == 1
    )
    assert (
        run_local(tmp_path, "up", "--port", str(taken), "--postgres", "18", "--keys", "rs256").returncode == 1
    )
    second = Stack(tmp_path)
    assert (second.state.keys, second.state.postgres_version) == ("rs256", 18)


@pytest.mark.long
def test_tokens_survive_a_restart_and_not_a_new_key(town: Town):
    stack = town.stack
    old, anon_key = town.ann.token(), stack.anon_key
    stack.down()
    stack.up(stack.state.port, durable=False)
    assert stack.anon_key == anon_key, "it is in applications"
    assert town.ann.rpc("is_org_member", {"org_id": town.acme.id}, token=old).json() is True
    stack.down()
    stack.state.private_key = stack.state.anon_key = None
    stack._save()
    stack.up(stack.state.port, durable=False)
    assert titles(town.ann.search("kettle")) == ["Kettle manual"]
    assert town.ann.post("/api/rag/search", {"query_text": "kettle"}, token=old).status_code == 401
    assert town.ann.rpc("is_org_member", {"org_id": town.acme.id}, token=old).status_code == 401


@pytest.mark.long
def test_a_stack_can_sign_with_rs256(tmp_path: Path):
    stack = Stack(tmp_path / "stack", keys="rs256")
    services: Services | None = None
    try:
        stack.up(0, durable=False)
        world = World(stack)
        acme = world.org("Acme")
        ann = world.user(acme)
        world.close()
        services = make_services(stack)
        tell(services, ann, "Kettle manual", KETTLE)
        confused = CONFUSED["HS256 with its PEM"](ann)
        assert jwt.get_unverified_header(ann.token())["alg"] == "RS256"
        assert titles(ann.search("kettle")) == ["Kettle manual"]
        assert [row["title"] for row in ann.match(vector(1))] == ["Kettle manual"]
        assert ann.post("/api/rag/search", {"query_text": "x"}, token=confused).status_code == 401
        assert ann.rpc("rag_match", {"query_vector": vector(1)}, token=confused).status_code == 401
    finally:
        if services:
            services.close()
        stack.remove()


def test_a_stack_trusts_the_third_party_issuers_of_the_shell(
    town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The commands of docs/third-party-sign-in.md, with a stand-in for the file server."""
    page = (ROOT / "docs" / "third-party-sign-in.md").read_text()
    ((commands, public),) = re.findall(
        r"```bash\n(mkdir -p build/issuer.*?)python3 -m http.server [^\n]*--directory (\S+)", page, re.DOTALL
    )
    (issuers,) = re.findall(r"export RAG_THIRD_PARTY_ISSUERS='(.*http://127.*)'", page)
    commands = commands.replace("npx supabase", str(npm_program("supabase")))
    commands = commands.replace(".venv/bin/python", sys.executable)
    environment = {"PATH": npm_path(), "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    subprocess.run(["bash", "-euc", commands], cwd=tmp_path, env=environment, check=True)
    headers = {"Authorization": f"Bearer {(tmp_path / 'build/issuer/token.txt').read_text().strip()}"}
    (key_set,) = (tmp_path / public).iterdir()
    stack = town.stack
    with StandIn() as issuer:
        issuer.replies(Reply(json=json.loads(key_set.read_text())))
        monkeypatch.setenv("RAG_THIRD_PARTY_ISSUERS", issuers.replace("http://127.0.0.1:8001", issuer.url))
        stack.down()
        stack.up(stack.state.port, durable=False)
        with psycopg.connect(stack.database_url()) as connection:
            connection.execute(
                "insert into rag.members (org_id, user_id) select min(id::text)::uuid, "
                "rag.third_party_user_id('https://clerk.example', 'user_2abc') from rag.orgs"
            )
        assert httpx.get(f"{stack.url}/v1/collections", headers=headers).status_code == 200
        # Straight through PostgREST, and for the stack's own users.
        for bearer in (headers, {"Authorization": f"Bearer {stack.token('ines@halden.example')}"}):
            direct = httpx.post(
                f"{stack.url}/rest/v1/rpc/rag_search",
                json={"query_text": "kettle", "mode": "keyword"},
                headers=bearer | {"apikey": stack.publishable_key},
            )
            assert direct.status_code == 200, direct.text
        monkeypatch.setenv("RAG_THIRD_PARTY_ISSUERS", "[{}]")
        with pytest.raises(CommandError, match="RAG_THIRD_PARTY_ISSUERS is no list of issuers"):
            stack._postgrest_environment()
        # verify compares the settings with the issuers of the start, not with those of its shell.
        monkeypatch.delenv("RAG_THIRD_PARTY_ISSUERS")
        assert deployment_of(Stack(stack.folder)).third_party_issuers == {"https://clerk.example": None}
        # The next start without them removes them, and a later one leaves what a developer set.
        assert stack._issuer_settings()["issuer"] is None
        assert stack._issuer_settings() == {}
