"""Function words around relations: auxiliaries, negations, hedges, ends of lists."""

from shared.text.word_lists import word_sets

_WORDS = word_sets(__file__)
COPULAS = _WORDS["copulas"]
AUXILIARIES = COPULAS | _WORDS["auxiliaries"]
NEGATIONS = _WORDS["negations"]
HEDGES = _WORDS["hedges"]
BREAKS = _WORDS["clause_breaks"]
CONJUNCTIONS = frozenset({"and", "&", "und", "et", "y", "or", "oder", "ou", "e"})
LIST_ENDS = _WORDS["list_ends"] | {""}
ARTICLES = _WORDS["articles"]
SEPARATORS = CONJUNCTIONS | {","}
CONTINUATIONS = SEPARATORS | {"then", "but"}
LEADING_TOKENS = ARTICLES | {'"', "`", "“"}
PRONOUNS = frozenset({"who", "which", "that", "qui", "que", "der", "die", "das"})
GENITIVES = frozenset({"of", "for", "to", "von", "de", "du", "des", "del", "der", "in"})
FINAL_VERBS = _WORDS["final_verbs"]
# Words between a phrase and its object, at most.
MAX_GAP = 4
