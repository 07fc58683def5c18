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
    best = {
        item.kind: item.features.best.document_id
        for item in search.observations["kitchen"]
        if item.features.best
    }
    assert best == {ANSWERABLE: "kettle", HIDDEN: "oven", FOREIGN: "roses"}
