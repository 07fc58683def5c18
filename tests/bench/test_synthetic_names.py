"""Made-up names stand in made-up text as their description says."""

from collections import Counter

import numpy as np
import pytest

from bench.synthetic_names import (
    COUNT,
    EVERYWHERE,
    PHRASES,
    REGISTER,
    REGISTERED,
    NamedProse,
    NameSampler,
    misspell,
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


def test_a_chunk_has_about_eight_names_and_one_name_is_in_every_document():
    names = NameSampler()
    namings = [names.namings(number, 8) for number in DOCUMENTS]
    chunks = [naming for document in namings for naming in document]
    assert 7 < sum(len(naming.names) for naming in chunks) / len(chunks) < 9
    assert all(EVERYWHERE in document[0].names for document in namings)


def test_a_few_names_are_common_and_most_are_rare():
    names = NameSampler()
    namings = [naming for number in DOCUMENTS for naming in names.namings(number, 8)]
    counts = Counter(named for naming in namings for named in naming.names if named != EVERYWHERE)
    assert max(counts.values()) > 20
    assert sum(count == 1 for count in counts.values()) > len(counts) / 3


def test_the_register_has_ten_thousand_distinct_names(prose: NamedProse):
    chunks = prose.document(REGISTER).chunks
    named = [number for naming in prose.names.namings(REGISTER, len(chunks)) for number in naming.names]
    assert len(named) == len(set(named)) == REGISTERED


def test_a_misspelled_name_differs_and_keeps_its_first_letter():
    draw = np.random.default_rng(1)
    for number in range(50):
        text = misspell(name(number), draw)
        assert text[0] == name(number)[0]
        assert abs(len(text) - len(name(number))) <= len(text.split())
    assert sum(misspell(name(number), draw) != name(number) for number in range(50)) > 45
