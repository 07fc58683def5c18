"""onnxruntime session of a local model, with batches of similar length and a pool of threads.

Passages of an ingestion run at a lower priority than questions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
from onnx import ModelProto
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions

from shared.config import usable_processors
from shared.process_priority import lower_thread_priority

# Padded tokens in a batch. With fewer, every few short texts read all weights from memory. With more, the
# data between the layers does not fit into the CPU's cache (at 4096 it is a fifth to a half slower).
BATCH_TOKENS = 256
DIMENSIONS = 384

Tokens = npt.NDArray[np.int32]
Inputs = Mapping[str, npt.NDArray[np.generic]]


class LocalEncoder:
    """Safe to use from many threads. `folder`: of the file that has tensors of the network, if one does."""

    def __init__(self, name: str, network: ModelProto, folder: Path | None = None) -> None:
        threads = usable_processors()
        self._session = _session(network, folder)
        self._pool = ThreadPoolExecutor(threads, name)
        self._background = ThreadPoolExecutor(
            threads, f"{name}-background", initializer=lower_thread_priority
        )

    def encode(
        self, rows: Sequence[list[int]], inputs: Callable[[Tokens], Inputs], *, background: bool
    ) -> list[list[float]]:
        """One unit vector of 384 floats for each row of tokens, in order. `inputs` are those of the network
        beside the mask, for the tokens [texts, length] of a batch."""
        batches = list(_batches([len(row) for row in rows]))

        def encode_batch(batch: Sequence[int]) -> npt.NDArray[np.float32]:
            return self._vectors([rows[index] for index in batch], inputs)

        # Parallel batches use two cores better than one batch on both. A single batch, such as a query, runs
        # in its caller's thread and does not wait for an ingestion.
        pool = self._background if background else self._pool
        run = pool.map if len(batches) > 1 else map
        vectors = np.empty((len(rows), DIMENSIONS), np.float32)
        for batch, batch_vectors in zip(batches, run(encode_batch, batches), strict=True):
            vectors[batch] = batch_vectors
        result: list[list[float]] = vectors.tolist()
        return result

    def _vectors(
        self, rows: Sequence[list[int]], inputs: Callable[[Tokens], Inputs]
    ) -> npt.NDArray[np.float32]:
        tokens, mask = np.zeros((2, len(rows), max(map(len, rows))), np.int32)
        for index, row in enumerate(rows):
            tokens[index, : len(row)] = row
            mask[index, : len(row)] = 1
        vectors: npt.NDArray[np.float32] = self._session.run(None, {**inputs(tokens), "mask": mask})[0]
        return vectors[:, 0]


def file_of_package(package: str, path: str, missing: str) -> Path:
    """A file that a Python package brings, which is not imported. Raises FileNotFoundError(missing)."""
    spec = find_spec(package)
    paths = (Path(folder, path) for folder in (spec and spec.submodule_search_locations) or ())
    if file := next(filter(Path.is_file, paths), None):
        return file
    raise FileNotFoundError(missing)


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


def _session(network: ModelProto, folder: Path | None) -> InferenceSession:
    options = SessionOptions()
    # A call runs in the caller's thread or a thread of a pool, with its priority.
    options.intra_op_num_threads = 1
    # The optimiser would fuse Add and LayerNormalization to SkipLayerNormalization, which is up to six
    # times as slow.
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    if folder:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    return InferenceSession(network.SerializeToString(), options, providers=["CPUExecutionProvider"])
