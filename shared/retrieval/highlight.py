"""The passage of a match that says most about a question: verbatim, and where it stands in its document.

No model is asked: this is on the path of every search. A passage is worth what it holds of the question's
words, rare ones more (within the match, which is all there is to count in), identifiers most.
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
# Each is looked for in every match: of a question that is a text of its own they would be hundreds.
MOST_TERMS = 40
IDENTIFIER_WEIGHT = 3.0
# The rule under a table's head, which makes a frame of the row above it as well.
_RULE = re.compile(r"[|\s]*:?-{2,}[-:|\s]*")
_LETTER = re.compile(r"\w")
# What a word may have that was cut: letters, and no digit behind them.
_ENDING = re.compile(r"[^\W\d_]*(?!\w)")
_JOINTS = re.compile(r"[-./,:]")


@dataclass(frozen=True, slots=True)
class _Part:
    """[start, end) of the match's text; `hits`: the question's words in it, and where each stands first."""

    start: int
    end: int
    frame: bool
    hits: Mapping[str, int] = field(default_factory=dict)


def highlight(match: Match, question: str) -> Highlight:
    """One to a few whole sentences in a row, of at most 300 characters; of a longer sentence, whole words
    around what was asked for. Empty only where the match's text is."""
    asked = _terms(question)
    parts = _parts(match.text, match.lang, _hits(match.text, asked))
    start, end = _best(match.text, parts, _weights(parts, asked))
    while start < end and match.text[start].isspace():
        start += 1
    while start < end and match.text[end - 1].isspace():
        end -= 1
    return Highlight(match.text[start:end], match.span[0] + start, match.span[0] + end)


# The matches of one search are asked the same question.
@lru_cache(maxsize=8)
def _terms(question: str) -> frozenset[str]:
    """The question's content words, cut. What is joined stays whole where it holds a digit. Of too many those
    that are likely to be rare: identifiers, then what is longest, then what comes first."""
    found: dict[str, tuple[bool, int]] = {}
    for word in WORDS.findall(question):
        whole = word.casefold()
        if is_unspaced(whole):
            found.update({pair: (False, len(pair)) for pair in letter_pairs(whole)})
            continue
        for part in [whole] if names_one_thing(whole) else _JOINTS.split(whole):
            rank = (names_one_thing(part), len(part))
            found |= {term: max(rank, found.get(term, rank)) for term in stems([part])}
    return frozenset(heapq.nlargest(MOST_TERMS, found, key=found.__getitem__))


def _hits(text: str, asked: frozenset[str]) -> list[tuple[int, str]]:
    """Where those words stand, in order. Each is looked for by itself: to take every word of the text apart
    would cost ten times as much."""
    folded = text.casefold()
    if len(folded) != len(text):
        folded = "".join(one if len(one.casefold()) > 1 else one.casefold() for one in text)
    found: list[tuple[int, str]] = []
    for term in asked:
        at = folded.find(term)
        while at >= 0:
            if _stands(folded, at, term):
                found.append((at, term))
            at = folded.find(term, at + 1)
    return sorted(found)


def _stands(folded: str, at: int, term: str) -> bool:
    """Whether a word that is cut to the term begins there."""
    if is_unspaced(term):
        return True
    if at and _LETTER.match(folded, at - 1):
        return False
    end = at + len(term)
    if len(term) == LETTERS and term.isalpha():
        return _ENDING.match(folded, end) is not None
    return _LETTER.match(folded, end) is None


def _parts(text: str, lang: str | None, hits: Sequence[tuple[int, str]]) -> list[_Part]:
    found = sentences(text, lang)
    rules = [_RULE.fullmatch(text, item.start, item.end) is not None for item in found]
    parts: list[_Part] = []
    next_hit = 0
    for place, item in enumerate(found):
        frame = item.heading or rules[place] or (_is_row(text, item) and any(rules[place + 1 : place + 2]))
        held: dict[str, int] = {}
        while next_hit < len(hits) and hits[next_hit][0] < item.end:
            at, term = hits[next_hit]
            held.setdefault(term, at)
            next_hit += 1
        parts.append(_Part(item.start, item.end, frame, held))
    return parts


def _is_row(text: str, item: Sentence) -> bool:
    return text.startswith("|", item.start)


def _weights(parts: Sequence[_Part], asked: frozenset[str]) -> dict[str, float]:
    frequency = Counter(term for part in parts for term in part.hits)
    return {
        term: math.log(1 + len(parts) / (1 + frequency[term]))
        * (IDENTIFIER_WEIGHT if names_one_thing(term) else 1.0)
        for term in asked
    }


def _best(text: str, parts: Sequence[_Part], weights: Mapping[str, float]) -> tuple[int, int]:
    """Frames only where nothing else holds a word of the question; the first sentences where nothing does."""
    if not parts:
        return 0, min(len(text), CHARACTERS)
    stems = [place for place, part in enumerate(parts) if not part.frame]
    for places in (stems, range(len(parts))):
        windows = [_window(parts, place, weights) for place in places if parts[place].hits]
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
    """What the best window from there is worth, and its bounds; the shorter, then the earlier wins a tie."""
    held: set[str] = set()
    best, last = (0.0, 0, 0, 0), first
    while last == first or (last - first < MAX_SENTENCES and _fits(parts, first, last)):
        held |= parts[last].hits.keys()
        # Summed in one order, since it decides ties.
        worth = math.fsum(weights[term] for term in held)
        best = max(best, (worth, parts[first].start - parts[last].end, -first, last))
        last += 1
    return best[0], best[1], first, best[3]


def _fits(parts: Sequence[_Part], first: int, last: int) -> bool:
    """Whether the window may reach to `last`: no frame in between, and not too long."""
    if last >= len(parts) or parts[last].end - parts[first].start > CHARACTERS:
        return False
    return parts[last].frame == parts[first].frame


def _cut(text: str, part: _Part, weights: Mapping[str, float]) -> tuple[int, int]:
    """As much of a sentence that is too long as may be shown, around the best of its hits."""
    hits = sorted((at, weights[term]) for term, at in part.hits.items())
    reach = CHARACTERS * 2 // 3
    best, start, worth, right = 0.0, part.start, 0.0, 0
    for at, weight in hits:
        while right < len(hits) and hits[right][0] - at <= reach:
            worth += hits[right][1]
            right += 1
        if worth > best + 1e-9:
            best, start = worth, max(part.start, (at + hits[right - 1][0] - CHARACTERS) // 2)
        worth -= weight
    start = min(start, part.end - CHARACTERS)
    end = start + CHARACTERS
    return _to_words(text, start, end, part)


def _to_words(text: str, start: int, end: int, part: _Part) -> tuple[int, int]:
    """The bounds moved inwards to white space, where there is any nearby."""
    if start > part.start and not text[start - 1].isspace():
        space = re.compile(r"\s").search(text, start, start + CHARACTERS // 6)
        start = space.end() if space else start
    if end < part.end and not text[end].isspace():
        spaces = [at for at in range(end - CHARACTERS // 6, end) if text[at].isspace()]
        end = spaces[-1] if spaces else end
    return start, end
