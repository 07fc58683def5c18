"""The scale of a model's similarities, by the local model and by models that cannot be measured."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import pytest

from shared.access.token_quotas import Quota, measured
from shared.errors import EmbeddingFailed, EmbeddingQuotaExceeded
from shared.models.embedding_roles import Role, Roles
from shared.models.embeddings import Embedder, embed, embedder_for
from shared.models.similarity_scale import measure_scale, pairs, scale_of
from tests.shared.examples import closed_after_test, settings
from tests.stand_in_server import Reply, Request, StandIn


class Constant:
    """An embedder of one vector, or of none."""

    def __init__(self, vector: list[float] | None) -> None:
        self._vector = vector

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        if self._vector is None:
            raise EmbeddingFailed
        return [self._vector] * len(texts)


def test_the_scale_is_the_mean_of_matching_and_of_other_pairs(embedder: Embedder):
    questions, passages = (embed(embedder, texts, role) for texts, role in zip(pairs(), Role, strict=True))
    cosines = [
        [sum(a * b for a, b in zip(one, other, strict=True)) for other in passages] for one in questions
    ]
    scale = measure_scale(embedder)
    assert scale
    assert scale.matching == pytest.approx(fmean(row[index] for index, row in enumerate(cosines)))
    others = [value for index, row in enumerate(cosines) for place, value in enumerate(row) if place != index]
    assert scale.unrelated == pytest.approx(fmean(others))
    assert 0 < scale.unrelated < 0.1
    assert scale.matching > 0.4


@pytest.mark.parametrize("vector", [None, [1.0, 0.0]])
def test_a_model_that_fails_or_has_one_vector_for_all_texts_has_no_scale(vector: list[float] | None):
    assert measure_scale(Constant(vector)) is None  # type: ignore[arg-type]  # one method is used


def test_the_measurement_counts_for_no_org(embedder: Embedder):
    """An org without tokens does not keep a model from being measured, and pays for nothing."""

    def reply(request: Request) -> Any:
        vectors = embedder.embed(request.json["input"], Role.DOCUMENT)
        return {"data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]}

    with StandIn() as endpoint:
        endpoint.replies(Reply(json=reply))
        remote = closed_after_test(
            embedder_for(settings(openai_api_key="sk-none", rag_embedding_url=endpoint.url))
        )
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
