"""Conversations over the platform's chat in tests: with a model that is scripted, and with none."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fastapi.testclient import TestClient

from functions import chat
from shared.config import Settings
from shared.services import Services
from tests.actors import Actor
from tests.functions.app_server import app_with
from tests.functions.chat_completions_client import DONE, encode, piece
from tests.stand_in_server import Reply, StandIn

Row = dict[str, Any]
PATH = "/api/v1/chat"
QUESTION = "What was the root cause of the billing outage?"
OFF_TOPIC = "How do penguins raise their chicks in Antarctica?"
ANSWER = "Stripe webhook retries piled up in the queue."


def reply_of(text: str, read: int = 50, written: int = 5) -> Reply:
    usage = {"prompt_tokens": read, "completion_tokens": written}
    return Reply(json={"choices": [{"message": {"role": "assistant", "content": text}}], "usage": usage})


def streams(*pieces: str) -> Reply:
    return Reply(chunks=[*encode(*map(piece, pieces), piece()), DONE])


@contextmanager
def chat_client(settings: Settings, gateway: StandIn | None, **changes: Any) -> Iterator[TestClient]:
    """A deployment with that model, or without one."""
    model = {"rag_llm_api_key": "sk-model", "rag_llm_url": gateway.url} if gateway else {}
    with app_with(chat.app, settings, **model, **changes) as client:
        yield client


def post(client: TestClient, actor: Actor, body: Row, path: str = PATH) -> Any:
    return client.post(path, json=body, headers=actor.headers())


def say(client: TestClient, actor: Actor, message: str = QUESTION, **body: Any) -> Any:
    return post(client, actor, {"message": message, "stream": False, **body})


def result_of(response: Any) -> Row:
    assert response.status_code == 200, response.text
    body: Row = response.json()
    return body


def chunks_of(response: Any) -> list[Row]:
    """The chunks of a stream: data lines and nothing else."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    blocks = [block for block in response.text.split("\n\n") if block]
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def text_of(chunks: Sequence[Row]) -> str:
    return "".join(chunk["content"] for chunk in chunks if chunk["type"] == "delta")


def messages_of(services: Services, actor: Actor, session_id: str) -> list[tuple[str, str]]:
    """What the session has of it: who said what."""
    rows = services.database.call(actor.principal, "rag_list_session_messages", {"session_id": session_id})
    return [(row["role"], row["content"]) for row in rows]
