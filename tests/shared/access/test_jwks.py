"""A project's public keys over real HTTP: rotation, storms, outages, and everything that is no key."""

import gzip
import json
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from shared.access.jwks import KeySet
from shared.errors import KeysUnavailable
from tests.key_pairs import es256, public, rs256
from tests.stand_in_server import Reply, StandIn

FIRST, SECOND = public(es256("first")), public(es256("second"))
RSA = public(rs256("rsa"))
PATH = "/auth/v1/.well-known/jwks.json"


class Clock:
    """The time in seconds, as these tests say it."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(service: StandIn, clock: Clock) -> KeySet:
    return key_set(service, clock)


def key_set(service: StandIn, clock: Clock, timeout_seconds: float = 60) -> KeySet:
    return KeySet(f"{service.url}{PATH}", timeout_seconds=timeout_seconds, clock=clock)


def listing(*entries: Any) -> Reply:
    return Reply(json={"keys": list(entries)})


KeysOf = Callable[..., KeySet]


@pytest.fixture(scope="module")
def keys_of() -> Iterator[KeysOf]:
    """Makes the key set of a project with these entries; one server serves them all."""
    with StandIn() as endpoint:

        def make(*entries: Any) -> KeySet:
            endpoint._replies.clear()
            endpoint.replies(listing(*entries))
            return KeySet(endpoint.url)

        yield make


def unavailable(keys: KeySet, kid: str = "first") -> None:
    with pytest.raises(KeysUnavailable) as raised:
        keys.key(kid, "ES256")
    assert (raised.value.status, raised.value.code) == (500, "keys_unavailable")
    assert "127.0.0.1" not in f"{raised.value} {raised.value.log_reason}"


# -- cached keys, and their requests -------------------------------------------------------------------


def test_keys_are_fetched_once_and_cached(service: StandIn, keys: KeySet):
    assert service.requests == [], "before a token needs them"
    service.replies(listing(FIRST, SECOND, RSA))
    for _ in range(3):
        assert keys.key("first", "ES256") is keys.key("first", "ES256")
        assert keys.key("second", "ES256") is not None
        assert keys.key("rsa", "RS256") is not None
    (request,) = service.requests
    assert (request.method, request.path) == ("GET", PATH)
    assert "authorization" not in request.headers
    assert "cookie" not in request.headers


def test_a_cached_key_of_another_algorithm_is_refused_without_a_fetch(
    service: StandIn, keys: KeySet, clock: Clock
):
    service.replies(listing(FIRST, RSA))
    assert keys.key("first", "ES256")
    clock.now += 61
    for kid, algorithm in (("first", "RS256"), ("rsa", "ES256"), ("first", "HS256"), ("first", "none")):
        assert keys.key(kid, algorithm) is None
    assert len(service.requests) == 1


def test_a_new_key_is_found_by_one_refresh_after_a_minute(service: StandIn, keys: KeySet, clock: Clock):
    service.replies(listing(FIRST), listing(SECOND, FIRST))
    assert keys.key("first", "ES256")
    clock.now += 59
    assert keys.key("second", "ES256") is None
    clock.now += 2
    assert keys.key("second", "ES256")
    assert keys.key("first", "ES256")
    assert len(service.requests) == 2


def test_a_removed_key_is_refused_after_ten_minutes(service: StandIn, keys: KeySet, clock: Clock):
    service.replies(listing(FIRST, SECOND), listing(SECOND))
    assert keys.key("first", "ES256")
    clock.now += 599
    assert keys.key("first", "ES256")
    assert len(service.requests) == 1
    clock.now += 2
    assert keys.key("first", "ES256") is None
    assert keys.key("second", "ES256")
    assert len(service.requests) == 2


def test_a_project_without_keys_is_fetched_once_a_minute(service: StandIn, keys: KeySet, clock: Clock):
    service.replies(listing())
    for _ in range(3):
        assert [keys.key(kid, "ES256") for kid in ("first", "second")] == [None, None]
        clock.now += 61
    assert len(service.requests) == 3


def test_other_threads_use_cached_keys_during_a_refresh(service: StandIn, keys: KeySet, clock: Clock):
    release = threading.Event()
    service.replies(listing(FIRST), Reply(json={"keys": [SECOND]}, after=release))
    assert keys.key("first", "ES256")
    clock.now += 601
    with ThreadPoolExecutor(1) as pool:
        refreshing = pool.submit(keys.key, "first", "ES256")
        service.wait_for_requests(2)
        assert keys.key("first", "ES256")
        assert not refreshing.done()
        release.set()
        assert refreshing.result() is None


def test_a_clock_set_back_makes_keys_old_and_not_new(service: StandIn, keys: KeySet, clock: Clock):
    service.replies(listing(FIRST), listing(SECOND))
    assert keys.key("first", "ES256")
    clock.now -= 86_400
    assert keys.key("first", "ES256") is None
    assert keys.key("second", "ES256")
    assert len(service.requests) == 2


# -- storms ---------------------------------------------------------------------------------------------


def test_many_unknown_key_ids_cause_one_request(service: StandIn, keys: KeySet, clock: Clock):
    service.replies(listing(FIRST), Reply(json={"keys": [FIRST]}, delay=0.1))
    assert keys.key("first", "ES256")
    clock.now += 61
    with ThreadPoolExecutor(16) as pool:
        rows = list(pool.map(lambda number: keys.key(f"made-up-{number}", "ES256"), range(500)))
        assert rows == [None] * 500
    assert len(service.requests) == 2
    assert keys.key("first", "ES256")


def test_many_first_requests_cause_one_fetch_and_all_succeed(service: StandIn, keys: KeySet):
    service.replies(Reply(json={"keys": [FIRST]}, delay=0.1))
    with ThreadPoolExecutor(16) as pool:
        rows = list(pool.map(lambda number: keys.key(["first", "other"][number % 2], "ES256"), range(100)))
    assert [key is not None for key in rows] == [True, False] * 50
    assert len(service.requests) == 1


def test_a_hanging_endpoint_delays_everyone_only_until_the_time_out(service: StandIn, clock: Clock):
    """After the reply, the made-up keys would be known as such."""
    service.replies(Reply(json={"keys": [FIRST]}, delay=60))
    keys = key_set(service, clock, timeout_seconds=1)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: unavailable(keys, f"made-up-{number}"), range(64)))
    # On a machine that is busy for a second, the time is over before the request.
    assert len(service.requests) <= 1


# -- outages --------------------------------------------------------------------------------------------

BROKEN = {
    "an error": Reply(status=500, json={"keys": [FIRST]}),
    "created": Reply(status=201, json={"keys": [FIRST]}),
    "a dropped connection": Reply(drop=True),
    "not JSON": Reply(body=b"<html>"),
    "not UTF-8": Reply(body=b"\xff\xfe\xfd"),
    "a list": Reply(json=[FIRST]),
    "no keys": Reply(json={"key": [FIRST]}),
    "a bottomless list": Reply(body=b"[" * 60_000),
    "too much": Reply(json={"keys": [FIRST], "padding": "x" * 70_000}),
    "a compressed flood": Reply(
        body=gzip.compress(json.dumps({"keys": [FIRST], "padding": "x" * 2_000_000}).encode()),
        headers={"Content-Encoding": "gzip"},
    ),
}


def test_an_invalid_key_set_is_a_server_error(subtests: pytest.Subtests):
    for name, reply in BROKEN.items():
        with subtests.test(name), StandIn() as service:
            clock = Clock()
            keys = key_set(service, clock)
            service.replies(reply, listing(FIRST))
            unavailable(keys)
            unavailable(keys)
            assert len(service.requests) == 1, "a failure counts as a refresh"
            clock.now += 61
            assert keys.key("first", "ES256"), "it recovers"


def test_a_slow_key_set_is_abandoned_at_the_time_out(service: StandIn, clock: Clock):
    service.replies(Reply(json={"keys": [FIRST], "padding": "x" * 60_000}, drip=0.001))
    unavailable(key_set(service, clock, timeout_seconds=0.5))


def test_a_failed_first_fetch_is_repeated_after_five_seconds(service: StandIn, keys: KeySet, clock: Clock):
    """Until then no key is known, so no user can sign in."""
    service.replies(Reply(status=503), listing(FIRST))
    unavailable(keys)
    clock.now += 4
    unavailable(keys)
    assert len(service.requests) == 1
    clock.now += 2
    assert keys.key("first", "ES256")


def test_while_the_endpoint_fails_eight_callers_wait_and_a_slow_failure_has_a_pause_too(
    service: StandIn, keys: KeySet, clock: Clock
):
    release = threading.Event()
    service.replies(Reply(status=503), Reply(status=503, after=release), listing(FIRST))
    unavailable(keys)
    clock.now += 6
    with ThreadPoolExecutor(20) as pool:
        calls = [pool.submit(unavailable, keys) for _ in range(20)]
        assert [call.result() for call in islice(as_completed(calls), 12)] == [None] * 12
        assert sum(call.done() for call in calls) == 12
        clock.now += 60
        release.set()
    # The pause begins at the end of the failure.
    clock.now += 4
    unavailable(keys)
    clock.now += 2
    assert keys.key("first", "ES256")
    assert len(service.requests) == 3


def test_for_all_failing_endpoints_together_eight_callers_wait(service: StandIn, keys: KeySet, clock: Clock):
    release = threading.Event()
    other = KeySet(keys._url, clock=clock)
    service.replies(*[Reply(status=503)] * 2, *[Reply(status=503, after=release)] * 2)
    unavailable(keys)
    unavailable(other)
    clock.now += 6
    with ThreadPoolExecutor(20) as pool:
        calls = [pool.submit(unavailable, each) for each in [keys, other] * 10]
        assert [call.result() for call in islice(as_completed(calls), 12)] == [None] * 12
        assert sum(call.done() for call in calls) == 12
        release.set()


def test_a_redirect_is_not_followed(service: StandIn, keys: KeySet):
    with StandIn() as elsewhere:
        elsewhere.replies(listing(FIRST))
        for status in (301, 302, 303, 307, 308):
            service.replies(Reply(status=status, headers={"Location": f"{elsewhere.url}{PATH}"}))
        unavailable(keys)
        assert elsewhere.requests == []


def test_cached_keys_survive_an_outage_for_an_hour(service: StandIn, keys: KeySet, clock: Clock):
    service.replies(listing(FIRST), Reply(status=500))
    assert keys.key("first", "ES256")
    for _ in range(5):
        clock.now += 601
        assert keys.key("first", "ES256")
        assert keys.key("first", "RS256") is None
    assert len(service.requests) == 6
    clock.now += 600
    unavailable(keys)
    service.replies(listing(FIRST))
    unavailable(keys)
    clock.now += 61
    unavailable(keys)
    clock.now += 61
    assert keys.key("first", "ES256")


def test_an_overtaken_response_restores_no_old_key(service: StandIn, keys: KeySet, clock: Clock):
    release = threading.Event()
    service.replies(Reply(json={"keys": [FIRST]}, after=release), listing(SECOND))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(keys.key, "first", "ES256")
        service.wait_for_requests(1)
        clock.now += 61
        assert keys.key("second", "ES256")
        release.set()
        assert first.result() is None
    assert keys.key("second", "ES256")
    assert keys.key("first", "ES256") is None


def test_a_failure_is_logged_by_type_only(service: StandIn, keys: KeySet, caplog: pytest.LogCaptureFixture):
    service.replies(Reply(body=b'{"hunter2"'))
    with caplog.at_level(logging.DEBUG, logger="rag"):
        unavailable(keys)
    (record,) = [record for record in caplog.records if record.name == "rag"]
    assert record.getMessage() == (
        "public keys could not be fetched from 127.0.0.1 (JSONDecodeError): "
        "check SUPABASE_URL or RAG_THIRD_PARTY_ISSUERS"
    )


# -- valid and invalid keys ----------------------------------------------------------------------------

OTHER_CURVE = {**public(es256("first", ec.SECP384R1())), "alg": "ES256"}
NO_KEYS: dict[str, Any] = {
    "null": None,
    "a text": "first",
    "a shared secret": {"kty": "oct", "k": "c2VjcmV0", "kid": "first", "alg": "HS256"},
    "a shared secret that says ES256": {"kty": "oct", "k": "c2VjcmV0", "kid": "first", "alg": "ES256"},
    "Ed25519": {"kty": "OKP", "crv": "Ed25519", "x": FIRST["x"], "kid": "first", "alg": "EdDSA"},
    "P-384": OTHER_CURVE,
    "P-384 that says P-256": {**OTHER_CURVE, "crv": "P-256"},
    "secp256k1": {**FIRST, "crv": "secp256k1"},
    "a point off the curve": {**FIRST, "y": FIRST["x"]},
    "no x": {name: value for name, value in FIRST.items() if name != "x"},
    "an x that is no base64": {**FIRST, "x": "é" * 43},
    "no kid": {name: value for name, value in FIRST.items() if name != "kid"},
    "a kid that is null": {**FIRST, "kid": None},
    "another alg": {**FIRST, "alg": "RS256"},
    "alg null": {**FIRST, "alg": None},
    "for encryption": {**FIRST, "use": "enc"},
    "only for signing": {**FIRST, "key_ops": ["sign"]},
    "a private key": {**es256("first"), "key_ops": ["verify"]},
    "RSA of 1024 bits": public(rs256("first", 1024)),
    "RSA with e 1": {**RSA, "kid": "first", "e": "AQ"},
    "RSA with an even e": {**RSA, "kid": "first", "e": "Ag"},
    "RSA of far too many bits": {**RSA, "kid": "first", "n": "_" * 2_000},
    "RSA for ES256": {**RSA, "kid": "first", "alg": "ES256"},
    "operations that are no list": {**FIRST, "key_ops": 1},
    "a kid that is a list": {**FIRST, "kid": ["first"]},
    "an x of one letter": {**FIRST, "x": "A"},
    "an n of one letter": {**RSA, "kid": "first", "n": "A"},
}


def test_invalid_keys_are_skipped_and_valid_ones_work(keys_of: KeysOf):
    for name, entry in NO_KEYS.items():
        keys = keys_of(entry, SECOND, entry, RSA)
        assert keys.key("first", "ES256") is None, name
        assert keys.key("first", "RS256") is None, name
        assert keys.key("second", "ES256"), name
        assert keys.key("rsa", "RS256"), name


def test_optional_members_of_a_key_may_be_missing(keys_of: KeysOf):
    for absent in ("use", "alg", "key_ops", "ext"):
        entries = [{name: key[name] for name in key if name != absent} for key in (FIRST, RSA)]
        keys = keys_of(*entries)
        assert keys.key("first", "ES256")
        assert keys.key("rsa", "RS256")


def test_the_first_of_two_keys_with_one_id_counts(service: StandIn, keys: KeySet):
    service.replies(listing(FIRST, {**SECOND, "kid": "first"}, {**RSA, "kid": "first"}))
    key = keys.key("first", "ES256")
    assert key is not None
    assert key.to_dict()["x"] == FIRST["x"]
    assert keys.key("first", "RS256") is None
