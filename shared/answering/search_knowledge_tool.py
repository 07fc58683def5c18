"""The search_knowledge tool for an agent's model: passages as text, and as chunks for a user interface.

One object serves one turn and numbers its passages, so that [N] is the same passage in every search. A fence
marks each passage as data, and text in a passage that resembles a marker is escaped.
"""

import json
import logging
import re
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from shared.answering.knowledge import retrieve
from shared.errors import RagError
from shared.services import Services
from shared.text.citation_marks import mark, tool_passage
from shared.text.prompt_fence import Fence
from shared.text.validation_message import validation_message
from shared.types import Passage, Principal, Query

log = logging.getLogger("rag")
NAME = "search_knowledge"
DESCRIPTION = "Search the knowledge base. Returns the passages that fit best, each with its source and score."
CITE = "Cite each claim with the marker of the passage that it is from, for example {example}."


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    query: Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=r"[^\s\x00]")] = Field(
        description="What to look for: a question or words."
    )
    top_k: int = Field(5, ge=1, le=20, description="How many passages to return.")
    include_sources: bool = Field(False, description="Whether the user is to be shown the passages.")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`text` is for the model; `structured`, {"chunks": [...]} with a `marker` each, for a user interface,
    None unless requested; `error`: an error code, which the text explains."""

    text: str
    structured: dict[str, Any] | None = None
    error: str | None = None


class SearchKnowledge:
    """The tool for one turn of one caller. Thread-safe."""

    def __init__(
        self,
        services: Services,
        caller: Principal,
        namespace: str,
        *others: str,
        inline_citations: bool = False,
    ) -> None:
        self._services = services
        self._caller = caller
        self._namespaces = (namespace, *others)
        self._inline = inline_citations
        self._fence = Fence()
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}
        self._passages: dict[int, Passage] = {}

    @property
    def schema(self) -> dict[str, Any]:
        """The tool's definition in OpenAI's format."""
        json_schema = Arguments.model_json_schema()
        properties = {
            name: {key: value for key, value in field.items() if key not in ("title", "pattern")}
            for name, field in json_schema["properties"].items()
        }
        parameters = {
            "type": "object",
            "properties": properties,
            "required": json_schema["required"],
            "additionalProperties": False,
        }
        return {
            "type": "function",
            "function": {"name": NAME, "description": DESCRIPTION, "parameters": parameters},
        }

    def __call__(self, query: str, top_k: int = 5, include_sources: bool = False) -> ToolResult:
        return self.run({"query": query, "top_k": top_k, "include_sources": include_sources})

    def run(self, arguments: str | dict[str, Any]) -> ToolResult:
        """The result of the model's call. Invalid arguments and failures are results too, so that the turn
        goes on."""
        try:
            request = Arguments.model_validate(
                json.loads(arguments) if isinstance(arguments, str) else arguments
            )
        except ValidationError as invalid:
            return ToolResult(validation_message(invalid), error="invalid_arguments")
        except (ValueError, RecursionError):
            return ToolResult("The arguments are not valid JSON: send one object.", error="invalid_arguments")
        try:
            query = Query(request.query, request.top_k)
            passages = retrieve(self._services, self._caller, self._namespaces, query)
        except RagError as error:
            log.warning("%s failed: %s", NAME, error.log_reason)
            return ToolResult(f"The search failed: {error}", error=error.code)
        numbered = self._number(passages)
        structured = self._structured(numbered) if request.include_sources else None
        return ToolResult(self._text(numbered), structured)

    def cited_passages(self, answer: str) -> dict[int, Passage]:
        """The passages of the answer's markers, by number, in the order of the text. Unknown numbers are
        ignored."""
        numbers = [
            int(number) for marker in re.finditer(r"\[([0-9, ]+)\]", answer)
            for number in re.findall(r"[0-9]{1,9}", marker[1])
        ]  # fmt: skip
        with self._lock:
            return {number: self._passages[number] for number in numbers if number in self._passages}

    def _number(self, passages: Sequence[Passage]) -> dict[int, Passage]:
        """The passages by number; a new passage gets the next number."""
        with self._lock:
            numbered = {
                self._numbers.setdefault(passage.chunk_id, len(self._numbers) + 1): passage
                for passage in passages
            }
            self._passages.update(numbered)
        return numbered

    def _text(self, numbered: dict[int, Passage]) -> str:
        if not numbered:
            return "Nothing was found."
        head = [self._fence.rule("passage")]
        if self._inline:
            head.append(CITE.format(example=mark(next(iter(numbered)))))
        return "\n".join([*head, *map(self._passage_text, numbered, numbered.values())])

    def _passage_text(self, number: int, passage: Passage) -> str:
        source = passage.citations[0].source
        cited_by = number if self._inline else None
        return tool_passage(source, passage.text, passage.score, self._fence, cited_by)

    def _structured(self, numbered: dict[int, Passage]) -> dict[str, Any]:
        return {
            "chunks": [
                {"marker": number if self._inline else None, **asdict(passage)}
                for number, passage in numbered.items()
            ]
        }
