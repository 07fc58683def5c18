"""FlashRank's files: read by a tiny model in their form, since a real one would have to be downloaded."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import save
from onnx.parser import parse_model
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from shared.errors import ConfigurationError, RerankFailed
from shared.models.flashrank import CrossEncoder
from shared.models.reranking import Reranker, reranker_for
from tests.shared.examples import settings

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "yes", "no", "maybe"]
# Log odds of relevance: how often the passage, and not the question, says yes.
COUNTING = """
<ir_version: 9, opset_import: ["": 20]>
counting (int64[batch, length] input_ids, int64[batch, length] token_type_ids,
          int64[batch, length] attention_mask) => (float[batch, outputs] logits) {
    word = Constant <value_ints = [4]> ()
    axis = Constant <value_ints = [1]> ()
    is_word = Equal (input_ids, word)
    flags = Cast <to = 7> (is_word)
    passage = Mul (flags, token_type_ids)
    read = Mul (passage, attention_mask)
    count = ReduceSum (read, axis)
    single = Cast <to = 1> (count)
    SCALED
}
"""
ONE_LOGIT = "logits = Identity (single)"
TWO_LOGITS = "zero = Sub (single, single)\n logits = Concat <axis = 1> (zero, single)"
Model = Callable[..., Path]


@pytest.fixture
def model(tmp_path: Path) -> Model:
    """A folder as FlashRank unpacks one."""

    def make(scaled: str = ONE_LOGIT, longest: int = 512) -> Path:
        folder = tmp_path / "tiny-ranker"
        folder.mkdir()
        tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, "[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        # Theirs come padded and cut to some length of their own.
        tokenizer.enable_padding(length=64)
        tokenizer.save(str(folder / "tokenizer.json"))
        (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": longest}))
        save(parse_model(COUNTING.replace("SCALED", scaled)), str(folder / "flashrank-tiny_Q.onnx"))
        return folder

    return make


def chosen(folder: Path | str) -> Reranker:
    made = reranker_for(settings(rag_rerank_provider="flashrank", rag_rerank_model=str(folder)))
    assert made is not None
    return made


def refusal(folder: Path | str) -> str:
    with pytest.raises(ConfigurationError) as raised:
        chosen(folder)
    return str(raised.value)


def logistic(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


@pytest.mark.parametrize("scaled", [ONE_LOGIT, TWO_LOGITS], ids=["one output", "two outputs"])
def test_relevance_is_the_model_s_probability_in_the_order_of_the_passages(model: Model, scaled: str):
    reranker = chosen(model(scaled))
    passages = ["yes yes no", "no", "maybe yes", "yes " * 30, ""]
    expected = [logistic(2), logistic(0), logistic(1), logistic(30), logistic(0)]
    assert reranker.score("yes yes", passages) == pytest.approx(expected, abs=1e-6)
    assert reranker.model == "tiny-ranker"


def test_several_batches_keep_the_order(model: Model):
    passages = ["yes " * (number * 7 % 23) for number in range(50)]
    scores = chosen(model()).score("maybe", passages)
    assert scores == pytest.approx([logistic(number * 7 % 23) for number in range(50)], abs=1e-6)


def test_long_passages_are_truncated_to_the_window(model: Model):
    (short,) = chosen(model(longest=10)).score("maybe", ["yes " * 1000])
    # Ten tokens, of which three are special and one is the question's.
    assert short == pytest.approx(logistic(6), abs=1e-6)


def test_a_question_longer_than_the_window_is_truncated(model: Model):
    assert len(chosen(model(longest=10)).score("maybe " * 600, ["yes"])) == 1


def test_an_empty_list_has_no_scores(model: Model):
    assert chosen(model()).score("maybe", []) == []


def test_a_reranker_past_its_deadline_fails(model: Model):
    with pytest.raises(RerankFailed) as raised:
        CrossEncoder(model(), timeout_seconds=1e-9).score("maybe", ["yes"])
    assert raised.value.log_reason == "time-out"


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "flashrank-tiny_Q.onnx"])
def test_a_missing_file_is_named_and_not_downloaded(model: Model, name: str):
    folder = model()
    (folder / name).unlink()
    message = refusal(folder)
    assert message.startswith("RAG_RERANK_MODEL: ")
    assert name.replace("flashrank-tiny_Q", "*") in message
    assert str(folder) in message
    assert not (folder / name).exists()


def test_a_missing_model_is_named():
    assert "ms-marco-nothing" in refusal("ms-marco-nothing")


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "flashrank-tiny_Q.onnx"])
def test_an_invalid_model_file_stops_the_start(model: Model, name: str):
    folder = model()
    (folder / name).write_text("no model")
    assert refusal(folder).startswith("RAG_RERANK_MODEL: ")
