"""Synthetic embeddings: many topics, few intrinsic dimensions, overlapping tenants.

2,000 topic centres are sampled in 64 dimensions. A chunk takes one of its org's topics, deviates from the
centre by about as much again, is mapped into 1536 dimensions by one fixed random matrix, gets a common offset
(real embeddings of any two texts are a little similar) and small noise in all dimensions, and is normalised
and rounded to half precision. Each org has its own choice of the 2,000 topics, so that every neighbourhood
has chunks of many orgs: the hard case for an index under row security. A query is sampled like a chunk of the
caller's org, and not stored. All from fixed seeds.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 1536
TOPICS = 2000
INNER = 64
STRAY = 0.8
OFFSET = 0.5
NOISE = 0.25
SEED = 20_261_122
BATCH = 5000

Halves = NDArray[np.float16]
Floats = NDArray[np.float32]


@cache
def _space(dimensions: int) -> tuple[Floats, Floats, Floats]:
    """Topic centres of length 1, the matrix into all dimensions (which keeps lengths), the common offset."""
    draw = np.random.default_rng(SEED)
    centres = draw.standard_normal((TOPICS, INNER), np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    matrix = draw.standard_normal((INNER, dimensions), np.float32) / np.float32(dimensions**0.5)
    offset = draw.standard_normal(dimensions, np.float32) * np.float32(OFFSET / dimensions**0.5)
    return centres, matrix, offset


def sample(org: int, topics: int, count: int, stream: int = 0) -> Halves:
    """`count` vectors of that org, which speaks of so many topics. Streams are independent of each other."""
    centres, matrix, offset = _space(DIMENSIONS)
    own = np.random.default_rng([SEED, org]).choice(TOPICS, topics, replace=False)
    draw = np.random.default_rng([SEED, org, stream])
    results = np.empty((count, DIMENSIONS), np.float16)
    for first in range(0, count, BATCH):
        size = min(BATCH, count - first)
        stray = draw.standard_normal((size, INNER), np.float32) * np.float32(STRAY / INNER**0.5)
        inner = centres[draw.choice(own, size)] + stray
        noise = draw.standard_normal((size, DIMENSIONS), np.float32) * np.float32(NOISE / DIMENSIONS**0.5)
        whole = inner @ matrix + offset + noise
        results[first : first + size] = whole / np.linalg.norm(whole, axis=1, keepdims=True)
    return results


def distances(rows: Halves, queries: Halves) -> Floats:
    """Cosine distances of each query to each row, in single precision: what pgvector computes."""
    wide, needles = rows.astype(np.float32), queries.astype(np.float32)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    needles /= np.linalg.norm(needles, axis=1, keepdims=True)
    return np.asarray(1 - needles @ wide.T, np.float32)
