"""How a document is cut: by its metadata, or else by its lines."""

import re
import time
from typing import Any

import pytest

from local.seed_demo import demo_files
from shared.ingestion.chunking.document_type import boundaries_in
from shared.ingestion.chunking.strategy import BY_SENTENCES, ChunkingPlan
from tests.shared.ingestion.chunking.test_text_parts import FAQ, LAW, PAPER, TABLE

CONTRACT = """LEASE AGREEMENT
The parties agree:
Section 1. Rent. The lessee shall pay it pursuant to Exhibit A.
Section 2. Liability. The lessor shall indemnify nobody; this agreement is all.
Section 3. Jurisdiction. It is Ireland's, notwithstanding other places.
"""
STORY = """# The kilns

I asked: "Is it hot?" She laughed. Why would it not be?

1. Light it.
2. Wait. What for?

As section 5 of the handbook says, the parties agreed. There is no reference to it.
"""


def test_a_type_is_detected_only_if_it_is_clear(subtests: pytest.Subtests):
    cases: list[tuple[str, str | None, str, str]] = [
        (CONTRACT, "pdf", "Lease", "legal"),
        (re.sub(r"Section (\d)\.", r"4.\1", CONTRACT), "docx", "Lease with numbered clauses", "legal"),
        (re.sub(r"Section (\d)\.", r"4.\1", CONTRACT[:100]), "docx", "Too few clauses", "general"),
        (PAPER, "pdf", "Of kilns", "academic"),
        (FAQ.replace("3. ", "Q: ").replace("Ann", "A: Ann").replace("Because", "A: So"), None, "", "qa"),
        ("## Is it?\nYes.\n## Why?\nSo.\n## And now?\nNo.", "markdown", "Kilns", "qa"),
        ("1. Is it?\nYes.\n2. Why?\nSo.\n3. And now?\nNo.", "text", "FAQ", "qa"),
        (TABLE[12:], "text", "", "table"),
        ("name: kiln", "csv", "", "table"),
        (STORY, "text", "A story", "general"),
        (LAW, "text", "A short one, of few words that laws use", "general"),
        ("Article 1\nOn clay.\nArticle 2\nOn fire.\nArticle 3\nOn ash.", "text", "A magazine", "general"),
        (PAPER.replace("References", "Thanks"), "text", "", "general"),
        ("Why? Because. Who? Ann. When? Now.\n" * 9, "text", "Talk", "general"),
        ("## What is hot?\nIt.\n## Clay\nIs.\n## Fire\nIs.\n## Ash\nIs.", "markdown", "Kilns", "general"),
        (TABLE + "\n\nAnd then.\nMuch else.\nIs said.\nOf ovens.\n", "text", "", "general"),
    ]
    for text, kind, title, expected in cases:
        with subtests.test(title=title, expected=expected, text=text):
            assert ChunkingPlan.of({}, text, kind, title) == ChunkingPlan("sentences", expected)


def test_only_the_faqs_of_the_demo_corpus_are_detected():
    documents = [file.document for file, _ in demo_files()]
    types = {one.title: ChunkingPlan.of({}, one.text, None, one.title).document_type for one in documents}
    assert set(types.values()) == {"qa", "general"}
    assert sum(entry == "qa" for entry in types.values()) == 7
    words = ("FAQ", "questions", "Fragen", "Questions")
    assert all(any(word in title for word in words) for title, entry in types.items() if entry == "qa")


def test_a_given_type_is_used_and_an_unknown_one_counts_as_missing(subtests: pytest.Subtests):
    for kind in ("legal", "academic", "qa", "table", "general"):
        with subtests.test(kind=kind):
            assert ChunkingPlan.of({"document_type": kind}, CONTRACT, "csv").document_type == kind
    for unknown in ("technical", "", None, 7, ["legal"]):
        with subtests.test(unknown=unknown):
            assert ChunkingPlan.of({"document_type": unknown}, CONTRACT).document_type == "legal"
            assert ChunkingPlan.of({"document_type": unknown}, "Hello.").document_type == "general"


def test_a_given_strategy_is_used():
    cases: list[tuple[dict[str, Any], ChunkingPlan]] = [
        ({"split_type": "code", "language": "py"}, ChunkingPlan("code", "general", "python")),
        ({"split_type": "recursive"}, ChunkingPlan("recursive")),
        ({"split_type": "sentence"}, BY_SENTENCES),
        ({"split_type": None, "language": "python"}, BY_SENTENCES),
        ({"split_type": ["code"]}, BY_SENTENCES),
        ({}, BY_SENTENCES),
    ]
    assert [(metadata, ChunkingPlan.of(metadata, "Hello.")) for metadata, _ in cases] == cases


def test_adversarial_lines_do_not_slow_detection_down():
    for text in ("References\n" * 50_000, "1 A\n" * 100_000, " " * 300_000, "**" * 200_000 + "?"):
        for message in ("legal", "academic", "qa"):
            started = time.process_time()
            boundaries_in(text, message)
            assert time.process_time() - started < 5


def test_a_code_file_is_split_as_code_unless_its_metadata_override_it():
    cases: list[tuple[dict[str, str], ChunkingPlan]] = [
        ({}, ChunkingPlan("code", language="python")),
        ({"split_type": "code", "language": "go"}, ChunkingPlan("code", language="go")),
        ({"split_type": "sentences"}, BY_SENTENCES),
    ]
    code = ("x = 1", "code", "a.py", "python")
    assert [(metadata, ChunkingPlan.of(metadata, *code)) for metadata, _ in cases] == cases
