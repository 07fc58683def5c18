"""Citations of matches: one for each document, at most five, with short snippets."""

from shared.generation.cited_documents import MAX_CITATIONS, cite
from tests.shared.examples import match


def test_a_document_is_cited_once_by_its_best_chunk():
    best, worse = match(similarity=0.9, start=7), match(similarity=0.7)
    other = match(document="b", similarity=0.8)
    assert [citation.match for citation in cite([best, other, worse])] == [best, other]


def test_at_most_five_documents_are_cited_by_relevance():
    matches = [match(document=str(number), similarity=0.9 - number / 100) for number in range(8)]
    assert [citation.match for citation in cite(matches)] == matches[:5]
    assert MAX_CITATIONS == 5
    assert cite([]) == ()
    # One document has the first ranks.
    matches = [*(match(start=number) for number in range(10)), *matches]
    assert [item.match.document_id for item in cite(matches)] == ["document", "0", "1", "2", "3"]
