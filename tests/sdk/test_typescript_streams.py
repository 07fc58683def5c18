"""The TypeScript SDK's streams, whatever comes in whatever packets, and however they end. Who asks is a key
of any value."""

import json
from threading import Event

from tests.sdk.typescript_package import KEY, Package, Row
from tests.stand_in_server import Reply, StandIn

ASK: Row = {
    "call": "chat.completions.create",
    "args": [{"messages": [{"role": "user", "content": "q"}], "stream": True}],
    "read": True,
}
SOURCE = {"document_id": "d", "title": "T", "filename": None, "chunk_index": 3, "score": 0.9, "chunk_id": "k"}
METADATA = {
    "session_id": "s", "is_follow_up": True, "sub_queries": ["a"], "model": "m", "latency_ms": 7,
    "confidence": 0.9, "confidence_detail": {
        "level": "high", "score": 0.9, "thresholds": {"high": 0.75, "medium": 0.6}, "because": ["r"],
    },
}  # fmt: skip
# U+2028 ends a line for those who split by more than the format says.
TEXT = "Grüße \u2028 an 索引 📚"
DELTA = {"type": "delta", "content": TEXT, "delta": TEXT}
DONE = {"type": "done", "metadata": METADATA, "sources": [SOURCE]}
DONE_BYTES = b'data: {"type":"done","metadata":{}}\n\n'


def event(data: Row, end: str = "\n") -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}{end}{end}".encode()


def streams(typescript: Package, gateway: StandIn, *steps: Row, **how: bool) -> list[Row]:
    return typescript.results({"baseUrl": gateway.url}, *steps, **how)


def texts(result: Row) -> list[str]:
    deltas = [chunk["choices"][0]["delta"] for chunk in result["value"]["chunks"]]
    return [delta["content"] for delta in deltas if "content" in delta]


def test_each_chunk_has_a_choice_and_its_own_fields(typescript: Package, gateway: StandIn):
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "retrieval_tokens": 1}
    chunks: list[Row] = [
        {"type": "reasoning_step", "step": 1, "description": "Looking"},
        {"type": "sub_query", "query": "a"},
        {"type": "sources", "sources": [SOURCE]},
        DELTA, {"type": "usage", "usage": usage}, DONE,
    ]  # fmt: skip
    gateway.replies(Reply(chunks=[b"".join(map(event, chunks))]))
    (result,) = streams(typescript, gateway, ASK)
    assert gateway.requests[0].json == {"messages": [{"role": "user", "content": "q"}], "stream": True}
    step, part, sources, delta, used, done = result["value"]["chunks"]
    assert step["reasoningStep"] == {"step": 1, "description": "Looking"}
    assert part["subQuery"] == "a"
    source = {
        "documentId": "d", "title": "T", "filename": None, "chunkIndex": 3, "score": 0.9, "chunkId": "k",
    }  # fmt: skip
    assert sources["sources"] == done["sources"] == [source]
    assert delta["choices"] == [{"index": 0, "delta": {"content": TEXT}, "finishReason": None}]
    assert used["usage"]["retrievalTokens"] == 1
    assert done["choices"] == [{"index": 0, "delta": {}, "finishReason": "stop"}]
    assert (done["sessionId"], done["isFollowUp"], done["subQueries"]) == ("s", True, ["a"])
    assert done["confidence"] == done["confidenceDetail"]["score"] == 0.9
    assert done["metadata"]["latencyMs"] == 7


def test_packet_and_line_boundaries_do_not_matter(typescript: Package, gateway: StandIn):
    whole = event(DELTA) + event(DONE)
    noise = b": keep-alive\n\nevent: x\nid: 7\nretry: 1\n\n" + event({"type": "new"}) + b"data:[1]\n\n"
    lines = json.dumps(DELTA, ensure_ascii=False).replace('", "', '",\r\ndata: "')
    kinds: list[list[bytes | float]] = [
        [event(DELTA, "\r\n") + event(DONE, "\r\n")],
        [event(DELTA, "\r") + event(DONE, "\r")],
        ["\ufeff".encode() + whole],
        [noise + event(DELTA) + noise + event(DONE) + noise],
        [f"data: {lines}\r\n\r\n".encode() + DONE_BYTES],
    ]
    for bytewise in (False, True):
        gateway.replies(*(Reply(chunks=kind) for kind in kinds))
        for result in streams(typescript, gateway, *([ASK] * len(kinds)), bytewise=bytewise):
            assert (texts(result), result["value"]["chunks"][-1]["type"]) == ([TEXT], "done")
            assert "error" not in result["value"]


