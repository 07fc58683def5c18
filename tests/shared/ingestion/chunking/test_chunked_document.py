"""What the embedder reads of each chunk, and the end of the work when a check raises."""

import pytest

from shared.errors import ClientLeft
from shared.ingestion.chunking.chunked_document import ChunkingConfig, chunk_document, passage_of
from shared.ingestion.chunking.strategy import ChunkingPlan
from shared.models.embeddings import Embedder

LINES = "\n".join(f"Line {number}." for number in range(600))


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
    assert calls > 600
    assert chunked.chunks


def test_a_row_is_embedded_with_the_names_of_its_columns_whose_span_is_in_its_metadata(embedder: Embedder):
    rows = "\n".join(f"| Depot {number} | {number % 12}:00 |  |" for number in range(60))
    text = f"# Hours\n\n| Depot | Opens | Note |\n| --- | --- | --- |\n{rows}"
    plan = ChunkingPlan(document_type="table")
    chunked = chunk_document(embedder, "opening_hours-2027.xlsx", text, "en", plan=plan)
    first, *_, last = chunked.passages
    start = "opening hours 2027\n# Hours\nDepot Depot 0. Opens 0:00\nDepot Depot 1. Opens 1:00"
    assert first.startswith(start)
    assert last.endswith("Depot Depot 59. Opens 11:00")
    header, content = "| Depot | Opens | Note |", text.splitlines()[-1]
    assert passage_of(embedder, "Hours", header, content, None) == "Hours\nDepot Depot 59. Opens 11:00"
    beginning, *others = [row["metadata"] for row in chunked.rows([[0.0]] * len(chunked.chunks))]
    assert "header_start" not in beginning
    assert {text[item["header_start"] : item["header_end"]] for item in others} == {header}


def test_a_row_that_does_not_fit_with_the_names_is_embedded_as_it_is(embedder: Embedder):
    names = " | ".join(
        f"a long name of column {number} of the table of opening hours" for number in range(40)
    )
    row = f"| {' | '.join(map(str, range(40)))} |"
    assert passage_of(embedder, "Hours", f"| {names} |", row, None) == f"Hours\n{row}"
    # Neither a table without a header, nor text beside a table.
    for text in ("| Skar | 10 |\n| Oster | 20 |", "Fees:\n| Port | Fee |\n| --- | --- |\n| Skar | 10 |"):
        assert passage_of(embedder, "Hours", None, text, None) == f"Hours\n{text}"


def test_rows_are_embedded_with_the_title_of_their_section(embedder: Embedder):
    rows = "\n".join(f"| Depot {number} | {number % 12}:00 |" for number in range(60))
    text = f"# Hours\n\n## In winter\n\n| Depot | Opens |\n| --- | --- |\n{rows}"
    plan = ChunkingPlan(document_type="table")
    chunked = chunk_document(embedder, "Hours", text, "en", plan=plan)
    assert len(chunked.passages) > 2
    assert all(passage.startswith("Hours\nIn winter\nDepot Depot ") for passage in chunked.passages[1:])
    # Of the document alone: its title is there already.
    row = "| Skar | 10 |"
    assert passage_of(embedder, "Hours", "| Depot | Opens |", row, "Hours") == "Hours\nDepot Skar. Opens 10"

    # A section's title that has no room leaves the names of the columns.
    cell = "".join(f" berth {number}" for number in range(embedder.window))
    while embedder.count_tokens(named := f"Hours\nDepot{cell}. Opens 10") > embedder.window - 2:
        cell = cell.rpartition(" ")[0]
    row = f"|{cell} | 10 |"
    assert passage_of(embedder, "Hours", "| Depot | Opens |", row, "In the winter") == named


def test_a_wide_row_is_one_chunk_and_its_passage_fits_the_window(embedder: Embedder):
    names = " | ".join(f"Name of column {number}" for number in range(60))
    rows = [f"| Berth {number} | {' | '.join(f'value {number}' for _ in range(59))} |" for number in range(3)]
    text = "\n".join([f"| {names} |", f"|{' --- |' * 60}", *rows])
    chunked = chunk_document(embedder, "Berths", text, "en", plan=ChunkingPlan(document_type="table"))
    assert [item.text for item in chunked.chunks][-3:] == rows
    assert max(map(embedder.count_tokens, chunked.passages)) <= embedder.window - 2
    # The heading and the line below a header are no chunks, and a passage names the columns.
    columns = " | ".join(f"Name of column {number}" for number in range(30))
    text = "\n".join(["# Berths", "", f"| {columns} |", f"|{' --- |' * 30}", f"|{' value |' * 30}"])
    header, row = chunk_document(
        embedder, "Berths", text, "en", config=ChunkingConfig(size=64, overlap=0)
    ).passages
    assert header.startswith("Berths\n# Berths\n\n| Name of column 0 | Name")
    assert row.startswith("Berths\nName of column 0 value. Name")
    # Long cells are text: the row is divided.
    prose = f"| Berth | {'The harbour master decides. ' * 60}|"
    chunked = chunk_document(embedder, "Berths", f"| A | B |\n| - | - |\n{prose}", "en")
    assert max(item.tokens for item in chunked.chunks) <= chunked.sizes.size
