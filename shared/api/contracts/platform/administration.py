"""Wire models of administration: health, statistics, usage, orgs, members, jobs, knowledge events."""

from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, Secret, StringConstraints, model_validator

from shared.api.contracts.ignored_names import IgnoredNames, LenientModel
from shared.api.contracts.platform.documents import DocumentError, error_of
from shared.api.contracts.platform.pagination import Page
from shared.api.contracts.shared_fields import ResponseModel, WithoutNul
from shared.config import EmbeddingForms

State = Literal["healthy", "degraded", "unhealthy", "unknown", "not_configured"]


class NewUser(BaseModel):
    email: Annotated[str, StringConstraints(strict=True, max_length=255, pattern="^[!-?A-~]+@[!-?A-~]+$")]
    password: Secret[Annotated[str, StringConstraints(strict=True, min_length=8, max_length=255)]]


class RegisteredUser(ResponseModel):
    """`api_key` is shown once."""

    user_id: str
    email: str
    api_key: str


class Services(BaseModel):
    database: State
    postgrest: State
    migrations: State
    pgvector: State
    embedding_service: State
    gateway: State
    queue: State


class Database(BaseModel):
    """`migration`: the database's newest migration; `expected`: the one that the functions need; `reach`:
    whether PostgREST accepts the project's key; `functions_secret`: whether the guarded SQL functions accept
    calls of this deployment (docs/install.md)."""

    reach: Literal["serves", "old_schema_cache", "anon_key_refused"]
    postgres: str | None
    pgvector: str | None
    migration: str | None
    expected: str
    functions_secret: Literal["ok", "unset", "wrong"]


class Embedding(BaseModel):
    """`dimensions`: those of the model, null if it is not available. `roles`: the prefix or the parameters
    with which it receives a question and a document. `models_of_orgs`: the models of the documents of the
    admin's orgs; searches find only those of `model`, and during a change those of the other. `calibration`:
    the origin of the model's calibration of confidence: `rag.settings` for one of the adopter's questions,
    `shipped_questions` for the worker's; with `none`, answers are medium at most. `error`: the code of the
    error of the last request of a word to the model, null for an embedding."""

    model: str | None
    dimensions: int | None
    source: str | None
    roles: EmbeddingForms
    models_of_orgs: list[str]
    calibration: Literal["rag.settings", "shipped_questions", "built_in", "none"] | None
    error: str | None


class Gateway(BaseModel):
    """`model`: "extractive" without a generation model. `error`: the code of the error of the last request
    of a word to the model, null for an answer."""

    model: str
    source: str | None
    error: str | None


class QueueLength(BaseModel):
    """`oldest_seconds`: the time since the oldest waiting job was due."""

    waiting: int
    running: int
    oldest_seconds: float | None


class Queue(BaseModel):
    """Jobs of the admin's orgs, counted up to 100,000 each: documents to ingest, documents without a graph,
    deliveries of webhooks, objects of Storage without a document, and due sources."""

    documents: QueueLength
    extractions: QueueLength
    deliveries: QueueLength
    removals: QueueLength
    sources: QueueLength


class KeywordTails(BaseModel):
    """Documents of the admin's orgs that are in no segment of the keyword index yet, and their chunks: in all
    tails, and in the longest. Counted up to 100,000 documents."""

    documents: int
    chunks: int
    longest_documents: int
    longest_chunks: int


class Details(BaseModel):
    """`queue` and `keyword_tails` are null while the database does not accept the functions secret."""

    database: Database
    embedding: Embedding
    gateway: Gateway
    queue: Queue | None
    keyword_tails: KeywordTails | None


class Health(ResponseModel):
    """`problem`: of the database, with the way out; null without one. Only admins get that of the functions
    secret, of the migrations and of read-only transactions. `orgs` is the number of the caller's orgs, null
    without a credential and while the database is unavailable. `details` are null unless the caller is an
    admin."""

    status: Literal["healthy", "degraded", "unhealthy"]
    version: str
    services: Services
    problem: str | None
    timestamp: datetime = Field(validation_alias="at")
    orgs: int | None
    details: Details | None


class Stats(ResponseModel):
    """Statistics of the orgs that the caller administers. `total_users`: users who called within 90 days;
    `api_calls_today`: admitted calls since midnight UTC; `is_complete`: false if a table exceeds the
    count."""

    total_users: int
    total_collections: int
    total_documents: int
    total_chunks: int
    total_entities: int
    total_relationships: int
    storage_used_bytes: int
    api_calls_today: int
    is_complete: bool


