"""The most relevant passage of a match: verbatim, with its position in the document.

Every search computes it, so no model is used. A passage's score is the sum of the weights of the question's
terms in it: terms rare in the match weigh more, identifiers most.
"""

import heapq
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from shared.retrieval.types import Highlight
from shared.text.identifiers import names_one_thing
from shared.text.sentences import Sentence, sentences
from shared.text.stemming import LETTERS, WORDS, is_unspaced, letter_pairs, stems
from shared.types import Match

CHARACTERS = 300
MAX_SENTENCES = 5
# A limit for long questions: every match is searched for every term.
MAX_TERMS = 40
IDENTIFIER_WEIGHT = 3.0
# The rule under a table's header.
_RULE = re.compile(r"[|\s]*:?-{2,}[-:|\s]*")
_LETTER = re.compile(r"[^\W_]")
# The rest of a word after its stem: letters, without a digit.
_ENDING = re.compile(r"[^\W\d_]*(?![^\W_])")
_FINAL_NUMBER = re.compile(r"[0-9]+(?!\w)")
_JOINTS = re.compile(r"[-./,:]")


@dataclass(frozen=True, slots=True)
class _Part:
    """[start, end) of the match's text. `frame`: a heading, header or rule; `hits`: the first position of
    each term in it."""

    start: int
    end: int
    frame: bool
    hits: Mapping[str, int] = field(default_factory=dict)


def highlight(match: Match, question: str) -> Highlight:
    """Up to five adjacent sentences within 300 characters, or whole words of a longer sentence. Empty only
    for an empty text."""
    terms = _terms(question)
    parts = _parts(match.text, match.lang, _hits(match.text, terms))
    start, end = _best(match.text, parts, _weights(parts, terms))
    while start < end and match.text[start].isspace():
        start += 1
    while start < end and match.text[end - 1].isspace():
        end -= 1
    return Highlight(match.text[start:end], match.span[0] + start, match.span[0] + end)


# All matches of a search share one question.
@lru_cache(maxsize=8)
def _terms(question: str) -> frozenset[str]:
    """The stems of the question's content words. A joined word with a digit stays whole. Beyond the limit,
    identifiers come first, then longer terms."""
    ranks: dict[str, tuple[bool, int]] = {}
    for word in WORDS.findall(question):
        whole = word.casefold()
        if is_unspaced(whole):
            ranks.update({pair: (False, len(pair)) for pair in letter_pairs(whole)})
            continue
        for part in [whole] if names_one_thing(whole) else _JOINTS.split(whole):
            rank = (names_one_thing(part), len(part))
            ranks |= {term: max(rank, ranks.get(term, rank)) for term in stems([part])}
    return frozenset(heapq.nlargest(MAX_TERMS, ranks, key=ranks.__getitem__))


def _hits(text: str, terms: frozenset[str]) -> list[tuple[int, str]]:
    """Positions of the terms, in order. A search for each term is ten times faster than stemming the text."""
    folded = text.casefold()
    if len(folded) != len(text):
        folded = "".join(one if len(one.casefold()) > 1 else one.casefold() for one in text)
    hits: list[tuple[int, str]] = []
    for term in terms:
        at = folded.find(term)
        while at >= 0:
            if _is_whole_term(text, folded, at, term):
                hits.append((at, term))
            at = folded.find(term, at + 1)
    return sorted(hits)


def _is_whole_term(text: str, folded: str, at: int, term: str) -> bool:
    """Whether a word with this stem begins there."""
    if is_unspaced(term):
        return True
    if at and _LETTER.match(folded, at - 1) and not _begins_part(text, at):
        return False
    end = at + len(term)
    if len(term) == LETTERS and term.isalpha():
        return _ENDING.match(folded, end) is not None
    # The stem of a short word has no final s.
    return any(
        _LETTER.match(folded, place) is None or _begins_part(text, place)
        for place in (end, end + folded.startswith("s", end))
    )


def _begins_part(text: str, at: int) -> bool:
    """Whether a part of a name begins there, as Logout in softLogout: the rules of rag.tokenized_text."""
    before, after = text[max(at - 2, 0) : at], text[at : at + 3]
    is_capital = after[:1].isupper()
    return (
        (
            is_capital
            and before[-1:].islower()
            and before.isalnum()
            and len(before) == 2
            and after[1:2].isalnum()
        )
        or (
            is_capital
            and (before[-1:].isupper() or before[-1:].isdigit())
            and after[1:].islower()
            and len(after) == 3
        )
        or (len(before) == 2 and before.isalpha() and _FINAL_NUMBER.match(text, at) is not None)
    )


