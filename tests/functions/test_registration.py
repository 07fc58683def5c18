"""POST /auth/register: users without a credential, beside a project with Supabase Auth."""

import logging
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi.testclient import TestClient

from functions import administration
from local import access_tokens
from local.stack import Stack
from shared.config import Settings
from shared.services import Services
from tests.actors import Org, World, client
from tests.auth_server import AuthServer
from tests.clients.upstream_models import RegisterResponse
from tests.functions.app_server import app_with, client_of, services_with
from tests.functions.app_server import platform_error as error
from tests.project_server import Answer, in_json
from tests.sql.schema_changes import schema_change

PATH = "/api/v1/auth/register"
PASSWORD = "hunter2-7f3x-correct"


@pytest.fixture
def auth(stack: Stack) -> Iterator[AuthServer]:
    with AuthServer(stack) as server:
        yield server


@pytest.fixture
def services(stack: Stack, settings: Settings, auth: AuthServer) -> Iterator[Services]:
    changes: dict[str, Any] = {
        "supabase_url": auth.url,
        "supabase_jwt_issuer": access_tokens.issuer(stack.url),
        "rag_registration_enabled": True,
    }
    with services_with(settings, **changes) as services:
        yield services


@pytest.fixture
def app(services: Services) -> Iterator[TestClient]:
    with client_of(administration.app, services) as app:
        yield app


@pytest.fixture
def org(world: World) -> Iterator[Org]:
    """The org that a deployer's trigger adds each new user to."""
    org = world.org()
    world.sql(
        "create function public.join_org() returns trigger language plpgsql security definer as $$ begin "
        f"insert into rag.members (org_id, user_id, role) values ('{org.id}', new.id, 'member'); "
        "return null; end $$"
    )
    world.sql(
        "create trigger join_org after insert on auth.users for each row execute function public.join_org()"
    )
    yield org
    world.sql("drop function public.join_org cascade")


def address() -> str:
    return f"{uuid4()}@test.example"


def register(app: TestClient, email: str | None = None, password: str = PASSWORD, path: str = PATH) -> Any:
    return app.post(path, json={"email": email or address(), "password": password})


def keys_of(world: World) -> int:
    return int(world.sql("select count(*) from rag.api_keys")[0][0])


@pytest.mark.parametrize("path", [PATH, "/v1/auth/register"])
def test_a_new_user_gets_a_key_of_the_user_s_own(
    app: TestClient, auth: AuthServer, stack: Stack, world: World, org: Org, path: str
):
    email = address()
    response = register(app, email.title(), path=path)
    assert response.status_code == 201, response.text
    user = RegisterResponse.model_validate_json(response.text)
    assert user.email == email
    (key,) = world.sql(
        "select owner_id::text, org_id::text, scopes from rag.api_keys where owner_id = %s", user.user_id
    )
    assert key == (
        user.user_id,
        org.id,
        ["chat:read", "collections:manage", "documents:read", "documents:write", "retrievals:read"],
    )
    headers = {"Authorization": f"Bearer {user.api_key}"}
    made = client().post(f"{stack.url}/api/v1/collections", json={"name": "docs"}, headers=headers)
    assert (made.status_code, made.json()["user_id"]) == (201, user.user_id)
    # Auth got the publishable key alone.
    ((sent, body),) = auth.sign_ups
    assert body == {"email": email.title(), "password": PASSWORD}
    assert sent["apikey"] == stack.publishable_key
    assert "authorization" not in sent


def test_without_the_setting_the_route_does_not_exist(settings: Settings, auth: AuthServer):
    assert not settings.rag_registration_enabled
    with app_with(administration.app, settings, supabase_url=auth.url) as app:
        for body in ({"email": address(), "password": PASSWORD}, {"password": 1}):
            answer: Any = app.post(PATH, json=body)
            assert error(answer, 404)["code"] == "not_found"
    assert auth.sign_ups == []


def test_an_address_that_must_be_confirmed_gets_no_key(
    app: TestClient, auth: AuthServer, world: World, org: Org
):
    auth.autoconfirm = False
    before = keys_of(world)
    email = address()
    refused = [error(register(app, email), 403) for _ in range(2)]
    assert refused[0]["code"] == "email_not_confirmed"
    assert "Follow its link" in refused[0]["message"]
    # A registered address is not told apart.
    assert refused[0] == refused[1]
    assert keys_of(world) == before


def test_a_user_of_no_org_is_named_for_an_admin(app: TestClient, world: World):
    email = address()
    refused = error(register(app, email), 403)
    assert refused["code"] == "no_org"
    ((user_id,),) = world.sql("select id::text from auth.users where email = %s", email)
    assert user_id in refused["message"]


def test_a_user_whose_key_could_not_be_created_is_told_so(app: TestClient, world: World, org: Org):
    plant = (
        "create function public.refuse_key() returns trigger language plpgsql as $$ begin "
        "raise exception 'no keys'; end $$; "
        "create trigger refuse_key before insert on rag.api_keys "
        "for each row execute function public.refuse_key()"
    )
    email = address()
    with schema_change(world, plant, "drop function public.refuse_key cascade"):
        refused = error(register(app, email), 500)
    assert refused["code"] == "registered_without_key"
    assert "is registered" in refused["message"]
    assert world.sql("select count(*) from auth.users where email = %s", email) == [(1,)]


