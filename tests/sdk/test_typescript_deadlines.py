"""The TypeScript SDK ends what takes too long, and no sooner. The caller is any key."""

from time import monotonic, sleep

from tests.sdk.test_typescript_forms import GET, WAIT, WHOLE
from tests.sdk.test_typescript_streams import ASK, DELTA, DONE_BYTES, event
from tests.sdk.typescript_package import Package, Row
from tests.stand_in_server import Reply, Request, StandIn

ANSWER = Reply(json={"response": "r", "metadata": {}})
COMMENTS: list[bytes | float] = [0.05, b": still here\n\n"] * 400


def test_a_document_ready_at_the_deadline_counts_as_ready(typescript: Package):
    """The wait polls at once, after half a second, and at the end of the second that there is."""
    # A busy machine may need more than a second for the first poll.
    for seconds in (1, 5, 25):
        begun: list[float] = []

        def status(_: Request, seconds: int = seconds, begun: list[float] = begun) -> Row:
            begun.append(monotonic())
            if begun[-1] - begun[0] < 0.9 * seconds:
                return {"id": "d", "status": "processing"}
            sleep(0.3)
            return {"id": "d", "status": "completed"}

        with StandIn() as server:
            server.replies(Reply(json={"id": "d"}), Reply(json=status))
            wait = {**WAIT, "args": ["d", {"timeout": 1000 * seconds}]}
            # (The first call of a process takes longer than others.)
            _, ready = typescript.results({"baseUrl": server.url}, GET, wait)
        if "error" not in ready:
            break
    assert ready["value"]["status"] == "completed"


def test_a_finished_stream_does_not_wait_for_the_server_to_close(typescript: Package, gateway: StandIn):
    gateway.replies(Reply(chunks=[event(DELTA), DONE_BYTES, *COMMENTS]))
    (result,) = typescript.results({"baseUrl": gateway.url}, ASK)
    assert (len(result["value"]["chunks"]), "error" in result["value"]) == (2, False)
    assert gateway.left.wait(60)


def test_a_complete_answer_has_three_minutes_by_default(typescript: Package, gateway: StandIn):
    """Timers are fifty times faster here, so a time-out of seconds would end a call on a busy machine."""
    gateway.replies(ANSWER)
    own = {**WHOLE, "args": [*WHOLE["args"], {"timeout": 500_000}]}
    for client, waits in (({}, [180_000, 500_000]), ({"timeout": 600_000}, [600_000, 500_000])):
        results = typescript.calls({"baseUrl": gateway.url, **client}, WHOLE, own, hurried=True)
        assert ["error" in result for result in results["results"]] == [False, False]
        assert results["waits"] == waits


def test_a_token_function_that_does_not_return_ends_with_its_call(typescript: Package, gateway: StandIn):
    client = {"baseUrl": gateway.url, "hangs": True}
    late, aborted = typescript.results(
        client, {**GET, "args": ["d", {"timeout": 200}]}, {**GET, "aborted": True}
    )
    assert (late["error"]["name"], late["asked"]) == ("APITimeoutError", 0)
    assert late["error"]["message"].startswith("The function apiKey returned no key within 200 ms.")
    assert aborted["error"]["message"] == "enough"
    assert gateway.requests == []
