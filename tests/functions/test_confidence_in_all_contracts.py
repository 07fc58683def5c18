"""One judgement in all contracts: the same level and reasons, and the same notes in the answers."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from functions import chat, chat_completions, index_query, knowledge, rag_answer, v1_answer
from shared.config import Settings
from shared.services import Services
from tests.conftest import People
from tests.functions.app_server import client_of
from tests.functions.chat_completions_client import MODEL_ANSWER, with_model
from tests.functions.search_workspace import Row, put
from tests.functions.test_answers_without_a_model import HOME, answers
from tests.stand_in_server import Reply, StandIn

TEXTS = {
    "Kettle manual": "The kettle K-300 switches off at 100 degrees.",
    "Prices 2025": "The small meeting room costs 45 euros a day.",
    "Prices 2026": "The small meeting room costs 55 euros a day.",
    "Doctors": "The physician treats sick children.",
}
REFUSAL = "I don't have enough relevant information"
# The question, its level, and a part of the answer's text.
QUESTIONS = {
    "At how many degrees does the kettle K-300 switch off?": ("high", "100 degrees"),
    "At how many degrees does the kettle K-900 switch off?":
        ("medium", "The passages found do not mention K-900."),
    "What does the small meeting room cost a day?": ("medium", "55 euros"),
    "How do penguins raise their chicks in Antarctica?": ("low", REFUSAL),
    # Similar enough for medium, without a word of the question.
    "Which medics cure ill kids?": ("low", REFUSAL),
}  # fmt: skip


def details_in(body: Any) -> Iterator[Any]:
    """Each confidence_detail of a response."""
    if isinstance(body, dict):
        for name, value in body.items():
            if name in ("confidence_detail", "confidenceDetail"):
                yield value
            yield from details_in(value)


@pytest.fixture(scope="module")
def people(shared_people: People, services: Services) -> People:
    """Of whom ann has the documents. No test changes them."""
    for number, (title, text) in enumerate(TEXTS.items(), start=1):
        put(services, shared_people.ann, HOME, title, text, occurred_at=datetime(2025, 3, number, tzinfo=UTC))
    return shared_people


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_contract_has_the_same_level_and_note(subtests: pytest.Subtests, people: People, question: str):
    level, part = QUESTIONS[question]
    reasons: dict[str, list[str]] = {}
    for contract, text, body in answers(people.ann, question):
        with subtests.test(contract=contract):
            (detail,) = details_in(body)
            assert detail["level"] == level
            assert part in text
            reasons[contract] = detail["because"]
    # Each contract searches in its own way, and all judge the passages of one search.
    assert len({tuple(each) for each in reasons.values()}) == 1, reasons
    refuses_words = "No sentence that could answer has a word of the question." in reasons["rag"]
    assert refuses_words == (question == "Which medics cure ill kids?")


APPS = {
    "rag": rag_answer.app, "index": index_query.app, "completions": chat_completions.app,
    "knowledge": knowledge.app, "platform": chat.app, "search": v1_answer.app,
}  # fmt: skip
KETTLE_QUESTION, _, ROOM_QUESTION = [*QUESTIONS][:3]
INVENTED = "The kettle was made in Norway by Jotun."
# The question, what a model writes, the level, and a part of the answer.
SUPPORTED = "The kettle K-300 switches off at 100 degrees [1]."
REPLIES = {
    "supported": (KETTLE_QUESTION, SUPPORTED, "high", "100 degrees"),
    "invented": (KETTLE_QUESTION, f"{SUPPORTED} {INVENTED}", "medium", "100 degrees"),
    "no answer": (KETTLE_QUESTION, "NO_ANSWER", "low", REFUSAL),
    "contradicted": (ROOM_QUESTION, "The small meeting room costs 55 euros a day [1].", "medium", "55 euros"),
}


@pytest.mark.parametrize("reply", REPLIES)
def test_every_contract_checks_a_model_s_answer(
    subtests: pytest.Subtests, people: People, settings: Settings, reply: str
):
    question, text, level, part = REPLIES[reply]
    choice: Row = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    with StandIn() as gateway, with_model(settings, gateway) as deployment:
        gateway.replies(Reply(json={**MODEL_ANSWER, "choices": [choice]}))

        def post(contract: str, path: str, body: Row) -> Any:
            with client_of(APPS[contract], deployment) as client:
                return client.post(path, json=body, headers=people.ann.headers())

        for contract, answer, body in answers(people.ann, question, post=post):
            with subtests.test(contract=contract):
                (detail,) = details_in(body)
                assert part in answer
                assert "NO_ANSWER" not in answer
                if reply == "invented" and contract == "search":
                    # This contract leaves the sentence out, and the rest has support.
                    assert INVENTED not in answer
                    assert detail["level"] == "high"
                    continue
                assert detail["level"] == level
                assert detail["unsupported"] == ([INVENTED] if reply == "invented" else [])
                # Chat completions keep the model's text: the note is among the reasons.
                notes = " ".join((answer, *detail["because"]))
                assert ("45 euros" in notes) == (reply == "contradicted")
