"""What the embedder reads of each chunk, and the end of the work when a check raises."""

import pytest

from shared.errors import ClientLeft
from shared.ingestion.chunking.passages import chunk_document
from shared.models.embeddings import Embedder

LINES = "\n".join(f"Line {number}." for number in range(2000))


def test_an_exception_in_the_check_stops_the_work(embedder: Embedder):
    calls = 0

    def leave() -> None:
        nonlocal calls
        calls += 1
        if calls == 100:
            raise ClientLeft

    with pytest.raises(ClientLeft):
        chunk_document(embedder, "title", LINES, None, check=leave)
    assert calls == 100
    calls = 100
    chunked = chunk_document(embedder, "title", LINES, None, check=leave)
    assert calls > 2000
    assert chunked.chunks
