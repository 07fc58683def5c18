"""Observations of two small sets by the search in memory."""

from shared.calibration.labelled_sets import Item, LabelledSet
from shared.calibration.memory_search import MemorySearch
from shared.generation.calibration_fit import ANSWERABLE, FOREIGN, HIDDEN
from shared.models.embeddings import Embedder

KETTLE, OVEN = "The kettle switches off at 100 degrees.", "The oven switches off at 250 degrees."
QUESTION = "At how many degrees does the kettle switch off?"


def test_hidden_is_without_the_question_s_documents_and_foreign_without_its_set(embedder: Embedder):
    kitchen = LabelledSet(
        "kitchen",
        [Item("kettle", KETTLE), Item("oven", OVEN)],
        [Item("q", QUESTION, label="answerable")],
        {"q": {"kettle": 1}},
    )
    garden = LabelledSet("garden", [Item("roses", "Roses bloom in June.")], [], {})
    search = MemorySearch(embedder, [kitchen, garden], 0.5)
    assert not search.run_until(0.0)
    assert search.run_until()
    assert search.progress == (5, 5)
    best = {
        item.kind: item.features.best.document_id
        for item in search.observations["kitchen"]
        if item.features.best
    }
    assert best == {ANSWERABLE: "kettle", HIDDEN: "oven", FOREIGN: "roses"}


def test_documents_of_one_id_in_two_sets_are_two_and_a_set_without_documents_asks_about_those_of_others(
    embedder: Embedder,
):
    question = Item("q", QUESTION, label="answerable")
    kitchen = LabelledSet("kitchen", [Item("1", KETTLE)], [question], {"q": {"1": 1}})
    garden = LabelledSet("garden", [Item("1", OVEN), Item("roses", "Roses bloom in June.")], [], {})
    more = LabelledSet("more", [], [question], {"q": {"roses": 1}})
    search = MemorySearch(embedder, [kitchen, garden, more], 0.5)
    assert search.run_until()
    hidden = {
        name: item.features.best.text
        for name, items in search.observations.items()
        for item in items
        if item.kind == HIDDEN and item.features.best
    }
    assert hidden == {"kitchen": OVEN, "more": KETTLE}
