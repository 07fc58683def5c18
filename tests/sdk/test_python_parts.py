"""The Python SDK's parts that do no I/O: events from bytes, retries, settings and errors. Without a
caller."""

import itertools
import json
import pickle
from datetime import UTC, datetime

import httpx
import pytest
from pydantic import ValidationError as Malformed

import mnemosyne
from mnemosyne import AsyncMnemosyne, Mnemosyne, errors, retries
from mnemosyne.models import Collection
from mnemosyne.requests import Request, creation, path
from mnemosyne.sse import Decoder
from tests.sdk.python_client import COLLECTION, KEY

EVENTS = (
    "\ufeffdata: one\n\n: a comment\ndata:two\r\n\r\nevent: other\ndata: named\n\n"
    "data: three\r\ndata:  lines\r\r"
    "id: 7\nretry: 10\ndata: Überblick 索引 📚\u2028 still\n\n\n\nevent: message\ndata: four\n\ndata: no end"
)
WRITE = Request("POST", "/documents/text", json={}, repeatable=False)
KEYED = creation("/documents/text", None, json={})
READ = Request("GET", "/documents")


def test_events_do_not_depend_on_chunk_boundaries():
    texts = ["one", "two", "named", "three\n lines", "Überblick 索引 📚\u2028 still", "four"]
    events = [("other" if text == "named" else "", text) for text in texts]
    whole = EVENTS.encode()
    for first, second in itertools.combinations_with_replacement(range(0, len(whole) + 1, 3), 2):
        decoder = Decoder()
        parts = (whole[:first], whole[first:second], whole[second:])
        assert [event for part in parts for event in decoder.feed(part)] == events
    decoder = Decoder()
    assert [event for byte in whole for event in decoder.feed(bytes([byte]))] == events


def test_a_possibly_executed_write_is_not_retried_and_a_rejected_one_is(subtests: pytest.Subtests):
    for request_, status, retry_after, again in [
        (READ, 503, None, True),
        (READ, 500, None, True),
        (READ, 408, None, True),
        (READ, 404, None, False),
        (READ, 501, None, False),
        (READ, 429, 60.0, True),
        (READ, 429, 61.0, False),
        (WRITE, 500, None, False),
        (WRITE, 503, None, False),
        (WRITE, 429, None, False),
        (WRITE, 503, 2.0, True),
        (WRITE, 429, 2.0, True),
        (WRITE, 504, 2.0, False),
        (WRITE, 409, 2.0, False),
        (KEYED, 500, None, True),
        (KEYED, 429, None, False),
        (KEYED, 429, 2.0, True),
        (KEYED, 409, 2.0, True),
        (KEYED, 409, None, False),
        (KEYED, 409, 61.0, False),
    ]:
        with subtests.test(request_=request_, status=status, retry_after=retry_after, again=again):
            wait = retries.wait_after_status(request_, status, retry_after, 0)
            assert (wait is not None) is again
            if wait is not None:
                assert (retry_after or 0) <= wait <= (retry_after or 0) + 0.5


def test_the_retry_delay_doubles_up_to_a_limit():
    assert all(0 <= retries.backoff(0) <= 0.5 for _ in range(50))
    assert max(retries.backoff(2) for _ in range(200)) > 0.5
    assert all(retries.backoff(500) <= 8 for _ in range(50))


def test_a_client_takes_its_settings_from_arguments_or_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MNEMOSYNE_API_KEY", KEY)
    monkeypatch.delenv("MNEMOSYNE_BASE_URL", raising=False)
    with Mnemosyne() as local:
        assert local.base_url == "http://127.0.0.1:54321/api/v1"
    monkeypatch.setenv("MNEMOSYNE_BASE_URL", "https://rag.example/api/v1/")
    with Mnemosyne() as named:
        assert named.base_url == "https://rag.example/api/v1"
    with Mnemosyne("a-token", "http://localhost:1/v1") as arguments:
        assert arguments.base_url == "http://localhost:1/v1"
        assert KEY not in repr(arguments) + repr(vars(arguments)) + repr(arguments._transport.settings)


