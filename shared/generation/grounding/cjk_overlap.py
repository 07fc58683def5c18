"""Overlap of texts in scripts without spaces, by pairs of letters."""

import re

from shared.text.language_detection import UNSPACED_SCRIPTS
from shared.text.stemming import letter_pairs

ENOUGH = 0.9
_RUN = re.compile(rf"[{UNSPACED_SCRIPTS}]+")
# Scripts whose single letters carry meaning; Hiragana is mostly inflection.
_BEARS = re.compile(r"[\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def covers_unspaced_text(text: str, known_pairs: frozenset[str]) -> bool:
    """Whether nearly all pairs of the text are known, and at least one pair of each letter with a meaning."""
    count = missing = 0
    for run in _RUN.findall(text):
        hits = [pair in known_pairs for pair in letter_pairs(run)]
        count, missing = count + len(hits), missing + hits.count(False)
        for index, letter in enumerate(run):
            if _BEARS.match(letter) and not any(hits[max(0, index - 1) : index + 1]):
                return False
    return not count or 1 - missing / count >= ENOUGH