def test_an_error_in_a_stream_is_raised(typescript: Package, gateway: StandIn):
    def failing(kind: str, code: str) -> Reply:
        error = {"type": kind, "code": code, "message": "No more.", "details": {"a": 1}}
        fields = {"type": "error", "error": "No more.", "error_detail": error}
        return Reply(chunks=[event(DELTA), event(fields), event(DONE)], headers={"X-Request-Id": "r-9"})

    gateway.replies(
        failing("authentication_error", "invalid_api_key"), failing("server_error", "generation_failed"),
        failing("rate_limit_error", "rate_limit_exceeded"), failing("unheard_of", "x"),
    )  # fmt: skip
    results = [result["value"] for result in streams(typescript, gateway, *([ASK] * 4))]
    assert [len(result["chunks"]) for result in results] == [1] * 4
    assert [(result["error"]["name"], result["error"].get("status")) for result in results] == [
        ("AuthenticationError", 401), ("InternalServerError", 500), ("RateLimitError", 429),
        ("APIError", None),
    ]  # fmt: skip
    error = results[0]["error"]
    assert error["message"] == "No more. (status 401, code invalid_api_key, request r-9)"
    assert (error["code"], error["requestId"]) == ("invalid_api_key", "r-9")
    # Once its first byte came it is not asked for again.
    assert len(gateway.requests) == 4


def test_a_truncated_stream_is_an_error(typescript: Package, gateway: StandIn):
    gateway.replies(
        Reply(chunks=[event(DELTA)], drop=True), Reply(chunks=[event(DELTA)]), Reply(chunks=[]),
        Reply(chunks=[event(DELTA), b"data: {half\n\n"]), Reply(chunks=[event(DELTA), event(DONE)[:-1]]),
        Reply(chunks=[event(DELTA), event(DONE)], drop=True),
    )  # fmt: skip
    results = [result["value"] for result in streams(typescript, gateway, *([ASK] * 6))]
    assert [len(result["chunks"]) for result in results] == [1, 1, 0, 1, 1, 2]
    assert [result["error"]["name"] for result in results[:-1]] == ["StreamInterruptedError"] * 5
    # After its last chunk nothing is missed.
    assert "error" not in results[-1]
    assert len(gateway.requests) == 6


def test_a_stream_that_falls_silent_is_an_error(typescript: Package, gateway: StandIn):
    gateway.replies(Reply(chunks=[event(DELTA), Event()]))
    # A busy machine may need more than the shortest time for the first chunk.
    for timeout in (300, 3000, 30_000):
        (result,) = streams(typescript, gateway, {**ASK, "args": [*ASK["args"], {"timeout": timeout}]})
        if "value" in result:
            break
    assert len(result["value"]["chunks"]) == 1
    error = result["value"]["error"]
    assert error["name"] == "StreamInterruptedError"
    assert f"No answer within {timeout} ms" in error["message"]


def test_a_failure_before_the_first_byte_has_its_status(typescript: Package, gateway: StandIn):
    gateway.replies(Reply(status=503, json={}), Reply(drop=True))
    results = [result["error"]["name"] for result in streams(typescript, gateway, ASK, ASK)]
    assert results == ["InternalServerError", "APIConnectionError"]
    assert len(gateway.requests) == 2


def test_a_stream_may_be_left_early(typescript: Package, gateway: StandIn):
    gateway.replies(Reply(chunks=[event(DELTA), event(DELTA), 30.0, event(DONE)]))
    ways = [{**ASK, way: 2} for way in ("breakAt", "closeAt", "abortAt")]
    results = [result["value"] for result in streams(typescript, gateway, *ways)]
    assert [len(result["chunks"]) for result in results] == [2, 2, 2]
    # By its reader's own will that is no error; a signal's reason is what its caller said.
    assert [result.get("error", {}).get("message") for result in results] == [None, None, "enough"]


def test_abandoned_connections_are_closed_and_a_restarted_server_works(typescript: Package):
    output = typescript.run("own_server.mjs", {"apiKey": KEY})
    assert (output["left"], output["closed"]) == (["break", "close", "unread", "returned"], [False] * 4)
    assert output["listeners"] == 0
    assert (output["before"], output["after"]) == ("processing", "completed")
    # Two attempts without a server, then one for each state.
    assert (output["asked"], output["reads"]) == (4, 3)