class Org(BaseModel):
    """`name` is null if the deployment has its own table of orgs."""

    id: str
    name: str | None
    role: str | None


class Orgs(ResponseModel):
    """In the order of their names."""

    data: list[Org]


class Invitation(BaseModel):
    """`role`: the role that the user gets by accepting."""

    org_id: str
    org_name: str
    role: str
    created_at: datetime


class Invitations(ResponseModel):
    """The oldest first."""

    data: list[Invitation]


class InvitationAnswer(BaseModel):
    """False declines the invitation, which is deleted."""

    accept: Annotated[bool, Field(strict=True)]


class DayOfUsage(BaseModel):
    """`calls`: admitted calls on that day in UTC; `users`: the users who made them; the tokens of models, as
    the quotas count them."""

    day: date
    calls: int
    users: int
    model_tokens: int
    embedding_tokens: int


class Usage(ResponseModel):
    """Each day of the period, the earliest first, over all orgs that the caller administers."""

    data: list[DayOfUsage]


Days = Annotated[int, Field(ge=1, le=90)]


class Member(BaseModel):
    """A member, or an open invitation with the time since when it is open. `name`: as the deployment stores
    it, null for none; `calls`: those of the last 90 days."""

    org_id: str
    user_id: str
    name: str | None
    role: str | None
    created_at: datetime | None
    calls: int
    last_called_on: date | None


class Members(Page[Member]):
    pass


class NewMember(BaseModel):
    """An invitation, or a member's new role and name. Admins of one org may omit `org_id`."""

    user_id: UUID
    role: Literal["admin", "member"] = "member"
    name: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200), WithoutNul] | None = (
        None
    )
    org_id: UUID | None = None


GroupName = Annotated[str, StringConstraints(min_length=1, max_length=200), WithoutNul]


class OrgChanges(LenientModel):
    """`restricts_collections`: whether new collections are restricted to their creators."""

    restricts_collections: Annotated[bool, Field(strict=True)]


class OrgSettings(ResponseModel):
    """As in OrgChanges. `ignored_fields`: its unknown fields."""

    org_id: str
    restricts_collections: bool
    ignored_fields: IgnoredNames


class Group(BaseModel):
    name: str
    description: str | None
    user_ids: list[str]


class Groups(ResponseModel):
    """By name, without those of token claims. `restricts_collections`: as in OrgChanges."""

    restricts_collections: bool
    groups: list[Group]


class NewGroup(BaseModel):
    """A new group, or a group's new members and description. Admins of one org may omit `org_id`."""

    name: GroupName
    user_ids: Annotated[list[UUID], Field(max_length=10_000)]
    description: Annotated[str, StringConstraints(max_length=500), WithoutNul] | None = None
    org_id: UUID | None = None


JobState = Literal["waiting", "running", "failed"]


class Job(BaseModel):
    """An ingestion job. `user_id`: the user as whom the worker runs it; `error`: that of the last attempt;
    `next_attempt_at`: null unless it waits."""

    id: str
    org_id: str
    document_id: str
    collection_id: str
    title: str
    collection: str | None
    user_id: str
    state: JobState
    step: str | None
    attempts: int
    error: DocumentError | None
    next_attempt_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @model_validator(mode="before")
    @classmethod
    def _of_row(cls, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "error": error_of(row), "next_attempt_at": row["due_at"]}


class Jobs(Page[Job]):
    pass


class JobIds(BaseModel):
    job_ids: Annotated[list[UUID], Field(min_length=1, max_length=100)]


class RetriedJobs(ResponseModel):
    """The jobs that were replaced by new ones. Jobs that run or are done are not among them."""

    job_ids: list[str]


Namespace = Annotated[str, StringConstraints(min_length=1, max_length=255), WithoutNul]
EventName = Literal[
    "knowledge.ingest",
    "knowledge.retrieve",
    "knowledge.query",
    "knowledge.delete",
    "quota.alert",
    "quota.exceeded",
    "member.put",
    "member.remove",
]


class Event(BaseModel):
    """A user's action on knowledge, without texts, or a quota of tokens or a member, whose name or id
    is then the namespace.
    `owner_id`: the owner of the namespace, null for the org's; `top_score`: the score of the best chunk, null
    without one."""

    id: str
    org_id: str
    owner_id: str | None
    user_id: str
    event: EventName
    namespace: str
    collection_id: str | None
    document_count: int
    chunk_count: int
    top_score: float | None
    created_at: datetime


class Events(Page[Event]):
    pass
