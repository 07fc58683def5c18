"""BM25 baseline: bm25s with its defaults, English stop words and stemming, over whole documents with their
titles, in memory."""

from collections.abc import Callable, Sequence

import bm25s
import Stemmer

from bench.ranking import DEPTH
from shared.calibration.labelled_sets import Item


def bm25(documents: Sequence[Item]) -> Callable[[str], list[str]]:
    """A search for the best ten."""
    stemmer = Stemmer.Stemmer("english")

    def tokens(texts: list[str]) -> bm25s.tokenization.Tokenized:
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    index = bm25s.BM25()
    index.index(tokens([f"{item.title} {item.text}" for item in documents]), show_progress=False)

    def search(text: str) -> list[str]:
        results, scores = index.retrieve(
            tokens([text]), k=min(DEPTH, len(documents)), show_progress=False, n_threads=1
        )
        # It fills up with documents without a term of the question.
        return [
            documents[int(place)].id for place, score in zip(results[0], scores[0], strict=True) if score > 0
        ]

    return search
