"""Questions embedded before, with the real database and a stand-in for the paid embeddings: who saves the
call, who does not, and that no search fails by it."""

import asyncio
import re
from collections.abc import Callable, Iterator
from hashlib import sha256

import pytest
from pydantic import SecretStr

from shared import pipeline
from shared.clients.http_client import deadline
from shared.clients.postgrest import Database
from shared.config import Settings
from shared.errors import EmbeddingFailed
from shared.models import openai_embedder, query_embedding_cache
from shared.models.embedding_roles import Role
from shared.models.embeddings import Embedder, embed
from shared.models.query_embedding_cache import embed_query
from shared.services import Services
from shared.types import Query
from tests.actors import Actor, World, vector
from tests.conftest import People
from tests.shared.examples import closed_after_test
from tests.stand_in_server import Reply, StandIn

HOUR = 3600
QUESTION = "How hot may the kiln become?"
Made = Callable[..., Services]


@pytest.fixture
def made(settings: Settings, service: StandIn) -> Made:
    """A deployment of the stack's whose embeddings are the stand-in's."""

    def make(**changes: object) -> Services:
        update = {"openai_api_key": SecretStr("sk-none"), "rag_embedding_url": f"{service.url}/v1", **changes}
        return closed_after_test(Services(settings.model_copy(update=update)))

    return make


@pytest.fixture
def remote(made: Made) -> Services:
    return made()


def answers_with(service: StandIn, *seeds: int) -> None:
    """One embedding after the other, the last one again and again."""
    for seed in seeds:
        data = [{"object": "embedding", "index": 0, "embedding": vector(seed)}]
        service.replies(Reply(json={"object": "list", "data": data, "model": "m", "usage": {}}))


def embedded(services: Services, actor: Actor, text: str = QUESTION, seconds: int = HOUR) -> list[float]:
    return embed_query(services.database, services.embedder, actor.principal, text, seconds)


def close_to(seed: int) -> object:
    """What half precision leaves of that vector."""
    return pytest.approx(vector(seed), rel=1e-3, abs=1e-4)


def remembered(world: World, actor: Actor) -> int:
    ((count,),) = world.sql("select count(*) from rag.query_embeddings where user_id = %s", actor.id)
    return int(count)


def grow_older(world: World, seconds: float) -> None:
    world.sql("update rag.query_embeddings set created_at = created_at - make_interval(secs => %s)", seconds)


def test_the_same_question_of_the_same_user_is_embedded_once(service: StandIn, made: Made, people: People):
    """Whichever instance embedded it."""
    answers_with(service, 1, 2)
    assert embedded(made(), people.ann) == vector(1)
    recalled = embedded(made(), people.ann)
    assert recalled == close_to(1)
    assert {type(number) for number in recalled} <= {int, float}
    assert len(service.requests) == 1


def test_an_expired_question_is_embedded_again(
    service: StandIn, remote: Services, people: People, world: World
):
    answers_with(service, 1, 2)
    embedded(remote, people.ann)
    grow_older(world, HOUR - 60)
    assert embedded(remote, people.ann) == close_to(1)
    grow_older(world, 60)
    assert embedded(remote, people.ann) == vector(2)
    assert embedded(remote, people.ann) == close_to(2)
    assert remembered(world, people.ann) == 1


def test_nothing_is_cached_for_0_seconds_or_of_the_local_model(
    service: StandIn, remote: Services, services: Services, people: People, world: World
):
    answers_with(service, 1, 2)
    assert [embedded(remote, people.ann, seconds=0) for _ in range(2)] == [vector(1), vector(2)]
    assert embedded(services, people.ann) == embedded(services, people.ann)
    assert remembered(world, people.ann) == 0


def test_an_endpoint_is_cached_until_it_has_been_fast(
    service: StandIn, remote: Services, people: People, world: World, monkeypatch: pytest.MonkeyPatch
):
    # A busy machine delays the stand-in.
    monkeypatch.setattr(openai_embedder, "FAST_SECONDS", 60.0)
    answers_with(service, 1)
    for _ in range(openai_embedder.FAST_REQUESTS - 2):
        embed(remote.embedder, [QUESTION], Role.QUESTION)
    embedded(remote, people.ann)
    assert remembered(world, people.ann) == 1
    embedded(remote, people.ann, "Another question, whose embedding completes the measurement.")
    assert remembered(world, people.ann) == 2
    embedded(remote, people.ann, "A question of a fast endpoint.")
    assert remembered(world, people.ann) == 2


