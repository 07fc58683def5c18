"""Conversations: retrieval, pass-through, the model's input, and its cost."""

from typing import Any

from shared.answering.chat_completions import openai_response_format as response
from shared.answering.chat_completions.openai_request import Conversation, with_context
from shared.text.chat_messages import FRAME_TOKENS
from shared.text.token_count import count_tokens
from shared.types import Usage
from tests.shared.examples import match

KETTLE = match("The kettle switches off at 100 degrees.", "Kettle manual")
SYSTEM = {"role": "system", "content": "Speak French."}
DEVELOPER = {"role": "developer", "content": "x"}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def conversation_of(*messages: dict[str, Any], index: str | None = "kettles", **more: Any) -> Conversation:
    return Conversation({"messages": list(messages), **more}, index, 5)


def test_requests_without_retrieval_bypass_the_documents():
    cases: list[tuple[Conversation, bool]] = [
        (conversation_of(user("Hello")), False),
        (conversation_of(user("Hello"), index=None), True),
        (conversation_of(user("Hello"), tools=[], functions=None), False),
        (conversation_of(SYSTEM, DEVELOPER, assistant(None), user("Hello")), False),
        (conversation_of(user([{"type": "text", "text": "Hello"}, "there"])), False),
        (conversation_of(user([{"type": "text"}])), True),
        (conversation_of(user([{"type": "text", "text": 7}])), True),
        (conversation_of(user([{"type": "image_url", "text": "b"}])), True),
        (conversation_of(user([{"type": "image_url"}]), assistant("A cat."), user("Hello")), True),
        (conversation_of(assistant([{"type": "refusal", "refusal": "No."}]), user("Hello")), False),
    ]
    assert [(conversation, conversation.bypasses_documents) for conversation, _ in cases] == cases


def test_the_question_is_the_user_s_last_message():
    cases: list[tuple[list[dict[str, Any]], str]] = [
        ([user("One?")], "One?"),
        ([user("One?"), assistant("1"), user("Two?"), user("Three?")], "Two?\n\nThree?"),
        ([user("One?"), assistant("1"), user("Two?"), SYSTEM], "Two?"),
        ([user([{"type": "text", "text": "One"}, {"type": "text", "text": "two?"}])], "One\ntwo?"),
        ([user("a\0b\ud800c")], "ab?c"),
    ]
    assert [(messages, conversation_of(*messages).question()) for messages, _ in cases] == cases


def test_the_prompt_has_instructions_history_documents_and_question_in_order():
    conversation = conversation_of(
        SYSTEM, user("Hello"), assistant("Hi."), {**user("When off?"), "name": "ann"}, seed=7
    )
    request = with_context(conversation, [KETTLE], 3000, 8000)
    first, *rest, last = request["messages"]
    assert first["role"] == "system"
    assert rest == [SYSTEM, user("Hello"), assistant("Hi.")]
    assert (last["role"], last["name"], request["seed"]) == ("user", "ann", 7)
    assert last["content"].startswith("Context:\n<<source-")
    assert KETTLE.text in last["content"]
    assert "\n\nQuestion: When off?\n\nInstructions: Answer" in last["content"]
    assert conversation.messages[-1]["content"] == "When off?", "what was asked stays as it was"


def test_instructions_since_the_last_answer_are_kept():
    conversation = conversation_of(user("a"), assistant("b"), SYSTEM, user("c"))
    request = with_context(conversation, [KETTLE], 3000, 8000)
    assert request["messages"][1:-1] == [user("a"), assistant("b"), SYSTEM]


def test_older_turns_are_dropped_first_and_instructions_never():
    old, new = "old " * 200, "new " * 200
    turns = [SYSTEM, user(old), assistant(old), user(new), assistant(new), user("Now?")]
    room = 2 * (count_tokens(new) + FRAME_TOKENS)
    for budget, entries in ((4 * room, turns[1:5]), (room, turns[3:5]), (room // 2, []), (0, [])):
        request = with_context(conversation_of(*turns), [KETTLE], 3000, budget)
        assert request["messages"][1:-1] == [SYSTEM, *entries], budget


def test_missing_usage_is_counted_for_answers_of_any_form():
    cases: list[Any] = [None, {}, 7, {"prompt_tokens": 1}, {"prompt_tokens": -1, "completion_tokens": 1}]
    for text in cases:
        answer = {"choices": [{"message": assistant("Yes.")}], "usage": text}
        usage = response.with_usage(answer, {"messages": [user("Hello")]})["usage"]
        read = FRAME_TOKENS + count_tokens("Hello")
        assert usage == response.usage_body(Usage(read, count_tokens("Yes.")))
    answers: list[Any] = [None, 7, [], [7], [{"message": 7}], [{"message": {"content": []}}]]
    for choices in answers:
        usage = response.with_usage({"choices": choices}, {"messages": [user("Hello")]})["usage"]
        assert usage["completion_tokens"] == 0


def test_a_streamed_answer_equals_the_complete_one():
    whole = response.completion("One.\n\nTwo. ", "extractive", Usage(3, 4))
    parts = list(response.stream_parts(whole))
    assert {part["id"] for part in parts} == {whole["id"]}
    deltas = [part["choices"][0]["delta"] for part in parts]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content", "") for delta in deltas) == "One.\n\nTwo. "
    assert [response.is_last_part(part) for part in parts] == [False] * (len(parts) - 1) + [True]
