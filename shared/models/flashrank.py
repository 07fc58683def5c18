"""FlashRank's cross-encoders, loaded from local files.

The package flashrank is not used: it downloads models at run time and configures logging for the whole
process. A model is a folder in its format: an .onnx file, tokenizer.json and tokenizer_config.json.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnxruntime import InferenceSession, SessionOptions
from tokenizers import Encoding, Tokenizer

from shared.clients.http_client import deadline, remaining_seconds
from shared.errors import RerankFailed

# Tokens of question and passage on which these models were trained.
WINDOW = 512
BATCH = 8
FILES = ("tokenizer.json", "tokenizer_config.json", "*.onnx")


class CrossEncoder:
    """Encodes question and passage together. Safe to use from many threads."""

    def __init__(self, folder: Path, timeout_seconds: float) -> None:
        """Raises FileNotFoundError, which names the missing file and the folder."""
        for name in FILES:
            if not any(folder.glob(name)):
                raise FileNotFoundError(f"no {name} in {folder}")
        self.model = folder.name
        self._seconds = timeout_seconds
        tokenizer = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(min(WINDOW, tokenizer.get("model_max_length", WINDOW)))
        options = SessionOptions()
        # Threads that spin while they wait take processor time from all other work.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        (file, *_) = sorted(folder.glob("*.onnx"))
        self._session = InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self._inputs = [node.name for node in self._session.get_inputs()]

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """The probability that each passage is relevant. Raises RerankFailed after the time-out."""
        pairs = self._tokenizer.encode_batch([(query, passage) for passage in passages])
        # Batches of similar length, so that short pairs need little padding.
        order = sorted(range(len(pairs)), key=lambda index: len(pairs[index].ids))
        scores = np.zeros(len(pairs))
        with deadline(self._seconds):
            for start in range(0, len(order), BATCH):
                if remaining_seconds() <= 0:
                    raise RerankFailed(log_reason="time-out")
                batch = order[start : start + BATCH]
                scores[batch] = self._run([pairs[index] for index in batch])
        relevances: list[float] = scores.tolist()
        return relevances

    def _run(self, pairs: Sequence[Encoding]) -> npt.NDArray[Any]:
        ids, types, mask = np.zeros((3, len(pairs), max(len(pair.ids) for pair in pairs)), np.int64)
        for index, pair in enumerate(pairs):
            ids[index, : len(pair.ids)] = pair.ids
            types[index, : len(pair.ids)] = pair.type_ids
            mask[index, : len(pair.ids)] = 1
        inputs = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}
        logits: npt.NDArray[Any] = self._session.run(None, {name: inputs[name] for name in self._inputs})[0]
        # A single number is the log odds of relevance. With two it is their difference.
        odds = logits[:, -1] - (logits[:, 0] if logits.shape[1] == 2 else 0)
        # The logistic function, by tanh since exp overflows.
        relevance: npt.NDArray[Any] = np.tanh(odds / 2) / 2 + 0.5
        return relevance
