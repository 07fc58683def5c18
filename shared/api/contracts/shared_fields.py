"""Fields that several contracts share: names, questions, flags, offsets, timestamps, scores."""

from datetime import UTC, datetime, time
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from shared.text.normalize import composed
from shared.types import Match

MAX_DOCUMENTS = 1000

Flag = Annotated[bool, Field(strict=True)]
Offset = Annotated[int, Field(ge=0, le=2**31 - 1)]


def without_nul(text: str) -> str:
    """The text, which Postgres cannot store with NUL. Raises ValueError."""
    if "\0" in text:
        raise ValueError("must be without NUL characters")
    return text


def stripped(most: int) -> StringConstraints:
    """Constraints of a text without white space around it."""
    return StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=most)


WithoutNul = AfterValidator(without_nul)
# As stored texts are.
Composed = AfterValidator(composed)
# Not dots alone: clients resolve them in a path.
CollectionName = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=255, pattern=r"[^.]"), WithoutNul
]
DocumentName = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=500), WithoutNul]


def _not_blank(question: str) -> str:
    if not question.strip():
        raise ValueError("must not be blank")
    return question


# The limit of the database.
Question = Annotated[
    str, StringConstraints(strict=True, max_length=10_000), WithoutNul, Composed, AfterValidator(_not_blank)
]


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


# Of a stored document: what of the file is not in its text. A snapshot may have stored any value there.
Notes = Annotated[list[str], BeforeValidator(_texts)]


def _timestamp(value: Any) -> datetime:
    if not isinstance(value, str):
        raise ValueError("must be an ISO 8601 timestamp")
    try:
        timestamp = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("must be an ISO 8601 timestamp") from None
    try:
        return timestamp.astimezone(UTC) if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("must be an ISO 8601 timestamp of the years 1 to 9999") from None


def _end_of_range(value: Any) -> datetime:
    timestamp = _timestamp(value)
    bare_date = len(value) <= len("2025-01-31")
    return datetime.combine(timestamp.date(), time.max, UTC) if bare_date else timestamp


# Inclusive bounds: ISO 8601, in UTC without an offset. In RangeEnd a date means the end of the day.
RangeStart = Annotated[datetime, BeforeValidator(_timestamp)]
RangeEnd = Annotated[datetime, BeforeValidator(_end_of_range)]


class NullAsAbsent(BaseModel):
    """Model of a request. Null means absent."""

    @model_validator(mode="before")
    @classmethod
    def _remove_nulls(cls, sent: Any) -> Any:
        if not isinstance(sent, dict):
            return sent
        return {name: value for name, value in sent.items() if value is not None}


class _WithMore:
    """An object with further attributes, or others in the place of its own."""

    def __init__(self, source: object, more: dict[str, object]) -> None:
        self._source = source
        self.__dict__.update(more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class ResponseModel(BaseModel):
    """Model of a response. `of` makes it of a row or an object, by the names or aliases of its fields, and of
    `more` fields."""

    model_config = ConfigDict(from_attributes=True, validate_by_name=True, validate_by_alias=True)

    @classmethod
    def of(cls, source: object, **more: object) -> Self:
        return cls.model_validate(_WithMore(source, more) if more else source)


LOCATION = ("page_number", "page_end", "section")


def location_of(match: Match) -> dict[str, Any]:
    """Where the chunk stands in its document: the page on which it begins, its last page if it is on several,
    and the titles of the headings above it, joined by " > ". None for each that the document lacks."""
    return {name: match.location.get(name) for name in LOCATION}


def _in_location(name: str) -> AliasChoices:
    """The alias of a field of `location_of` in a match, or in an object that has one."""
    return AliasChoices(AliasPath("location", name), AliasPath("match", "location", name))


PageNumber = Annotated[int | None, Field(validation_alias=_in_location("page_number"))]
PageEnd = Annotated[int | None, Field(validation_alias=_in_location("page_end"))]
Section = Annotated[str | None, Field(validation_alias=_in_location("section"))]


def rounded_score(value: float) -> float:
    """A score from 0 to 1 with six digits."""
    return round(min(1.0, max(0.0, value)), 6)


Score = Annotated[float, AfterValidator(rounded_score)]
Level = Literal["high", "medium", "low"]


class ConfidenceThresholds(ResponseModel):
    """The lowest value of each level."""

    high: float
    medium: float


class ConfidenceDetail(ResponseModel):
    """`score`: the probability, 0 to 1, that the passages answer the question, which `thresholds` divide into
    levels; where the contract's rule alone decides, the mean similarity. `because`: the reasons;
    `unsupported`: sentences of a model's answer that the passages do not support."""

    level: Level = Field(validation_alias="confidence")
    score: Score
    thresholds: ConfidenceThresholds
    because: list[str]
    unsupported: list[str] = []
