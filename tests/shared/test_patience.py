"""Waits that end: whatever a server does, and for both generations of the HTTP client."""

from collections.abc import Iterator
from contextlib import closing
from time import monotonic, sleep

import httpx
import pytest
from openai import APITimeoutError

from shared.patience import openai_client, patient_client, seconds_left, within
from tests.stand_in import Reply, StandIn


@pytest.fixture
def dripping() -> Iterator[StandIn]:
    with StandIn() as server:
        server.replies(Reply(json="x" * 1000, drip=0.05))
        yield server


def test_a_server_that_drips_is_left_when_the_time_is_over(dripping: StandIn):
    with patient_client(10) as client:
        started = monotonic()
        with pytest.raises(httpx.ReadTimeout), within(0.4):
            client.get(dripping.url)
        assert 0.3 < monotonic() - started < 2


def test_so_is_one_asked_through_the_openai_package(dripping: StandIn):
    with closing(openai_client("a key", dripping.url, 10)) as client:
        started = monotonic()
        with pytest.raises(APITimeoutError), within(0.4):
            client.models.list()
        assert 0.3 < monotonic() - started < 2


def test_without_a_bound_only_single_waits_are_bounded(dripping: StandIn):
    with patient_client(0.2) as client, client.stream("GET", dripping.url) as answer:
        pieces = answer.iter_raw(1)
        assert b"".join(next(pieces) for _ in range(8)) == b'"xxxxxxx'


def test_the_inner_of_two_bounds_only_ever_shortens():
    with within(5):
        with within(100):
            assert seconds_left() <= 5
        with within(1):
            assert seconds_left() <= 1
        assert seconds_left() > 4
    assert seconds_left() == float("inf")


def test_a_connection_is_used_again_after_a_bound_has_passed():
    with StandIn() as server, patient_client(5) as client:
        server.replies(Reply(json=1))
        with within(0.2):
            assert client.get(server.url).json() == 1
        sleep(0.25)
        with within(1):
            assert client.get(server.url).json() == 1
        assert client.get(server.url).json() == 1
