"""What is asked for by its name and what is a question; and how a question reaches the database."""

from typing import Any

import pytest

from shared.embed import embed
from shared.errors import NotFound
from shared.match import holds, is_identifier, similar
from shared.pipeline import Pipeline
from shared.types import Filters, Mode, Query, Result, Subject
from tests.actors import NOBODYS, World
from tests.conftest import People
from tests.shared.examples import match
from tests.sql import passages


@pytest.mark.parametrize(
    "text",
    ["INC-4821", "a/b", "joe@example.com", "v1.2.3", "0x80070005", "E-42", "snake_case", "shared/match.py",
     "std::vector", "covid-19", "#4821"[1:], "ISO9001", "10.1038/s41586-020-2649-2", "é-9"],
)  # fmt: skip
def test_a_name_with_a_digit_or_a_joint_is_an_identifier(text: str):
    assert is_identifier(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "invoice",
        "well-being",
        "Why?",
        "What is INC-4821?",
        "two words",
        "e.g.",
        "-",
        "/",
        "a" * 300 + "1",
    ],
)
def test_a_word_or_a_question_is_none(text: str):
    assert not is_identifier(text)


def test_an_identifier_is_held_by_text_or_title_in_any_case():
    assert holds(match("The review of inc-4821."), "INC-4821")
    assert holds(match("The review.", title="INC-4821"), "inc-4821")
    assert not holds(match("The review of INC 4821."), "INC-4821")


@pytest.mark.parametrize(
    ("identifier", "text"), [("INC-482", "inc-4821"), ("v1.2", "v1.25"), ("C-4", "INC-4")][:]
)
def test_a_part_of_a_longer_identifier_is_another(identifier: str, text: str):
    assert not holds(match(f"The review of {text} is done."), identifier)
    assert holds(match(f"The review of ({identifier.lower()}), at last."), identifier)


def test_what_is_looked_for_by_word_need_not_be_the_question(core: Pipeline, people: People, world: World):
    """Ann asks for one thing, and has another looked for."""
    for text in ("pump", "valve"):
        passages.put(world, people.ann, text, embedding_model=core.embedder.model)
    query = Query("pump", mode=Mode.KEYWORD)
    assert [found.text for found in core.search(people.ann.principal, query).matches] == ["pump"]
    query = Query("pump", mode=Mode.KEYWORD, words="valve")
    assert [found.text for found in core.search(people.ann.principal, query).matches] == ["valve"]


@pytest.mark.parametrize("mode", list(Mode))
def test_preferred_source_types_come_first_in_every_mode(
    core: Pipeline, people: People, world: World, mode: Mode
):
    """As far as ann's equally good documents go."""
    vectors = embed(core.embedder, ["pump"])
    for source_type in ("a", "b", "c"):
        fields: dict[str, Any] = {"embedding_model": core.embedder.model, "source_type": source_type}
        passages.put(world, people.ann, "pump", vectors=vectors, **fields)
    for source_type in ("a", "b", "c"):
        query = Query("pump", mode=mode, prefer=(source_type, "d"), top_k=2)
        found = core.search(people.ann.principal, query)
        assert found.matches[0].source_type == source_type
        assert (found.vector_ms > 0) is (mode is not Mode.KEYWORD)
        assert (found.lexical_ms > 0) is (mode is not Mode.SEMANTIC)


def test_where_nothing_is_found_nothing_took_long(core: Pipeline, people: People):
    """Ann asks for what nobody has."""
    query = Query("pump", filters=Filters(source_types=("none",)))
    found = core.search(people.ann.principal, query)
    assert (found.matches, found.vector_ms, found.lexical_ms) == ((), 0, 0)


@pytest.mark.parametrize("result", list(Result))
@pytest.mark.parametrize("mode", [Mode.SEMANTIC, Mode.KEYWORD, Mode.HYBRID])
def test_what_is_like_a_text_a_chunk_or_a_document(
    core: Pipeline, people: People, world: World, mode: Mode, result: Result
):
    """Of ann's, the subject left out."""
    vectors = embed(core.embedder, ["pump"])
    model = core.embedder.model
    first, second = (
        passages.put(world, people.ann, text, vectors=vectors, embedding_model=model)
        for text in ("pump", "a pump")
    )
    ((chunk,),) = world.sql("select id::text from rag.chunks where document_id = %s", first)
    query = Query("unused", mode=mode, filters=Filters(org_id=people.acme.id))
    for subject in (Subject("chunk", chunk), Subject("document", first), Subject("text", "pump")):
        vector = vectors[0] if subject.kind == "text" and mode is not Mode.KEYWORD else None
        page = similar(core.database, people.ann.principal, subject, vector, model, query, result)
        expected = {second} if subject.kind != "text" else {first, second}
        assert {found.document_id for found in page.matches} == expected
        assert (page.vector_ms > 0) is (mode is not Mode.KEYWORD)
    nobodys = Subject("document", NOBODYS)
    with pytest.raises(NotFound) as missing:
        similar(core.database, people.ann.principal, nobodys, None, model, query, result)
    assert missing.value.code == "subject_not_found"