def test_a_registered_address_is_refused(app: TestClient, org: Org):
    email = address()
    assert register(app, email).status_code == 201
    refused = error(register(app, email), 400)
    assert refused["code"] == "email_registered"
    assert email not in str(refused)


def of_auth(status: int, code: str, message: str = "", **more: Any) -> Answer:
    """An error of Auth, whose message must not be passed on."""
    return in_json({"code": status, "error_code": code, "msg": f"{message} {PASSWORD}", **more}, status)


# The forms of errors, with and without codes, and each group of codes.
FAULTS: list[tuple[Answer, int, str]] = [
    (of_auth(422, "weak_password", weak_password={"reasons": ["length"]}), 400, "weak_password"),
    (of_auth(400, "email_address_invalid"), 400, "registration_refused"),
    (of_auth(422, "signup_disabled"), 403, "registration_off"),
    (of_auth(429, "over_email_send_rate_limit"), 429, "rate_limit_exceeded"),
    (in_json({"code": 500, "error_code": "unexpected_failure", "msg": PASSWORD}, 500), 500, "auth_failed"),
    (in_json({"message": "no Route matched with those values"}, 404), 500, "auth_failed"),
    (in_json({"access_token": PASSWORD, "user": {"email": "a@b.example"}}), 500, "registered_without_key"),
    ((200, PASSWORD.encode(), {"Content-Type": "text/html"}), 500, "auth_failed"),
    ((302, b"", {"Location": "https://other.example/"}), 500, "auth_failed"),
]


def test_errors_of_auth_are_told_without_the_password(
    subtests: pytest.Subtests, app: TestClient, auth: AuthServer, caplog: pytest.LogCaptureFixture
):
    for fault, status, code in FAULTS:
        with subtests.test(fault=fault), caplog.at_level(logging.DEBUG):
            auth.fault = fault
            refused = register(app)
            assert error(refused, status)["code"] == code
            assert ("retry-after" in refused.headers) == (status == 429)
            assert_hidden(refused, caplog)


def test_no_log_and_no_error_has_the_password(
    app: TestClient, services: Services, org: Org, caplog: pytest.LogCaptureFixture
):
    kind = {"Content-Type": "application/json"}
    with caplog.at_level(logging.DEBUG):
        answers = [
            register(app),
            register(app, "no address"),
            register(app, password=PASSWORD * 20),
            app.post(PATH, json={"email": address(), "password": [PASSWORD]}),
            app.post(PATH, headers=kind, content=f'{{"email": "a@b.c", "password": "{PASSWORD}\\ud800"}}'),
            app.post(PATH, headers=kind, content=f'{{"password": "{PASSWORD}"'),
        ]
    assert [response.status_code for response in answers] == [201, 400, 400, 400, 400, 400]
    for response in answers:
        assert_hidden(response, caplog)
    assert caplog.records


def assert_hidden(response: httpx.Response, caplog: pytest.LogCaptureFixture) -> None:
    assert "7f3x" not in response.text
    # With the fields of each record, which the formatter writes.
    assert not [record for record in caplog.records if "7f3x" in f"{record.getMessage()} {vars(record)}"]


def test_auth_that_does_not_answer_is_an_error(settings: Settings):
    changes = {"supabase_url": "http://127.0.0.1:9", "rag_registration_enabled": True}
    with app_with(administration.app, settings, **changes) as app:
        assert error(register(app), 500)["code"] == "auth_failed"


def test_an_address_is_limited_before_auth_is_asked(services: Services, auth: AuthServer):
    auth.fault = of_auth(422, "weak_password")

    def statuses(client: str, count: int) -> list[int]:
        app = TestClient(administration.app, client=(client, 50_000))
        answers = [register(app) for _ in range(count)]
        limited = [response for response in answers if response.status_code == 429]
        for response in answers:
            assert response.headers["X-RateLimit-Limit"] == "10"
        for response in limited:
            assert error(response, 429)["code"] == "rate_limit_exceeded"
            assert 3590 < int(response.headers["Retry-After"]) <= 3601
        return [response.status_code for response in answers]

    with client_of(administration.app, services):
        assert statuses("192.0.2.1", 12) == [400] * 10 + [429] * 2
        assert len(auth.sign_ups) == 10
        assert statuses("192.0.2.2", 1) == [400]
        # An IPv4 client of a socket for both versions.
        assert statuses("::ffff:192.0.2.1", 1) == [429]
        assert statuses("::ffff:192.0.2.3", 1) == [400]
        # A client with an IPv6 address has a whole network.
        assert statuses("2001:db8:0:1::1", 10) == [400] * 10
        assert statuses("2001:db8:0:1:ffff::2", 1) == [429]
        assert statuses("2001:db8:0:2::1", 1) == [400]


def test_without_a_signing_key_nobody_is_registered(settings: Settings, auth: AuthServer):
    changes = {
        "supabase_url": auth.url, "rag_registration_enabled": True, "rag_signing_key": None,
        "supabase_jwt_secret": None,
    }  # fmt: skip
    with app_with(administration.app, settings, **changes) as app:
        assert error(register(app), 503)["code"] == "api_keys_off"
    assert auth.sign_ups == []
