"""Made-up text has the shape that its description says."""

from statistics import fmean

import pytest

from bench.synthetic_text import Prose

PASSED_OVER = {"the", "of", "a", "an", "and", "in", "is", "it", "to", "for", "on", "was", "with", "at"}


@pytest.fixture(scope="module")
def prose() -> Prose:
    return Prose(PASSED_OVER)


def test_a_document_is_reproducible(prose: Prose):
    assert prose.document(7) == prose.document(7) == Prose(PASSED_OVER).document(7)
    assert prose.document(7) != prose.document(8)


def test_documents_have_about_eight_chunks_of_about_a_hundred_words(prose: Prose):
    documents = [prose.document(number) for number in range(60)]
    chunks = [chunk for document in documents for chunk in document.chunks]
    assert 7 < len(chunks) / len(documents) < 9
    assert 90 < fmean(len(chunk.split()) for chunk in chunks) < 110
