"""Features of matches from which confidence is computed: similarity, shared words, missing names and numbers.

With the share of the question's words in the best sentence, questions that the documents do not answer differ
more from the others than by similarity alone: bench/results/confidence.json. Both features are of the same
passage: a similar passage and another passage with the words may both lack the answer. A document of which a
newer version was found is no answer of today.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from shared.generation.conflicting_values import has_withdrawal
from shared.generation.document_versions import current_versions
from shared.generation.grounding.evidence_windows import EvidencePassage, EvidencePassages
from shared.generation.grounding.negation import negations_in
from shared.generation.names_missing_in_passages import names_missing_in
from shared.text.language_detection import clear_language_of
from shared.text.stemming import content_words, question_words
from shared.types import Match

# Of a calibration that does not name another.
COVERAGE_WEIGHT = 0.5
# A passage with fewer function words of a language may be a table or code, and a question with one may be
# "die cast tolerance".
WORDS_OF_LANGUAGE, WORDS_OF_QUESTION = 4, 2
# The line between the header of a table and its rows.
BEFORE_ROWS = re.compile(r"\s*\|[\s:|]*-")


@dataclass(frozen=True, slots=True)
class ConfidenceFeatures:
    """`similarity`: of the best match, 0..1; `coverage`: the largest share, weighted by rarity, of the
    question's content words in one of its sentences, 0..1; `missing`: names, numbers, dates and identifiers
    of the question that no match contains, as the question writes them; `lacks_negation`: the question
    negates a word that no match negates; `has_withdrawal`: a newer match withdraws a quantity of an older
    one, and one of the two is the best; `relevance`: a reranker's best score, 0..1; `is_other_language`:
    the best match is clearly not in the question's language; `best`: the best match."""

    similarity: float
    coverage: float
    missing: tuple[str, ...] = ()
    lacks_negation: bool = False
    has_withdrawal: bool = False
    relevance: float | None = None
    is_other_language: bool = False
    best: Match | None = field(default=None, compare=False, repr=False)

    def total(self, coverage_weight: float) -> float:
        """Similarity and the weighed coverage. The best match has the greatest."""
        return self.similarity + coverage_weight * self.coverage


def features_of(
    question: str, matches: Sequence[Match], coverage_weight: float = COVERAGE_WEIGHT
) -> ConfidenceFeatures:
    """The features of the matches, in any order. A match without a similarity counts as 0. The best is of a
    current version."""
    if not matches:
        return ConfidenceFeatures(0.0, 0.0)
    passages = EvidencePassages(matches)
    coverages = _coverages(question_words(question), passages)
    current = current_versions(question, matches)
    best = max(
        (
            ConfidenceFeatures(match.similarity or 0.0, coverage, best=match)
            for match, coverage in zip(matches, coverages, strict=True)
            if match in current
        ),
        key=lambda features: features.total(coverage_weight),
    )
    return replace(
        best,
        missing=names_missing_in(question, passages),
        lacks_negation=_lacks_negation(question, passages),
        has_withdrawal=_has_withdrawal(question_words(question), best.best, passages),
        relevance=max((match.relevance for match in matches if match.relevance is not None), default=None),
        is_other_language=is_other_language(question, best.best),
    )


def is_other_language(question: str, best: Match | None) -> bool:
    """Whether the match is clearly not in the question's language."""
    own = clear_language_of(question, WORDS_OF_QUESTION)
    other = clear_language_of(best.text, WORDS_OF_LANGUAGE) if best and own else None
    return other is not None and other != own


def _coverages(words: frozenset[str], passages: EvidencePassages) -> list[float]:
    """The largest share of the words in one sentence of each passage. A word's rarity is
    log(1 + n / (1 + f)), for f of the n sentences that contain it."""
    sentences = [[own & words for own in _stems_by_sentence(passage)] for passage in passages.all]
    count = sum(map(len, sentences))
    frequency = Counter(chain.from_iterable(chain.from_iterable(sentences)))
    rarity = {word: math.log(1 + count / (1 + frequency[word])) for word in words}
    total = math.fsum(rarity.values()) or 1.0
    return [
        max((math.fsum(rarity[word] for word in own) for own in of_passage), default=0.0) / total
        for of_passage in sentences
    ]


def _stems_by_sentence(passage: EvidencePassage) -> Iterator[frozenset[str]]:
    """The stems of each sentence; those of a row with the names of its columns."""
    header = content_words(passage.match.table_header)
    for sentence in passage.sentences:
        text = passage.text_of(sentence)
        words = content_words(text)
        if not text.startswith("|"):
            header = frozenset()
        elif BEFORE_ROWS.match(passage.text, sentence.end):
            header = words
        yield words | header


def _has_withdrawal(words: frozenset[str], best: Match | None, passages: EvidencePassages) -> bool:
    """Of the sentence of the best match with the most words of the question."""
    texts = [
        (passage.text_of(sentence), passage.match)
        for passage in passages.all
        for sentence in passage.sentences
    ]
    own = [text for text, match in texts if match is best]
    text = max(own, key=lambda text: len(words & content_words(text)), default="")
    return best is not None and has_withdrawal(text, best, [pair for pair in texts if pair[1] is not best])


def _lacks_negation(question: str, passages: EvidencePassages) -> bool:
    negated = negations_in(question).negated
    if not negated:
        return False
    near = (negations_in(passage.text).negated_nearby for passage in passages.all)
    return not negated & frozenset[str]().union(*near)
