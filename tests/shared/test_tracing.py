"""A request's story: steps from wherever they run, each request's own, summed by name."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from shared.tracing import Step, Trace, current, step


@pytest.fixture
def trace():
    trace = Trace("a request", "a function", "GET")
    token = current.set(trace)
    yield trace
    current.reset(token)


def test_a_step_has_the_duration_of_its_block(trace: Trace):
    before = time.time_ns()
    with step("match"):
        time.sleep(0.02)
    after = time.time_ns()
    (only,) = trace.steps
    assert only.name == "match"
    assert trace.started <= only.started < only.ended <= time.time_ns()
    assert 20 <= only.milliseconds <= (after - before) / 1e6
    assert trace.milliseconds() == {"match": round(only.milliseconds, 1)}


def test_steps_of_one_name_are_summed_in_order_of_their_first_start():
    trace = Trace("a request", "a function", "GET")
    million = 1_000_000
    for name, start, end in (("match", 20, 25), ("embed", 10, 12), ("embed", 30, 33)):
        trace.steps.append(Step(name, start * million, end * million))
    assert trace.milliseconds() == {"embed": 5.0, "match": 5.0}
    assert list(trace.milliseconds()) == ["embed", "match"]


def test_concurrent_requests_do_not_mix_their_steps():
    barrier = threading.Barrier(8)

    def request(number: int) -> list[str]:
        trace = Trace(str(number), "a function", "GET")
        token = current.set(trace)
        try:
            for _ in range(50):
                barrier.wait()
                with step(f"step of {number}"):
                    barrier.wait()
        finally:
            current.reset(token)
        return [only.name for only in trace.steps]

    with ThreadPoolExecutor(8) as pool:
        stories = list(pool.map(request, range(8)))
    assert stories == [[f"step of {number}"] * 50 for number in range(8)]
