"""A reader and a cross-encoder of a folder, each a network of a few numbers that is made here."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from shared.errors import ConfigurationError, RerankFailed
from shared.models import local_reader
from shared.models.local_reader import LocalReader
from shared.models.reranking import rerank, reranker_details, reranker_for
from shared.types import SearchResult
from tests.shared.examples import match, settings

WORDS = ["[UNK]", "[CLS]", "[SEP]", "how", "heavy", "the", "meter", "weighs", "118", "g", "is", "blue"]
# The logits of each word as the start and as the end of an answer; [CLS] stands for no answer.
LOGITS = {"118": (6.0, 1.0), "g": (0.0, 5.0), "[CLS]": (2.0, 2.0)}
QUESTION = "how heavy is the meter"
ANSWER, OTHER = "the meter weighs 118 g", "the meter is blue"


def folder_of(path: Path, outputs: tuple[str, ...]) -> Path:
    """A model whose logits are those of its words; a cross-encoder adds those of all words."""
    path.mkdir()
    tokenizer = Tokenizer(WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.save(str(path / "tokenizer.json"))
    table = np.array([LOGITS.get(word, (-3.0, -3.0)) for word in WORDS], np.float32)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["both"])]
    if outputs == ("logits",):
        table /= 10
        nodes.append(helper.make_node("ReduceSum", ["both", "axes"], ["logits"], keepdims=0))
        shape = ["batch"]
    else:
        nodes.append(helper.make_node("Split", ["both", "halves"], ["first", "second"], axis=2))
        nodes += [
            helper.make_node("Squeeze", [name, "last"], [output])
            for name, output in zip(("first", "second"), outputs, strict=True)
        ]
        shape = ["batch", "length"]
    constants: dict[str, np.ndarray[Any, Any]] = {
        "table": table,
        "axes": np.array([1, 2], np.int64),
        "halves": np.array([1, 1], np.int64),
        "last": np.array([2], np.int64),
    }
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items() if name in used],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path / "model.onnx")
    return path


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "tiny-reader", ("start_logits", "end_logits"))


def test_a_reader_s_score_is_of_the_best_answer_against_none(reader: Path):
    scores = LocalReader(reader, 60).score(QUESTION, [OTHER, ANSWER, OTHER, *[ANSWER] * 9])
    # 118 g: 6 + 5 less 4 for no answer; blue: -6 less 4.
    assert scores[:3] == pytest.approx([1 / (1 + np.exp(10)), 1 / (1 + np.exp(-7)), 1 / (1 + np.exp(10))])
    assert scores[3:] == [scores[1]] * 9
    # The end precedes the start.
    (turned,) = LocalReader(reader, 60).score(QUESTION, ["g the 118"])
    assert turned == pytest.approx(1 / (1 + np.exp(-(6 + 1 - 4))))


def test_a_cross_encoder_s_score_is_its_logit(tmp_path: Path):
    made = LocalReader(folder_of(tmp_path / "cross", ("logits",)), 60)
    answer, other = made.score(QUESTION, [ANSWER, OTHER])
    assert 0 < other < answer < 1


def test_the_matches_are_reranked_and_have_the_score_as_relevance(reader: Path):
    chosen = reranker_for(settings(rag_rerank_provider="local", rag_rerank_model=str(reader)))
    assert chosen
    first, second = match(OTHER, chunk_id="1", title="the"), match(ANSWER, chunk_id="2", title="the")
    result = rerank(chosen, QUESTION, SearchResult((first, second), True, 2))
    assert [one.chunk_id for one in result.matches] == ["2", "1"]
    assert result.matches[0].relevance == pytest.approx(0.999, abs=0.001)
    assert result.reranked_by == "tiny-reader"


def test_a_question_longer_than_the_window_and_a_time_out_fail(reader: Path, monkeypatch: pytest.MonkeyPatch):
    made = LocalReader(reader, 60)
    with pytest.raises(RerankFailed):
        made.score("meter " * 600, [ANSWER])
    (long,) = made.score(QUESTION, ["blue " * 2000])
    assert long < 0.01
    monkeypatch.setattr(local_reader, "BATCH", 1)
    with pytest.raises(RerankFailed, match=r".*") as failure:
        LocalReader(reader, -1).score(QUESTION, [ANSWER, OTHER])
    assert failure.value.log_reason == "time-out"


def test_health_names_the_model_and_no_path(reader: Path):
    details = reranker_details(settings(rag_rerank_provider="local", rag_rerank_model=str(reader)))
    assert details == {"provider": "local", "model": "tiny-reader", "source": "local"}


def test_a_folder_that_is_no_model_stops_the_start(tmp_path: Path, reader: Path):
    other = folder_of(tmp_path / "other", ("hidden", "pooled"))
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "model.onnx").write_bytes(b"no model")
    (broken / "tokenizer.json").write_text("{}")
    for folder, message in (
        (None, "RAG_RERANK_MODEL: not set"),
        (tmp_path / "absent", "has no model.onnx"),
        (broken, "no ONNX model with a tokenizer"),
        (other, "outputs are hidden, pooled"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            reranker_for(settings(rag_rerank_provider="local", rag_rerank_model=folder and str(folder)))
