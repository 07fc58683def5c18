"""Small words that relations depend on: auxiliaries, negations, hedges, words that end a phrase."""

from shared.text.word_lists import word_sets

_WORDS = word_sets(__file__)
COPULAS = _WORDS["copulas"]
AUXILIARIES = COPULAS | _WORDS["auxiliaries"]
DENIALS = _WORDS["denials"]
HEDGES = _WORDS["hedges"]
BLOCKS = _WORDS["blocks"]
JOINTS = frozenset({"and", "&", "und", "et", "y", "or", "oder", "ou", "e"})
ENDINGS = _WORDS["endings"] | {""}
ARTICLES = _WORDS["articles"]
LISTING = JOINTS | {","}
GOING_ON = LISTING | {"then", "but"}
LEADING = ARTICLES | {'"', "`", "“"}
PRONOUNS = frozenset({"who", "which", "that", "qui", "que", "der", "die", "das"})
OF = frozenset({"of", "for", "to", "von", "de", "du", "des", "del", "der", "in"})
LAST = _WORDS["last"]
# Words between a phrase and its object.
GAP = 4
