"""The cache of query embeddings, with a stand-in for the paid ones: which questions are embedded again."""

import asyncio
from collections.abc import Callable

import pytest
from pydantic import SecretStr

from shared import pipeline
from shared.config import Settings
from shared.errors import EmbeddingFailed
from shared.models import query_embedding_cache
from shared.services import Services
from shared.types import Principal, Query
from tests.actors import Actor, vector
from tests.conftest import People
from tests.shared.examples import closed_after_test
from tests.stand_in_server import Reply, StandIn

QUESTION = "How hot may the kiln become?"
Made = Callable[..., Services]


@pytest.fixture
def made(settings: Settings, service: StandIn) -> Made:
    """A process whose embeddings are the stand-in's."""

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


def embedded(services: Services, actor: Actor, text: str = QUESTION) -> list[float]:
    return services.query_embeddings.embed(services.embedder, actor.principal, text)


def test_the_same_question_of_the_same_user_is_embedded_once(
    service: StandIn, remote: Services, people: People
):
    answers_with(service, 1, 2)
    first = embedded(remote, people.ann)
    assert first == vector(1)
    first.clear()
    assert embedded(remote, people.ann) == vector(1), "the list is the caller's own"
    assert len(service.requests) == 1


def test_a_question_is_embedded_again_for_another_user_but_not_for_the_user_s_key(
    service: StandIn, remote: Services, people: People
):
    """A cache that users share would reveal by its speed that another user asked the same."""
    answers_with(service, 1)
    for count, actor in enumerate((people.ann, people.alf, people.ada, people.bob), start=1):
        embedded(remote, actor)
        assert len(service.requests) == count, actor
    key = Principal(people.ann.id, people.ann.key_token(scopes=["retrievals:read"]), key_id="key")
    remote.query_embeddings.embed(remote.embedder, key, QUESTION)
    assert len(service.requests) == 4


def test_an_expired_question_and_the_oldest_above_the_maximum_are_embedded_again(
    service: StandIn, made: Made, people: People, monkeypatch: pytest.MonkeyPatch
):
    answers_with(service, 1)
    monkeypatch.setattr(query_embedding_cache, "MAX_EMBEDDINGS", 2)
    small = made()
    for text, count in (("a", 1), ("b", 2), ("c", 3), ("b", 3), ("a", 4)):
        embedded(small, people.ann, text)
        assert len(service.requests) == count, (text, count)
    monkeypatch.setattr(query_embedding_cache, "CACHE_SECONDS", 0)
    expired = made()
    for count in (5, 6):
        embedded(expired, people.ann)
        assert len(service.requests) == count


def test_the_questions_of_one_user_displace_that_user_s_own(
    service: StandIn, made: Made, people: People, monkeypatch: pytest.MonkeyPatch
):
    answers_with(service, 1)
    monkeypatch.setattr(query_embedding_cache, "MAX_OF_A_USER", 2)
    monkeypatch.setattr(query_embedding_cache, "MAX_EMBEDDINGS", 3)
    small = made()
    questions = [
        (people.bob, "a", 1),
        *((people.ann, text, count) for count, text in enumerate("abcd", start=2)),
    ]
    for actor, text, count in [*questions, (people.bob, "a", 5), (people.ann, "c", 5), (people.ann, "b", 6)]:
        embedded(small, actor, text)
        assert len(service.requests) == count, (actor, text)


def test_a_search_and_an_answer_embed_once_and_have_the_same_results(
    service: StandIn, remote: Services, people: People
):
    people.ann.put([vector(number) for number in range(20)], embedding_model=remote.embedder.model)
    answers_with(service, 99, 1)
    first = pipeline.search(remote, people.ann.principal, Query(QUESTION)).matches
    second = pipeline.search(remote, people.ann.principal, Query(QUESTION)).matches
    assert len(first) == 8
    assert first == second
    assert asyncio.run(pipeline.answer(remote, people.ann.principal, Query(QUESTION))).matches == first
    # Other texts are those of the scale of the model.
    assert sum(request.json["input"] == [QUESTION] for request in service.requests) == 1


def test_a_failed_embedding_is_not_cached(service: StandIn, remote: Services, people: People):
    service.replies(Reply(status=401, json={"error": {"message": "no"}}))
    answers_with(service, 1)
    with pytest.raises(EmbeddingFailed):
        embedded(remote, people.ann)
    assert embedded(remote, people.ann) == vector(1)


def test_entries_differ_by_model_and_text(service: StandIn, made: Made, people: People):
    """Nothing that is moved from one to the other makes the same question."""
    answers_with(service, 1)
    remote = made()
    questions = [("m", 'n", "t'), ('m", "n', "t"), ("m\x00n", "t"), ("m", "n\x00t"), ("mn", "t"), ("m", "nt")]
    for model, text in questions:
        other = made(rag_embedding_model=model)
        remote.query_embeddings.embed(other.embedder, people.ann.principal, text)
    assert len(service.requests) == len(questions)
