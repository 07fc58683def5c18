"""Wire models of Dify's External Knowledge API: passages of a collection.

Versions of Dify differ: a field without a value is absent or null, numbers may be strings, and the name of a
condition may be a list.
"""

from contextlib import suppress
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from shared.api.contracts import fastapi_error_format
from shared.api.contracts.ignored_names import LenientModel, SearchBody
from shared.api.contracts.metadata import check_metadata_filter
from shared.api.contracts.shared_fields import (
    CollectionName,
    NullAsAbsent,
    Question,
    ResponseModel,
    Score,
    location_of,
)
from shared.errors import Forbidden, NotFound, RagError, Unauthorized
from shared.text.prefixed_ids import id_of
from shared.types import Filters, Match, Mode, Query, SearchResult

# Dify's codes of errors. Other errors have their status.
CODES = {"malformed_authorization": 1001, "collection_not_found": 2001}
REFUSED = 1002
_NUMBER, _SCALAR = ("a number", (int, float)), ("a string or a number", (str, int, float))
_TEXT, _LIST, _NOTHING = ("a string", str), ("a list, or a string with commas", list), ("no value", object)
# Operators of Dify that metadata filters express exactly: the filter's operator, and the values of Dify's.
OPERATORS: dict[str, tuple[str, tuple[str, Any]]] = {
    "is": ("$in", _SCALAR), "is not": ("$nin", _SCALAR), "in": ("$in", _LIST), "not in": ("$nin", _LIST),
    "start with": ("$gte", _TEXT), "empty": ("$exists", _NOTHING), "not empty": ("$exists", _NOTHING),
    "=": ("$in", _NUMBER), "≠": ("$nin", _NUMBER), ">": ("$gt", _NUMBER), "<": ("$lt", _NUMBER),
    "≥": ("$gte", _NUMBER), "≤": ("$lte", _NUMBER), "before": ("$lt", _SCALAR), "after": ("$gt", _SCALAR),
}  # fmt: skip
CHOICE = ", ".join(OPERATORS)
# Texts do not contain this noncharacter, so it ends the range of the texts that start with a prefix.
LAST_CHARACTER = "\U0010ffff"


class ErrorBody(BaseModel):
    error_code: int
    error_msg: str


def error_body(error: RagError) -> dict[str, Any]:
    is_refused = isinstance(error, Unauthorized | Forbidden)
    code = CODES.get(error.code) or (REFUSED if is_refused else error.status)
    return {"error_code": code, "error_msg": fastapi_error_format.message(error)}


def _only_name(name: Any) -> Any:
    return name[0] if isinstance(name, list) and len(name) == 1 else name


def _number(text: str) -> int | float | str:
    """The number that a text states, or the text."""
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text


class RetrievalSetting(NullAsAbsent):
    top_k: Annotated[int, Field(ge=1, le=100)] = 10
    score_threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0


class Condition(BaseModel):
    """A comparison of a document's metadata. `name` may be a list of one name."""

    name: Annotated[str, BeforeValidator(_only_name)]
    comparison_operator: str
    value: Any = None

    def operations(self) -> dict[str, Any]:
        """Operators of a filter that must all hold. Raises ValueError for a condition that none expresses."""
        name, sent, value = self.name[:100], self.comparison_operator, self.value
        if sent not in OPERATORS:
            raise ValueError(f"{name}: the operator {sent[:100]} is not supported. Use one of: {CHOICE}")
        operator, (description, types) = OPERATORS[sent]
        if isinstance(value, str) and types is list:
            value = [part.strip() for part in value.split(",")]
        elif isinstance(value, str) and types == _NUMBER[1]:
            value = _number(value)
        if not isinstance(value, types):
            raise ValueError(f"{name}: the operator {sent} takes {description}")
        match operator:
            case "$exists":
                return {operator: sent == "not empty"}
            case "$in" | "$nin":
                return {operator: value if isinstance(value, list) else [value]}
        return {operator: value, "$lt": value + LAST_CHARACTER} if types is str else {operator: value}


class MetadataCondition(NullAsAbsent, LenientModel):
    logical_operator: Literal["and", "or"] = "and"
    conditions: list[Condition] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_metadata_filter(self.to_filter())
        return self

    def to_filter(self) -> dict[str, Any]:
        """Raises ValueError for conditions that no filter expresses."""
        is_or = self.logical_operator == "or" and len(self.conditions) > 1
        filters: dict[str, dict[str, Any]] = {}
        for condition in self.conditions:
            of_name = filters.setdefault(condition.name, {})
            for operator, value in condition.operations().items():
                if is_or and (operator != "$in" or len(filters) > 1):
                    raise ValueError("or is supported between the operators is, = and in of one name only")
                if is_or or operator == "$nin":
                    of_name.setdefault(operator, []).extend(value)
                elif operator in of_name:
                    raise ValueError(f"{condition.name[:100]}: two conditions are of one kind. Send one")
                else:
                    of_name[operator] = value
        return filters


class RetrievalRequest(NullAsAbsent, SearchBody):
    """`knowledge_id`: a collection's id or name."""

    knowledge_id: CollectionName
    query: Question
    retrieval_setting: RetrievalSetting = Field(default_factory=RetrievalSetting)
    metadata_condition: MetadataCondition = Field(default_factory=MetadataCondition)

    def to_query(self) -> Query:
        metadata = self.metadata_condition.to_filter()
        try:
            filters = Filters(collection_ids=(id_of(self.knowledge_id, "collection"),), metadata=metadata)
        except NotFound:
            filters = Filters(collection=self.knowledge_id, metadata=metadata)
        return Query(self.query, self.retrieval_setting.top_k, filters, Mode.HYBRID)


def _metadata(match: Match) -> dict[str, Any]:
    """The document's metadata, and fields for a citation: of the same names only the ids replace metadata."""
    citation = {
        name: value for name, value in {"uri": match.uri, **location_of(match)}.items() if value is not None
    }
    return {**citation, **match.metadata, "document_id": match.document_id, "chunk_id": match.chunk_id}


class Record(ResponseModel):
    content: str = Field(validation_alias="text")
    score: Score
    title: str
    metadata: dict[str, Any]


class RetrievalResponse(BaseModel):
    records: list[Record]

    @classmethod
    def of(cls, request: RetrievalRequest, result: SearchResult) -> Self:
        records = [Record.of(match, metadata=_metadata(match)) for match in result.matches]
        threshold = request.retrieval_setting.score_threshold
        return cls(records=[record for record in records if record.score >= threshold])
