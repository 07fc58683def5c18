"""Answers without a model: the sentences that answer best, each verbatim and with its citation.

A sentence is worth what it shares with the question in meaning (cosine of their embeddings) and in words
(share of the question's rare words that it holds, which is what finds identifiers and numbers).
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared.sentences import sentences
from shared.types import Citation, Draft, Match, Query

MODEL = "extractive"
MAX_SENTENCES = 4
# A sentence worth less than this share of the best one is left out.
WORTHWHILE = 0.72
MEANING, WORDS = 0.6, 0.4
_WORDS = re.compile(r"\w+(?:[-./]\w+)*")
# Words that say how a question asks, not what about; other languages' rank low by being frequent.
_ASKING = frozenset(
    "a an and any are at be by can did do does for from had has have how i in is it its many me much my of on or "
    "our should that the their there they this to was we were what when where which who whom why will with would you".split()
)

Embed = Callable[[Sequence[str]], list[list[float]]]


@dataclass(frozen=True, slots=True)
class _Candidate:
    text: str
    number: int
    position: tuple[int, int]
    words: frozenset[str]


def extract(query: Query, matches: Sequence[Match], citations: Sequence[Citation], embed: Embed) -> Draft:
    """An answer of one to four sentences from the matches of cited documents, grouped by document.

    The text reads `According to "Title": sentence sentence [n]`, n counting the citations from 1.
    Raises what `embed` raises.
    """
    candidates = _candidates(matches, citations)
    if not candidates:
        best = citations[0]
        return Draft(_group(best.match.title, [best.match.text.strip()], 1), MODEL)
    worth = _worth(query.text, candidates, embed)
    chosen = _choose(candidates, worth)
    numbers = list(dict.fromkeys(candidate.number for candidate in chosen))
    paragraphs = []
    for number in numbers:
        own = sorted((item for item in chosen if item.number == number), key=lambda item: item.position)
        paragraphs.append(_group(citations[number - 1].match.title, [item.text for item in own], number))
    return Draft("\n\n".join(paragraphs), MODEL)


def _group(title: str, texts: Sequence[str], number: int) -> str:
    return f'According to "{title}": {" ".join(texts)} [{number}]'


def _candidates(matches: Sequence[Match], citations: Sequence[Citation]) -> list[_Candidate]:
    """Every distinct statement of the cited documents' matches: no headings, questions or fragments."""
    numbers = {citation.match.document_id: number for number, citation in enumerate(citations, start=1)}
    found: dict[tuple[int, int, int], _Candidate] = {}
    for match in matches:
        number = numbers.get(match.document_id)
        if number is None:
            continue
        for sentence in sentences(match.text, match.lang):
            text = match.text[sentence.start : sentence.end]
            words = _content_words(text)
            if sentence.heading or text.endswith("?") or len(words) < 3:
                continue
            start = match.span[0] + sentence.start
            # Chunks overlap: the same place in a document counts once.
            key = (number, start, start + len(text))
            found.setdefault(key, _Candidate(text, number, key[1:], words))
    return list(found.values())


def _worth(question: str, candidates: Sequence[_Candidate], embed: Embed) -> list[float]:
    asked, *vectors = embed([question, *(candidate.text for candidate in candidates)])
    frequency = Counter(word for candidate in candidates for word in candidate.words)
    rarity = {word: math.log(1 + len(candidates) / (1 + frequency[word])) for word in _content_words(question)}
    total = sum(rarity.values()) or 1.0
    return [
        MEANING * sum(a * b for a, b in zip(asked, vector, strict=True))
        + WORDS * sum(rarity.get(word, 0.0) for word in candidate.words) / total
        for candidate, vector in zip(candidates, vectors, strict=True)
    ]


def _choose(candidates: Sequence[_Candidate], worth: Sequence[float]) -> list[_Candidate]:
    """The best sentences in order of worth, without those that repeat one chosen before."""
    ranked = sorted(zip(worth, candidates, strict=True), key=lambda pair: -pair[0])
    chosen: list[_Candidate] = []
    for value, candidate in ranked:
        if value < WORTHWHILE * ranked[0][0] or len(chosen) == MAX_SENTENCES:
            break
        if all(_overlap(candidate.words, other.words) < 0.6 for other in chosen):
            chosen.append(candidate)
    return chosen


def _overlap(left: frozenset[str], right: frozenset[str]) -> float:
    """The share of their words that two sentences have in common (Jaccard)."""
    return len(left & right) / len(left | right)


def _content_words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORDS.findall(text)) - _ASKING
