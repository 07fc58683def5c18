"""Keyword search against a slow BM25: its formula over the terms of what the caller may see, no others."""

import math
from collections import Counter
from itertools import product
from typing import Any

import pytest

from tests.actors import MODEL, World
from tests.conftest import People
from tests.sql import passages
from tests.sql.search_oracle import WORDS, Library, Passage

K1, B, DOCUMENT_SHARE = 1.5, 0.85, 0.5


def terms_of(world: World, visible: list[Passage]) -> dict[str, Counter[str]]:
    """The terms of every chunk, its title's among them."""
    by_name: dict[str, Counter[str]] = {one.chunk_id: Counter() for one in visible}
    rows = world.sql(
        "select chunks.id::text, found.term, found.occurrences from rag.chunks "
        "join rag.documents on documents.org_id = chunks.org_id and documents.id = document_id "
        "cross join (values (true), (false)) as part (is_title) "
        "cross join rag.terms(rag.text_config(coalesce(documents.lang, 'en')), "
        "  case when is_title then title else chunks.content end) as found "
        "where chunks.id = any (%s::uuid[])",
        list(by_name),
    )
    for chunk_id, term, occurrences in rows:
        by_name[chunk_id][term] += occurrences
    return by_name


def saturated(occurrences: float, length: float, mean: float) -> float:
    return occurrences / (occurrences + K1 * (1 - B + B * length / mean))


def bm25(world: World, visible: list[Passage], words: list[str]) -> dict[str, float]:
    """The scores of all chunks that hold one of the words, with half of each its document's."""
    terms = terms_of(world, visible)
    document_of = {one.chunk_id: one.document_id for one in visible}
    whole: dict[str, Counter[str]] = {document_id: Counter() for document_id in document_of.values()}
    for chunk_id, counted in terms.items():
        whole[document_of[chunk_id]].update(counted)
    chunk_mean = sum(counted.total() for counted in terms.values()) / len(terms)
    document_mean = sum(counted.total() for counted in whole.values()) / len(whole)
    holding = {word: sum(word in counted for counted in terms.values()) for word in words}
    weight = {
        word: words.count(word) * math.log(1 + (len(terms) - n + 0.5) / (n + 0.5))
        for word, n in holding.items()
        if n
    }

    def score(counted: Counter[str], mean: float) -> float:
        return sum(weight[word] * saturated(counted[word], counted.total(), mean) for word in weight) / sum(
            weight.values()
        )

    return {
        chunk_id: (1 - DOCUMENT_SHARE) * score(counted, chunk_mean)
        + DOCUMENT_SHARE * score(whole[document_of[chunk_id]], document_mean)
        for chunk_id, counted in terms.items()
        if any(counted[word] for word in weight)
    }


def test_scores_are_bm25_over_the_visible_documents(world: World):
    """After replacements and deletes, in two orgs and several languages, within a collection or without, for
    queries that repeat a word or not."""
    library = Library(world, 0)
    people, draw = library.people, library.draw
    with passages.deployed_with(world, phrase_share=0):
        for person in (people.ann, people.alf, people.ada, people.bob, people.kim) * 3:
            words, model = (draw.choices(WORDS, k=draw.randint(1, 4)), draw.choice(["another model", MODEL]))
            filters: dict[str, Any] = {"model": model}
            visible = library.seen(person)
            if draw.random() < 0.5:
                filters["collection_ids"] = [draw.choice(visible).fields["collection_id"]]
                visible = [one for one in visible if one.fields["collection_id"] in filters["collection_ids"]]
            expected = bm25(world, visible, words)
            of_model = {one.chunk_id for one in visible if one.fields["embedding_model"] == model}
            rows = passages.search(world, person, " ".join(words), top_k=100, filters=filters)
            by_name = {row["chunk_id"]: row["score"] for row in rows}
            of_model_alone = {key: score for key, score in expected.items() if key in of_model}
            assert by_name == pytest.approx(of_model_alone, rel=1e-5)


def test_a_new_title_is_found_and_the_old_one_is_not(world: World, people: People):
    first = passages.put(world, people.ann, "one", "two", external_id="x", title="Turbine manual")
    assert {row["document_id"] for row in passages.search(world, people.ann, "turbines")} == {first}
    world.sql("update rag.documents set title = 'Gearbox' where id = %s", first)
    assert passages.search(world, people.ann, "turbine") == []
    assert len(passages.search(world, people.ann, "gearbox")) == 2
    passages.put(world, people.ann, "one", external_id="x", title="Rotor")
    assert passages.search(world, people.ann, "gearbox") == []
    assert len(passages.search(world, people.ann, "rotors")) == 1


def test_adjacent_words_rank_before_separate_ones(world: World, people: People):
    texts = ["plain wall heat and a pump", "a heat pump and plain wall", "pump heat and a plain wall"]
    for text in texts:
        passages.put(world, people.ann, text)
    results = [row["content"] for row in passages.search(world, people.ann, "heat pump")]
    assert results[0] == texts[1]
    assert set(results) == set(texts)
    with passages.deployed_with(world, phrase_share=0):
        assert len({row["score"] for row in passages.search(world, people.ann, "heat pump")}) == 1


