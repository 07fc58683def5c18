"""Matches as one text: by document, in its order, nothing twice, within a budget."""

from typing import Any

from shared.retrieval.concatenated_context import concatenate
from shared.types import Match
from tests.shared.examples import match

TEXT = "One fish. Two fish. Red fish. Blue fish."


def part(start: int, end: int, document: str = "Fish", **fields: Any) -> Match:
    return match(TEXT[start:end], document, start=start, **fields)


def test_overlaps_are_joined_and_gaps_are_marked():
    assert concatenate([part(10, 29), part(0, 19)], 1000) == "# Fish\nOne fish. Two fish. Red fish."
    assert concatenate([part(0, 9), part(20, 29)], 1000) == "# Fish\nOne fish.\n[…]\nRed fish."
    assert concatenate([part(0, 40), part(10, 19)], 1000) == f"# Fish\n{TEXT}"


def test_the_document_of_the_best_match_comes_first():
    other = part(10, 19, "Other", uri="https://x.example")
    vectors = concatenate([other, part(0, 9), part(0, 9, "Other")], 1000)
    assert vectors == "# Other (https://x.example)\nOne fish.\n[…]\nTwo fish.\n\n# Fish\nOne fish."


def test_a_title_cannot_imitate_markup():
    assert concatenate([part(0, 9, title="A\n# B")], 1000).startswith("# A # B\n")


def test_the_text_stays_within_the_budget():
    assert concatenate([part(0, 40), part(0, 9, "Other")], 10) == "# Other\nOne fish."
    assert concatenate([], 10) == ""
