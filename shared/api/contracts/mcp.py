"""Arguments, results and error format of the MCP tools. A result has at most 40,000 characters of text."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    computed_field,
    model_validator,
)

from shared import PRODUCT
from shared.api.contracts.platform.documents import ExternalId, Status, Title
from shared.api.contracts.shared_fields import (
    Level,
    Notes,
    PageEnd,
    PageNumber,
    Question,
    ResponseModel,
    Score,
    Section,
    WithoutNul,
    location_of,
)
from shared.errors import InvalidRequest, NotFound, RagError
from shared.generation.refusal_texts import insufficient
from shared.text.prefixed_ids import id_of
from shared.types import Answer, Filters, Mode, Query

# Characters of a passage, and passages of a search; characters of a part of a document, and of a description.
PASSAGE_CHARACTERS, PASSAGES, MAX_PASSAGES = 2000, 8, 20
PART_CHARACTERS, MAX_PART_CHARACTERS = 10_000, 40_000
DESCRIPTION_CHARACTERS = 300
MAX_OFFSET = 20_000_000
DOCUMENT_URI = f"{PRODUCT}://documents/"


def _not_a_flag(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("Input should be a valid integer")
    return value


# Clients send numbers and flags as texts, too: "5", "false".
Number = Annotated[int, BeforeValidator(_not_a_flag)]
Offset = Annotated[Number, Field(ge=0, le=MAX_OFFSET)]
Id = Annotated[str, Field(strict=True, max_length=100)]
# "<document id>?offset=<number>" names the part of a document that begins there.
PartId = Annotated[str, Field(strict=True, max_length=120)]


def part_of(part_id: str) -> tuple[str, int]:
    """The document and the offset that an id of a part names. Raises NotFound and InvalidRequest."""
    document, mark, offset = part_id.partition("?offset=")
    if mark and not (offset.isdecimal() and len(offset) < 9 and int(offset) <= MAX_OFFSET):
        raise InvalidRequest(f"offset: Send a whole number from 0 to {MAX_OFFSET}.")
    return id_of(document, "document"), int(offset or 0)


def part_of_uri(uri: str) -> tuple[str, int]:
    """The document and the offset that the URI of a resource names. Raises NotFound and InvalidRequest."""
    if not uri.startswith(DOCUMENT_URI):
        raise NotFound(
            f"There is no such document. Its URI begins with {DOCUMENT_URI}.", code="document_not_found"
        )
    return part_of(uri.removeprefix(DOCUMENT_URI))


def _url(uri: str | None, part_id: str) -> str:
    """Of a document without an address, the URI of its resource."""
    return uri or f"{DOCUMENT_URI}{part_id}"


class ErrorDetail(BaseModel):
    code: int
    message: str
    data: dict[str, Any] = {}


class ErrorBody(BaseModel):
    """An error of JSON-RPC."""

    jsonrpc: Literal["2.0"]
    id: str | int | None
    error: ErrorDetail


def error_body(error: RagError) -> dict[str, Any]:
    wait = error.headers.get("Retry-After")
    data = {"code": error.code} | ({"retry_after_seconds": int(wait)} if wait else {})
    return {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": str(error), "data": data}}


class ToolError(BaseModel):
    """The metadata (`_meta`) of a tool's error."""

    code: str
    message: str
    status: int

    @classmethod
    def of(cls, error: RagError) -> Self:
        return cls(code=error.code, message=str(error), status=error.status)


class ResourceMetadata(BaseModel):
    """OAuth 2.0 protected resource metadata (RFC 9728)."""

    resource: str
    authorization_servers: list[str]
    bearer_methods_supported: list[Literal["header"]] = ["header"]
    resource_name: str = PRODUCT


