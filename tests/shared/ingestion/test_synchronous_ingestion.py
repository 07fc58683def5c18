"""Text in: cleaned, chunked, embedded, stored whole or not at all."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from shared import pipeline
from shared.clients.postgrest import Database
from shared.errors import EmbeddingFailed, InvalidRequest
from shared.ingestion import synchronous_ingestion
from shared.ingestion.chunking.chunked_document import (
    SPECIAL_TOKENS,
    ChunkingConfig,
    chunk_document,
    short_title,
)
from shared.ingestion.chunking.strategy import ChunkingPlan
from shared.ingestion.synchronous_ingestion import NewDocument, StoredDocument, ingest_many
from shared.models.embedding_roles import Role
from shared.models.embeddings import Embedder, embed, embedder_for
from shared.services import Services
from shared.text.normalize import clean
from shared.types import Filters, Principal, Query
from tests.actors import Actor, World
from tests.conftest import People
from tests.ingestion import ingest
from tests.shared.examples import TAGS, ZERO_WIDTH, closed_after_test, settings
from tests.stand_in_server import Reply, StandIn

KETTLE = "The kettle switches off at 100 degrees. The kettle holds 1.7 litres of water."
TOASTER = "The toaster browns bread in two minutes. The toaster has two slots."


def document(text: str = KETTLE, **fields: Any) -> NewDocument:
    return NewDocument(**{"title": "Kettle manual", "text": text, **fields})


def put(services: Services, actor: Actor, text: str = KETTLE, **fields: Any) -> StoredDocument:
    return ingest(services.database, services.embedder, actor.principal, document(text, **fields))


def texts_found(services: Services, actor: Actor, question: str = "kettle") -> list[str]:
    return [match.text for match in pipeline.search(services, actor.principal, Query(question, 50)).matches]


def chunks_of(world: World, document_id: str) -> list[tuple[Any, ...]]:
    return world.sql(
        "select content, span_start, span_end, token_count, ordinal from rag.chunks "
        "where document_id = %s order by ordinal",
        document_id,
    )


# -- chunking -----------------------------------------------------------------------------------------

LONG_TITLES = {
    "english": "The complete field guide to loggers, their batteries and their alarms " * 3,
    "digits": "1234567890" * 30,
    "emoji": "👩‍👩‍👧🧿" * 40,
    "chinese": "数据记录器的电池" * 20,
    "korean": " ".join(["갈색말"] * 60),
    "nothing": "",
}


def test_title_and_chunk_together_fit_the_embedder_s_window(subtests: pytest.Subtests, embedder: Embedder):
    """Korean syllables count three each for the local model: 120 of them are more than it reads."""
    text = " ".join(f"Sentence number {number} about the kettle and its 1.7 litres." for number in range(40))
    for name, long in LONG_TITLES.items():
        with subtests.test(name):
            short = short_title(embedder, long)
            assert long.startswith(short)
            assert embedder.count_tokens(short) <= 32
            assert bool(short) == bool(long)
            chunked = chunk_document(embedder, long.strip(), text, "en")
            assert len(chunked.chunks) == len(chunked.passages) > 1
            for item, passage in zip(chunked.chunks, chunked.passages, strict=True):
                assert embedder.count_tokens(passage) <= embedder.window - SPECIAL_TOKENS
                assert item.tokens <= embedder.passage_tokens


TABLE = "| oven | degrees |\n| --- | --- |\n" + "\n".join(f"| kiln {n} | {n * 10} |" for n in range(90))


@pytest.mark.parametrize(("kind", "size"), [("general", None), ("table", None), ("table", 8000)])
def test_passages_of_rows_have_the_names_of_their_columns(embedder: Embedder, kind: str, size: int | None):
    """The rows of a table among other things, those of a table, and those of one that fills the window."""
    plan = ChunkingPlan(document_type=kind)
    chunked = chunk_document(embedder, "Ovens", TABLE, "en", ChunkingConfig(size), plan=plan)
    assert len(chunked.chunks) > 2
    for item, passage in zip(chunked.chunks, chunked.passages, strict=True):
        rows = re.findall(r"\| (kiln \d+) \| (\d+) \|", item.text)
        assert passage.splitlines() == ["Ovens", *(f"oven {kiln}. degrees {heat}" for kiln, heat in rows)]
        assert TABLE[item.start : item.end] == item.text
        assert embedder.count_tokens(passage) <= embedder.window - SPECIAL_TOKENS


def test_the_continuation_of_an_answer_is_embedded_with_its_question(embedder: Embedder):
    text = "Q: How hot is it?\nA: " + "It is very hot in there, and it stays so. " * 60
    passages = chunk_document(embedder, "Ovens", text, "en", plan=ChunkingPlan(document_type="qa")).passages
    assert len(passages) > 2
    assert all(passage.startswith("Ovens\nQ: How hot is it?\n") for passage in passages)


def test_only_the_name_of_a_file_is_divided_into_words(embedder: Embedder):
    cases = {
        "travel-policy_2026.pdf": "travel policy 2026", "travel_policy": "travel policy", "E-42": "E-42",
        "Policy E-42.pdf": "Policy E-42.pdf", "__": "__",
    }  # fmt: skip
    assert {title: short_title(embedder, title) for title in cases} == cases


# -- refusals before anything is stored ---------------------------------------------------------------

CALLER = Principal(str(uuid4()), "no token")


@pytest.fixture
def unreachable() -> Iterator[Database]:
    """A database that is not there: an early refusal comes here too."""
    database = Database("http://127.0.0.1:9", "no key", 1)
    yield database
    database.close()


def test_a_document_of_invisible_characters_only_or_with_a_lone_surrogate_is_refused(
    subtests: pytest.Subtests, unreachable: Database, embedder: Embedder
):
    refused = "A document needs a title and some text"
    # JSON can carry a lone surrogate; no UTF-8 can.
    half = "half a \ud83d smile"
    cases = {"": refused, f" {ZERO_WIDTH}\n{TAGS}\u200d\u00a0": refused, half: None}
    for bad, reason in cases.items():
        for title, text in (("A title", bad), (bad, KETTLE)):
            with subtests.test(title=title, text=text), pytest.raises(InvalidRequest, match=reason):
                ingest(unreachable, embedder, CALLER, NewDocument(title, text))


# -- the real database --------------------------------------------------------------------------------


def test_every_chunk_is_the_stored_text_of_its_span(services: Services, people: People, world: World):
    text = "\r\n".join(
        f"## Part {number} 👩‍👩‍👧\r\n\u200bDer Kessel Nr. {number} fasst 1,7 Liter.\u202e "
        f"Il s'arrête à 100 °C. 数据{number}。"
        for number in range(30)
    )
    stored = put(services, people.ann, text, title=" A\u200b title\r\nof two  lines ")
    ((content, title, size),) = world.sql(
        "select content, title, length(content) from rag.documents where id = %s", stored.document_id
    )
    assert content == clean(text)
    assert size == len(content)
    assert title == "A title of two lines"
    chunks = chunks_of(world, stored.document_id)
    assert len(chunks) == stored.chunks > 1
    for ordinal, (chunk_text, start, end, tokens, position) in enumerate(chunks):
        assert chunk_text == content[start:end]
        assert tokens == services.embedder.count_tokens(chunk_text)
        assert position == ordinal


def test_embeddings_are_stored_in_the_column_s_precision(services: Services, people: People, world: World):
    stored = put(services, people.ann)
    ((embedding,),) = world.sql(
        "select embedding::real[] from rag.chunks where document_id = %s", stored.document_id
    )
    (vector,) = embed(services.embedder, [f"Kettle manual\n{KETTLE}"], Role.DOCUMENT)
    # A half has eleven binary digits.
    assert embedding == pytest.approx(vector, rel=2**-10, abs=1e-7)


def test_missing_fields_are_filled_from_metadata_which_stays_unchanged(services: Services, people: People):
    metadata = {"source_type": "faq", "lang": "en", "url": "https://acme.example/k", "date": "2026-03-18"}
    put(services, people.ann, metadata=metadata)
    query = Query("kettle", filters=Filters(("faq",), "en"))
    (hit,) = pipeline.search(services, people.ann.principal, query).matches
    assert (hit.uri, hit.metadata) == ("https://acme.example/k", metadata)
    assert hit.occurred_at == datetime(2026, 3, 18, tzinfo=UTC)


def test_given_fields_override_metadata():
    metadata = {"source_type": "web", "lang": "fr", "uri": "b", "date": "2026-03-18T10:00:00+02:00"}
    filled = NewDocument("t", "x", source_type="faq", lang="en", uri="a", metadata=metadata).fields()
    assert (filled["source_type"], filled["lang"], filled["uri"]) == ("faq", "en", "a")
    assert filled["occurred_at"] == "2026-03-18T10:00:00+02:00"


def test_metadata_of_another_type_fills_no_field(subtests: pytest.Subtests):
    for value in ("", "soon", "2026-13-01", 20260318, None, ["2026-03-18"]):
        with subtests.test(value=value):
            lang = "" if isinstance(value, str) else value
            metadata = {"date": value, "lang": lang, "source_type": [value]}
            filled = NewDocument("t", "x", metadata=metadata).fields()
            assert (filled["occurred_at"], filled["lang"], filled["source_type"]) == (None, None, None)


def test_labels_in_metadata_fill_the_field_only_if_all_are_valid(subtests: pytest.Subtests):
    for other, expected in (("b", ["a", "b"]), (7, []), ("b" * 101, []), (f"b{ZERO_WIDTH}", [])):
        with subtests.test(other=other):
            labels = NewDocument("t", "x", metadata={"labels": ["a", other]}).fields()["labels"]
            assert labels == expected


@pytest.fixture
def broken() -> Iterator[Embedder]:
    """A hosted embedder whose key is wrong."""
    with StandIn() as api:
        api.replies(Reply(status=401, json={"error": {"message": "wrong key"}}))
        yield closed_after_test(embedder_for(settings(openai_api_key="sk-wrong", rag_embedding_url=api.url)))


def test_an_embedder_failure_keeps_the_old_version(
    services: Services, people: People, world: World, broken: Embedder
):
    stored = put(services, people.ann, external_id="kettle")
    before = chunks_of(world, stored.document_id)
    for name in ("kettle", "another"):
        new = document(TOASTER, external_id=name)
        with pytest.raises(EmbeddingFailed):
            ingest(services.database, broken, people.ann.principal, new)
    assert chunks_of(world, stored.document_id) == before
    assert texts_found(services, people.ann) == [KETTLE]
    assert world.sql("select count(*) from rag.documents where org_id = %s", people.acme.id) == [(1,)]


def test_a_batch_gets_a_fresh_token_before_each_call(
    services: Services, people: People, monkeypatch: pytest.MonkeyPatch
):
    """A key's token may be over by the time that all of them are embedded."""
    monkeypatch.setattr(synchronous_ingestion, "CHUNKS_AT_ONCE", 4)
    requests = []

    def ann() -> Principal:
        requests.append(1)
        return people.ann.principal

    documents = [document(f"{number}. {KETTLE}", external_id=str(number)) for number in range(6)]
    stored = ingest_many(services.database, services.embedder, ann, "many", documents)
    assert all(entries and entries.chunks == 1 for entries in stored)
    assert len(requests) == 2
