"""Types of a conversation: turns, sessions, events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.types import Match, Query, Sampling


@dataclass(frozen=True, slots=True)
class Message:
    """`role`: user, assistant or system; `details`: an answer's sources, usage and model, only when saved."""

    role: str
    content: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """A session with its last messages. `session_id`: None for one that is not saved yet."""

    session_id: str | None
    org_id: str
    collection_id: str | None
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """A user's question and the options of its answer; ids as clients write them. `history`: the client's
    messages, used if the session has none; `system_messages`: the client's; `retrieval`: a search, without
    its text and org; `instruction`: the preset's and the client's; `deep`: in several steps; `model`: None
    for the gateway's default."""

    question: str
    history: tuple[Message, ...]
    system_messages: tuple[str, ...]
    session_id: str | None
    collection_id: str | None
    is_follow_up: bool
    deep: bool
    retrieval: Query
    instruction: str
    sampling: Sampling
    model: str | None
    streams: bool


@dataclass(frozen=True, slots=True)
class ReasoningStep:
    """The next step of deep reasoning, numbered from 1."""

    number: int
    description: str


@dataclass(frozen=True, slots=True)
class SubQuery:
    text: str


@dataclass(frozen=True, slots=True)
class Sources:
    matches: tuple[Match, ...]
