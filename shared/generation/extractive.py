"""Answers without a model: the sentences that answer best, each with its citation, and verbatim except for
text that looks like a citation mark.

A sentence is worth what it shares with the question in meaning (cosine of their embeddings) and in words
(share of the question's rare words that it holds, which is what finds identifiers and numbers).
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

from shared.generation.confidence import SNIPPET_CHARACTERS, snippet
from shared.text.citations import paragraph
from shared.text.sentences import sentences
from shared.text.stemming import content_words
from shared.types import Citation, ExtractedSentence, GeneratedText, Match

MODEL = "extractive"
MAX_SENTENCES = 5
# A sentence worth less than this share of the best one is left out, unless it follows a chosen one
# directly ("The reason was ...") and is worth at least the second share.
WORTHWHILE, FOLLOWING = 0.72, 0.4
# Where even the best is worth less than this, the answer begins by saying that it only comes close.
DIRECT = 0.5
INDIRECT = "These passages come closest:"
MEANING, WORDS = 0.6, 0.4
# Lines that frame a text and state nothing: table rows, mail headers in the languages we meet most.
_FRAME = re.compile(
    r"\||(from|to|cc|date|sent|subject|von|an|datum|betreff|de|à|objet|fra|til|dato|emne): ", re.IGNORECASE
)
# In any script, also where quotation marks or brackets close behind it.
_QUESTION = re.compile(r"[?？؟⁇]\W*$")
_CUT_EMPHASIS = re.compile(r"^[*_]+\s+")
_SPEAKER = re.compile(r"^[\w.' -]{2,40}: ")

Embed = Callable[[Sequence[str]], list[list[float]]]


def extract(
    question: str,
    matches: Sequence[Match],
    citations: Sequence[Citation],
    embed: Embed,
    vector: list[float] | None = None,
) -> GeneratedText:
    """An answer of one to five sentences from the matches of cited documents, a paragraph for each document,
    n of its mark [n] counting the citations from 1. `vector`: the question's embedding, where there is one.
    Raises what `embed` raises."""
    chosen, is_direct = _best_sentences(question, matches, citations, embed, vector)
    if not chosen:
        best = citations[0].match
        return GeneratedText(f"{INDIRECT}\n\n{_paragraph(best, [best.text.strip()], 1)}", MODEL)
    paragraphs = [] if is_direct else [INDIRECT]
    snippets: dict[int, str] = {}
    for number in dict.fromkeys(sentence.number for sentence in chosen):
        own = [sentence for sentence in chosen if sentence.number == number]
        texts = [sentence.text for sentence in own]
        paragraphs.append(_paragraph(citations[number - 1].match, texts, number))
        snippets[number] = _snippet(own[0])
    return GeneratedText("\n\n".join(paragraphs), MODEL, snippets=snippets, sentences=tuple(chosen))


def _best_sentences(
    question: str,
    matches: Sequence[Match],
    citations: Sequence[Citation],
    embed: Embed,
    vector: list[float] | None,
) -> tuple[list[ExtractedSentence], bool]:
    """One to five sentences, those of one document together and in its order, the best sentence's document
    first; none where no match has a whole one. And whether the best answers, or only comes close."""
    candidates = _candidates(matches, citations)
    if not candidates:
        return [], False
    worth = _worth(question, candidates, embed, vector)
    chosen = _choose(candidates, worth)
    order = list(dict.fromkeys(sentence.number for sentence in chosen))
    chosen.sort(key=lambda sentence: (order.index(sentence.number), sentence.start))
    return chosen, max(worth) >= DIRECT


def _paragraph(match: Match, texts: Sequence[str], number: int) -> str:
    return paragraph(match.title, match.occurred_at, texts, number)


def _snippet(sentence: ExtractedSentence) -> str:
    """The beginning of the passage that the sentence is from, or as much from the sentence on."""
    match = sentence.match
    start, end = sentence.start - match.span[0], sentence.end - match.span[0]
    return snippet(match.text if end <= SNIPPET_CHARACTERS else match.text[start:])


def _candidates(matches: Sequence[Match], citations: Sequence[Citation]) -> list[ExtractedSentence]:
    """Every distinct statement of the cited documents' matches: no headings, questions or fragments."""
    numbers = {citation.match.document_id: number for number, citation in enumerate(citations, start=1)}
    found: dict[tuple[int, int], ExtractedSentence] = {}
    for match in matches:
        number = numbers.get(match.document_id)
        if number is None:
            continue
        for sentence in sentences(match.text, match.lang):
            # Emphasis that a boundary has cut in two is no part of the sentence.
            whole = match.text[sentence.start : sentence.end]
            text = _CUT_EMPHASIS.sub("", whole)
            words = content_words(_SPEAKER.sub("", text))
            if sentence.heading or _QUESTION.search(text) or _FRAME.match(text) or len(words) < 4:
                continue
            start = match.span[0] + sentence.start + len(whole) - len(text)
            # Chunks overlap: the same place in a document counts once.
            end = start + len(text)
            found.setdefault((number, start), ExtractedSentence(text, number, match, start, end, words))
    return list(found.values())


def _worth(
    question: str, candidates: Sequence[ExtractedSentence], embed: Embed, vector: list[float] | None
) -> list[float]:
    texts = [candidate.text for candidate in candidates]
    if vector is None:
        vector, *vectors = embed([question, *texts])
    else:
        vectors = embed(texts)
    frequency = Counter(word for candidate in candidates for word in candidate.words)
    rarity = {word: math.log(1 + len(candidates) / (1 + frequency[word])) for word in content_words(question)}
    total = sum(rarity.values()) or 1.0
    return [
        MEANING * sum(a * b for a, b in zip(vector, other, strict=True))
        + WORDS * sum(weight for word, weight in rarity.items() if word in candidate.words) / total
        for candidate, other in zip(candidates, vectors, strict=True)
    ]


def _choose(candidates: Sequence[ExtractedSentence], worth: Sequence[float]) -> list[ExtractedSentence]:
    """The best sentences, each with the one that follows it, without repetitions."""
    value = dict(zip(candidates, worth, strict=True))
    best = max(worth)
    follower = {(item.number, item.start): item for item in candidates}
    chosen: list[ExtractedSentence] = []
    for candidate in sorted(candidates, key=lambda item: -value[item]):
        if chosen and value[candidate] < WORTHWHILE * best:
            break
        # The next sentence of the same paragraph begins one character (a space) after this one's end.
        after = follower.get((candidate.number, candidate.end + 1))
        for item in (candidate, after):
            weak = item is not None and item is not candidate and value[item] < FOLLOWING * best
            if item is None or weak or len(chosen) == MAX_SENTENCES:
                continue
            if not any(_repeats(item.words, other.words) for other in chosen):
                chosen.append(item)
    return chosen


def _repeats(left: frozenset[str], right: frozenset[str]) -> bool:
    """Whether two sentences share most of their words (Jaccard) and differ in no number."""
    numbers = {word for word in left ^ right if any(character.isdigit() for character in word)}
    return not numbers and len(left & right) / len(left | right) >= 0.6
