"""Every answer that Mnemosyne's Python SDK 0.1.0 parses, of the real stack, parsed with its types."""

from typing import TypeVar

import httpx
import pytest

from local.stack import Stack
from tests.actors import Actor, client, vector
from tests.clients.upstream_models import (
    MESSAGES,
    SESSIONS,
    ChatCompletionResponse,
    CollectionListResponse,
    CollectionResponse,
    DocumentLink,
    DocumentListResponse,
    DocumentResponse,
    DocumentStatusResponse,
    RetrievalResponse,
    StreamChunk,
    Strict,
)
from tests.conftest import People
from tests.isolation.test_api_keys import make

Parsed = TypeVar("Parsed", bound=Strict)
OUTAGE = "Stripe webhook retries caused the billing outage. The Billing Team owns the Billing Service."
QUESTION = "What caused the billing outage?"
# The worker finds no other test's jobs.
pytestmark = pytest.mark.usefixtures("no_jobs")


class Sdk:
    """The requests of the SDK with an API key; `parsed` reads an answer as the SDK does."""

    def __init__(self, stack: Stack, actor: Actor) -> None:
        self._url = f"{stack.url}/api/v1"
        self._headers = {"Authorization": f"Bearer {make(actor)['key']}"}

    def text(self, method: str, path: str, **content: object) -> str:
        answer = client().request(method, self._url + path, headers=self._headers, **content)  # type: ignore[arg-type]
        assert answer.is_success, answer.text
        return answer.text

    def parsed(self, model: type[Parsed], method: str, path: str, **content: object) -> Parsed:
        return model.model_validate_json(self.text(method, path, **content))

    def stream(self, body: dict[str, object]) -> list[StreamChunk]:
        lines = self.text("POST", "/chat", json={**body, "stream": True}).splitlines()
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        return [StreamChunk.model_validate_json(line) for line in data]


@pytest.fixture
def sdk(stack: Stack, people: People) -> Sdk:
    return Sdk(stack, people.ann)


def work(stack: Stack) -> None:
    headers = {"Authorization": f"Bearer {stack.state.worker_token}"}
    answer = httpx.post(f"{stack.url}/functions/v1/ingest", headers=headers)
    assert answer.status_code == 200, answer.text


def test_collections_parse(sdk: Sdk, people: People):
    body = {"name": "docs", "config": {"chunk_size": 64}}
    made = sdk.parsed(CollectionResponse, "POST", "/collections", json=body)
    assert str(made.user_id) == people.ann.id
    for method, more in (("GET", {}), ("PATCH", {"json": {"description": "all"}})):
        assert sdk.parsed(CollectionResponse, method, f"/collections/{made.id}", **more).id == made.id
    # The first document of a collection creates it.
    people.alf.put([vector(1)], collection="put")
    listed = sdk.parsed(CollectionListResponse, "GET", "/collections")
    assert {str(row.user_id) for row in listed.data} == {people.ann.id, people.alf.id}


def test_documents_parse(sdk: Sdk, stack: Stack, people: People):
    home = str(sdk.parsed(CollectionResponse, "POST", "/collections", json={"name": "docs"}).id)
    form = {
        "data": {"collection_id": home, "metadata": '{"a": 1}'},
        "files": {"file": ("a.txt", OUTAGE.encode())},
    }
    broken = {"data": {"collection_id": home}, "files": {"file": ("a.gif", b"GIF89a")}}
    text = {"json": {"collection_id": home, "content": "A text."}}
    page = {"json": {"collection_id": home, "url": "https://docs.example/kilns"}}
    for path, content in (("", form), ("", broken), ("/text", text), ("/url", page)):
        made = sdk.parsed(DocumentResponse, "POST", f"/documents{path}", **content)
        waiting = sdk.parsed(DocumentStatusResponse, "GET", f"/documents/{made.id}/status")
        assert (waiting.status, waiting.processed_at) == ("processing", None)
    work(stack)
    people.alf.put([vector(1)], collection="docs")
    listed = sdk.parsed(DocumentListResponse, "GET", f"/documents?collection_id={home}")
    assert len(listed.data) == 5
    for row in listed.data:
        assert sdk.parsed(DocumentResponse, "GET", f"/documents/{row.id}") == row
        state = sdk.parsed(DocumentStatusResponse, "GET", f"/documents/{row.id}/status")
        assert state.status == row.status
        assert (state.error_message is None) == (row.title not in ("a.gif", "https://docs.example/kilns"))
        changed = sdk.parsed(DocumentResponse, "PATCH", f"/documents/{row.id}", json={"title": "b"})
        assert changed.title == "b"
        sdk.parsed(DocumentLink, "GET", f"/documents/{row.id}/url?expires_in=3600")


def test_retrievals_and_chats_parse(sdk: Sdk, stack: Stack, people: People):
    home = str(sdk.parsed(CollectionResponse, "POST", "/collections", json={"name": "docs"}).id)
    sdk.text("POST", "/documents/text", json={"collection_id": home, "content": OUTAGE})
    work(stack)
    for mode in ("semantic", "keyword", "hybrid", "hierarchical", "graph"):
        request = {"query": QUESTION, "mode": mode, "enable_graph": True}
        result = sdk.parsed(RetrievalResponse, "POST", "/retrievals", json=request)
        assert result.results[0].content == OUTAGE
    body = {"message": QUESTION, "collection_id": home, "stream": False}
    answer = sdk.parsed(ChatCompletionResponse, "POST", "/chat", json=body)
    assert str(answer.metadata.user_id) == people.ann.id
    assert 0 < answer.metadata.confidence <= 1
    for question in (QUESTION, "How do penguins raise chicks?"):
        for reasoning in ("standard", "deep"):
            chunks = sdk.stream({"message": question, "reasoning_mode": reasoning})
            assert chunks[-1].type == "done"
            assert chunks[-1].metadata
    sessions = SESSIONS.validate_json(sdk.text("GET", "/chat/sessions"))
    assert len(sessions) == 5
    messages = MESSAGES.validate_json(sdk.text("GET", f"/chat/sessions/{sessions[-1].id}/messages"))
    assert [message.role for message in messages] == ["user", "assistant"]
