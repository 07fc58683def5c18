"""Keyword search over documents of several languages at once."""

import pytest

from tests.actors import World
from tests.conftest import People
from tests.sql import passages


@pytest.fixture(scope="module")
def languages(world: World, shared_people: People) -> People:
    people = shared_people
    passages.put(world, people.ann, "The pumps were running all night.", title="Pumps", lang="en-GB")
    passages.put(world, people.ann, "Die Häuser standen in der Nacht.", title="Häuser", lang="de")
    passages.put(world, people.ann, "Les pompes tournaient la nuit.", title="Pompes", lang="fr")
    passages.put(world, people.ann, "東京の本社にポンプがある。", title="本社", lang="ja")
    return people


QUESTIONS: dict[str, set[str]] = {
    "which pump ran at night": {"en-GB"},
    "welches Haus": {"de"},
    "une pompe": {"fr"},
    "東京": {"ja"},
    "pump Haus pompe": {"en-GB", "de", "fr"},
    # Words that one of the languages passes over count in none.
    "die running": {"en-GB"},
    "the der la pump": {"en-GB"},
    "nothing of it": set(),
    "?!": set(),
}


def test_each_language_matches_its_own_stems(world: World, languages: People):
    results = {question: passages.search(world, languages.ann, question) for question in QUESTIONS}
    assert {question: {row["lang"] for row in rows} for question, rows in results.items()} == QUESTIONS


def test_a_word_with_one_stem_in_several_languages_counts_once(world: World, people: People):
    for person, langs in ((people.ann, ("en", "en", "en")), (people.bob, ("de", "fr", "ja"))):
        passages.put(world, person, "inc inc inc inc inc inc", title="inc", lang="en")
        for lang in langs:
            passages.put(world, person, "zzz", title="yyy", lang=lang)
    (alone,) = passages.search(world, people.ann, "inc")
    (among_others,) = passages.search(world, people.bob, "inc")
    assert alone["score"] == among_others["score"] <= 1


def test_a_deployment_sets_the_default_language(world: World, people: People):
    with passages.deployed_with(world, language="de"):
        passages.put(world, people.ann, "viele Häuser")
        assert len(passages.search(world, people.ann, "Haus")) == 1
    with passages.deployed_with(world, language="en"):
        passages.put(world, people.ann, "many houses")
        assert len(passages.search(world, people.ann, "housing")) == 1


def test_texts_without_terms_break_no_search(world: World, people: People):
    for text in ("the", "🙂", "…", "x" * 5000):
        document_id = passages.put(world, people.ann, text, title="The")
        for mode in ("keyword", "hybrid", "hierarchical"):
            needle = None if mode == "keyword" else passages.written(1)
            rows = passages.search(world, people.ann, "the pump", mode=mode, query_vector=needle)
            assert len(rows) == (mode != "keyword"), (text, mode)
        passages.delete(world, people.ann, document_id)
