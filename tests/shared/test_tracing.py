"""A request's story: steps from wherever they run, each request's own, summed by name."""

import threading
from concurrent.futures import ThreadPoolExecutor

from shared.tracing import Step, Trace, current, step


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
