"""Wire models of recorded requests."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, StringConstraints, model_validator

from shared.answering import request_replay
from shared.api.contracts.ignored_names import IgnoredNames, LenientModel
from shared.api.contracts.platform.pagination import Page
from shared.api.contracts.shared_fields import Level, ResponseModel, Score, WithoutNul
from shared.observability.request_record_store import RecordRow

Rating = Literal["up", "down"]
Verdict = Literal["right", "wrong"]
SortBy = Literal["created_at", "milliseconds"]
Days = Annotated[int, Field(ge=1, le=3650)]
RecordId = Annotated[str, StringConstraints(min_length=1, max_length=200), WithoutNul]


class NewSettings(LenientModel):
    """`retention_days`: null stops recording and deletes the org's records. Members of one org may omit
    `org_id`."""

    retention_days: Annotated[int, Field(strict=True, ge=1, le=3650)] | None
    org_id: UUID | None = None


class Settings(ResponseModel):
    """`retention_days`: null if the org records no requests."""

    org_id: str
    retention_days: int | None
    # Unknown fields of a PATCH.
    ignored_fields: IgnoredNames


class Feedback(BaseModel):
    """`rating`: null removes the rating and its reason."""

    rating: Rating | None
    reason: Annotated[str, StringConstraints(strict=True, max_length=2000), WithoutNul] | None = None


class RecordFeedback(BaseModel):
    rating: Rating
    reason: str | None


class Label(BaseModel):
    """`verdict`: whether the answer, or the refusal, was right; null removes the label. `document_ids`:
    the documents that answer the question."""

    verdict: Verdict | None
    document_ids: Annotated[list[str], Field(max_length=20)] = []


class RecordLabel(BaseModel):
    verdict: Verdict
    document_ids: list[str]


class Deleted(BaseModel):
    deleted: int


class Leg(BaseModel):
    """A part of the search that scored a passage, with its rank among the record's passages."""

    leg: Literal["semantic", "keyword", "graph", "reranker"]
    rank: int
    score: Score


class Passage(BaseModel):
    """`title` and `text`: as the caller sees them today, null if the caller no longer sees the passage."""

    rank: int
    chunk_id: str
    document_id: str
    title: str | None
    text: str | None
    score: Score
    legs: list[Leg]


class Query(BaseModel):
    """The interpreted question, with the options of its search that differ from the defaults. `text`: null
    for a rewritten question of a record that is not complete."""

    text: str | None
    options: dict[str, Any]

    @model_validator(mode="before")
    @classmethod
    def _of_row(cls, row: dict[str, Any]) -> dict[str, Any]:
        return {"text": row["text"], "options": {name: row[name] for name in row if name != "text"}}


class Confidence(ResponseModel):
    level: Level = Field(validation_alias="confidence")
    score: Score
    because: list[str]


class PromptMessage(BaseModel):
    """`content`: with a mark in the place of each passage, and of all but the first and the last message."""

    role: str
    content: str


class Generation(BaseModel):
    """`model`: "extractive" without a language model; `prompt`: null without one, and if the caller no longer
    sees a passage."""

    model: str
    prompt: list[PromptMessage] | None
    prompt_tokens: int
    completion_tokens: int


class _RecordedRequest(ResponseModel):
    id: str
    request_id: str
    org_id: str
    user_id: str = Field(validation_alias="owner_id")
    key_id: str | None
    key_name: str | None
    function: str
    question: str

    @model_validator(mode="before")
    @classmethod
    def _of_row(cls, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "feedback": row if row["rating"] else None, "label": row if row["verdict"] else None}


class Record(_RecordedRequest):
    """An answered request. `user_id`: the user who asked; `key_id`: the user's API key, null for the user's
    own token; `key_name`: null also for a caller who may not list the key; `is_complete`: whether the caller
    sees all passages; if not, the prompt, the answer's text and the texts of rewritten questions are null,
    and the reasons of confidence are left out. `answer` is also null where `answered` is false. `generation`:
    null if nothing was generated. `label`: with the documents that the caller sees."""

    queries: list[Query]
    passages: list[Passage]
    is_complete: bool
    confidence: Confidence
    answered: bool = Field(validation_alias="is_answered")
    answer: str | None
    generation: Generation | None
    feedback: RecordFeedback | None
    label: RecordLabel | None
    milliseconds: int
    created_at: datetime
    expires_at: datetime

    @model_validator(mode="before")
    @classmethod
    def _with_parts(cls, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "confidence": row, "generation": row if row["model"] else None}


class ListedRecord(_RecordedRequest):
    """A record without its passages and texts of an answer."""

    level: Level = Field(validation_alias="confidence")
    answered: bool = Field(validation_alias="is_answered")
    feedback: RecordFeedback | None
    label: RecordLabel | None
    prompt_tokens: int
    completion_tokens: int
    milliseconds: int
    created_at: datetime


class Records(Page[ListedRecord]):
    pass


class Levels(BaseModel):
    high: int
    medium: int
    low: int


class UnansweredQuestion(BaseModel):
    question: str
    requests: int


class Summary(ResponseModel):
    """Of the last days, at most the latest 100,000 records. `p50_ms`, `p95_ms`: null without a record;
    `unanswered`: the most frequent questions without an answer, in lower case."""

    requests: int
    answered: int
    withheld: int
    confidence: Levels
    rated_up: int
    rated_down: int
    labelled_right: int
    labelled_wrong: int
    p50_ms: int | None
    p95_ms: int | None
    prompt_tokens: int
    completion_tokens: int
    unanswered: list[UnansweredQuestion]


class RankChange(ResponseModel):
    """A passage with another rank than before: gained if `before` is null, lost if `after` is. `title`: null
    if the caller does not see the passage."""

    chunk_id: str
    document_id: str
    title: str | None
    before: int | None
    after: int | None


class Outcome(BaseModel):
    """`answered`: null if the question was not answered again; `answer`: null without one, and before if the
    caller no longer sees a passage."""

    confidence: Confidence
    answered: bool | None
    answer: str | None


class Replay(BaseModel):
    """The same searches in today's documents, as the caller. `passages`: the gained and moved ones, then the
    lost ones."""

    record_id: str
    before: Outcome
    after: Outcome
    passages: list[RankChange]

    @classmethod
    def of(cls, record: RecordRow, replayed: request_replay.Replay) -> "Replay":
        before, after = Confidence.of(record), Confidence.of(replayed.judgement)
        return cls(
            record_id=record["id"],
            before=Outcome(confidence=before, answered=record["is_answered"], answer=record["answer"]),
            after=Outcome(confidence=after, answered=replayed.is_answered, answer=replayed.answer),
            passages=[RankChange.of(change) for change in replayed.changes],
        )