class Arguments(BaseModel):
    """A null is an absent argument."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, arguments: Any) -> Any:
        return {name: value for name, value in dict(arguments).items() if value is not None}


class SearchArguments(Arguments):
    query: Question = Field(description="A question or words.")
    limit: Annotated[Number, Field(ge=1, le=MAX_PASSAGES)] = Field(
        PASSAGES, description="The maximum number of passages."
    )
    collection_id: Id | None = Field(None, description="Search in this collection alone.")

    def to_query(self) -> Query:
        return _query(self.query, self.limit, self.collection_id)


class AnswerArguments(Arguments):
    question: Question
    collection_id: Id | None = Field(None, description="Answer from this collection alone.")

    def to_query(self) -> Query:
        return _query(self.question, PASSAGES, self.collection_id)


class ReadArguments(Arguments):
    document_id: Id = Field(description="The document_id of a search result.")
    offset: Offset = Field(0, description="The first character of the part.")
    characters: Annotated[Number, Field(ge=1, le=MAX_PART_CHARACTERS)] = Field(
        PART_CHARACTERS, description="The maximum length of the part."
    )


class FetchArguments(Arguments):
    id: PartId = Field(description="The id of a search result.")


class ListArguments(Arguments):
    offset: Offset = 0
    limit: Annotated[Number, Field(ge=1, le=70)] = 50


class AddArguments(Arguments):
    collection_id: Id
    text: Annotated[str, Field(strict=True, min_length=1, max_length=60_000), WithoutNul] = Field(
        description="Plain text or Markdown."
    )
    title: Title | None = None
    external_id: ExternalId | None = Field(
        None, description="Your name for the document. A document with the same name is replaced."
    )
    private: bool = Field(False, description="Only you and the org's admins see a private document.")


class Passage(ResponseModel):
    """`id`: the argument of `fetch` for the part with this passage; `offset`: its first character in the
    document's text; `truncated`: it is longer than the text here."""

    document_id: str
    title: str
    uri: str | None = Field(exclude=True)
    date: datetime | None = Field(validation_alias="occurred_at")
    text: Annotated[str, AfterValidator(lambda text: text[:PASSAGE_CHARACTERS])]
    offset: int = Field(validation_alias=AliasPath("span", 0))
    truncated: Annotated[bool, BeforeValidator(lambda text: len(text) > PASSAGE_CHARACTERS)] = Field(
        validation_alias="text"
    )
    score: Score
    page_number: PageNumber = None
    page_end: PageEnd = None
    section: Section = None

    @computed_field  # type: ignore[prop-decorator]  # of mypy: a property may be decorated
    @property
    def id(self) -> str:
        # A document's first part has the document's id.
        is_in_first = self.offset + PASSAGE_CHARACTERS <= MAX_PART_CHARACTERS
        start = 0 if is_in_first else self.offset - self.offset % PART_CHARACTERS
        return f"{self.document_id}?offset={start}" if start else self.document_id

    @computed_field  # type: ignore[prop-decorator]  # of mypy: a property may be decorated
    @property
    def url(self) -> str:
        return _url(self.uri, self.id)


class SearchResult(BaseModel):
    results: list[Passage]


class FetchMetadata(BaseModel):
    """`next_id`: the id of the part after the text, null at the end."""

    document_id: str
    status: Status
    notes: Notes
    total_characters: int
    next_id: str | None


class FetchResult(BaseModel):
    """At most 40,000 characters of a document."""

    id: str
    title: str
    text: str
    url: str
    metadata: FetchMetadata

    @classmethod
    def of(cls, part_id: str, part: "DocumentPart") -> Self:
        following = f"{part.document_id}?offset={part.next_offset}" if part.next_offset else None
        metadata = FetchMetadata(**vars(part), next_id=following)
        return cls(
            id=part_id, title=part.title, text=part.text, url=_url(part.uri, part_id), metadata=metadata
        )


class Source(ResponseModel):
    """`number`: the answer's mark of this source."""

    number: int
    document_id: str = Field(validation_alias=AliasPath("match", "document_id"))
    title: str = Field(validation_alias=AliasPath("match", "title"))
    collection_name: str | None = Field(validation_alias=AliasPath("match", "collection_name"))
    uri: str | None = Field(validation_alias=AliasPath("match", "uri"))
    snippet: str
    page_number: int | None
    page_end: int | None
    section: str | None


class AnswerResult(BaseModel):
    """`withheld`: the documents do not answer the question; `sources` are then the nearest ones."""

    answer: str
    withheld: bool
    confidence: Level
    reasons: list[str]
    sources: list[Source]

    @classmethod
    def of(cls, question: str, answer: Answer) -> Self:
        return cls(
            answer=answer.draft.text if answer.draft else insufficient(question),
            withheld=answer.draft is None,
            confidence=answer.judgement.confidence.value,
            reasons=list(answer.judgement.because),
            sources=[
                Source.of(citation, number=number, **location_of(citation.match))
                for number, citation in enumerate(answer.citations, 1)
            ],
        )


class DocumentPart(BaseModel):
    """`next_offset`: the offset of the next part, null at the end. `notes`: what of the file is not in its
    text."""

    document_id: str = Field(validation_alias="id")
    collection_id: str
    title: str
    uri: str | None
    status: Status
    notes: Notes
    text: str
    offset: int
    total_characters: int = Field(validation_alias="characters")
    next_offset: int | None

    @classmethod
    def of(cls, row: dict[str, Any], offset: int) -> Self:
        end = offset + len(row["text"])
        next_offset = end if row["text"] and end < row["characters"] else None
        return cls(**row, offset=offset, next_offset=next_offset)


class Collection(ResponseModel):
    collection_id: str = Field(validation_alias="id")
    name: str
    description: Annotated[str | None, AfterValidator(lambda text: text and text[:DESCRIPTION_CHARACTERS])]
    documents: int = Field(validation_alias="document_count")


class CollectionList(BaseModel):
    collections: list[Collection]
    total: int


class AddedDocument(BaseModel):
    """Searches find the document once its status is completed, usually within a minute."""

    document_id: str
    status: Status


def _query(text: str, top_k: int, collection_id: str | None) -> Query:
    """A hybrid search. Raises NotFound for an invalid id."""
    collections = (id_of(collection_id, "collection"),) if collection_id else ()
    return Query(text, top_k, Filters(collection_ids=collections), Mode.HYBRID)
