"""Change of the embedding model: searches, writes, interruptions, the way back. The other model is a rotation
of the local one, so that the right results stay the same; a deployment uses it over HTTP."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from pydantic import SecretStr

from local.errors import CommandError
from local.operations import change_model
from local.operations.change_model import change, embed_org, exchange, finish, progress_of
from local.stack import Stack
from shared import pipeline
from shared.config import OtherEmbedding, Settings
from shared.documents import collections, documents, index_documents
from shared.documents.documents import NewUpload
from shared.documents.index_documents import IndexDocument
from shared.errors import ConfigurationError, EmbeddingFailed
from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import BatchResult, Jobs
from shared.ingestion.synchronous_ingestion import NewDocument
from shared.models.embedding_roles import Role, Roles
from shared.models.embeddings import Embedder, other_embedder_for
from shared.services import Services
from shared.types import Filters, Mode, Query, ResultKind, SearchResult, SimilarTo
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import services_with
from tests.ingestion import ingest
from tests.local.command_line import run_local
from tests.sql import passages
from tests.stand_in_embedders import RotatedEmbedder
from tests.stand_in_server import Reply, Request, StandIn

TEXTS = {
    "Kiln": "The kiln may become 1,280 degrees hot. After that it cools for a whole day.",
    "Outage": "The outage INC-4821 was caused by an expired certificate on the gateway.",
    "Holidays": "Employees take thirty days of leave a year, and the office is closed in August.",
    "Printer": "The printer on the second floor jams when its drawer holds more than 200 sheets.",
}
QUESTIONS = {
    "How hot does the kiln become?": "Kiln",
    "Why did the gateway fail?": "Outage",
    "How much leave do people get?": "Holidays",
    "When does the printer jam?": "Printer",
}
QUESTIONS_ABOUT_KILNS = "How hot does the kiln become?"
FAST = 10**9
STATE = (
    "select embedding_model, embedding::text from rag.chunks where org_id = %s order by ordinal, document_id"
)
TOTALS = """
select config, embedding_model, sum(documents)::integer, sum(chunks)::integer
from rag.index_totals(array[%s::uuid], null)
group by 1, 2
"""


class WatchedEmbedder:
    """An embedder whose texts are kept. `watch` is called with each batch before it is embedded."""

    def __init__(self, embedder: Embedder, watch: Callable[[Sequence[str]], object] = lambda _: None) -> None:
        self.texts: list[str] = []
        self._embedder, self._watch = embedder, watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        self._watch(texts)
        self.texts += texts
        return self._embedder.embed(texts, role, background=background)


@pytest.fixture(scope="module")
def rotated() -> RotatedEmbedder:
    return RotatedEmbedder()


@pytest.fixture
def owner(stack: Stack, world: World) -> Iterator[psycopg.Connection[Any]]:
    columns = "embedding_model, other_embedding_models, next_embedding_model, embedding_dimensions"
    before = world.sql(f"select {columns} from rag.settings")[0]
    with psycopg.connect(stack.database_url(), autocommit=True) as connection:
        yield connection
    world.sql("delete from rag.chunks")
    world.sql("update rag.orgs set embedding_model = null")
    world.sql(f"update rag.settings set ({columns}) = row(%s, %s, %s, %s)", *before[:3], Jsonb(before[3]))
    world.sql("drop index if exists rag.chunks_by_embedding_384, rag.chunks_by_embedding_768")


@pytest.fixture
def changing(settings: Settings, rotated: RotatedEmbedder) -> Iterator[Services]:
    """A deployment that has both models."""

    def reply(request: Request) -> Any:
        if request.method == "GET":
            return {"data": [{"id": rotated.model, "max_model_len": rotated.window}]}
        vectors = rotated.embed(request.json["input"], Role.DOCUMENT)
        return {"data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]}

    with StandIn() as server:
        server.replies(Reply(json=reply))
        other = OtherEmbedding.model_validate(other_model(f"{server.url}/v1"))
        with services_with(settings, rag_other_embedding=other) as services:
            yield services


def other_model(url: str) -> dict[str, str]:
    return {"model": RotatedEmbedder.model, "url": url, "api_key": "sk-none"}


def put(services: Services, actor: Actor, title: str, text: str) -> str:
    document = NewDocument(title, text, lang="en")
    return ingest(
        services.database, services.embedder_of_org(actor.principal), actor.principal, document
    ).document_id


def put_all(services: Services, actor: Actor) -> None:
    for title, text in TEXTS.items():
        put(services, actor, title, text)


def search(
    services: Services, actor: Actor, question: str, mode: Mode = Mode.SEMANTIC, **more: Any
) -> SearchResult:
    return pipeline.search(services, actor.principal, Query(question, mode=mode, **more))


def best_titles(services: Services, actor: Actor, mode: Mode = Mode.SEMANTIC) -> list[str]:
    return [search(services, actor, question, mode).matches[0].title for question in QUESTIONS]


def test_an_org_is_searched_before_during_and_after_its_change(
    owner: psycopg.Connection[Any], changing: Services, people: People, rotated: Embedder
):
    put_all(changing, people.ann)
    before = [search(changing, people.ann, question).matches for question in QUESTIONS]
    assert best_titles(changing, people.ann) == list(QUESTIONS.values())
    for _ in embed_org(owner, rotated, people.acme.id):
        assert best_titles(changing, people.ann) == list(QUESTIONS.values())
    assert change(owner, rotated, FAST) == 0
    for question, matches in zip(QUESTIONS, before, strict=True):
        after = search(changing, people.ann, question).matches
        assert [match.chunk_id for match in after] == [match.chunk_id for match in matches]
        assert [match.similarity for match in after] == pytest.approx(
            [match.similarity for match in matches], abs=0.002
        )
        assert {match.model for match in after} == {rotated.model}
    for mode in Mode:
        assert best_titles(changing, people.ann, mode) == list(QUESTIONS.values()), mode
        assert search(changing, people.ann, "INC-4821", mode).matches[0].title == "Outage", mode
        result = search(changing, people.ann, QUESTIONS_ABOUT_KILNS, mode, graph=True)
        assert result.matches[0].title == "Kiln", mode


def test_each_model_keeps_its_own_dimensions(
    owner: psycopg.Connection[Any], changing: Services, people: People, world: World, rotated: Embedder
):
    local = changing.embedder
    for embedder, size in ((local, 384), (rotated, 768)):
        owner.execute("select rag.set_dimensions(%s, %s)", [embedder.model, size])
    put_all(changing, people.ann)
    sizes = "select distinct embedding_model, extensions.vector_dims(embedding) from rag.{}"
    assert owner.execute(sizes.format("chunks").encode()).fetchall() == [(local.model, 384)]
    change(owner, rotated, FAST)
    assert owner.execute(sizes.format("chunks").encode()).fetchall() == [(rotated.model, 768)]
    assert owner.execute(sizes.format("other_embeddings").encode()).fetchall() == [(local.model, 384)]
    assert best_titles(changing, people.ann) == list(QUESTIONS.values())
    with passages.deployed_with(world, exact_rows=0):
        assert best_titles(changing, people.ann) == list(QUESTIONS.values())
    assert change(owner, local, FAST) == 0
    assert owner.execute(sizes.format("chunks").encode()).fetchall() == [(local.model, 384)]
    assert best_titles(changing, people.ann) == list(QUESTIONS.values())


def test_a_deployment_that_has_one_model_finds_nothing_of_the_other(
    owner: psycopg.Connection[Any], services: Services, people: People, rotated: Embedder
):
    """A deployer must set both models before the change."""
    put_all(services, people.ann)
    change(owner, rotated, FAST)
    assert search(services, people.ann, QUESTIONS_ABOUT_KILNS).matches == ()


def test_similar_documents_are_found_in_an_org_of_either_model(
    owner: psycopg.Connection[Any], changing: Services, people: People, rotated: Embedder
):
    first = put(changing, people.ann, "Kiln", TEXTS["Kiln"])
    put(changing, people.ann, "Oven", "The oven becomes 300 degrees hot, and cools within an hour.")

    def similar(subject: SimilarTo, text: str = "") -> list[str]:
        query = Query(text, mode=Mode.SEMANTIC)
        result = pipeline.similar(changing, people.ann.principal, subject, query, ResultKind.DOCUMENTS)
        return [match.title for match in result.matches]

    for _ in range(2):
        assert similar(SimilarTo("document", first)) == ["Oven"]
        assert similar(SimilarTo("text", "a hot kiln"), "a hot kiln")[0] == "Kiln"
        change(owner, rotated, FAST)


def test_orgs_of_different_models_are_fused_by_rank(
    owner: psycopg.Connection[Any], changing: Services, people: People, rotated: Embedder
):
    put_all(changing, people.ann)
    put_all(changing, people.bob)
    owner.execute(change_model.START, {"model": rotated.model})
    list(embed_org(owner, rotated, people.acme.id))
    assert exchange(owner, rotated.model, people.acme.id) == len(TEXTS)
    result = search(changing, people.kim, QUESTIONS_ABOUT_KILNS, top_k=6)
    assert [match.title for match in result.matches[:2]] == ["Kiln", "Kiln"]
    assert {match.org_id for match in result.matches[:2]} == {people.acme.id, people.bolt.id}
    assert len({match.chunk_id for match in result.matches}) == 6
    scores = [match.score for match in result.matches]
    assert scores == sorted(scores, reverse=True)
    only = search(changing, people.kim, QUESTIONS_ABOUT_KILNS, filters=Filters(org_id=people.bolt.id))
    assert {match.org_id for match in only.matches} == {people.bolt.id}


def test_an_interrupted_run_continues(
    owner: psycopg.Connection[Any],
    changing: Services,
    people: People,
    rotated: Embedder,
    monkeypatch: pytest.MonkeyPatch,
):
    interruptions = iter([False, False, True])

    def interrupt(_: Sequence[str]) -> None:
        if next(interruptions, False):
            raise KeyboardInterrupt

    monkeypatch.setattr(change_model, "BATCH", 1)
    put_all(changing, people.ann)
    embedder = WatchedEmbedder(rotated, interrupt)
    with pytest.raises(KeyboardInterrupt):
        change(owner, embedder, FAST)
    stored = progress_of(owner, embedder.model)
    assert (stored.orgs, stored.changed_orgs, stored.chunks, stored.embedded) == (1, 0, 4, 2)
    assert 0 < stored.tokens < 60
    assert best_titles(changing, people.ann) == list(QUESTIONS.values())
    change(owner, embedder, FAST)
    assert sorted(embedder.texts) == sorted(f"{title}\n{text}" for title, text in TEXTS.items())
    assert progress_of(owner, embedder.model).is_complete


def test_an_org_to_which_documents_are_always_added_is_changed(
    owner: psycopg.Connection[Any], changing: Services, people: People, rotated: Embedder
):
    def add(_: Sequence[str]) -> None:
        assert len(embedder.texts) < 20, "the change does not come to an end"
        put(changing, people.ann, f"Kiln {len(embedder.texts)}", TEXTS["Kiln"])
        assert best_titles(changing, people.ann)[1:] == list(QUESTIONS.values())[1:]

    put_all(changing, people.ann)
    embedder = WatchedEmbedder(rotated, add)
    change(owner, embedder, FAST)
    # The four documents, and the one that was stored while they were embedded.
    assert len(embedder.texts) == len(TEXTS) + 1
    models = {model for model, _ in owner.execute(STATE, [people.acme.id]).fetchall()}
    assert models == {embedder.model}


def test_a_change_that_is_taken_back_before_the_exchange_leaves_the_org_with_its_model(
    owner: psycopg.Connection[Any], changing: Services, people: People, embedder: Embedder
):
    """The org's new documents would have had the new model, but none was stored."""
    put_all(changing, people.ann)
    before = owner.execute(STATE, [people.acme.id]).fetchall()
    parameters = {"model": RotatedEmbedder.model, "org": people.acme.id}
    owner.execute(change_model.NEW_DOCUMENTS, parameters)
    local = WatchedEmbedder(embedder)
    change(owner, local, FAST)
    assert local.texts == []
    assert owner.execute(STATE, [people.acme.id]).fetchall() == before
    put(changing, people.ann, "Kiln", TEXTS["Kiln"])
    models = {model for model, _ in owner.execute(STATE, [people.acme.id]).fetchall()}
    assert models == {embedder.model}


