"""Definitions of the planted defects: each fits the sources."""

from local import ROOT
from tests.mutation.definitions import definition_errors, load, source_texts


def test_each_planted_defect_has_its_place_in_the_sources():
    assert definition_errors(load(None), ROOT, source_texts(ROOT)) == []
