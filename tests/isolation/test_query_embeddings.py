"""Attacks on the cache of questions: their users, and other users' vectors."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from pydantic import SecretStr

from shared import pipeline
from shared.config import Settings
from shared.models.query_embedding_cache import question_hash
from shared.services import Services
from shared.types import Principal, Query
from tests.actors import Actor, World, vector
from tests.conftest import People
from tests.isolation.victim_documents import QUESTION
from tests.stand_in_server import Reply, StandIn

HOUR = 3600
RECALL, REMEMBER = "rag_get_query_embedding", "rag_put_query_embedding"
TRUE, WRONG = vector(1), vector(2)


@pytest.fixture
def service() -> Iterator[StandIn]:
    """The paid API, to which every question is the same."""
    with StandIn() as server:
        data = [{"object": "embedding", "index": 0, "embedding": TRUE}]
        server.replies(Reply(json={"object": "list", "data": data, "model": "m", "usage": {}}))
        yield server


@pytest.fixture
def services(settings: Settings, service: StandIn) -> Iterator[Services]:
    """A deployment of the stack's that pays for its embeddings."""
    remote = {"openai_api_key": SecretStr("sk-none"), "rag_embedding_url": f"{service.url}/v1"}
    services = Services(settings.model_copy(update=remote))
    yield services
    services.close()


@pytest.fixture
def cached_hash(services: Services, people: People) -> str:
    """Ann has asked the question; the hash under which it is cached, which any user can compute."""
    pipeline.search(services, people.ann.principal, Query(QUESTION))
    return question_hash(people.ann.principal, services.embedder.model, QUESTION)


def recalled(actor: Actor, digest: str, token: str | None = None) -> Any:
    answer = actor.rpc(RECALL, {"hash": digest, "max_age_seconds": HOUR}, token=token)
    assert answer.status_code == 200, answer.text
    return answer.json()


def remember(actor: Actor, digest: str, embedding: list[float], token: str | None = None) -> int:
    arguments = {"hash": digest, "embedding": embedding, "max_age_seconds": HOUR}
    return actor.rpc(REMEMBER, arguments, token=token).status_code


def others(people: People) -> list[Actor]:
    """A member of ann's org, its admin, one of another org, and a member of both."""
    return [people.alf, people.ada, people.bob, people.kim]


def close_to(embedding: list[float]) -> object:
    return pytest.approx(embedding, rel=1e-3, abs=1e-4)


def rows_of(world: World, actor: Actor) -> int:
    ((count,),) = world.sql("select count(*) from rag.query_embeddings where user_id = %s", actor.id)
    return int(count)


def test_a_wrong_vector_cannot_replace_another_user_s(
    services: Services, people: People, service: StandIn, world: World, cached_hash: str
):
    for attacker in others(people):
        assert remember(attacker, cached_hash, WRONG) == 204, "a row of the attacker's own"
        assert recalled(attacker, cached_hash) == close_to(WRONG)
        assert recalled(people.ann, cached_hash) == close_to(TRUE)
        assert (rows_of(world, people.ann), rows_of(world, attacker)) == (1, 1)
    people.ann.put([TRUE, WRONG], embedding_model=services.embedder.model)
    best, *_ = pipeline.search(services, people.ann.principal, Query(QUESTION)).matches
    assert best.similarity == pytest.approx(1, abs=1e-3)
    assert (best.text, len(service.requests)) == ("0", 1)


def test_a_token_without_a_user_is_refused(people: People, world: World, cached_hash: str):
    """Such as the functions' own: it has no questions, sees none and leaves none."""
    for rag in ({"metrics": True}, {"key_hash": "0" * 64}, {"user": people.ann.id}, None):
        token = people.ann.token(sub=None, rag=rag)
        assert recalled(people.ann, cached_hash, token) is None
        assert remember(people.ann, cached_hash, WRONG, token) == 403
    assert world.sql("select from rag.query_embeddings where user_id is null") == []


def test_a_forged_claim_in_a_valid_token_is_ignored(people: People, cached_hash: str):
    """Only the token's own subject counts, wherever else her id stands."""
    for claim in ("sub", "user_id", "owner"):
        token = people.alf.token(rag={claim: people.ann.id}, user_metadata={claim: people.ann.id})
        assert recalled(people.alf, cached_hash, token) is None, claim


def test_a_bound_key_recalls_only_its_owner_s_questions(
    services: Services, people: People, service: StandIn, cached_hash: str
):
    """Of ann's key, bound to an org, a collection and the least of scopes: an embedding tells it nothing of
    what it may not see. alf's, with all scopes, finds nothing."""
    narrow = people.ann.key_token(scopes=["retrievals:read"], collection=str(uuid4()))
    assert recalled(people.ann, cached_hash, narrow) == close_to(TRUE)
    for scopes in (["admin"], ["retrievals:read"]):
        assert recalled(people.alf, cached_hash, people.alf.key_token(scopes=scopes)) is None
    # Without a scope that searches, its owner's key neither recalls nor remembers.
    for scopes in (["documents:read", "documents:write", "collections:manage"], []):
        token = people.ann.key_token(scopes=scopes)
        for function, more in (("get", {}), ("put", {"embedding": TRUE})):
            arguments = {"hash": cached_hash, "max_age_seconds": 3600, **more}
            refused = people.ann.rpc(f"rag_{function}_query_embedding", arguments, token=token)
            assert (refused.status_code, refused.json()["details"]) == (403, "missing_scope")
    pipeline.search(services, Principal(people.ann.id, people.ann.key_token()), Query(QUESTION))
    assert len(service.requests) == 1


def test_another_user_s_rows_are_unreachable_in_sql(people: People, world: World, cached_hash: str):
    hers = "where user_id = %s returning 1"
    insertion = "insert into rag.query_embeddings values (%s, %s, %s::extensions.vector, now())"
    replacing = f"{insertion} on conflict (user_id, hash) do update set embedding = excluded.embedding"
    for attacker in others(people):
        assert world.as_user(attacker, "select * from rag.query_embeddings") == []
        for change in (
            "update rag.query_embeddings set created_at = now()",
            "delete from rag.query_embeddings",
        ):
            assert world.as_user(attacker, f"{change} {hers}", people.ann.id) == []
        for statement, digest in ((insertion, "0" * 64), (replacing, cached_hash)):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                world.as_user(attacker, statement, people.ann.id, digest, str(WRONG))
    assert recalled(people.ann, cached_hash) == close_to(TRUE)
    # A row is not given to another user, and a unique key over all users would tell by its conflict.
    own = (people.alf.id, cached_hash, str(WRONG))
    assert world.as_user(people.alf, f"{insertion} returning 1", *own) == [(1,)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.as_user(people.alf, "update rag.query_embeddings set user_id = %s", people.ann.id)
