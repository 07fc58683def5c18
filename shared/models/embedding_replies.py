"""Vectors in the responses of embedding endpoints, in the shapes that real servers send."""

import struct
from base64 import b64decode
from typing import Any


def vectors_in(reply: Any, count: int) -> list[Any] | None:
    """The vectors in the order of the texts; None for another number than `count`. Raises ValueError,
    TypeError, LookupError or struct.error for another shape."""
    rows = reply
    if isinstance(reply, dict):
        names = ("data", "embeddings", "embedding", "result")
        name = next((name for name in names if reply.get(name) is not None), names[0])
        rows = [reply[name]] if name == "embedding" else reply[name]
    if isinstance(rows, dict):
        # Cohere's vectors by type, Cloudflare's result.
        rows = rows[next((name for name in ("float", "base64", "data") if name in rows), "float")]
    if len(rows) != count:
        return None
    if rows and isinstance(rows[0], dict):
        # Some servers send no indices, or the same for all.
        if sorted(str(row.get("index")) for row in rows) == sorted(map(str, range(count))):
            rows = sorted(rows, key=lambda row: int(row["index"]))
        rows = [row["embedding"] for row in rows]
    return [_vector_of(row) for row in rows]


def _vector_of(embedding: Any) -> Any:
    """Single-precision numbers in base64; a list from an endpoint that ignores the encoding. Empty for
    another value, so that the error names its text."""
    if isinstance(embedding, str):
        content = b64decode(embedding, validate=True)
        return list(struct.unpack(f"<{len(content) // 4}f", content))
    if isinstance(embedding, list) and len(embedding) == 1 and isinstance(embedding[0], list):
        embedding = embedding[0]
    if isinstance(embedding, list) and embedding and isinstance(embedding[0], str):
        return [float(number) for number in embedding]
    return embedding if isinstance(embedding, list) else []
