"""The scale of a model's similarities, by the local model and by models that cannot be measured."""

from collections.abc import Sequence
from statistics import fmean

import pytest

from shared.errors import EmbeddingFailed
from shared.models.embedding_roles import Role, Roles
from shared.models.embeddings import Embedder, embed
from shared.models.similarity_scale import measure_scale, pairs


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


def test_each_question_has_a_passage_of_its_own():
    questions, passages = pairs()
    assert len({*questions}) == len({*passages}) == 64
    # Short enough for each model.
    assert max(len(text.split()) for text in passages) <= 150
