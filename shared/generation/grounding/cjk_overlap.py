"""Whether a text in a script without spaces is held: pairs of letters stand for its words there, of
which many are in any text by chance."""

import re

from shared.text.languages import UNSPACED_SCRIPTS
from shared.text.stemming import pairs

ENOUGH = 0.9
_RUN = re.compile(rf"[{UNSPACED_SCRIPTS}]+")
# What bears meaning by the letter; Hiragana mostly inflects.
_BEARS = re.compile(r"[\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def joined_words_held(text: str, known_pairs: frozenset[str]) -> bool:
    """Whether nearly all pairs are held, and of every letter that bears a meaning at least one."""
    count = missing = 0
    for run in _RUN.findall(text):
        hits = [pair in known_pairs for pair in pairs(run)]
        count, missing = count + len(hits), missing + hits.count(False)
        for place, letter in enumerate(run):
            if _BEARS.match(letter) and not any(hits[max(0, place - 1) : place + 1]):
                return False
    return not count or 1 - missing / count >= ENOUGH
