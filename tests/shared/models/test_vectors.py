"""The text of vectors: what Postgres reads of it."""

import json
import struct
from random import Random

import pytest

from shared.errors import EmbeddingFailed
from shared.models.vectors import decimals, vector_literal


def halves(numbers: list[float]) -> tuple[float, ...]:
    pattern = f"{len(numbers)}e"
    return struct.unpack(pattern, struct.pack(pattern, *numbers))


def test_the_digits_of_a_number_in_half_precision_are_exact():
    # All but infinity and NaN.
    numbers = [struct.unpack("<e", struct.pack("<H", bits))[0] for bits in range(65536)]
    finite = [number for number in numbers if abs(number) <= 65504]
    assert halves(json.loads(f"[{decimals(finite)}]")) == tuple(finite)


def test_a_vector_of_single_precision_is_within_a_step_of_half_precision():
    random = Random(1)  # noqa: S311  # no secret
    vector = [random.gauss(0, 0.03) for _ in range(1536)]
    text = vector_literal(vector)
    assert len(text) < 16_000
    read = halves(json.loads(text))
    assert all(abs(own - number) <= 2**-10 * abs(number) for own, number in zip(read, vector, strict=True))
    # Few numbers lie so near the middle of two halves that five digits decide otherwise.
    assert sum(own != half for own, half in zip(read, halves(vector), strict=True)) < 0.03 * len(vector)


def test_a_number_beyond_half_precision_is_refused():
    with pytest.raises(EmbeddingFailed):
        vector_literal([65_520.0] * 1536)