def test_new_documents_are_embedded_by_the_model_of_their_org(
    owner: psycopg.Connection[Any],
    changing: Services,
    people: People,
    rotated: Embedder,
    no_jobs: None,
    world: World,
):
    put(changing, people.ann, "Kiln", TEXTS["Kiln"])
    put(changing, people.bob, "Kiln", TEXTS["Kiln"])
    owner.execute(change_model.START, {"model": rotated.model})
    list(embed_org(owner, rotated, people.acme.id))
    exchange(owner, rotated.model, people.acme.id)
    for actor in (people.ann, people.bob):
        caller = actor.principal
        put(changing, actor, "Outage", TEXTS["Outage"])
        index_documents.add(
            changing.database,
            changing.embedder_of_org(caller),
            caller,
            "default",
            [IndexDocument.new(TEXTS["Printer"], {"title": "Printer"})],
        )
        home = collections.create(changing.database, caller, {"name": "uploads"})["id"]
        documents.add(
            changing.database, caller, home, NewUpload(TEXTS["Holidays"].encode(), "Holidays", "a.txt")
        )
    jobs = Jobs(changing.database, changing.require_signer())
    worker = Worker(jobs, changing.embedder, embedder_of_org=changing.embedder_of_org)
    assert worker.work() + worker.work() == BatchResult(claimed=2, completed=2)
    for org, model in ((people.acme.id, rotated.model), (people.bolt.id, changing.embedder.model)):
        assert [row[0] for row in owner.execute(STATE, [org]).fetchall()] == [model] * 4
    assert best_titles(changing, people.ann) == list(QUESTIONS.values())


