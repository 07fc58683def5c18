"""SentencePiece's unigram tokenizer, as XLM-RoBERTa's models use it.

The package tokenizers has one too. It takes a second to load 250,000 pieces and 190 MiB more.
"""

import unicodedata
from functools import lru_cache

from shared.models.multilingual_e5_weights import Vocabulary

WORD_START = "\u2581"
# Words whose tokens are kept. Longer ones are rare, and could be as long as a document.
CACHED_WORDS, CACHED_LENGTH = 2**15, 32
# What an unknown character costs beside the least likely piece, as in SentencePiece.
UNKNOWN_PENALTY = 10.0


class UnigramTokenizer:
    """Safe to use from many threads."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._longest = max(map(len, vocabulary.pieces))
        self._unknown_score = min(vocabulary.scores) - UNKNOWN_PENALTY
        self._cached = lru_cache(CACHED_WORDS)(self._tokens_of_word)

    def tokens(self, text: str) -> list[int]:
        """Ids of the pieces, without special tokens."""
        # The replacements are of single characters. SentencePiece also joins letters and accents, as NFC.
        text = unicodedata.normalize("NFC", text.translate(self._vocabulary.replacements))
        tokens: list[int] = []
        for word in text.split():
            read = self._cached if len(word) <= CACHED_LENGTH else self._tokens_of_word
            tokens += read(WORD_START + word)
        return tokens

    def _tokens_of_word(self, word: str) -> list[int]:
        """The pieces with the largest sum of scores (Viterbi's algorithm)."""
        pieces, scores, unknown = self._vocabulary.pieces, self._vocabulary.scores, self._vocabulary.unknown
        length = len(word)
        best = [0.0] + [float("-inf")] * length
        # For each end of a piece in the best sequence up to there: where it starts, and its id.
        last = [(0, unknown)] * (length + 1)
        for start in range(length):
            so_far = best[start]
            if so_far + self._unknown_score > best[start + 1]:
                best[start + 1], last[start + 1] = so_far + self._unknown_score, (start, unknown)
            for end in range(start + 1, min(start + self._longest, length) + 1):
                piece = pieces.get(word[start:end])
                if piece is not None and so_far + scores[piece] > best[end]:
                    best[end], last[end] = so_far + scores[piece], (start, piece)
        tokens, end = [], length
        while end:
            end, piece = last[end]
            tokens.append(piece)
        return tokens[::-1]
