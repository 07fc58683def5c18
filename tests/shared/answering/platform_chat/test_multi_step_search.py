"""Deep reasoning without a service: how a question is taken apart by rules, and what a model that loops,
fails or says nonsense can do."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from shared.answering.platform_chat.budgeted_model import BudgetedModel
from shared.answering.platform_chat.multi_step_search import (
    ROUNDS,
    SubQueryResults,
    plan_by_rules,
    search_in_steps,
)
from shared.answering.platform_chat.types import ReasoningStep, Sources, SubQuery
from shared.generation.confidence import CONTRACT_THRESHOLDS
from shared.models.chat_gateway import ChatGateway
from shared.types import Confidence, JudgedSearch, Judgement
from tests.stand_in_server import Reply, StandIn

QUESTION = "Why did billing fail and who fixed it?"
NOTHING = JudgedSearch((), Judgement(Confidence.LOW, 0.0, CONTRACT_THRESHOLDS, (), (), CONTRACT_THRESHOLDS))


PARTS = [
    ("Who owns billing?", ["Who owns billing?"]),
    (QUESTION, [QUESTION, "Why did billing fail", "who fixed it?"]),
    ("What is A? What is B?", ["What is A? What is B?", "What is A?", "What is B?"]),
    ("Compare the kettle and the toaster", ["Compare the kettle and the toaster", "the kettle",
     "the toaster"]),
    ("What is the difference between plan A and plan B for teams?",
     ["What is the difference between plan A and plan B for teams?", "plan A", "plan B"]),
    ("Salt and pepper", ["Salt and pepper"]),
    ("", []),
]  # fmt: skip


def test_without_a_model_a_question_is_decomposed_by_rules():
    for question, parts in PARTS:
        queries = parts or [question]
        assert [part.query for part in plan_by_rules(question)] == queries


def test_a_long_question_is_decomposed_at_once():
    for question in ["a" + " " * 9_990 + "b", "compare " + "x " * 4_900, "and who " * 1_200, "? " * 4_900]:
        assert len(plan_by_rules(question)) >= 1


def plan(*queries: str) -> dict[str, Any]:
    steps = [{"description": f"Finding {query}", "query": query} for query in queries]
    return says(json.dumps({"steps": steps}))


def says(text: str, tokens: int = 10) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"choices": [{"message": message}], "usage": {"prompt_tokens": tokens, "completion_tokens": 5}}


def run(
    gateway: StandIn, max_queries: int = 6, max_seconds: float = 60, tokens: int = 20_000, seconds: float = 60
) -> tuple[list[Any], list[str], BudgetedModel]:
    looked: list[str] = []

    async def look(text: str) -> JudgedSearch:
        looked.append(text)
        return NOTHING

    async def reasoned() -> tuple[list[Any], BudgetedModel]:
        query_model = BudgetedModel(ChatGateway("key", gateway.url, "m", 60, 60), "m", tokens, seconds)
        results = search_in_steps(
            QUESTION, look, query_model, SubQueryResults(), max_queries=max_queries, seconds=max_seconds
        )
        return [happened async for happened in results], query_model

    # In a thread of its own: this one's event loop is others'.
    with ThreadPoolExecutor(1) as pool:
        events, query_model = pool.submit(asyncio.run, reasoned()).result()
    return events, looked, query_model


def test_each_sub_question_is_reported_searched_and_completed(gateway: StandIn):
    gateway.replies(Reply(json=plan("one", "two")), Reply(json=plan("three")), Reply(json=plan()))
    events, looked, query_model = run(gateway)
    assert looked == ["one", "two", "three"]
    messages = [
        (ReasoningStep(number, f"Finding {query}"), SubQuery(query))
        for number, query in enumerate(looked, start=1)
    ]
    assert [event for event in events if not isinstance(event, Sources)] == [
        *(event for pair in messages for event in pair),
        ReasoningStep(4, "Putting together what was found"),
    ]
    assert sum(isinstance(event, Sources) for event in events) == 3
    assert "LOOKED FOR: two" in gateway.requests[1].json["messages"][1]["content"]
    assert query_model.usage.prompt_tokens == 30


NO_PARTS = '{"steps": [{"query": 7}, {"query": "a\\nb"}, {"query": ""}, 5]}'
FAILURES: dict[str, tuple[Callable[[], Reply], list[str] | None]] = {
    # The same again and again, in other words only by its letters.
    "loops": (lambda: Reply(json=plan("Who fixed it?", "who  FIXED it")), ["Who fixed it?"]),
    "prose": (lambda: Reply(json=says("I would rather not.")), None),
    "no parts": (lambda: Reply(json=says(NO_PARTS)), None),
    "deep": (lambda: Reply(json=says("{" * 100_000)), None),
    "half a character": (lambda: Reply(json=plan("half \ud800", "half ?")), ["half ?"]),
    "busy": (lambda: Reply(status=429), None),
    "gone": (lambda: Reply(drop=True), None),
}


@pytest.mark.usefixtures("short_pauses")
def test_a_looping_or_failing_model_falls_back_to_the_rules(subtests: pytest.Subtests):
    for failure, (reply, looked) in FAILURES.items():
        with subtests.test(failure=failure), StandIn() as gateway:
            gateway.replies(reply())
            _, request, _ = run(gateway)
            assert request == (looked or [QUESTION, "Why did billing fail", "who fixed it?"])
            # A busy model is tried three times.
            assert len(gateway.requests) <= ROUNDS * (3 if failure == "busy" else 1)


def test_a_model_that_always_asks_for_more_is_bounded(gateway: StandIn):
    gateway.replies(*(Reply(json=plan(*(f"part {turn} {n}" for n in range(9)))) for turn in range(9)))
    events, looked, _ = run(gateway, 4)
    assert looked == [f"part 0 {number}" for number in range(4)]
    assert events[-1] == ReasoningStep(5, "Putting together what was found")
    with StandIn() as another:
        another.replies(*(Reply(json=plan(f"part {turn}")) for turn in range(9)))
        assert len(run(another, 20)[1]) == ROUNDS


def test_an_exhausted_budget_or_time_ends_the_planning(gateway: StandIn):
    gateway.replies(Reply(json={**plan("one"), "usage": {"prompt_tokens": 900, "completion_tokens": 200}}))
    assert run(gateway, tokens=1_000)[1] == ["one"]
    assert len(gateway.requests) == 1
    # Not even the first plan is paid for.
    assert len(run(gateway, tokens=10)[1]) == 3
    assert len(gateway.requests) == 1
    with StandIn() as late:
        late.replies(Reply(json=plan("late"), delay=60))
        assert len(run(late, seconds=0.05)[1]) == 3
    # The first part is always looked for.
    assert len(run(gateway, max_seconds=0.0, tokens=0)[1]) == 1
