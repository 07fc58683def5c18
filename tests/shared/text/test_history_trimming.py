"""Trimming of a history to a budget of tokens."""

from shared.text.chat_messages import Body, message_tokens
from shared.text.history_trimming import trim_history


def message(role: str, word: str, repeats: int) -> Body:
    return {"role": role, "content": f"{word} " * repeats}


def test_the_latest_turns_within_the_budget_and_all_instructions_are_kept_from_a_question_on():
    rule = message("system", "rule", 500)
    turns = [
        message("user", "one", 50),
        message("assistant", "two", 50),
        message("user", "three", 10),
        message("assistant", "four", 10),
    ]
    budget = sum(map(message_tokens, turns[1:]))
    assert trim_history([rule, *turns], budget) == [rule, *turns[2:]]
    assert trim_history([rule, *turns], budget + 1_000) == [rule, *turns]
    assert trim_history([rule, *turns], 5) == [rule]
