"""Wire model of a chat request."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator

from shared.answering.platform_chat.style_presets import PRESETS
from shared.answering.platform_chat.types import Message, Turn
from shared.api.contracts.ignored_names import SearchBody
from shared.api.contracts.metadata import MetadataFilter
from shared.api.contracts.shared_fields import Composed, Flag, NullAsAbsent, WithoutNul, stripped
from shared.errors import InvalidRequest
from shared.text.chat_messages import text_of
from shared.types import Filters, Mode, Query, Sampling

MAX_MESSAGE = 10_000
# Answers in the history may be longer than questions.
MAX_ANSWER = 100_000
MAX_MESSAGES = 500
# System messages together: no token budget counts them.
MAX_SYSTEM_CHARACTERS = 10_000
MAX_INSTRUCTION = 4_000

Temperature = Annotated[float, Field(strict=True, ge=0, le=2)]
Tokens = Annotated[int, Field(strict=True, ge=1, le=8192)]
Penalty = Annotated[float, Field(strict=True, ge=-2, le=2)]
Model = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200), WithoutNul]
Id = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=100), WithoutNul]
Instruction = Annotated[str, StringConstraints(strict=True, max_length=MAX_INSTRUCTION), WithoutNul]
Text = Annotated[str, stripped(MAX_MESSAGE), WithoutNul, Composed]


class ChatMessage(NullAsAbsent):
    """`content`: text, or a list of text parts."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[str, StringConstraints(min_length=1, max_length=MAX_ANSWER), WithoutNul, Composed]

    @field_validator("content", mode="before")
    @classmethod
    def _text(cls, content: Any) -> Any:
        text = text_of(content)
        if text is None:
            raise ValueError("must be text")
        return text.strip()


class Retrieval(NullAsAbsent):
    mode: Literal["semantic", "keyword", "hybrid", "hierarchical", "graph"] = "hybrid"
    top_k: Annotated[int, Field(strict=True, ge=1, le=50)] = 5
    rerank: Flag | None = None
    enable_graph: Flag = True
    hierarchical: Flag = True
    expand_context: Flag = True
    metadata_filter: MetadataFilter = Field(default_factory=dict)
    document_type: Id | None = None

    def query(self) -> Query:
        """Without its text."""
        # `hierarchical` applies to the mode hybrid alone.
        two_tiers = self.hierarchical and self.mode == "hybrid"
        return Query(
            "",
            self.top_k,
            Filters(metadata=self.metadata_filter, document_type=self.document_type),
            Mode.HIERARCHICAL if two_tiers else Mode(self.mode),
            self.rerank,
            1 if self.expand_context else 0,
            graph=self.enable_graph,
        )


class Generation(NullAsAbsent):
    model: Model | None = None
    temperature: Temperature | None = None
    max_tokens: Tokens | None = None
    top_p: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None


class Request(NullAsAbsent, SearchBody):
    """Either `messages` or the older `message`. These fields override `generation`, which overrides the
    preset."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES)] | None = None
    message: Text | None = None
    session_id: Id | None = None
    collection_id: Id | None = None
    stream: Flag = True
    model: Model | None = None
    preset: Literal["concise", "detailed", "research", "technical", "creative", "qna"] = "detailed"
    reasoning_mode: Literal["standard", "deep"] = "standard"
    temperature: Temperature | None = None
    max_tokens: Tokens | None = None
    custom_instruction: Instruction | None = None
    is_follow_up: Flag = False
    retrieval: Retrieval = Field(default_factory=Retrieval)
    generation: Generation = Field(default_factory=Generation)

    def to_turn(self) -> Turn:
        """Raises InvalidRequest."""
        question, history, system_messages = self._split_messages()
        preset = PRESETS[self.preset]
        return Turn(
            question,
            history,
            system_messages,
            self.session_id,
            self.collection_id,
            self.is_follow_up,
            self.reasoning_mode == "deep",
            self.retrieval.query(),
            "\n\n".join(filter(None, (preset.instruction, (self.custom_instruction or "").strip()))),
            Sampling(
                _first(self.temperature, self.generation.temperature, preset.temperature),
                _first(self.max_tokens, self.generation.max_tokens, preset.max_tokens),
                self.generation.top_p,
                presence_penalty=self.generation.presence_penalty,
                frequency_penalty=self.generation.frequency_penalty,
            ),
            _first(self.model, self.generation.model),
            self.stream,
        )

    def _split_messages(self) -> tuple[str, tuple[Message, ...], tuple[str, ...]]:
        """The question, the history and the system messages."""
        if (self.messages is None) == (self.message is None):
            raise _invalid("Send either messages or message.", missing=self.messages is None)
        if self.messages is None:
            return self.message or "", (), ()
        system_messages = tuple(
            message.content for message in self.messages if message.role in ("system", "developer")
        )
        if sum(map(len, system_messages)) > MAX_SYSTEM_CHARACTERS:
            most = f"{MAX_SYSTEM_CHARACTERS:,} characters together"
            raise _invalid(f"messages: system messages have at most {most}")
        dialogue = [message for message in self.messages if message.role in ("user", "assistant")]
        if not dialogue or dialogue[-1].role != "user":
            raise _invalid("The last of the messages must be a user's.")
        *history, last = dialogue
        if len(last.content) > MAX_MESSAGE:
            raise _invalid(f"messages: a question has at most {MAX_MESSAGE:,} characters")
        return (
            last.content,
            tuple(Message(message.role, message.content) for message in history),
            system_messages,
        )


def _invalid(message: str, *, missing: bool = False) -> InvalidRequest:
    return InvalidRequest(message, details={"field": "messages", "missing": missing})


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