def _parts(text: str, lang: str | None, hits: Sequence[tuple[int, str]]) -> list[_Part]:
    items = sentences(text, lang)
    rules = [_RULE.fullmatch(text, item.start, item.end) is not None for item in items]
    parts: list[_Part] = []
    next_hit = 0
    for position, item in enumerate(items):
        precedes_rule = any(rules[position + 1 : position + 2])
        frame = item.heading or rules[position] or (_is_row(text, item) and precedes_rule)
        part_hits: dict[str, int] = {}
        while next_hit < len(hits) and hits[next_hit][0] < item.end:
            at, term = hits[next_hit]
            part_hits.setdefault(term, at)
            next_hit += 1
        parts.append(_Part(item.start, item.end, frame, part_hits))
    return parts


def _is_row(text: str, item: Sentence) -> bool:
    return text.startswith("|", item.start)


def _weights(parts: Sequence[_Part], terms: frozenset[str]) -> dict[str, float]:
    frequency = Counter(term for part in parts for term in part.hits)
    return {
        term: math.log(1 + len(parts) / (1 + frequency[term]))
        * (IDENTIFIER_WEIGHT if names_one_thing(term) else 1.0)
        for term in terms
    }


def _best(text: str, parts: Sequence[_Part], weights: Mapping[str, float]) -> tuple[int, int]:
    """The best window; frames only if no sentence has a term, the first sentences if nothing has."""
    if not parts:
        return 0, min(len(text), CHARACTERS)
    stems = [position for position, part in enumerate(parts) if not part.frame]
    for positions in (stems, range(len(parts))):
        windows = [_window(parts, position, weights) for position in positions if parts[position].hits]
        if windows:
            _, _, first, last = max(windows)
            break
    else:
        first = last = stems[0] if stems else 0
        while _fits(parts, first, last + 1):
            last += 1
    start, end = parts[first].start, parts[last].end
    return (start, end) if end - start <= CHARACTERS else _cut(text, parts[first], weights)


def _window(parts: Sequence[_Part], first: int, weights: Mapping[str, float]) -> tuple[float, int, int, int]:
    """The score and bounds of the best window from `first`; the shorter, then the earlier one wins a tie."""
    terms: set[str] = set()
    best, last = (0.0, 0, 0, 0), first
    while last == first or (last - first < MAX_SENTENCES and _fits(parts, first, last)):
        terms |= parts[last].hits.keys()
        # Summed in one order, since it decides ties.
        score = math.fsum(weights[term] for term in terms)
        best = max(best, (score, parts[first].start - parts[last].end, -first, last))
        last += 1
    return best[0], best[1], first, best[3]


def _fits(parts: Sequence[_Part], first: int, last: int) -> bool:
    """Whether the window may end at `last`: within the limit, and without a frame between sentences."""
    if last >= len(parts) or parts[last].end - parts[first].start > CHARACTERS:
        return False
    return parts[last].frame == parts[first].frame


def _cut(text: str, part: _Part, weights: Mapping[str, float]) -> tuple[int, int]:
    """The part of a long sentence around its best hits."""
    hits = sorted((at, weights[term]) for term, at in part.hits.items())
    window = CHARACTERS * 2 // 3
    best, start, score, right = 0.0, part.start, 0.0, 0
    for at, weight in hits:
        while right < len(hits) and hits[right][0] - at <= window:
            score += hits[right][1]
            right += 1
        if score > best + 1e-9:
            best, start = score, max(part.start, (at + hits[right - 1][0] - CHARACTERS) // 2)
        score -= weight
    start = min(start, part.end - CHARACTERS)
    end = start + CHARACTERS
    return _to_words(text, start, end, part)


def _to_words(text: str, start: int, end: int, part: _Part) -> tuple[int, int]:
    """The bounds, moved inwards to nearby white space."""
    if start > part.start and not text[start - 1].isspace():
        space = re.compile(r"\s").search(text, start, start + CHARACTERS // 6)
        start = space.end() if space else start
    if end < part.end and not text[end].isspace():
        spaces = [at for at in range(end - CHARACTERS // 6, end) if text[at].isspace()]
        end = spaces[-1] if spaces else end
    return start, end
