"""Identifiers and questions; and how a question reaches the database."""

from typing import Any

import pytest

from shared import pipeline
from shared.errors import NotFound
from shared.models.embedding_roles import Role
from shared.models.embeddings import embed
from shared.retrieval.chunk_search import has_identifier, similar
from shared.services import Services
from shared.text.identifiers import is_identifier
from shared.types import Filters, Mode, Query, QueryEmbedding, ResultKind, SimilarTo
from tests.actors import NOBODYS, World
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


def test_preferred_source_types_come_first_in_every_mode(
    subtests: pytest.Subtests, services: Services, people: People, world: World
):
    """As far as ann's equally good documents go."""
    vectors = embed(services.embedder, ["pump"], Role.QUESTION)
    for source_type in ("a", "b", "c"):
        fields: dict[str, Any] = {"embedding_model": services.embedder.model, "source_type": source_type}
        passages.put(world, people.ann, "pump", vectors=vectors, **fields)
    for mode in Mode:
        for source_type in ("a", "b", "c"):
            with subtests.test(mode=mode, source_type=source_type):
                query = Query("pump", mode=mode, prefer=(source_type, "d"), top_k=2)
                result = pipeline.search(services, people.ann.principal, query)
                assert result.matches[0].source_type == source_type
                assert (result.vector_ms > 0) is (mode is not Mode.KEYWORD)
                assert (result.lexical_ms > 0) is (mode is not Mode.SEMANTIC)


def test_an_empty_result_has_no_leg_durations(services: Services, people: People):
    """Ann asks for an unknown identifier."""
    query = Query("pump", filters=Filters(source_types=("none",)))
    result = pipeline.search(services, people.ann.principal, query)
    assert (result.matches, result.vector_ms, result.lexical_ms) == ((), 0, 0)


def test_similar_items_exclude_the_subject(
    subtests: pytest.Subtests, services: Services, people: People, world: World
):
    """Ann asks, and her org has two documents."""
    vectors = embed(services.embedder, ["pump"], Role.QUESTION)
    model, ann = services.embedder.model, people.ann.principal
    first, second = (
        passages.put(world, people.ann, text, vectors=vectors, embedding_model=model)
        for text in ("pump", "a pump")
    )
    ((chunk,),) = world.sql("select id::text from rag.chunks where document_id = %s", first)
    subjects = {
        SimilarTo("chunk", chunk): {second},
        SimilarTo("document", first): {second},
        SimilarTo("text", "pump"): {first, second},
    }
    for mode in (Mode.SEMANTIC, Mode.KEYWORD, Mode.HYBRID):
        query = Query("unused", mode=mode, filters=Filters(org_id=people.acme.id))
        for result in ResultKind:
            for subject, expected in subjects.items():
                vector = vectors[0] if subject.kind == "text" and mode is not Mode.KEYWORD else None
                with subtests.test(mode=mode, result=result, subject=subject.kind):
                    embeddings = (QueryEmbedding(model, vector),)
                    page = similar(services.database, ann, subject, embeddings, query, result)
                    assert {entry.document_id for entry in page.matches} == expected
                    assert (page.vector_ms > 0) is (mode is not Mode.KEYWORD)
            with subtests.test(mode=mode, result=result, subject="unknown"):
                subject = SimilarTo("document", NOBODYS)
                with pytest.raises(NotFound) as missing:
                    similar(services.database, ann, subject, (QueryEmbedding(model),), query, result)
                assert missing.value.code == "subject_not_found"
