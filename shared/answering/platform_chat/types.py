"""The nouns of a conversation: what a turn asks for, and what happens while it is answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.generation.extractive import MODEL as EXTRACTIVE
from shared.generation.generators import DEFAULT_SAMPLING
from shared.types import Judgement, Match, Mode, Sampling, Usage


@dataclass(frozen=True, slots=True)
class Message:
    """What was said, and by whom: user, assistant or system. The details are an answer's: sources, usage,
    model; of what is remembered they are left out."""

    role: str
    content: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """Where a turn takes place, with the last messages before it; without an id it is not there yet."""

    session_id: str | None
    org_id: str
    collection_id: str | None
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """How a turn looks for passages; `rerank`: None is as the settings say."""

    mode: Mode = Mode.HIERARCHICAL
    top_k: int = 5
    rerank: bool | None = None
    graph: bool = True
    neighbours: int = 1
    metadata: Mapping[str, Any] = field(default_factory=dict)
    document_type: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody says, and how it is to be answered; ids as clients write them. `earlier` is what was
    said before, as the client has it: it counts where the session has nothing yet. `orders` are the client's
    own instructions for the model, `manner` the preset's. `deep`: in several steps. `model`: the gateway's
    own where it is None."""

    question: str
    earlier: tuple[Message, ...] = ()
    orders: tuple[str, ...] = ()
    session_id: str | None = None
    collection_id: str | None = None
    is_follow_up: bool = False
    deep: bool = False
    looking: RetrievalOptions = RetrievalOptions()
    manner: str = ""
    sampling: Sampling = DEFAULT_SAMPLING
    model: str | None = None
    streams: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """Deep reasoning goes on to its next step, counted from 1."""

    number: int
    description: str


@dataclass(frozen=True, slots=True)
class SubQuery:
    """What is looked for next, as a part of the question."""

    text: str


@dataclass(frozen=True, slots=True)
class Sources:
    """What was found, best first."""

    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class Delta:
    """More of the answer's text: all of them, in order, are the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The turn, whole. `asked` is the question as it was looked for; `sub_questions` what deep reasoning
    made of it; `withheld`: nothing good enough was found, and no model was asked; `retrieval_tokens`: of the
    passages that were read. `kept` is false where the turn could not be kept: its session was deleted
    meanwhile, or the database did not take it. Without a session, `session_id` is NIL."""

    turn: Turn
    asked: str
    sub_questions: tuple[str, ...]
    matches: tuple[Match, ...]
    judgement: Judgement
    withheld: bool
    text: str
    model: str
    usage: Usage
    retrieval_tokens: int
    session_id: str
    collection_id: str | None
    kept: bool
    milliseconds: int
    retrieval_ms: int
    generation_ms: int

    @property
    def is_extractive(self) -> bool:
        return self.model == EXTRACTIVE


# As a turn comes about: what was found first, in deep reasoning a part at a time.
Event = Step | SubQuery | Sources | Delta | Answered
