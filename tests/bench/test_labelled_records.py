"""Labelled sets made of an org's records, and two configurations compared on them."""

from pathlib import Path

import psycopg
import pytest

from bench import compare, labelled_records
from shared.calibration.labelled_sets import Item, LabelledSet, read
from shared.services import Services
from shared.types import Mode
from tests.actors import World
from tests.bench.ingested_sets import ingested
from tests.conftest import People
from tests.functions.search_workspace import put
from tests.functions.test_records import KETTLE, QUESTION, UNANSWERABLE, ask, label, record_requests


@pytest.fixture
def members(people: People, services: Services) -> People:
    record_requests(people.ada)
    manual = put(services, people.ann, "club", "Kettle manual", KETTLE)
    diary = put(services, people.ann, "club", "Diary", "The kettle is mine.", private=True)
    for question, verdict, documents in (
        (QUESTION, "right", [manual]),
        (UNANSWERABLE, "right", []),
        ("At how many degrees does the K-300 switch off?", "wrong", []),
        (f" {QUESTION.upper()}", "wrong", []),
        (QUESTION, "right", [manual]),
        ("Is there tea?", None, []),
        ("Whose is the kettle?", "right", [diary]),
    ):
        assert label(people.ada, ask(people.ann, question), verdict, *documents).status_code == 204
    return people


def test_labelled_records_become_a_labelled_set(members: People, world: World, tmp_path: Path):
    with psycopg.connect(world.stack.database_url()) as connection:
        counts = labelled_records.write(connection, members.acme.id, tmp_path / "acme", with_private=False)
        assert counts == (1, 3)
        private = labelled_records.write(connection, members.acme.id, tmp_path / "all", with_private=True)
        assert private == (2, 4)
    labelled_set = read(tmp_path / "acme")
    (document,) = labelled_set.documents
    assert (document.title, document.text) == ("Kettle manual", KETTLE)
    labels = {item.text: item.label for item in labelled_set.questions}
    assert labels == {
        QUESTION: "answerable",
        UNANSWERABLE: "out_of_corpus",
        "At how many degrees does the K-300 switch off?": "wrong",
    }
    (question,) = [item.id for item in labelled_set.questions if item.text == QUESTION]
    assert labelled_set.relevant == {question: {document.id: 1}}


def test_interpreted_questions_are_exported_and_expired_ones_are_not(
    members: People, world: World, tmp_path: Path
):
    for change, question in (
        ("queries = jsonb_set(queries, '{0,text}', '\"Do penguins live near the kettle?\"')", UNANSWERABLE),
        ("expires_at = now()", QUESTION),
    ):
        where = "where org_id = %s and lower(btrim(question)) = lower(%s)"
        world.sql(f"update rag.request_records set {change} {where}", members.acme.id, question)
    with psycopg.connect(world.stack.database_url()) as connection:
        labelled_records.write(connection, members.acme.id, tmp_path / "acme", with_private=False)
    assert {item.text for item in read(tmp_path / "acme").questions} == {
        "Do penguins live near the kettle?",
        "At how many degrees does the K-300 switch off?",
    }


SET = LabelledSet(
    "kettles",
    [Item("manual", KETTLE, "Kettle manual"), Item("canteen", "The canteen serves soup.", "Canteen")],
    [Item("q1", QUESTION, label="answerable"), Item("q2", UNANSWERABLE, label="out_of_corpus")],
    {"q1": {"manual": 1}},
)


def test_two_configurations_are_compared_on_the_same_questions(
    people: People, services: Services, world: World
):
    own = ingested(services, people, SET, database_url=world.stack.database_url())
    # Another fit of confidence answers nothing.
    fit = (
        '{"all-MiniLM-L6-v2": {"slope": 1, "intercept": -900, "high": 0.9, "medium": 0.8, '
        '"ceiling_high": 0.9, "ceiling_medium": 0.8}}'
    )
    changed = compare.Configuration.of([f"calibrations={fit}", "mode=keyword"])
    try:
        before, after = compare.compare(own, SET, changed)
    finally:
        world.sql("update rag.settings set calibrations = '{}'")
    assert before["nDCG@10"] == after["nDCG@10"] == {"kettles q1": 100}
    assert (before[compare.ANSWERED], after[compare.ANSWERED]) == ({"kettles q1": 100}, {"kettles q1": 0})
    assert before[compare.WITHHELD] == after[compare.WITHHELD] == {"kettles q2": 100}
    rows = zip(*(column.cells for column in compare.table(before, after, "").columns), strict=True)
    assert (compare.ANSWERED, "1", "100.0", "0.0", "-100.0 [-100.0, -100.0]") in list(rows)


def test_a_change_names_a_known_setting():
    configuration = compare.Configuration.of(["RAG_CONTEXT_TOKENS=500", "bm25_b=0.5", "mode=graph"])
    expected = compare.Configuration({"RAG_CONTEXT_TOKENS": "500"}, {"bm25_b": "0.5"}, Mode.GRAPH)
    assert configuration == expected
    for change in ("RAG_UNKNOWN=1", "mode=best", "nothing"):
        with pytest.raises(ValueError):  # noqa: PT011  # argparse shows it
            compare.Configuration.of([change])
