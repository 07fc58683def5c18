"""Plain values for the tests of this folder: matches of invented documents, settings of no deployment."""

from typing import Any, TypeVar

from shared.config import Settings
from shared.services import Closeable
from shared.types import Match

# What only a machine sees.
BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ZERO_WIDTH = "\u200b\u2060\ufeff"
TAGS = "".join(map(chr, range(0xE0020, 0xE0080))) + "\U000e0001"
CONTROLS = "".join(chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)] if chr(code) not in "\t\n\r")
SELECTORS = "\U000e0100\U000e01ef"
OTHERS = "\u00ad\u2061\u2062\u2063\u2064\u206a\u206f\ufff9\ufffa\ufffb"


def match(
    text: str = "Some text.", document: str = "document", similarity: float = 0.8, **fields: Any
) -> Match:
    """A chunk of that document, whose title is the document's name unless given."""
    start = fields.pop("start", 0)
    return Match(
        **{
            "chunk_id": f"{document}:{start}",
            "document_id": document,
            "org_id": "org",
            "ordinal": 0,
            "text": text,
            "span": (start, start + len(text)),
            "similarity": similarity,
            "score": similarity,
            "source_type": "doc",
            "title": document,
            "uri": None,
            "lang": None,
            "occurred_at": None,
            "metadata": {},
            "collection_id": "collection",
            "origin": None,
            "author": None,
            "state": None,
            "labels": (),
            "document_name": document,
            "location": {},
            "created_by": "user",
            **fields,
        }
    )


def settings(**fields: Any) -> Settings:
    """Settings of a deployment without keys, whatever this machine's environment says."""
    return Settings(
        **{
            "supabase_url": "http://127.0.0.1:9",
            "supabase_anon_key": "anon-key",
            "supabase_jwt_secret": "a secret",
            "openai_api_key": None,
            "rag_llm_api_key": None,
            **fields,
        }
    )


T = TypeVar("T")
_opened: list[object] = []


def closed_after_test(part: T) -> T:
    """The part, whose connections are closed when the test ends."""
    _opened.append(part)
    return part


def close_opened() -> None:
    while _opened:
        part = _opened.pop()
        if isinstance(part, Closeable):
            part.close()