def test_a_common_word_still_fills_the_page(world: World, people: People):
    texts = [f"common thing {number}" for number in range(130)]
    passages.put_many(world, people.ann, texts[::10], source_type="faq")
    passages.put_many(world, people.ann, [text for text in texts if not text.endswith("0")])
    for query, filters, count in (("common", {}, 100), ("common thing 77", {}, 100),
                                  ("common", {"source_type": "faq"}, 13)):  # fmt: skip
        rows = passages.search(world, people.ann, query, top_k=100, filters=filters)
        assert len(rows) == count
    assert passages.search(world, people.ann, "common 77")[0]["content"] == "common thing 77"


def test_documents_of_large_and_small_orgs_compete_fairly(world: World, people: People):
    """The word has impacts in the large one and entries in the small one."""
    passages.put_many(world, people.ann, ["pump pump pump"] * 150)
    texts = [f"a pump beside valve {number} and more that nobody asks for" for number in range(79)]
    passages.put_many(world, people.bob, texts)
    results = passages.search(world, people.kim, "pump", top_k=10)
    assert {row["org_id"] for row in results} == {people.acme.id}


def test_common_words_do_not_outrank_a_document_with_all_words(world: World, people: People):
    """The common words have impacts, the rare one has entries."""
    seals = [f"seal {number}" for number in range(100)]
    others = [f"nothing at all {number}" for number in range(60)]
    best = "Oil, heat and a seal on a cold morning."
    passages.put_many(world, people.ann, ["oil heat oil heat oil heat"] * 140 + others + seals + [best])
    results = passages.search(world, people.ann, "oil heat seal", top_k=1)
    assert results[0]["content"] == best


def test_a_query_keeps_the_hundred_words_with_the_largest_weights(world: World, people: People):
    words = [f"word{number}x" for number in range(101)]
    for lang in ("en", "de", "fr"):
        passages.put(world, people.ann, " ".join(words), lang=lang)
    passages.put(world, people.ann, words[100], lang="en")
    rows = passages.search(world, people.ann, " ".join(words), top_k=10)
    assert len(rows) == 3
    repeated = " ".join([*words, *words[100:] * 3])
    assert len(passages.search(world, people.ann, repeated, top_k=10)) == 4


def test_an_identifier_in_a_query_and_its_parts_count_as_one_word(world: World, people: People):
    """Half for the whole and half for each part: 1.5 times a word as rare, not three times."""
    passages.put(world, people.ann, "valve-seal", title="x")
    passages.put(world, people.ann, "pump warm oil", title="x")
    with passages.deployed_with(world, phrase_share=0):
        first, second = passages.search(world, people.ann, "valve-seal pump")
    assert first["content"] == "valve-seal"
    assert first["score"] == pytest.approx(1.5 * second["score"])


def test_an_abbreviation_in_a_query_does_not_outrank_its_words(world: World, people: People):
    best = "abstract mathematics, theory"
    notes = ["abstract theory of this group", "mathematics of that group"]
    texts = [f"Note {number}: {note}" for number in range(3) for note in notes]
    passages.put_many(world, people.ann, [*texts, "Some thing, e.g. one that a group has", best], title="x")
    rows = passages.search(world, people.ann, "The use of abstract mathematics, e.g. group theory.")
    assert rows[0]["content"] == best


def test_words_of_another_model_s_documents_take_no_place_on_the_page(world: World, people: People):
    passages.put_many(world, people.ann, ["zebra zebra"] * 65, embedding_model="another")
    passages.put(world, people.ann, "one zebra among many other animals")
    assert len(passages.search(world, people.ann, "zebra")) == 1
    assert len(passages.search(world, people.ann, "zebra", top_k=100, filters={"model": "another"})) == 65
    only = {"collection_ids": [passages.search(world, people.ann, "zebra")[0]["collection_id"]]}
    assert len(passages.search(world, people.ann, "zebra", filters=only)) == 1


def test_in_many_segments_the_first_two_hundred_words_and_names_of_a_question_count(
    world: World, people: People
):
    """Each takes a look-up in each segment."""
    contents = ["zanzibar", "ledger", "INC-1", "INC-999"]
    for content in contents:
        passages.put(world, people.ann, content)
    others = " ".join(f"word{letters}" for letters in map("".join, product("abcdef", repeat=3)))
    names = " ".join(f"INC-{number}" for number in range(1000))
    question = f"zanzibar {others} ledger {names}"

    def found() -> set[str]:
        return {row["content"] for row in passages.search(world, people.ann, question)}

    assert found() == set(contents)
    world.sql(
        "insert into rag.term_segments "
        "(org_id, collection_id, segment, config, embedding_model, documents, chunks, length) "
        "select org_id, id, gen_random_uuid(), 'simple', 'another', 0, 0, 0 "
        "from rag.collections, generate_series(1, 101) where org_id = %s",
        people.acme.id,
    )
    assert found() == {"zanzibar", "INC-1"}
