"""Conversations in OpenAI's format: their question, and the model's request with documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.errors import InvalidRequest
from shared.generation.prompt import NOTHING_FOUND, TURN, render_context, system_prompt
from shared.models.chat_stream import Body
from shared.models.chunk_sizes import MINILM
from shared.models.embeddings import Embedder
from shared.text.chat_messages import text_of
from shared.text.history_trimming import INSTRUCTIONS, trim_history
from shared.text.normalize import composed, storable
from shared.text.prompt_fence import Fence
from shared.types import Match

Message = dict[str, Any]

# Roles of conversations that documents can answer.
ROLES = frozenset({"user", "assistant", "system", "developer"})
# Model over all documents of the caller; prefix of the models over one collection.
RAG_MODEL, RAG_PREFIX = "rag", "rag/"
# A collection's name has at most 255.
MODEL_CHARACTERS = len(RAG_PREFIX) + 255
# The limit of the database. A longer question loses its beginning.
QUESTION_CHARACTERS = 10_000


def is_grounded(model: str) -> bool:
    """Whether the model answers over documents."""
    return model == RAG_MODEL or model.startswith(RAG_PREFIX)


@dataclass(frozen=True, slots=True)
class Conversation:
    """`request`: the client's body; `index`: the collection's name; `all_documents`: without an index, search
    all documents of the caller."""

    request: Body
    index: str | None
    top_k: int
    all_documents: bool = False

    @property
    def messages(self) -> list[Message]:
        messages: list[Message] = self.request["messages"]
        return messages

    @property
    def streams(self) -> bool:
        return self.request.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        options = self.request.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True

    @property
    def has_one_text(self) -> bool:
        """Whether the reply is one text: several replies and JSON are not checked, nor replaced."""
        return self.request.get("n") in (None, 1) and not self.request.get("response_format")

    @property
    def bypasses_documents(self) -> bool:
        """Whether the model answers alone (contract: bypass conditions)."""
        searches = self.index is not None or self.all_documents
        if not searches or self.request.get("tools") or self.request.get("functions"):
            return True
        return any(
            message["role"] not in ROLES
            or (message["role"] == "user" and text_of(message.get("content")) is None)
            for message in self.messages
        )

    def question(self) -> str:
        """The user's messages since the last answer. Raises InvalidRequest if there are none."""
        _, new_messages = _split_at_last_answer(self.messages)
        question = "\n\n".join(
            text_of(message["content"]) or "" for message in new_messages if message["role"] == "user"
        )
        question = composed(storable(question)).strip()
        if not question:
            raise InvalidRequest("There must be a user prompt since the latest assistant message.")
        return question


def truncate_question(embedder: Embedder, question: str) -> str:
    """The end of the question, within the limits of the database and of a remote embedding model."""
    question = question[-QUESTION_CHARACTERS:]
    # The first use of `window` calls the endpoint; a short question avoids that call.
    while (
        embedder.remote
        and (tokens := embedder.count_tokens(question)) > MINILM.window
        and tokens > embedder.window
    ):
        question = question[-(len(question) * embedder.window // tokens) :]
    return question


def with_context(
    conversation: Conversation, matches: Sequence[Match], context_tokens: int, history_tokens: int
) -> Body:
    """The request with the matches, the client's instructions, and the latest earlier messages within the
    budget."""
    fence = Fence()
    earlier_messages, new_messages = _split_at_last_answer(conversation.messages)
    context = render_context(matches, fence, context_tokens) or NOTHING_FOUND
    last = next(message for message in reversed(new_messages) if message["role"] == "user")
    messages = [
        {"role": "system", "content": system_prompt(fence, may_abstain=conversation.has_one_text)},
        *trim_history(earlier_messages, history_tokens),
        *(message for message in new_messages if message["role"] in INSTRUCTIONS),
        {**last, "content": TURN.format(context=context, question=conversation.question())},
    ]
    return {**conversation.request, "messages": messages}


def _split_at_last_answer(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """The messages up to the last answer, and those after it."""
    answers = [number for number, message in enumerate(messages, start=1) if message["role"] == "assistant"]
    since = answers[-1] if answers else 0
    return list(messages[:since]), list(messages[since:])
