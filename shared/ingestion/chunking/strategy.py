"""How a document is cut into chunks: what its metadata say of it, or else what it looks like."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shared.ingestion.chunking.code import language_of
from shared.ingestion.chunking.document_type import document_type_of


@dataclass(frozen=True, slots=True)
class Plan:
    """How a document is cut; a `language` of code.LANGUAGES belongs to code alone."""

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
    ) -> "Plan":
        """What `split_type`, `language` and `document_type` say; of another type, what the text looks like.

        `kind` is what the text was read from, such as csv, and `language` what a file of code is written in,
        by its name. Raises InvalidRequest (unsupported_language).
        """
        if metadata.get("split_type") == "code":
            return cls("code", language=language_of(metadata.get("language")))
        if language and "split_type" not in metadata:
            return cls("code", language=language)
        recursive = metadata.get("split_type") == "recursive"
        document_type = document_type_of(metadata, text, kind, title)
        return cls("recursive" if recursive else "sentences", document_type)


BY_SENTENCES = Plan()
