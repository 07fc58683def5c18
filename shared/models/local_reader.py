"""Reader or reranker of a folder, in this process: question and passage in, one score out.

The folder has model.onnx (or onnx/model.onnx) and tokenizer.json, as published models export them. Two kinds
of networks are read by the names of their outputs:

- start_logits and end_logits: an extractive reader, trained with unanswerable questions (Devlin et al. 2019,
  section 4.3). The score is the logistic function of the best answer's logits less those of no answer.
- logits, one for each pair: a cross-encoder. The score is the logistic function of the logit.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from onnxruntime import InferenceSession, SessionOptions
from tokenizers import Encoding, Tokenizer

from shared.errors import RerankFailed

# Most such models were trained with at most 512 tokens.
MAX_TOKENS = 512
# Pairs in a batch, so that the time-out is noticed.
BATCH = 8
# The tokens of an answer at most.
MAX_ANSWER = 30
START, END, LOGITS = "start_logits", "end_logits", "logits"
Floats = npt.NDArray[np.float32]


class LocalReader:
    """Safe to use from many threads."""

    def __init__(self, folder: Path, timeout_seconds: float) -> None:
        """Raises FileNotFoundError, and ValueError for files that are not of such a model."""
        self.model = folder.resolve().name
        self._seconds = timeout_seconds
        network = next(
            (path for path in (folder / "model.onnx", folder / "onnx" / "model.onnx") if path.is_file()), None
        )
        tokenizer = folder / "tokenizer.json"
        if network is None or not tokenizer.is_file():
            raise FileNotFoundError(f"{folder} has no model.onnx, or no tokenizer.json")
        options = SessionOptions()
        try:
            self._session = InferenceSession(str(network), options, providers=["CPUExecutionProvider"])
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
        # Both libraries raise their own types, and plain exceptions.
        except Exception as error:
            raise ValueError(
                f"{folder}: {type(error).__name__}, so no ONNX model with a tokenizer"
            ) from error
        self._tokenizer.enable_truncation(MAX_TOKENS, strategy="only_second")
        self._tokenizer.no_padding()
        self._inputs = [argument.name for argument in self._session.get_inputs()]
        outputs = {argument.name for argument in self._session.get_outputs()}
        self._is_reader = {START, END} <= outputs
        if not self._is_reader and LOGITS not in outputs:
            raise ValueError(
                f"{folder}: the model's outputs are {', '.join(sorted(outputs))}; needed are {START} and "
                f"{END}, or {LOGITS}"
            )

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """The probability that the passage answers, 0..1, for each. Raises RerankFailed after the
        time-out, or for a question that fills the model's window."""
        end = time.monotonic() + self._seconds
        try:
            pairs = [self._tokenizer.encode(query, passage) for passage in passages]
            scores = [0.0] * len(pairs)
            for batch in _batches(pairs):
                if time.monotonic() > end:
                    raise RerankFailed(log_reason="time-out")
                for index, score in zip(batch, self._scores([pairs[index] for index in batch]), strict=True):
                    scores[index] = score
        except RerankFailed:
            raise
        except Exception as error:
            raise RerankFailed(log_reason=type(error).__name__) from None
        return scores

    def _scores(self, pairs: Sequence[Encoding]) -> Iterator[float]:
        length = max(len(pair.ids) for pair in pairs)

        def padded(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
            return np.array([[*row, *[0] * (length - len(row))] for row in rows], np.int64)

        columns = {
            "input_ids": padded([pair.ids for pair in pairs]),
            "attention_mask": padded([pair.attention_mask for pair in pairs]),
            "token_type_ids": padded([pair.type_ids for pair in pairs]),
        }
        feed = {name: columns[name] for name in self._inputs}
        if self._is_reader:
            starts, ends = self._session.run([START, END], feed)
            for pair, start, end in zip(pairs, starts, ends, strict=True):
                yield _logistic(_best_answer(pair, start, end) - float(start[0] + end[0]))
        else:
            (logits,) = self._session.run([LOGITS], feed)
            for logit in np.asarray(logits).reshape(len(pairs)):
                yield _logistic(float(logit))


def _batches(pairs: Sequence[Encoding]) -> Iterator[list[int]]:
    """Indices of pairs of similar length."""
    order = sorted(range(len(pairs)), key=lambda index: len(pairs[index].ids))
    for first in range(0, len(order), BATCH):
        yield order[first : first + BATCH]


def _best_answer(pair: Encoding, start: Floats, end: Floats) -> float:
    """The greatest sum of the logits of a first and a last token of the passage."""
    passage = [index for index, sequence in enumerate(pair.sequence_ids) if sequence == 1]
    ends = end[: passage[-1] + 1]
    return max(float(start[first] + ends[first : first + MAX_ANSWER].max()) for first in passage)


def _logistic(value: float) -> float:
    if not np.isfinite(value):
        raise RerankFailed(log_reason="a score that is no number")
    return float((1 + np.tanh(value / 2)) / 2)
