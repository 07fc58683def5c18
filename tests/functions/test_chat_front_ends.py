"""Requests as Open WebUI 0.12 and LibreChat 0.8 send them, by their published packages.

Open WebUI: routers/openai.py, routers/tasks.py and the page's own scripts. LibreChat: @langchain/openai in
@librechat/agents, whose title.ts writes titles.
"""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from shared.services import Services
from tests.conftest import People
from tests.functions.chat_completions_client import KETTLE, QUESTION, ask, events_of, index, user, words

CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    user("What does the kettle weigh?"),
    {"role": "assistant", "content": "It weighs 900 grams. [1]"},
    user(),
]
OPEN_WEBUI_TITLE = f"""### Task:
Generate a concise title summarizing the chat history.
### Output:
JSON format: {{ "title": "your concise title here" }}
### Chat History:
<chat_history>
USER: {QUESTION}
ASSISTANT: At 100 degrees.
</chat_history>"""
LIBRECHAT_TITLE = f"""Provide a concise, 5-word-or-less title for the conversation.

Conversation:
User: {QUESTION}
AI: At 100 degrees."""


def test_open_webui_lists_models_and_streams_answers(local: TestClient, people: People, services: Services):
    index(services, people.ann, "kettles", KETTLE)
    models = local.get("/v1/models", headers=people.ann.headers()).json()["data"]
    assert "rag/kettles" in [model["id"] for model in models]
    options = {"stream_options": {"include_usage": True}, "temperature": 0.8, "stop": ["\n\n\n"], "seed": 7}
    # LibreChat sends these.
    options |= {"top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "n": 1, "user": "6741f0"}
    body: dict[str, Any] = {"model": "rag/kettles", "stream": True, **options}
    # The composer sends parts where a picture was attached and removed again.
    for messages in (CONVERSATION, [user([{"type": "text", "text": QUESTION}])]):
        *events, last = events_of(ask(local, people.ann, messages, **body).text)
        assert last == "[DONE]"
        assert "100 degrees" in words(events)
        # Both front ends take the end of the answer and the usage from these.
        assert [event["choices"][0]["finish_reason"] for event in events if event["choices"]][-1] == "stop"
        assert events[-1]["usage"]["total_tokens"] > 0


@pytest.mark.parametrize(("prompt", "level"), [(OPEN_WEBUI_TITLE, "low"), (LIBRECHAT_TITLE, "medium")])
def test_a_title_over_documents_is_no_json(
    local: TestClient, people: People, services: Services, prompt: str, level: str
):
    """Open WebUI then takes the first question as the title. LibreChat's prompt repeats question and
    answer, and gets an answer: the recipe sets no title, or another model."""
    index(services, people.ann, "kettles", KETTLE)
    answer = ask(local, people.ann, [user(prompt)], model="rag/kettles", stream=False).json()
    assert answer["confidence_detail"]["level"] == level
    assert "{" not in answer["choices"][0]["message"]["content"]
