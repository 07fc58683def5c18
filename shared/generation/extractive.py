"""Extractive answers: the best sentences of the matches, verbatim, with citations.

The score of a sentence is its similarity to the question (cosine of their embeddings) and its share of the
question's words, weighted by rarity, which finds identifiers and numbers.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

from shared.generation.citations import SNIPPET_CHARACTERS, snippet
from shared.text.citation_marks import paragraph
from shared.text.sentences import sentences
from shared.text.stemming import content_words
from shared.types import Citation, ExtractedSentence, GeneratedText, Match

MODEL = "extractive"
MAX_SENTENCES = 5
# The least share of the best score, and that of a sentence that directly follows a chosen one ("The reason
# was ...").
MIN_SHARE, MIN_SHARE_OF_FOLLOWER = 0.72, 0.4
# An answer whose best score is lower begins with INDIRECT.
DIRECT_SCORE = 0.5
INDIRECT = "These passages come closest:"
SIMILARITY_WEIGHT, WORD_WEIGHT = 0.6, 0.4
# Lines that state nothing: table rows, mail headers in common languages.
_FRAME = re.compile(
    r"\||(from|to|cc|date|sent|subject|von|an|datum|betreff|de|à|objet|fra|til|dato|emne): ", re.IGNORECASE
)
# In any script, with closing quotation marks or brackets behind it.
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
    """An answer of one to five sentences from the matches of cited documents, with a paragraph and a mark [n]
    for each document. `vector`: the question's embedding, where there is one. Raises what `embed` raises."""
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
    """Up to five sentences, ordered by document and position, the best sentence's document first; and whether
    the best score is that of a direct answer."""
    candidates = _candidates(matches, citations)
    if not candidates:
        return [], False
    scores = _scores(question, candidates, embed, vector)
    chosen = _choose(candidates, scores)
    order = list(dict.fromkeys(sentence.number for sentence in chosen))
    chosen.sort(key=lambda sentence: (order.index(sentence.number), sentence.start))
    return chosen, max(scores) >= DIRECT_SCORE


def _paragraph(match: Match, texts: Sequence[str], number: int) -> str:
    return paragraph(match.title, match.occurred_at, texts, number)


def _snippet(sentence: ExtractedSentence) -> str:
    """The beginning of the passage if it contains the sentence, else the text from the sentence on."""
    match = sentence.match
    start, end = sentence.start - match.span[0], sentence.end - match.span[0]
    return snippet(match.text if end <= SNIPPET_CHARACTERS else match.text[start:])


def _candidates(matches: Sequence[Match], citations: Sequence[Citation]) -> list[ExtractedSentence]:
    """The distinct statements in the matches of cited documents: no headings, questions or fragments."""
    numbers = {citation.match.document_id: number for number, citation in enumerate(citations, start=1)}
    candidates: dict[tuple[int, int], ExtractedSentence] = {}
    for match in matches:
        number = numbers.get(match.document_id)
        if number is None:
            continue
        for sentence in sentences(match.text, match.lang):
            # A mark of emphasis without its partner is no part of the sentence.
            sentence_text = match.text[sentence.start : sentence.end]
            text = _CUT_EMPHASIS.sub("", sentence_text)
            words = content_words(_SPEAKER.sub("", text))
            if sentence.heading or _QUESTION.search(text) or _FRAME.match(text) or len(words) < 4:
                continue
            start = match.span[0] + sentence.start + len(sentence_text) - len(text)
            # Chunks overlap: a sentence of a document counts once.
            end = start + len(text)
            candidates.setdefault((number, start), ExtractedSentence(text, number, match, start, end, words))
    return list(candidates.values())


def _scores(
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
        SIMILARITY_WEIGHT * sum(a * b for a, b in zip(vector, other, strict=True))
        + WORD_WEIGHT * sum(weight for word, weight in rarity.items() if word in candidate.words) / total
        for candidate, other in zip(candidates, vectors, strict=True)
    ]


def _choose(candidates: Sequence[ExtractedSentence], scores: Sequence[float]) -> list[ExtractedSentence]:
    """The best sentences, each with the one that follows it, without repetitions."""
    value = dict(zip(candidates, scores, strict=True))
    best = max(scores)
    follower = {(item.number, item.start): item for item in candidates}
    chosen: list[ExtractedSentence] = []
    for candidate in sorted(candidates, key=lambda item: -value[item]):
        if chosen and value[candidate] < MIN_SHARE * best:
            break
        # The next sentence of the paragraph begins behind one space.
        after = follower.get((candidate.number, candidate.end + 1))
        for item in (candidate, after):
            weak = item is not None and item is not candidate and value[item] < MIN_SHARE_OF_FOLLOWER * best
            if item is None or weak or len(chosen) == MAX_SENTENCES:
                continue
            if not any(_repeats(item.words, other.words) for other in chosen):
                chosen.append(item)
    return chosen


def _repeats(left: frozenset[str], right: frozenset[str]) -> bool:
    """Whether two sentences share most of their words (Jaccard) and differ in no number."""
    numbers = {word for word in left ^ right if any(character.isdigit() for character in word)}
    return not numbers and len(left & right) / len(left | right) >= 0.6
