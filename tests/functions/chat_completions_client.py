"""Conversations in tests: with a deployment that has a model, and with one that has none."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Any

from fastapi.testclient import TestClient

from functions import chat_completions
from shared.config import Settings
from shared.documents.index_documents import IndexDocument, add
from shared.services import Services
from tests.actors import Actor
from tests.functions.app_server import client_of, services_with
from tests.stand_in_server import Reply, StandIn

PATH = "/v1/chat/completions"
SECRET = "sk-secret-7f3x"
KETTLE = "The kettle switches off at 100 degrees. The kettle holds 1.7 litres of water. It weighs 900 grams."
QUESTION = "At how many degrees does the kettle switch off?"
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
# Fields that no version of ours knows.
MODEL_ANSWER = {
    "id": "gen-42", "object": "chat.completion", "created": 1_700_000_000, "model": "vendor/model-1",
    "system_fingerprint": "fp_1", "choices": [{
        "index": 0, "finish_reason": "stop", "native_finish_reason": "STOP",
        "message": {"role": "assistant", "content": "At 100 degrees.", "reasoning": "Boiling."},
    }],
    "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17, "cost": 0.1},
}  # fmt: skip


def with_model(settings: Settings, gateway: StandIn, **changes: Any) -> Any:
    """A pipeline whose model is the stand-in."""
    address = {"rag_llm_api_key": SECRET, "rag_llm_url": f"{gateway.url}/v1"}
    return services_with(settings, **{**address, **changes})


@contextmanager
def chat_client(settings: Settings, gateway: StandIn, **changes: Any) -> Iterator[TestClient]:
    with (
        with_model(settings, gateway, **changes) as services,
        client_of(chat_completions.app, services) as client,
    ):
        yield client


def index(services: Services, actor: Actor, name: str, *texts: str) -> list[str]:
    """An index of these texts; its documents' doc_ids."""
    rows = add(
        services.database,
        services.embedder,
        actor.principal,
        name,
        [IndexDocument.new(text, {"n": 1}) for text in texts],
    )
    return [row["name"] for row in rows]


def user(text: Any = QUESTION) -> dict[str, Any]:
    return {"role": "user", "content": text}


ASKING = [user()]


def ask(client: TestClient, actor: Actor, messages: Any = ASKING, **body: Any) -> Any:
    return client.post(PATH, json={"messages": messages, **body}, headers=actor.headers())


def piece(content: str | None = None, **more: Any) -> dict[str, Any]:
    """A part of a stream; without content its end."""
    delta = {} if content is None else {"content": content}
    finish = "stop" if content is None else None
    return {
        "id": "gen-42",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "vendor/model-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }


def encode(*parts: Any) -> list[bytes]:
    """The parts as a model's endpoint sends them."""
    return [
        b"data: " + (part if isinstance(part, bytes) else json.dumps(part).encode()) + b"\n\n"
        for part in parts
    ]


DONE = b"data: [DONE]\n\n"
STREAM = [*encode(piece("At "), piece("100 degrees."), piece()), DONE]


def streams(chunks: Sequence[bytes | float | Event] = STREAM, **more: Any) -> Reply:
    return Reply(chunks=chunks, **more)


def events_of(text: str) -> list[Any]:
    """The data of each event, [DONE] as it is."""
    events = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    return [event if event == "[DONE]" else json.loads(event) for event in events]


def words(events: list[Any]) -> str:
    """The answer that the parts make."""
    parts = [event for event in events if event != "[DONE]" and "choices" in event]
    return "".join(choice["delta"].get("content") or "" for part in parts for choice in part["choices"])


def streamed(settings: Settings, actor: Actor, *parts: Any, **body: Any) -> list[Any]:
    """The events of an answer over the index kettles, from a model that streams the parts."""
    with StandIn() as model, chat_client(settings, model) as client:
        model.replies(streams([*encode(*parts), DONE]))
        return events_of(ask(client, actor, index_name="kettles", stream=True, **body).text)