def test_the_way_back_needs_no_new_embeddings(
    owner: psycopg.Connection[Any],
    changing: Services,
    people: People,
    embedder: Embedder,
    rotated: Embedder,
):
    put_all(changing, people.ann)
    before = owner.execute(STATE, [people.acme.id]).fetchall()
    totals = owner.execute(TOTALS, [people.acme.id]).fetchall()
    counting = WatchedEmbedder(rotated)
    change(owner, counting, FAST)
    changed = owner.execute(STATE, [people.acme.id]).fetchall()
    assert {model for model, _ in changed} == {counting.model}
    put(changing, people.ann, "Kiln 2", TEXTS["Kiln"])
    again = WatchedEmbedder(embedder)
    change(owner, again, FAST)
    assert len(again.texts) == 1
    owner.execute("delete from rag.documents where title = 'Kiln 2'")
    # A deleted document loses its other embeddings.
    assert owner.execute("select count(*) from rag.other_embeddings").fetchone() == (len(TEXTS),)
    assert owner.execute(STATE, [people.acme.id]).fetchall() == before
    assert owner.execute(TOTALS, [people.acme.id]).fetchall() == totals
    assert owner.execute(
        "select embedding_model from rag.orgs where id = %s", [people.acme.id]
    ).fetchone() == (embedder.model,)
    change(owner, counting, FAST)
    assert owner.execute(STATE, [people.acme.id]).fetchall() == changed
    assert len(counting.texts) == len(TEXTS)


