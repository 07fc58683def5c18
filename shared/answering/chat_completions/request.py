"""A conversation, in the words that chat models' endpoints are spoken to: whether documents are asked about
it, and what; and what the model is told then."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.errors import InvalidRequest
from shared.generation.generators import NOTHING_FOUND, TURN, render_context, system_prompt
from shared.models.chat_stream import Body
from shared.models.embeddings import Embedder
from shared.text.prompt_fence import Fence
from shared.text.token_count import count_tokens
from shared.types import Match

Message = dict[str, Any]

# Of these alone is a conversation that documents can be asked about.
ROLES = frozenset({"user", "assistant", "system", "developer"})
ORDERS = frozenset({"system", "developer"})
# The name of the model that answers over all documents that the caller sees, and the prefix of the names that
# end with a collection's: these answer over its documents.
GROUNDED, GROUNDED_IN = "rag", "rag/"
# A collection's name has at most 255.
MODEL_CHARACTERS = len(GROUNDED_IN) + 255
# The database takes no longer question. The end is kept: what is asked comes last.
QUESTION_CHARACTERS = 10_000
# What a message costs a model beside its text, at most.
FRAME_TOKENS = 8


def is_grounded(model: str) -> bool:
    """Whether this is the name of a model that answers over documents."""
    return model == GROUNDED or model.startswith(GROUNDED_IN)


@dataclass(frozen=True, slots=True)
class Conversation:
    """`request` is what a model is to be sent, as it came; `index` names the documents to ask first, and
    `everything` means all documents that the caller sees, where no index is named."""

    request: Body
    index: str | None
    top_k: int
    everything: bool = False

    @property
    def messages(self) -> list[Message]:
        messages: list[Message] = self.request["messages"]
        return messages

    @property
    def streams(self) -> bool:
        return self.request.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        """At the end of a stream."""
        options = self.request.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True

    @property
    def bypasses(self) -> bool:
        """Whether this is for the model alone (contract: bypass conditions)."""
        asks_documents = self.index is not None or self.everything
        if not asks_documents or self.request.get("tools") or self.request.get("functions"):
            return True
        return any(
            message["role"] not in ROLES
            or (message["role"] == "user" and text_of(message.get("content")) is None)
            for message in self.messages
        )

    def question(self) -> str:
        """The user's messages since the last answer. Raises InvalidRequest where there is none."""
        _, tail = _turns(self.messages)
        conversation = "\n\n".join(
            text_of(message["content"]) or "" for message in tail if message["role"] == "user"
        )
        # Postgres stores no NUL, and nobody half a character.
        conversation = conversation.replace("\0", "").encode("utf-8", "replace").decode()
        if not (conversation := conversation.strip()):
            raise InvalidRequest("There must be a user prompt since the latest assistant message.")
        return conversation


def truncate_question(embedder: Embedder, question: str) -> str:
    """The end of a question, as much as the database and an embedding service take."""
    question = question[-QUESTION_CHARACTERS:]
    while embedder.remote and (tokens := embedder.count_tokens(question)) > embedder.window:
        question = question[-(len(question) * embedder.window // tokens) :]
    return question


def text_of(content: Any) -> str | None:
    """A message's text; None for what is not text alone."""
    texts = _texts(content)
    return None if None in texts else "\n".join(filter(None, texts))


def _texts(content: Any) -> list[str | None]:
    """The texts of its parts, None for each that is something else."""
    if content is None:
        return []
    parts = content if isinstance(content, list) else [content]
    texts = [
        part.get("text") if isinstance(part, dict) and part.get("type") == "text" else part for part in parts
    ]
    return [text if isinstance(text, str) else None for text in texts]


def with_context(
    conversation: Conversation, matches: Sequence[Match], context_tokens: int, history_tokens: int
) -> Body:
    """The request with the matches before its question, inside a fence. The caller's own orders stay, and of
    the older turns, the latest first, what fits."""
    fence = Fence()
    head, tail = _turns(conversation.messages)
    context = render_context(matches, fence, context_tokens) or NOTHING_FOUND
    last = next(message for message in reversed(tail) if message["role"] == "user")
    told = [
        {"role": "system", "content": system_prompt(fence)},
        *_remembered(head, history_tokens),
        *(message for message in tail if message["role"] in ORDERS),
        {**last, "content": TURN.format(context=context, question=conversation.question())},
    ]
    return {**conversation.request, "messages": told}


def _turns(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """What was said up to the last answer, and since."""
    answers = [number for number, message in enumerate(messages, start=1) if message["role"] == "assistant"]
    since = answers[-1] if answers else 0
    return list(messages[:since]), list(messages[since:])


def _remembered(head: Sequence[Message], budget: int) -> list[Message]:
    kept: list[Message] = []
    for message in reversed(head):
        if message["role"] in ORDERS:
            kept.append(message)
            continue
        budget -= cost(message)
        if budget >= 0:
            kept.append(message)
    kept.reverse()
    if budget < 0:
        # Where it was cut, it begins with a question.
        while (first := next((m for m in kept if m["role"] not in ORDERS), None)) and first["role"] != "user":
            kept.remove(first)
    return kept


def cost(message: Message) -> int:
    """In tokens, of its text; what pictures cost, only their model knows."""
    return FRAME_TOKENS + sum(count_tokens(text) for text in _texts(message.get("content")) if text)
