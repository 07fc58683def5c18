"""Chat endpoints as they are: each refusal, failure and form of a response that real servers send.

chat_endpoints.json has them, with the public thread that shows each. A way with `refuses` refuses requests
that have such a parameter; another one has its response, and the `outcome` for the caller: an answer, or the
code of an error. `again`: a second request after one such failure is answered.
"""

import json
from pathlib import Path
from typing import Any

from tests.stand_in_server import Reply, Request

Way = dict[str, Any]
WAYS: list[Way] = json.loads(Path(__file__).with_name("chat_endpoints.json").read_text(encoding="utf-8"))
GOOD = "The kettle K-300 switches off at 100 degrees [1]."
USAGE = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}


class Endpoint:
    """Answers as a way does. `failures`: the number of responses that fail, of a way with an outcome."""

    def __init__(self, way: Way, answer: str = GOOD, failures: float = float("inf")) -> None:
        self.way, self._answer, self._failures, self.requests = way, answer, failures, 0

    def __call__(self, request: Request) -> Reply:
        self.requests += 1
        body = request.json
        if rules := self.way.get("refuses"):
            is_refused = any(_refuses(name, rule, body) for name, rule in rules.items())
        else:
            is_refused = self.requests <= self._failures
        return self._reply(body) if is_refused else good_reply(body, self._answer)

    def _reply(self, body: dict[str, Any]) -> Reply:
        status, headers = self.way.get("status", 200), self.way.get("headers", {})
        whole = self.way.get("body")
        if (events := self.way.get("events")) is not None:
            # The same parts are no answer to a request without a stream.
            return stream_of(events) if body.get("stream") else good_reply(body, self._answer)
        if (text := self.way.get("text")) is not None:
            return Reply(status=status, body=text.encode(), headers={"Content-Type": "text/plain", **headers})
        if body.get("stream") and status == 200 and (parts := _parts_of(whole)):
            return stream_of(parts)
        return Reply(status=status, json=whole, headers=headers)


def good_reply(body: dict[str, Any], answer: str) -> Reply:
    message = {"role": "assistant", "content": answer}
    if not body.get("stream"):
        return Reply(
            json={"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE}
        )
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return stream_of([{"choices": [{"index": 0, "delta": message}]}, last, "[DONE]"])


def stream_of(events: list[Any]) -> Reply:
    data = (event if isinstance(event, str) else json.dumps(event) for event in events)
    return Reply(chunks=[b"".join(b"data: %s\n\n" % each.encode() for each in data)])


def _parts_of(whole: Any) -> list[Any]:
    """The stream of a completion, its text in pieces of three characters."""
    if not isinstance(whole, dict) or not whole.get("choices"):
        return []
    choice = whole["choices"][0]
    message = dict(choice.get("message") or {})
    text = message.pop("content", None)
    pieces = [text[at : at + 3] for at in range(0, len(text), 3)] if isinstance(text, str) else [text]
    deltas = [message, *({"content": piece} for piece in pieces)]
    parts: list[Any] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}
    return [*parts, {"choices": [end], **({"error": whole["error"]} if whole.get("error") else {})}, "[DONE]"]


def _refuses(name: str, rule: str, body: dict[str, Any]) -> bool:
    """Whether the rule of a parameter, in the words of the table, refuses the request."""
    if name.startswith("messages"):
        return any(message["role"] == rule for message in body["messages"])
    if rule.startswith("absent"):
        return name not in body and not body.get("stream")
    if name not in body:
        return False
    value = body[name]
    if rule.startswith("other than 1"):
        return bool(value != 1)
    if rule.startswith("other than 0"):
        return bool(value != 0)
    if rule.startswith("more than"):
        return bool(value > int(rule.split()[2]))
    if rule.startswith("true"):
        return value is True
    if "while stream is not true" in rule:
        return not body.get("stream")
    return "together with temperature" not in rule or "temperature" in body
