"""The search and rag contracts in both SDKs: results of a real server, equal in both; streams; errors."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from local import ROOT
from mnemosyne import AuthenticationError, InternalServerError, Mnemosyne, NotFoundError
from mnemosyne.models import rag as rag_models
from mnemosyne.models import search as models
from shared.api.contracts import rag
from shared.api.contracts.search import answer, contents, results, search, similar
from shared.services import Services
from tests.conftest import People
from tests.functions.search_workspace import TICKET, Workspace, workspace
from tests.sdk.python_client import address_of, key_of
from tests.sdk.test_both_languages import camel
from tests.sdk.typescript_package import HOME, KEY, Package, Row
from tests.stand_in_server import Reply, StandIn

pytestmark = pytest.mark.usefixtures("no_jobs")
QUESTION = "Who was the on-call engineer?"
TYPESCRIPT = ROOT / "sdk" / "typescript" / "src" / "models"
WIRE: dict[type[BaseModel], type[BaseModel]] = {
    models.SearchResult: results.Result, models.SearchEntity: results.GraphEntity,
    models.SearchEdge: results.GraphEdge, models.SearchGraph: results.GraphRationale,
    models.Rationale: results.Rationale, models.SearchUsage: results.Usage,
    models.SearchResponse: search.Response, models.SimilarResponse: similar.Response,
    models.ContentsDocument: contents.Document, models.ContentsChunk: contents.Chunk,
    models.ContentsGraph: contents.Graph, models.ContentsResponse: contents.Response,
    models.Citation: answer.Citation, models.Sentence: answer.Sentence,
    models.SentenceReference: answer.Reference, models.Support: answer.Support,
    models.AnswerRetrieval: answer.Retrieval, models.AnswerGeneration: answer.Generation,
    models.AnswerMeta: answer.Meta, models.AnswerResponse: answer.Response,
    rag_models.RagResult: rag.Result, rag_models.RagSearchResponse: rag.SearchResponse,
    rag_models.RagAnswerText: rag.AnswerText, rag_models.RagCitation: rag.AnswerCitation,
    rag_models.RagContext: rag.ContextUsed, rag_models.RagAnswerResponse: rag.AnswerResponse,
}  # fmt: skip


@pytest.fixture
def home(people: People, services: Services) -> Workspace:
    return workspace(services, people.ann)


@pytest.fixture
def ann(people: People) -> Iterator[Mnemosyne]:
    """With a token: the rag contract takes no key."""
    with Mnemosyne(people.ann.token(), address_of(people.ann.stack)) as client:
        yield client


def interface(name: str) -> set[str]:
    """The fields of a TypeScript interface, those that it inherits included."""
    text = "".join(path.read_text() for path in (TYPESCRIPT / "search.ts", TYPESCRIPT / "rag.ts"))
    declaration = re.search(rf"^export interface {name}(?: extends (\w+))? {{\n(.*?)^}}", text, re.M | re.S)
    assert declaration, name
    inherited = interface(declaration[1]) if declaration[1] else set()
    return inherited | set(re.findall(r"^  readonly (\w+)\??:", declaration[2], re.M))


@pytest.mark.parametrize("model", WIRE, ids=lambda model: model.__name__)
def test_models_have_the_fields_of_the_server_s(model: type[BaseModel]):
    schema = WIRE[model].model_json_schema(by_alias=True, mode="serialization")
    fields = set(schema["properties"])
    assert {field.alias or name for name, field in model.model_fields.items()} == fields
    assert interface(model.__name__) == set(camel(dict.fromkeys(fields)))


def stable(value: Any) -> Any:
    """Without times and ids of a request."""
    if isinstance(value, list):
        return list(map(stable, value))
    if not isinstance(value, dict):
        return value
    changing = {"requestId", "latencyMs", "stages", "processingTimeMs", "generatedAt"}
    return {name: stable(inner) for name, inner in value.items() if name not in changing}


def dump(model: BaseModel) -> Any:
    return stable(model.model_dump(mode="json", by_alias=True, exclude_unset=True))


def test_the_four_calls_have_the_same_results_in_both_languages(
    typescript: Package, home: Workspace, ann: Mnemosyne
):
    name = ann.collections.get(home.id.removeprefix("ws_")).name
    include = {"rationale": True}
    results = ann.search.search(QUESTION, collection_id=name, top_k=2, include={"rationale": True})
    assert results.rationale
    first = results.results[0]
    assert first.title == "Billing outage"
    subject = {"kind": "chunk", "chunkId": first.chunk_id}
    similar_ = ann.search.similar(
        {"kind": "chunk", "chunk_id": first.chunk_id}, collection_id=home.id, by="documents",
        filters={"metadata": {"a_b": 1}},
    )  # fmt: skip
    graph: models.GraphExpansion = {"hops": 0}
    ids: list[models.Reference] = [
        {"kind": "document", "id": first.document_id},
        {"kind": "chunk", "id": first.chunk_id},
        {"kind": "chunk", "id": f"chnk_{HOME}"},
    ]
    hydrated = ann.search.contents(
        ids, collection_id=home.id, include_raw=True, expand={"chunks": True, "graph": graph}
    )
    assert hydrated.documents[0].body == hydrated.chunks[0].text
    assert hydrated.missing == [f"chnk_{HOME}"]
    whole = ann.search.answer(QUESTION, collection_id=home.id, include={"rationale": True})
    assert "Priya Nair" in whole.answer
    assert whole.support.sentences[0].references[0].chunk_id == first.chunk_id
    at = {"collectionId": home.id}
    steps: dict[str, Row] = {
        "search": {"collectionId": name, "q": QUESTION, "topK": 2, "include": include},
        "similar": {**at, "subject": subject, "by": "documents", "filters": {"metadata": {"a_b": 1}}},
        "contents": {**at, "ids": ids, "includeRaw": True, "expand": {"chunks": True, "graph": graph}},
        "answer": {**at, "question": QUESTION, "include": include},
    }
    others = typescript.results(
        {"baseUrl": ann.base_url, "apiKey": home.actor.token()},
        *({"call": f"search.{call}", "args": [arguments]} for call, arguments in steps.items()),
    )
    for model, other in zip((results, similar_, hydrated, whole), others, strict=True):
        assert stable(other["value"]) == dump(model), type(model)


def test_an_answer_is_streamed_in_both_languages(typescript: Package, home: Workspace, ann: Mnemosyne):
    with ann.search.answer(QUESTION, collection_id=home.id, stream=True) as stream:
        events = list(stream)
    assert [events[0].type, events[-1].type] == ["meta", "final"]
    final = events[-1].answer
    assert final
    assert "".join(event.text for event in events) == final.answer
    assert [event.citation for event in events if event.type == "citation"] == final.citations
    arguments = {"collectionId": home.id, "question": QUESTION, "stream": True}
    (output,) = typescript.results(
        {"baseUrl": ann.base_url, "apiKey": home.actor.token()},
        {"call": "search.answer", "args": [arguments], "read": True},
    )
    others = output["value"]["chunks"]
    assert [other["type"] for other in others] == [event.type for event in events]
    assert "".join(other.get("text", "") for other in others) == final.answer
    assert others[-1]["answer"]["citations"] == [dump(citation) for citation in final.citations]


def test_an_org_is_searched_by_its_name_and_another_workspace_is_missing(
    typescript: Package, home: Workspace, people: People
):
    with Mnemosyne(key_of(people.ann), address_of(people.ann.stack)) as ann:
        results = ann.search.search("INC-4821", scope="org", org_id="Acme")
        assert results.results[0].workspace_id == home.id
        (other,) = typescript.results(
            {"baseUrl": ann.base_url, "apiKey": key_of(people.ann)},
            {"call": "search.search", "args": [{"q": "INC-4821", "scope": "org", "orgId": "Acme"}]},
        )
        assert other["value"]["results"][0]["highlight"] in TICKET
    bob = {"baseUrl": address_of(people.ann.stack), "apiKey": key_of(people.bob)}
    with Mnemosyne(bob["apiKey"], bob["baseUrl"]) as stranger, pytest.raises(NotFoundError) as missing:
        stranger.search.search("INC-4821", collection_id=home.id)
    assert missing.value.code == "NOT_FOUND"
    (other,) = typescript.results(
        bob, {"call": "search.search", "args": [{"q": "INC-4821", "collectionId": home.id}]}
    )
    assert (other["error"]["name"], other["error"]["code"]) == ("NotFoundError", "NOT_FOUND")


def test_the_rag_pair_has_the_same_results_in_both_languages(
    typescript: Package, home: Workspace, ann: Mnemosyne, people: People
):
    filters: rag_models.RagFilters = {"org_id": "Acme"}
    results = ann.rag.search(QUESTION, top_k=2, filters=filters)
    assert results.results[0].source_title == "Billing outage"
    whole = ann.rag.answer(QUESTION, filters=filters)
    assert (whole.status, "Priya Nair" in whole.answer.text) == ("success", True)
    others = typescript.results(
        {"baseUrl": ann.base_url, "apiKey": home.actor.token()},
        {"call": "rag.search", "args": [{"queryText": QUESTION, "topK": 2, "filters": {"orgId": "Acme"}}]},
        {"call": "rag.answer", "args": [{"queryText": QUESTION, "filters": {"orgId": "Acme"}}]},
    )
    for model, other in zip((results, whole), others, strict=True):
        dumped = dump(model)
        # Free-form metadata, whose names stay as they are.
        metas, other_metas = (
            [each.pop("meta") for name in ("results", "citations") for each in body.get(name, [])]
            for body in (dumped, other["value"])
        )
        assert metas == other_metas
        assert stable(other["value"]) == stable(camel(dumped))
    with Mnemosyne(key_of(people.ann), ann.base_url) as keyed, pytest.raises(AuthenticationError):
        keyed.rag.search(QUESTION)


def test_an_answer_is_repeated_only_with_a_key_and_an_error_in_a_stream_is_raised(
    typescript: Package, gateway: StandIn
):
    error = {"error": {"code": "UNAVAILABLE", "message": "The model is busy.", "details": {}}}
    events = f'event: token\ndata: {{"text": "a"}}\n\nevent: error\ndata: {json.dumps(error)}\n\n'
    stream = Reply(chunks=[events.encode()], headers={"Content-Type": "text/event-stream"})
    broken = Reply(status=500, json=error)
    gateway.replies(broken, broken, broken, broken, stream, broken, broken, broken, broken, stream)
    with Mnemosyne(KEY, f"{gateway.url}/api/v1") as client:
        with pytest.raises(InternalServerError):
            client.search.answer("q", collection_id=HOME)
        with pytest.raises(InternalServerError):
            client.search.answer("q", collection_id=HOME, idempotency_key="once")
        with pytest.raises(InternalServerError, match="The model is busy") as raised:
            list(client.search.answer("q", collection_id=HOME, stream=True))
        assert raised.value.status_code == 503
    arguments: Row = {"question": "q", "collectionId": HOME}
    call: Row = {"call": "search.answer", "args": [arguments]}
    keyed: Row = {**call, "args": [arguments, {"idempotencyKey": "once"}]}
    streamed: Row = {**call, "args": [{**arguments, "stream": True}], "read": True}
    once, thrice, streams = typescript.results(
        {"baseUrl": f"{gateway.url}/v1"}, call, keyed, streamed, hurried=True
    )
    assert [once["asked"], thrice["asked"]] == [1, 3]
    assert streams["value"]["error"]["name"] == "InternalServerError"
    assert {request.path for request in gateway.requests} == {"/v1/answer"}
    assert gateway.requests[0].json == {"question": "q", "workspaceId": HOME}
    assert gateway.requests[5].json == gateway.requests[0].json
