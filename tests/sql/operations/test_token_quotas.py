"""Quotas of tokens: exact sums of concurrent calls, one event for each, and limits that no member changes."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from tests.actors import Actor, Org, World, hit_arguments, webhook_arguments
from tests.conftest import People
from tests.sql.passages import deployed_with
from tests.sql.schema_changes import schema_change

USAGE = "select quota, tokens, calls from rag.token_usage where org_id = %s order by day, quota"
EVENTS = "select event, namespace from rag.audit_events where org_id = %s order by created_at"
DELIVERIES = "select event, object - 'day' from rag.deliveries where org_id = %s order by created_at"


def limit(world: World, org: Org, **limits: int) -> None:
    """Put the org into a tier of its own with these numbers of tokens."""
    world.tier(org)
    own = "name = (select tier from rag.orgs where id = %s)"
    for column, tokens in limits.items():
        world.sql(f"update rag.tiers set {column} = %s where {own}", tokens, org.id)


def record(actor: Actor, **arguments: Any) -> httpx.Response:
    return actor.rpc("rag_record_tokens", arguments)


def exceeded(actor: Actor, bucket: str = "rag", **options: Any) -> list[str]:
    rows = actor.rpc("rag_check_rate_limit", hit_arguments(bucket=bucket), **options).json()
    return list(rows[-1]["exceeded_quotas"])


def tell(people: People, *events: str) -> None:
    """Let a webhook of acme's receive the events."""
    arguments = webhook_arguments(org_id=people.acme.id) | {"events": list(events)}
    assert people.ada.rpc("rag_create_webhook", arguments).status_code == 200


def test_tokens_do_not_wait_for_the_disk(people: People, world: World):
    with schema_change(world, "set synchronous_commit = on", "reset synchronous_commit"):
        recorded = "select public.rag_record_tokens(model_tokens => 1, model_calls => 1)::text"
        setting = "current_setting('synchronous_commit')"
        assert world.as_user(people.ann, f"select ({recorded}), {setting}") == [("", "off")]


def test_concurrent_calls_are_summed_exactly_and_reach_each_level_once(people: People, world: World):
    model = {"model_tokens_alert": 100, "model_tokens_per_day": 200}
    limit(world, people.acme, **model, embedding_tokens_per_day=10**6)
    tell(people, "quota.alert", "quota.exceeded")
    callers = [people.ann, people.alf, people.ada] * 10

    def call(actor: Actor) -> int:
        arguments = {"model_tokens": 10, "model_calls": 1, "embedding_tokens": 3, "embedding_calls": 1}
        return record(actor, **arguments).status_code

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(call, callers)) == {204}
    assert world.sql(USAGE, people.acme.id) == [("embedding", 90, 30), ("model", 300, 30)]
    assert world.sql(EVENTS, people.acme.id) == [("quota.alert", "model"), ("quota.exceeded", "model")]
    assert world.sql(DELIVERIES, people.acme.id) == [
        ("quota.alert", {"quota": "model", "tokens": 100, "limit": 100}),
        ("quota.exceeded", {"quota": "model", "tokens": 200, "limit": 200}),
    ]
    assert exceeded(people.ann) == ["model"]
    assert exceeded(people.bob) == []


def test_the_recipient_of_a_download_link_does_not_learn_which_quotas_are_exceeded(
    people: People, world: World
):
    limit(world, people.acme, model_tokens_per_day=10)
    record(people.ann, model_tokens=10, model_calls=1)
    assert exceeded(people.ann) == ["model"]
    document = str(uuid4())
    token = people.ann.token(rag={"org": people.acme.id, "document": document})
    assert exceeded(people.ann, bucket=f"link {document}", token=token) == []


def test_the_day_ends_at_midnight_utc(people: People, world: World):
    limit(world, people.acme, embedding_tokens_per_day=10)
    record(people.ann, embedding_tokens=10, embedding_calls=1)
    assert exceeded(people.alf) == ["embedding"]
    world.sql("update rag.token_usage set day = day - 1 where org_id = %s", people.acme.id)
    assert exceeded(people.alf) == []
    record(people.ann, embedding_tokens=1, embedding_calls=1)
    assert world.sql(USAGE, people.acme.id) == [("embedding", 10, 1), ("embedding", 1, 1)]


def test_a_raised_limit_is_not_exceeded_until_it_is_reached_too(people: People, world: World):
    exceeded_at = "select exceeded_at is not null from rag.token_usage where org_id = %s"
    limit(world, people.acme, model_tokens_per_day=10)
    record(people.ann, model_tokens=10, model_calls=1)
    world.sql("update rag.tiers set model_tokens_per_day = 20 where model_tokens_per_day = 10")
    assert exceeded(people.ann) == []
    for tokens, is_exceeded in ((9, False), (1, True), (1, True)):
        record(people.ann, model_tokens=tokens, model_calls=1)
        assert world.sql(exceeded_at, people.acme.id) == [(is_exceeded,)]
    assert world.sql(EVENTS, people.acme.id) == [("quota.exceeded", "model")] * 2


