"""Users of Clerk and Auth0 over the functions and straight through PostgREST; tokens that confuse issuers."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from local import access_tokens
from local.child_processes import free_port, is_responding, start, wait_until_ready
from local.npm_tools import postgrest_binary
from local.stack import Stack
from shared.access.jwt_verifier import third_party_user_id
from shared.config import Settings, ThirdPartyIssuer
from tests.actors import World, client, vector
from tests.conftest import People
from tests.functions.app_server import proxy_to, services_with, site
from tests.isolation.bad_tokens import encoded
from tests.key_pairs import public, rs256, shared_secrets_of
from tests.shared.access.test_jwt_key_pairs import under
from tests.shared.access.test_jwt_verifier import signed
from tests.shared.access.test_third_party_issuers import claims
from tests.sql.passages import deployed_with
from tests.stand_in_server import Reply, StandIn
from tests.verify.test_run import sql_of

CLERK, AUTH0 = "https://app.clerk.example", "https://app.auth0.example/"
AUDIENCES = {CLERK: None, AUTH0: "app"}
KEYS = {CLERK: rs256("clerk"), AUTH0: rs256("auth0")}


@dataclass(frozen=True)
class Deployment:
    """Functions, and a PostgREST whose one key set has the keys of all issuers."""

    functions: str
    postgrest: str
    stack: Stack

    @property
    def own(self) -> str:
        return access_tokens.issuer(self.stack.url)

    def ask(self, token: str, method: str, path: str, body: Any = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"}
        return client().request(method, f"{self.functions}{path}", json=body, headers=headers)

    def call(self, token: str, function: str, arguments: Any = None) -> httpx.Response:
        """An SQL function, as a browser that calls PostgREST itself."""
        headers = {"Authorization": f"Bearer {token}"}
        return client().post(f"{self.postgrest}/rpc/{function}", json=arguments or {}, headers=headers)


@pytest.fixture(scope="module")
def deployment(stack: Stack, world: World, settings: Settings, tmp_path_factory: Any) -> Iterator[Deployment]:
    folder: Path = tmp_path_factory.mktemp("deployment")
    address = f"http://127.0.0.1:{free_port()}"
    own = access_tokens.issuer(stack.url)
    with (
        deployed_with(world, issuer=own, third_party_issuers=AUDIENCES),
        StandIn() as clerk, StandIn() as auth0, pytest.MonkeyPatch.context() as shell,
    ):  # fmt: skip
        issuers = []
        for server, issuer in ((clerk, CLERK), (auth0, AUTH0)):
            server.replies(Reply(json={"keys": [public(KEYS[issuer])]}))
            issuers.append({"issuer": issuer, "jwks_url": server.url, "audience": AUDIENCES[issuer]})
        shell.setenv("RAG_THIRD_PARTY_ISSUERS", json.dumps(issuers))
        environment = {**stack._postgrest_environment(), "PGRST_SERVER_PORT": address.rpartition(":")[2]}
        changes = {
            "supabase_jwt_issuer": own,
            "rag_third_party_issuers": [ThirdPartyIssuer.model_validate(each) for each in issuers],
        }
        postgrest = start([postgrest_binary()], environment, folder / "postgrest.log")
        try:
            wait_until_ready(lambda: is_responding(address), postgrest, folder / "postgrest.log", seconds=120)
            with (
                proxy_to(address, "/rest/v1") as (project, _),
                services_with(settings, supabase_url=project, **changes) as services,
                site(services) as functions,
            ):
                yield Deployment(functions, address, stack)
        finally:
            postgrest.stop()


@pytest.fixture
def subject() -> str:
    """The claim sub of a member of acme."""
    return f"user_{uuid4().hex}"


def token(issuer: str, subject: str, key: Any = None, **more: Any) -> str:
    return access_tokens.sign(
        key or KEYS[issuer], claims(issuer, subject, **{"aud": AUDIENCES[issuer], **more})
    )


def join(world: World, people: People, issuer: str, subject: str, role: str = "member") -> str:
    """Make that issuer's user a member of acme; the user's id."""
    world.sql(
        "insert into rag.members (org_id, user_id, role) "
        "values (%s, rag.third_party_user_id(%s, %s), %s)", people.acme.id, issuer, subject, role,
    )  # fmt: skip
    return third_party_user_id(issuer, subject)


def test_a_member_of_clerk_s_uses_the_functions_as_a_user_of_supabase(
    deployment: Deployment, world: World, people: People, subject: str
):
    user = join(world, people, CLERK, subject, "admin")
    world.sql("update rag.orgs set record_days = 1 where id = %s", people.acme.id)
    people.ann.put([vector(1)], title="shared")
    members_token = token(CLERK, subject)
    # Straight through PostgREST.
    response = deployment.call(members_token, "rag_match", {"query_vector": vector(1), "top_k": 5})
    assert [row["title"] for row in response.json()] == ["shared"]
    # Collections, and a document by the index API, which embeds before it answers.
    made = deployment.ask(members_token, "POST", "/v1/collections", {"name": "own", "private": True})
    assert (made.status_code, made.json()["user_id"]) == (201, user)
    written = deployment.ask(
        members_token,
        "POST",
        "/index",
        {"index_name": "manual", "documents": [{"text": "The kettle holds 1.7 litres."}]},
    )
    assert written.status_code == 200, written.text
    answer = deployment.ask(
        members_token, "POST", "/api/rag/answer", {"query_text": "How much does the kettle hold?"}
    )
    assert answer.json()["status"] == "success", answer.text
    # A session, a record and the audit log have the user.
    chat = deployment.ask(members_token, "POST", "/v1/chat", {"message": "How much does the kettle hold?"})
    assert chat.status_code == 200, chat.text
    for table, column in (
        ("sessions", "owner_id"),
        ("request_records", "owner_id"),
        ("documents", "created_by"),
    ):
        owners = world.sql(
            f"select distinct {column}::text from rag.{table} where org_id = %s", people.acme.id
        )
        assert (user,) in owners, table
    # Webhooks, and an API key, whose tokens our functions sign.
    hook = {"url": "https://hooks.example/in", "events": ["document.deleted"]}
    assert deployment.ask(members_token, "POST", "/v1/webhooks", hook).status_code == 201
    key = deployment.ask(
        members_token, "POST", "/api/keys", {"name": "ci", "scopes": ["retrievals:read"]}
    ).json()["key"]
    assert deployment.ask(key, "POST", "/v1/retrievals", {"query": "kettle"}).status_code == 200
    # The end of the membership ends both.
    world.sql("delete from rag.members where user_id = %s", user)
    assert deployment.ask(members_token, "POST", "/v1/retrievals", {"query": "kettle"}).status_code == 403
    assert deployment.ask(key, "POST", "/v1/retrievals", {"query": "kettle"}).status_code in (401, 403)


def test_an_admin_invites_a_user_of_an_issuer_by_id(
    deployment: Deployment, world: World, people: People, subject: str
):
    user = third_party_user_id(AUTH0, subject)
    assert people.ada.rpc("rag_put_member", {"user_id": user}, token=people.ada.token()).status_code == 204
    members_token = token(AUTH0, subject)
    accepted = deployment.ask(members_token, "POST", f"/v1/invitations/{people.acme.id}", {"accept": True})
    assert accepted.status_code == 204, accepted.text
    assert deployment.call(members_token, "is_org_member", {"org_id": people.acme.id}).json() is True


Make = Callable[[People, str], str]
# Tokens of no member of acme: PostgREST verifies the signatures, SQL refuses the issuer or sees another user.
OUTSIDERS: dict[str, Make] = {
    "the same subject at another issuer": lambda _people, subject: token(AUTH0, subject),
    "another subject": lambda _people, subject: token(CLERK, f"{subject}x"),
    "the id of a user of Supabase": lambda people, subject: token(CLERK, people.ada.id),
    "the id that the member has here": lambda _people, subject: token(
        CLERK, third_party_user_id(CLERK, subject)
    ),
}
REFUSED: dict[str, Make] = {
    "an unlisted issuer": lambda _people, subject: token(CLERK, subject, iss="https://unlisted.example"),
    "an unlisted issuer and ada's id": lambda people, subject: token(
        CLERK, people.ada.id, iss="https://unlisted.example/auth/v1"
    ),
    "a slash too many": lambda _people, subject: token(CLERK, subject, iss=f"{CLERK}/"),
    "a slash too few": lambda _people, subject: token(AUTH0, subject, iss=AUTH0.rstrip("/")),
    "no issuer": lambda people, subject: token(CLERK, people.ada.id, iss=None),
    "another audience": lambda _people, subject: token(AUTH0, subject, aud="another"),
    "no audience": lambda _people, subject: token(AUTH0, subject, aud=None),
    "Supabase Auth's issuer, for another audience": lambda people, _subject: people.ada.token(aud="another"),
    "a claim of an org": lambda people, subject: token(CLERK, subject, rag={"org": people.acme.id}),
    "a claim of the metrics": lambda _people, subject: token(CLERK, "", rag={"metrics": True}),
    "the role of the worker": lambda _people, subject: token(CLERK, subject, role="rag_worker"),
    "the service role": lambda _people, subject: token(CLERK, subject, role="service_role"),
    "alg none": lambda _people, subject: f"{encoded({'alg': 'none'})}.{encoded(claims(CLERK, subject))}.",
    "the public key as a secret": lambda _people, subject: signed(
        {"alg": "HS256", "kid": "clerk"},
        claims(CLERK, subject),
        shared_secrets_of(KEYS[CLERK])["its PEM"].decode(),
    ),
    "another key under the issuer's key id": lambda _people, subject: token(
        CLERK, subject, key=rs256("clerk")
    ),
}


def test_a_token_that_confuses_issuers_sees_nothing(
    subtests: pytest.Subtests, deployment: Deployment, world: World, people: People, subject: str
):
    join(world, people, CLERK, subject, "admin")
    people.ann.put([vector(1)], title="secret")
    search = {"query_vector": vector(1), "top_k": 5}
    assert len(deployment.call(token(CLERK, subject), "rag_match", search).json()) == 1
    for name, make in {**OUTSIDERS, **REFUSED}.items():
        with subtests.test(name=name):
            bad = make(people, subject)
            responses = [
                deployment.call(bad, "rag_match", search),
                deployment.ask(bad, "POST", "/api/rag/search", {"query_text": "secret"}),
                deployment.ask(bad, "GET", "/v1/collections"),
            ]
            statuses = {response.status_code for response in responses}
            assert statuses <= ({401, 403} if name in REFUSED else {403}), [each.text for each in responses]
            member = deployment.call(bad, "is_org_member", {"org_id": people.acme.id})
            assert member.text == "false" or member.status_code in (401, 403)


def test_the_documented_orgs_from_claims_of_both_versions_of_clerk_s_tokens(
    deployment: Deployment, world: World, people: People, subject: str
):
    (statement,) = sql_of("third-party-sign-in.md", "Orgs from claims")
    recipe = statement.replace("https://app.clerk.accounts.dev", CLERK)
    own = world.sql("select pg_get_functiondef('rag.memberships'::regproc)")[0][0]
    org_id = third_party_user_id(CLERK, "org_2xyz")
    try:
        world.sql(recipe)
        for claims_of_org, role in (
            ({"org_id": "org_2xyz", "org_role": "org:admin"}, "admin"),
            ({"org_id": "org_2xyz", "org_role": "org:member"}, "member"),
            ({"o": {"id": "org_2xyz", "rol": "admin"}}, "admin"),
            ({"o": {"id": "org_2xyz", "rol": "member"}}, "member"),
        ):
            orgs = deployment.ask(token(CLERK, subject, **claims_of_org), "GET", "/v1/orgs").json()["data"]
            assert [(org["id"], org["role"]) for org in orgs] == [(org_id, role)]
        # Of another issuer, and without an org.
        for other in (token(AUTH0, subject, o={"id": "org_2xyz", "rol": "admin"}), token(CLERK, subject)):
            assert deployment.ask(other, "GET", "/v1/collections").status_code == 403
    finally:
        world.sql(own)
        world.sql("delete from rag.orgs where id = %s", org_id)


def test_a_token_that_names_two_issuers_or_two_users_is_refused(
    deployment: Deployment, world: World, people: People, subject: str
):
    """PostgREST takes the first value of a repeated name, and Python's json the last."""
    join(world, people, CLERK, subject)
    own = {**claims(deployment.own, people.ada.id), "aud": "authenticated"}
    for first, second in (
        (f'"iss": "{deployment.own}"', own | {"iss": CLERK}),
        (rf'"\u0069ss": "{deployment.own}"', own | {"iss": CLERK}),
        (f'"sub": "{people.ada.id}"', claims(CLERK, subject)),
    ):
        payload = f"{{{first}, {json.dumps(second)[1:]}".encode()
        forged = under(KEYS[CLERK], {"alg": "RS256", "kid": "clerk"}, payload)
        refused = deployment.ask(forged, "GET", "/v1/members")
        assert refused.status_code == 401, refused.text


def test_only_the_functions_tell_the_keys_of_two_trusted_issuers_apart(
    deployment: Deployment, world: World, people: People, subject: str
):
    """PostgREST has one key set for all issuers (docs/third-party-sign-in.md)."""
    join(world, people, CLERK, subject)
    forged = token(CLERK, subject, key=KEYS[AUTH0])
    assert deployment.ask(forged, "POST", "/api/rag/search", {"query_text": "secret"}).status_code == 401


def test_an_issuer_that_only_the_functions_trust_is_refused_by_the_database(
    deployment: Deployment, world: World
):
    question = {"query_text": "kettle"}
    with deployed_with(world, third_party_issuers={}):
        refused = deployment.ask(token(CLERK, "user_2abc"), "POST", "/api/rag/search", question)
    assert refused.status_code == 401, refused.text
    assert "not trusted here" in refused.json()["error"]["message"]