def test_an_invalid_setting_is_named_without_the_key(
    subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
):
    for kind in [Mnemosyne, AsyncMnemosyne]:
        for key, address, named in [
            ("", None, "MNEMOSYNE_API_KEY"),
            (f"{KEY}\nX: y", None, "api_key"),
            (f"{KEY}é", None, "api_key"),
            (KEY, "ftp://rag.example", "base_url"),
            (KEY, "rag.example/v1", "base_url"),
            (KEY, "https://", "base_url"),
            (KEY, "https://ann:pw@rag.example", "base_url"),
            (KEY, "https://rag.example/v1?a=b", "base_url"),
            (KEY, "https://rag.example:x/v1", "base_url"),
        ]:
            with subtests.test(kind=kind, key=key, address=address, named=named):
                monkeypatch.delenv("MNEMOSYNE_API_KEY", raising=False)
                with pytest.raises(errors.ConfigurationError, match=named) as raised:
                    kind(key, address)
                assert KEY not in str(raised.value)


@pytest.mark.parametrize("client", [Mnemosyne, AsyncMnemosyne])
def test_a_deployment_on_this_machine_is_reached_without_a_proxy(
    client: type[Mnemosyne] | type[AsyncMnemosyne], monkeypatch: pytest.MonkeyPatch
):
    for proxy in ("socks://user:secret@proxy.example:1", "socks5://user:secret@proxy.example:1"):
        monkeypatch.setenv("ALL_PROXY", proxy)
        for address in ("http://127.0.0.1:54321/api/v1", "http://localhost:1", "http://[::1]:1"):
            assert client(KEY, address).base_url == address
        with pytest.raises(errors.ConfigurationError, match="HTTP_PROXY, HTTPS_PROXY or ALL_PROXY") as raised:
            client(KEY, "https://rag.example")
        assert "secret" not in str(raised.value)
        assert raised.value.__suppress_context__


def test_an_id_cannot_change_the_path(subtests: pytest.Subtests):
    for id_ in ["", ".", ".."]:
        with subtests.test(id_=id_):
            with pytest.raises(ValueError, match="id"):
                path("documents", id_)
            assert path("documents", "../collections/c1?x#y") == "/documents/..%2Fcollections%2Fc1%3Fx%23y"


def test_each_status_has_its_own_picklable_error(subtests: pytest.Subtests):
    for status, code, kind in [
        (400, "invalid_field_value", errors.ValidationError),
        (405, "x", errors.BadRequestError),
        (429, "rate_limit_exceeded", errors.RateLimitError),
    ]:
        with subtests.test(status=status, code=code, kind=kind):
            body = {"error": {"type": "t", "code": code, "message": f"No, {KEY}.", "details": {"a": 1}}}
            headers = {"x-request-id": "r-1", "retry-after": "7"}
            request = httpx.Request("GET", "http://x", headers={"Authorization": f"Bearer {KEY}"})
            error = errors.of_response(httpx.Response(status, headers=headers, json=body, request=request))
            assert type(error) is kind
            second = pickle.loads(pickle.dumps(error))  # noqa: S301
            for each in (error, second):
                assert (each.status_code, each.code, each.type) == (status, code, "t")
                assert each.details == {"a": 1}
                assert (each.request_id, each.retry_after) == ("r-1", 7.0)
                assert str(each) == f"No, [the API key]. (status {status}, code {code}, request r-1)"


def test_models_are_frozen_typed_and_keep_unknown_fields():
    body = Collection.model_validate_json(json.dumps({**COLLECTION, "colour": "red"}))
    assert body.created_at == datetime(2026, 11, 14, 10, 30, tzinfo=UTC)
    assert body.model_extra == {"colour": "red"}
    with pytest.raises(Malformed):
        body.name = "other"


def test_every_error_is_exported():
    named = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)
    }
    assert named <= set(mnemosyne.__all__)
