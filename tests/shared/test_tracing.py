"""A request's story: steps from wherever they run, each request's own, summed by name."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

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


def test_a_step_outside_a_request_only_runs_its_block():
    with step("embed"):
        assert current.get() is None


def test_a_failing_step_is_timed_and_raises(trace: Trace):
    with pytest.raises(KeyError), step("limit"):
        raise KeyError
    assert [only.name for only in trace.steps] == ["limit"]


def test_steps_of_one_name_are_summed_in_order_of_their_first_start():
    trace = Trace("a request", "a function", "GET")
    million = 1_000_000
    for name, start, end in (("match", 20, 25), ("embed", 10, 12), ("embed", 30, 33)):
        trace.steps.append(Step(name, start * million, end * million))
    assert trace.milliseconds() == {"embed": 5.0, "match": 5.0}
    assert list(trace.milliseconds()) == ["embed", "match"]


def test_nested_steps_and_steps_in_threads_belong_to_the_request(trace: Trace):
    def work() -> None:
        with step("inner"):
            pass

    with step("outer"):
        work()
        thread = threading.Thread(target=copy_context().run, args=(work,))
        thread.start()
        thread.join()
    assert [only.name for only in trace.steps] == ["inner", "inner", "outer"]


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


def test_the_end_has_the_outcome(trace: Trace):
    assert (trace.route, trace.status, trace.ended) == (None, 0, 0)
    trace.end("/api/keys/{key_id}", 204)
    assert (trace.route, trace.status) == ("/api/keys/{key_id}", 204)
    assert trace.started <= trace.ended <= time.time_ns()