def test_a_slow_endpoint_is_cached(
    service: StandIn, remote: Services, people: People, world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(openai_embedder, "FAST_SECONDS", 0.0)
    answers_with(service, 1)
    for number in range(openai_embedder.FAST_REQUESTS + 2):
        embedded(remote, people.ann, f"Question {number}")
    assert remembered(world, people.ann) == openai_embedder.FAST_REQUESTS + 2


def test_a_search_and_an_answer_embed_once_and_have_the_same_results(
    service: StandIn, remote: Services, people: People
):
    """Through the pipeline, by the setting's default."""
    people.ann.put([vector(number) for number in range(20)], embedding_model=remote.embedder.model)
    answers_with(service, 99, 1)
    first = pipeline.search(remote, people.ann.principal, Query(QUESTION)).matches
    second = pipeline.search(remote, people.ann.principal, Query(QUESTION)).matches
    assert len(first) == 8
    assert first == second
    assert asyncio.run(pipeline.answer(remote, people.ann.principal, Query(QUESTION))).matches == first
    # Other texts are those of the scale of the model.
    assert sum(request.json["input"] == [QUESTION] for request in service.requests) == 1


def test_a_failed_embedding_is_not_cached(service: StandIn, remote: Services, people: People, world: World):
    service.replies(Reply(status=401, json={"error": {"message": "no"}}))
    with pytest.raises(EmbeddingFailed):
        embedded(remote, people.ann)
    assert remembered(world, people.ann) == 0


def test_neither_the_text_nor_its_plain_hash_is_stored(
    service: StandIn, remote: Services, people: People, world: World
):
    answers_with(service, 1)
    embedded(remote, people.ann)
    embedded(remote, people.alf)
    rows = world.sql(
        "select hash from rag.query_embeddings where user_id = any (%s)", [people.ann.id, people.alf.id]
    )
    hashes = {entry for (entry,) in rows}
    assert len(hashes) == 2, "each user's own"
    assert sha256(QUESTION.encode()).hexdigest() not in hashes


# -- when the database does not do it -------------------------------------------------------------------


UNREADABLE = "the cache of query embeddings could not be read ({}): the model embeds the query"


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Log lines; never the question, its user, or anything that reveals them."""
    for record in caplog.records:
        assert not [word for word in ("kiln", "eyJ") if word in f"{vars(record)}"]
    return [record.getMessage() for record in caplog.records if record.name == "rag"]


@pytest.fixture
def without_table(world: World) -> Iterator[None]:
    world.sql("alter table rag.query_embeddings rename to elsewhere")
    yield
    world.sql("alter table rag.elsewhere rename to query_embeddings")


def test_after_a_failed_read_nothing_is_written_and_no_search_fails(
    service: StandIn, remote: Services, people: People, without_table: None, caplog: pytest.LogCaptureFixture
):
    people.ann.put([vector(1)], embedding_model=remote.embedder.model)
    answers_with(service, 1, 2)
    assert [embedded(remote, people.ann) for _ in range(2)] == [vector(1), vector(2)]
    assert logged(caplog) == [UNREADABLE.format("SQL 42P01")] * 2
    assert len(pipeline.search(remote, people.ann.principal, Query(QUESTION)).matches) == 1


def test_a_failed_write_still_returns_the_vector(
    service: StandIn, remote: Services, people: People, world: World, caplog: pytest.LogCaptureFixture
):
    world.sql("revoke insert on rag.query_embeddings from authenticated")
    try:
        answers_with(service, 1)
        assert embedded(remote, people.ann) == vector(1)
    finally:
        world.sql("grant insert on rag.query_embeddings to authenticated")
    assert logged(caplog) == ["a query embedding could not be written to the cache (SQL 42501)"]


def ask(server: StandIn, embedder: Embedder, actor: Actor) -> list[float]:
    """With the cache of the database at that address."""
    database = closed_after_test(Database(server.url, "anon", 60))
    return embed_query(database, embedder, actor.principal, QUESTION, HOUR)


def test_a_hanging_database_is_not_waited_for(
    service: StandIn, people: People, remote: Services, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):  # fmt: skip
    monkeypatch.setattr(query_embedding_cache, "CACHE_TIMEOUT_SECONDS", 0.1)
    answers_with(service, 1)
    with StandIn() as hanging, deadline(60):
        hanging.replies(Reply(delay=30))
        assert ask(hanging, remote.embedder, people.ann) == vector(1)
    (line,) = logged(caplog)
    assert re.fullmatch(UNREADABLE.replace("(", r"\(").replace(")", r"\)").format(r"\w+Timeout"), line)


def test_a_cached_vector_is_validated_like_a_new_one(
    subtests: pytest.Subtests, service: StandIn, people: People, remote: Services,
    caplog: pytest.LogCaptureFixture,
):  # fmt: skip
    """Whatever stands before the database may answer anything."""
    start = vector(1)[:-1]
    cases: list[object] = [
        [1.0], start, [*vector(1), *vector(1), 0.1], [0.0] * 1536, [*start, None], [*start, "1"],
        [*start, float("nan")], str(vector(1)), {"embedding": vector(1)}, {}, [], 0, True, "",
    ]  # fmt: skip
    answers_with(service, 2)
    for junk in cases:
        caplog.clear()
        with subtests.test(junk=str(junk)[:20]), StandIn() as odd:
            odd.replies(Reply(json=junk))
            assert ask(odd, remote.embedder, people.ann) == vector(2)
            (line,) = logged(caplog)
            assert line.startswith("the cache of query embeddings could not be read (")


def test_hashes_differ_by_user_model_and_text(service: StandIn, made: Made, people: People, world: World):
    """Nothing that is moved from one to the other makes the same question."""
    answers_with(service, 1)
    questions = [("m", 'n", "t'), ('m", "n', "t"), ("m\x00n", "t"), ("m", "n\x00t"), ("mn", "t"), ("m", "nt")]
    for model, text in questions:
        embedded(made(rag_embedding_model=model), people.ann, text)
    assert remembered(world, people.ann) == len(questions)
