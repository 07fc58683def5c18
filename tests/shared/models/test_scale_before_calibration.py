"""The scale of a model's similarities, by the local model and by models that cannot be measured."""

import time
from collections.abc import Iterator, Sequence
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest

from shared.access.token_usage import Quota, measured
from shared.errors import EmbeddingQuotaExceeded
from shared.models.embedding_roles import Role, Roles
from shared.models.embeddings import Embedder, embed, embedder_for
from shared.models.scale_before_calibration import measure_scale, pairs, scale_of
from tests.shared.examples import closed_after_test, settings
from tests.stand_in_server import Reply, Request, StandIn

pytestmark = pytest.mark.usefixtures("unlimited_wait_for_scales")


def embeddings_by(embedder: Embedder, request: Request) -> Any:
    vectors = embedder.embed(request.json["input"], Role.DOCUMENT)
    return {"data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]}


@pytest.fixture(scope="module")
def once(embedder: Embedder) -> Embedder:
    """The local model, which embeds the texts of a measurement once for all tests."""

    vectors: dict[tuple[str, ...], list[list[float]]] = {}

    class Once:
        def __getattr__(self, name: str) -> Any:
            return getattr(embedder, name)

        def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
            if (key := tuple(texts)) not in vectors:
                vectors[key] = embedder.embed(texts, role, background=background)
            return vectors[key]

    return Once()


@pytest.fixture
def endpoint() -> Iterator[StandIn]:
    with StandIn() as server:
        yield server


@pytest.fixture
def remote(endpoint: StandIn) -> Embedder:
    return closed_after_test(embedder_for(settings(openai_api_key="sk-none", rag_embedding_url=endpoint.url)))


class Constant:
    """An embedder of one vector, but for noise."""

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        return [[1.0, 1e-7 * (hash(text) % 97)] for text in texts]


def test_the_scale_is_the_mean_of_matching_and_of_other_pairs(once: Embedder):
    questions, passages = (embed(once, texts, role) for texts, role in zip(pairs(), Role, strict=True))
    cosines = [
        [sum(a * b for a, b in zip(one, other, strict=True)) for other in passages] for one in questions
    ]
    scale = measure_scale(once)
    assert scale
    assert scale.matching == pytest.approx(fmean(row[index] for index, row in enumerate(cosines)))
    others = [value for index, row in enumerate(cosines) for place, value in enumerate(row) if place != index]
    assert scale.unrelated == pytest.approx(fmean(others))
    assert 0 < scale.unrelated < 0.1
    assert scale.matching > 0.4


def test_a_model_with_about_one_vector_for_all_texts_has_no_scale():
    assert measure_scale(Constant()) is None  # type: ignore[arg-type]  # one method is used


def test_a_failed_measurement_is_repeated_after_a_pause(
    once: Embedder, remote: Embedder, endpoint: StandIn, monkeypatch: pytest.MonkeyPatch
):
    refused = Reply(status=401, json={"error": {"message": "Incorrect API key"}})
    endpoint.replies(refused, Reply(json=lambda request: embeddings_by(once, request)))
    assert scale_of(remote) is None
    assert scale_of(remote) is None
    assert len(endpoint.requests) == 1
    later = time.monotonic() + 61
    monkeypatch.setattr(
        "shared.models.scale_before_calibration.time", SimpleNamespace(monotonic=lambda: later)
    )
    assert scale_of(remote) == measure_scale(once)


def test_the_measurement_counts_for_no_org(once: Embedder, remote: Embedder, endpoint: StandIn):
    """An org without tokens does not keep a model from being measured, and pays for nothing."""
    endpoint.replies(Reply(json=lambda request: embeddings_by(once, request)))
    with measured() as usage:
        usage.exceeded = frozenset({Quota.EMBEDDING})
        with pytest.raises(EmbeddingQuotaExceeded):
            remote.embed(["a"], Role.QUESTION)
        assert scale_of(remote) is not None
    assert usage.calls == []


def test_each_question_has_a_passage_of_its_own():
    questions, passages = pairs()
    assert len({*questions}) == len({*passages}) == 64
    # Short enough for each model.
    assert max(len(text.split()) for text in passages) <= 150
