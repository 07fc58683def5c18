"""Searches for a question, as they reach the database."""

from shared import pipeline
from shared.services import Services
from shared.types import Mode, Query
from tests.actors import World
from tests.conftest import People
from tests.sql import passages


def test_the_keyword_text_may_differ_from_the_question(services: Services, people: People, world: World):
    """Ann asks for one thing, and has another looked for."""
    for text in ("pump", "valve"):
        passages.put(world, people.ann, text, embedding_model=services.embedder.model)
    for words, expected in ((None, "pump"), ("valve", "valve")):
        query = Query("pump", mode=Mode.KEYWORD, words=words)
        matches = pipeline.search(services, people.ann.principal, query).matches
        assert [entry.text for entry in matches] == [expected]