def test_tokens_of_a_member_of_several_orgs_count_for_the_one_with_the_most_left(
    people: People, world: World
):
    for org, tokens in ((people.acme, 100), (people.bolt, 60)):
        limit(world, org, model_tokens_per_day=tokens)
    for _ in range(4):
        record(people.kim, model_tokens=50, model_calls=1)
    assert world.sql(USAGE, people.acme.id) == [("model", 100, 2)]
    assert world.sql(USAGE, people.bolt.id) == [("model", 100, 2)]
    assert exceeded(people.kim) == ["model"]
    # An org without a limit has the most left.
    world.sql("update rag.orgs set tier = 'standard' where id = %s", people.acme.id)
    record(people.kim, model_tokens=50, model_calls=1)
    assert world.sql(USAGE, people.acme.id) == [("model", 150, 3)]
    assert exceeded(people.kim) == []
    # The token of an API key is for one org.
    token = people.kim.token(rag={"org": people.bolt.id, "key": people.kim.id, "scopes": ["chat:read"]})
    assert exceeded(people.kim, token=token) == ["model"]


def test_a_key_of_any_scope_and_a_bound_key_cause_the_events(people: People, world: World):
    tell(people, "quota.alert")
    limit(world, people.acme, model_tokens_alert=1)
    for number, scope in enumerate(("retrievals:read", "documents:write", "keys:manage"), 1):
        token = people.ann.key_token(scopes=[scope], collection=people.ann.id)
        answer = people.ann.rpc("rag_record_tokens", {"model_tokens": 5, "model_calls": 1}, token=token)
        assert answer.status_code == 204, answer.text
        assert world.sql(EVENTS, people.acme.id) == [("quota.alert", "model")] * number
        assert [event for event, _ in world.sql(DELIVERIES, people.acme.id)] == ["quota.alert"] * number
        # Each day has one event.
        world.sql("delete from rag.token_usage where org_id = %s", people.acme.id)


def test_tokens_are_numbers_from_nothing_to_a_billion(people: People):
    faults: list[dict[str, Any]] = [{"model_tokens": -1, "model_calls": 1}, {"embedding_calls": None}]
    for arguments in (*faults, {"embedding_tokens": 10**9 + 1}):
        answer = record(people.ann, **arguments)
        assert (answer.status_code, answer.json()["details"]) == (400, "invalid_tokens")


def test_no_member_changes_a_limit_or_a_count(people: People, world: World):
    limit(world, people.acme, model_tokens_per_day=10)
    record(people.ann, model_tokens=10, model_calls=1)
    refusal = record(people.ada.direct(), model_tokens=1, model_calls=1)
    assert (refusal.status_code, refusal.json()["details"]) == (403, "functions_secret_required")
    for statement in (
        "update rag.tiers set model_tokens_per_day = null",
        "delete from rag.token_usage",
        "update rag.token_usage set day = day - 1",
        "update rag.orgs set tier = 'standard'",
        f"insert into rag.token_usage (org_id, day, quota, tokens, calls) "
        f"values ('{people.bolt.id}', now(), 'model', 1, 1)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_user(people.ada, statement)
    # A direct call of an open deployment does not have the functions' secret either.
    with deployed_with(world, open_to_direct_callers=True):
        assert record(people.ada.direct(), model_tokens=1, model_calls=1).status_code == 403
    assert world.sql(USAGE, people.acme.id) == [("model", 10, 1)]
    assert world.as_user(people.bob, "select * from rag.token_usage") == []
    assert exceeded(people.ada) == ["model"]


def test_metrics_sum_all_orgs(people: People, world: World):
    limit(world, people.acme, model_tokens_alert=5, model_tokens_per_day=10)

    def metrics() -> dict[tuple[str, str], float]:
        token = people.ann.token(rag={"metrics": True}, sub=None)
        rows = people.ann.rpc("rag_metrics", token=token).json()
        return {
            (row["name"], row["labels"]["label"]): row["value"]
            for row in rows
            if row["name"].startswith("rag_quota")
        }

    before = metrics()
    record(people.ann, model_tokens=10, model_calls=1)
    record(people.bob, model_tokens=7, model_calls=1, embedding_tokens=2, embedding_calls=1)
    added = {name: value - before[name] for name, value in metrics().items()}
    assert added == {
        ("rag_quota_tokens_today", "model"): 17,
        ("rag_quota_tokens_today", "embedding"): 2,
        ("rag_quota_orgs_alerted", "model"): 1,
        ("rag_quota_orgs_alerted", "embedding"): 0,
        ("rag_quota_orgs_exceeded", "model"): 1,
        ("rag_quota_orgs_exceeded", "embedding"): 0,
    }


def test_admins_see_their_org_s_tokens_by_day(people: People, world: World):
    record(people.ann, model_tokens=10, model_calls=1, embedding_tokens=2, embedding_calls=1)
    world.sql("update rag.token_usage set day = day - 1 where org_id = %s", people.acme.id)
    record(people.alf, model_tokens=5, model_calls=1)
    record(people.bob, model_tokens=100, model_calls=1)
    rows = people.ada.rpc("rag_list_usage", {"days": 3}).json()
    assert [(row["model_tokens"], row["embedding_tokens"]) for row in rows] == [(0, 0), (10, 2), (5, 0)]
