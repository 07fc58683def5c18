"""What the embedder reads of each chunk, and the end of the work when a check raises."""

import pytest

from shared.errors import ClientLeft
from shared.ingestion.chunking.chunked_document import chunk_document
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


def test_a_chunk_within_a_table_has_the_span_of_the_table_s_header(embedder: Embedder):
    rows = "\n".join(f"| Depot {number} | opens at {number % 12}:00 | closed |" for number in range(60))
    text = f"Opening hours\n\n| Depot | Weekdays | Sunday |\n|---|---|---|\n{rows}"
    chunked = chunk_document(embedder, "Hours", text, "en")
    first, *others = [row["metadata"] for row in chunked.rows([[0.0]] * len(chunked.chunks))]
    assert "header_start" not in first
    assert others
    headers = {text[item["header_start"] : item["header_end"]] for item in others}
    assert headers == {"| Depot | Weekdays | Sunday |"}
