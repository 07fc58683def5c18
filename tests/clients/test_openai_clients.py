"""OpenAI's own clients, unchanged, of Python and of npm: a base URL and a key are all that they are given."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from functions import chat_completions
from shared.config import Settings
from shared.services import Services
from tests.actors import Actor
from tests.conftest import People
from tests.external_programs import run_node
from tests.functions.app_server import live
from tests.functions.chat_completions_client import (
    KETTLE,
    MODEL_ANSWER,
    QUESTION,
    STREAM,
    index,
    streams,
    with_model,
)
from tests.isolation.test_api_keys import make
from tests.stand_in_server import Reply, StandIn

MESSAGES: list[ChatCompletionMessageParam] = [{"role": "user", "content": QUESTION}]
TOOLS: list[ChatCompletionToolParam] = [
    {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
]
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"at": "Paris"}'}}
CHOICE = {"role": "assistant", "content": None, "tool_calls": [CALL]}
CALLED = {**MODEL_ANSWER, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": CHOICE}]}
MODEL = "vendor/model-1"
IN_INDEX = {"index_name": "kettles"}
LISTED = {"id": MODEL, "object": "model", "created": 1, "owned_by": "vendor"}
# In the order in which each of the two asks.
REPLIES = [
    Reply(json={"object": "list", "data": [LISTED]}),
    *[Reply(json=MODEL_ANSWER)] * 3, Reply(json=CALLED), streams(), streams(STREAM[:2]),
    Reply(status=429, headers={"Retry-After": "17"}, json={"error": {"message": "secret"}}),
]  # fmt: skip


@pytest.fixture
def url(people: People, services: Services, settings: Settings) -> Iterator[str]:
    """A deployment with a model and an index of ann's."""
    index(services, people.ann, "kettles", KETTLE)
    with StandIn() as gateway:
        gateway.replies(*REPLIES)
        with with_model(settings, gateway) as modelled, live(chat_completions.app, modelled) as address:
            yield address


def key_of(actor: Actor) -> str:
    return str(make(actor, scopes=["chat:read"])["key"])


@pytest.fixture
def client(url: str, people: People) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{url}/v1", api_key=key_of(people.ann), max_retries=0) as opened:
        yield opened


def streamed(client: OpenAI, **more: Any) -> tuple[str, Any, Any]:
    """The words, the last nodes and the usage of a stream."""
    text, nodes, usage = "", None, None
    options = {"stream_options": {"include_usage": True}, "stream": True, **more}
    for chunk in client.chat.completions.create(model=MODEL, messages=MESSAGES, **options):
        text += chunk.choices[0].delta.content or "" if chunk.choices else ""
        nodes = getattr(chunk, "source_nodes", None) or nodes
        usage = chunk.usage or usage
    return text, nodes, usage


def test_openai_for_python(client: OpenAI):
    create = client.chat.completions.create
    models = list(client.models.list())
    assert [model.id for model in models] == ["google/gemini-3.5-flash-lite", MODEL, "rag", "rag/kettles"]
    assert [model.owned_by for model in models] == ["gateway", "vendor", "rag", "rag"]
    over_index: Any = create(model="rag/kettles", messages=MESSAGES)
    assert [node["text"] for node in over_index.source_nodes] == [KETTLE]
    with pytest.raises(openai.NotFoundError, match="No such index: 'nope' exists"):
        create(model="rag/nope", messages=MESSAGES)
    plain = create(model=MODEL, messages=MESSAGES, temperature=0.3)
    assert plain.choices[0].message.content == "At 100 degrees."
    assert plain.id == "gen-42"
    assert plain.usage
    assert plain.usage.total_tokens == 17
    grounded = create(model=MODEL, messages=MESSAGES, extra_body=IN_INDEX)
    nodes: Any = grounded.model_extra and grounded.model_extra["source_nodes"]
    assert [node["text"] for node in nodes] == [KETTLE]
    called = create(model=MODEL, messages=MESSAGES, tools=TOOLS, extra_body=IN_INDEX)
    calls = called.choices[0].message.tool_calls
    assert [call.type == "function" and call.function.name for call in calls or []] == ["weather"]
    text, nodes, usage = streamed(client, extra_body=IN_INDEX)
    assert (text, [node["text"] for node in nodes]) == ("At 100 degrees.", [KETTLE])
    assert usage.total_tokens > 0
    with pytest.raises(openai.APIError, match="The answer could not be generated"):
        streamed(client)
    with pytest.raises(openai.NotFoundError) as missing:
        create(model=MODEL, messages=MESSAGES, extra_body={"index_name": "nowhere"})
    assert "No such index: 'nowhere' exists." in missing.value.message
    assert missing.value.code == "collection_not_found"
    with pytest.raises(openai.BadRequestError, match="must contain 'content' for role 'user'"):
        create(model=MODEL, messages=[{"role": "user"}])  # type: ignore[typeddict-item]
    with pytest.raises(openai.InternalServerError) as busy:
        create(model=MODEL, messages=MESSAGES)
    assert (busy.value.status_code, busy.value.response.headers["retry-after"]) == (503, "17")


def test_openai_for_node(url: str, people: People):
    arguments = {"url": url, "token": key_of(people.ann), "index": "kettles"}
    result = run_node(Path(__file__).with_name("openai.mjs"), arguments)
    assert result["models"] == ["google/gemini-3.5-flash-lite", MODEL, "rag", "rag/kettles"]
    assert [node["text"] for node in result["over_index"]["source_nodes"]] == [KETTLE]
    assert (result["no_index"]["name"], result["no_index"]["status"]) == ("NotFoundError", 404)
    assert result["plain"]["choices"][0]["message"]["content"] == "At 100 degrees."
    assert result["plain"]["source_nodes"] is None
    assert [node["text"] for node in result["grounded"]["source_nodes"]] == [KETTLE]
    assert result["called"]["choices"][0]["message"]["tool_calls"] == [CALL]
    stream = result["stream"]
    assert (stream["text"], stream["finish"], stream["error"]) == ("At 100 degrees.", "stop", None)
    assert [node["text"] for node in stream["nodes"]] == [KETTLE]
    assert stream["usage"]["total_tokens"] > 0
    assert result["broken"]["text"] == "At 100 degrees."
    assert result["broken"]["error"]["code"] == "generation_failed"
    missing = result["missing"]
    assert (missing["name"], missing["status"]) == ("NotFoundError", 404)
    assert missing["message"] == "404 No such index: 'nowhere' exists."
    assert (result["invalid"]["name"], result["invalid"]["status"]) == ("BadRequestError", 400)
    assert (result["busy"]["name"], result["busy"]["status"]) == ("InternalServerError", 503)
    assert result["busy"]["message"] == "503 The answering model is busy. Please try again in a moment."
