"""Identifiers and questions; and how a question reaches the database."""

import pytest

from shared import pipeline
from shared.retrieval.chunk_search import has_identifier
from shared.services import Services
from shared.text.identifiers import is_identifier
from shared.types import Filters, Mode, Query
from tests.actors import World
from tests.conftest import People
from tests.shared.examples import match
from tests.sql import passages


def test_a_name_with_a_digit_or_a_separator_is_an_identifier(subtests: pytest.Subtests):
    identifiers = (
        "INC-4821", "a/b", "joe@example.com", "v1.2.3", "0x80070005", "E-42", "snake_case", "shared/match.py",
        "std::vector", "covid-19", "4821", "ISO9001", "10.1038/s41586-020-2649-2", "é-9",
    )  # fmt: skip
    others = (
        "", "invoice", "well-being", "Why?", "What is INC-4821?", "two words", "e.g.", "-", "/",
        "a" * 300 + "1",
    )  # fmt: skip
    for texts, expected in ((identifiers, True), (others, False)):
        for text in texts:
            with subtests.test(text=text):
                assert is_identifier(text) is expected


def test_an_identifier_matches_text_and_title_in_any_case():
    assert has_identifier(match("The review of inc-4821."), "INC-4821")
    assert has_identifier(match("The review.", title="INC-4821"), "inc-4821")
    assert not has_identifier(match("The review of INC 4821."), "INC-4821")


def test_a_part_of_a_longer_identifier_does_not_match(subtests: pytest.Subtests):
    for identifier, text in (("INC-482", "inc-4821"), ("v1.2", "v1.25"), ("C-4", "INC-4")):
        with subtests.test(identifier=identifier, text=text):
            assert not has_identifier(match(f"The review of {text} is done."), identifier)
            assert has_identifier(match(f"The review of ({identifier.lower()}), at last."), identifier)


def test_the_keyword_text_may_differ_from_the_question(services: Services, people: People, world: World):
    """Ann asks for one thing, and has another looked for."""
    for text in ("pump", "valve"):
        passages.put(world, people.ann, text, embedding_model=services.embedder.model)
    for words, expected in ((None, "pump"), ("valve", "valve")):
        query = Query("pump", mode=Mode.KEYWORD, words=words)
        matches = pipeline.search(services, people.ann.principal, query).matches
        assert [entry.text for entry in matches] == [expected]


def test_an_empty_result_has_no_leg_durations(services: Services, people: People):
    """Ann asks for an unknown identifier."""
    query = Query("pump", filters=Filters(source_types=("none",)))
    result = pipeline.search(services, people.ann.principal, query)
    assert (result.matches, result.vector_ms, result.lexical_ms) == ((), 0, 0)
