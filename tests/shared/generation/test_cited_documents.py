"""Citations of matches: one for each document, at most five, with short snippets."""

from shared.generation.cited_documents import MAX_CITATIONS, cite, snippet
from tests.shared.examples import match


def test_a_document_is_cited_once_by_its_best_chunk():
    best, other, worse = (
        match(similarity=0.9, start=7),
        match(document="b", similarity=0.8),
        match(similarity=0.7),
    )
    assert [citation.match for citation in cite([best, other, worse])] == [best, other]


def test_at_most_five_documents_are_cited_by_relevance():
    matches = [match(document=str(number), similarity=0.9 - number / 100) for number in range(8)]
    assert [citation.match for citation in cite(matches)] == matches[:5]
    assert MAX_CITATIONS == 5


def test_five_documents_are_cited_although_one_has_the_first_ranks():
    matches = [match(start=number) for number in range(10)] + [
        match(document=str(number)) for number in range(9)
    ]
    assert [item.match.document_id for item in cite(matches)] == ["document", "0", "1", "2", "3"]


def test_without_matches_nothing_is_cited():
    assert cite([]) == ()


def test_a_citation_shows_the_first_two_hundred_characters():
    (citation,) = cite([match("ä" * 300)])
    assert citation.snippet == snippet("ä" * 300) == "ä" * 200
    assert snippet("short") == "short"