def test_the_keyword_index_counts_chunks_by_their_model(
    owner: psycopg.Connection[Any], changing: Services, people: People, rotated: Embedder
):
    """By these counts a search chooses between an exact comparison and the HNSW index."""
    put_all(changing, people.ann)
    change(owner, rotated, FAST)
    assert owner.execute(TOTALS, [people.acme.id]).fetchall() == [("english", rotated.model, 4, 4)]
    words = "select terms, places from rag.document_terms where org_id = %s order by document_id"
    after = owner.execute(words, [people.acme.id]).fetchall()
    owner.execute(
        "select rag.index_words(%s, array_agg(id)) from rag.documents where org_id = %s",
        [people.acme.id, people.acme.id],
    )
    assert owner.execute(words, [people.acme.id]).fetchall() == after
    assert owner.execute("select count(*) from rag.chunks where in_hnsw").fetchone() == (0,)


def test_finish_makes_it_the_deployment_s_model(
    owner: psycopg.Connection[Any], changing: Services, people: People, rotated: Embedder, settings: Settings
):
    put_all(changing, people.ann)
    with pytest.raises(CommandError, match="1 orgs have embeddings of another model"):
        finish(owner, rotated.model)
    change(owner, rotated, FAST)
    finish(owner, rotated.model)
    models = "embedding_model, next_embedding_model, other_embedding_models"
    row = owner.execute(f"select {models} from rag.settings").fetchone()
    # Neither the former model nor one that was given up.
    assert row == (rotated.model, None, [])
    assert owner.execute("select count(*) from rag.other_embeddings").fetchone() == (0,)
    assert owner.execute("select count(*) from rag.chunks").fetchone() == (4,)


