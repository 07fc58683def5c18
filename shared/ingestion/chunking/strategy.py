"""Chunking strategy of a document: by its metadata, else by its text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shared.ingestion.chunking.code_blocks import code_language
from shared.ingestion.chunking.document_type import document_type_of


@dataclass(frozen=True, slots=True)
class ChunkingPlan:
    """The strategy of a document. Only code has a `language` (code_blocks.LANGUAGES)."""

    strategy: Literal["sentences", "recursive", "code"] = "sentences"
    document_type: str = "general"
    language: str | None = None

    @classmethod
    def of(
        cls,
        metadata: Mapping[str, Any],
        text: str = "",
        kind: str | None = None,
        title: str = "",
        language: str | None = None,
    ) -> "ChunkingPlan":
        """The plan by `split_type`, `language` and `document_type` in the metadata, else by the text.

        `kind`: that of the file, such as csv; `language`: that of a code file, by its name. Raises
        InvalidRequest (unsupported_language).
        """
        if metadata.get("split_type") == "code":
            return cls("code", language=code_language(metadata.get("language")))
        if language and "split_type" not in metadata:
            return cls("code", language=language)
        recursive = metadata.get("split_type") == "recursive"
        document_type = document_type_of(metadata, text, kind, title)
        return cls("recursive" if recursive else "sentences", document_type)


BY_SENTENCES = ChunkingPlan()
