"""Made-up names stand in made-up text as their description says."""

import pytest

from bench.synthetic_names import (
    COUNT,
    PHRASES,
    NamedProse,
    NameSampler,
    name,
)

DOCUMENTS = range(20, 220)


@pytest.fixture(scope="module")
def prose() -> NamedProse:
    return NamedProse({"the", "of", "a", "and", "in", "to", "is"})


def test_names_are_distinct():
    assert len({name(number) for number in range(COUNT + 1)}) == COUNT + 1


def test_a_document_is_reproducible(prose: NamedProse):
    assert prose.document(30) == prose.document(30)
    assert prose.names.namings(30, 8) == NameSampler().namings(30, 8) != prose.names.namings(31, 8)


def test_chunks_contain_their_names_and_relations(prose: NamedProse):
    documents = prose.document(30)
    namings = prose.names.namings(30, len(documents.chunks))
    for chunk, naming in zip(documents.chunks, namings, strict=True):
        assert [named for named in naming.names if name(named) not in chunk] == []
        if naming.relation:
            first, second, *_ = naming.names
            assert f"{name(first)} {PHRASES[naming.relation]} {name(second)}." in chunk