def test_one_run_at_a_time(
    owner: psycopg.Connection[Any], changing: Services, people: People, stack: Stack, rotated: Embedder
):
    put_all(changing, people.ann)
    with psycopg.connect(stack.database_url(), autocommit=True) as other:

        def compete(_: Sequence[str]) -> None:
            with pytest.raises(CommandError, match="another run"):
                change(other, rotated, FAST)

        change(owner, WatchedEmbedder(rotated, compete), FAST)


def test_an_embedder_that_fails_for_long_ends_the_run(
    owner: psycopg.Connection[Any],
    changing: Services,
    people: People,
    rotated: Embedder,
    monkeypatch: pytest.MonkeyPatch,
):
    attempts = []

    def fail(texts: Sequence[str]) -> None:
        attempts.append(texts)
        raise EmbeddingFailed

    monkeypatch.setattr(change_model, "PAUSES", (0.0, 0.0))
    put(changing, people.ann, "Kiln", TEXTS["Kiln"])
    with pytest.raises(EmbeddingFailed):
        change(owner, WatchedEmbedder(rotated, fail), FAST)
    assert len(attempts) == 3
    assert best_titles(changing, people.ann)[0] == "Kiln"


def test_the_command_reports_the_cost_and_changes_the_model(
    owner: psycopg.Connection[Any], changing: Services, people: People, stack: Stack
):
    put_all(changing, people.ann)
    assert changing.settings.rag_other_embedding
    other = json.dumps(other_model(changing.settings.rag_other_embedding.url))

    def run(*arguments: object, other: str = other) -> tuple[int, str]:
        done = run_local(stack.folder, "change-model", *arguments, RAG_OTHER_EMBEDDING=other)
        return done.returncode, done.stdout + done.stderr

    status, printed = run("--status", "--price", "0.5")
    assert (status, "0 of 1 orgs changed; 0 of 4 chunks embedded" in printed, "$0.00" in printed) == (
        0,
        True,
        True,
    )
    status, printed = run("--finish")
    assert (status, "orgs have embeddings of another model" in printed) == (1, True)
    status, printed = run("--per-minute", FAST)
    assert (status, "4 embeddings exchanged" in printed) == (0, True)
    assert "1 of 1 orgs changed; 4 of 4 chunks embedded; about 0 tokens" in printed
    status, printed = run("--to", "unknown")
    assert (status, "neither" in printed) == (1, True)
    status, printed = run("--finish")
    assert status == 0
    status, printed = run(other="")
    assert (status, "RAG_OTHER_EMBEDDING" in printed) == (1, True)


def test_the_settings_of_the_other_model_are_checked(settings: Settings):
    def changed(model: str, **more: Any) -> Settings:
        return settings.model_copy(update={"rag_other_embedding": OtherEmbedding(model=model), **more})

    with pytest.raises(ConfigurationError, match="the model of RAG_EMBEDDING_MODEL"):
        other_embedder_for(changed("all-MiniLM-L6-v2"))
    with pytest.raises(ConfigurationError, match="set its api_key too"):
        other_embedder_for(changed("text-embedding-3-large"))
    embedder = other_embedder_for(changed("all-MiniLM-L6-v2", openai_api_key=SecretStr("sk-none")))
    assert embedder is not None
    assert not embedder.remote
