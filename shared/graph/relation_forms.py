"""Sentence forms that state a relation, with placeholders for the names, and their words (relations.toml).

The subject begins the sentence; a form matches what follows it, up to the end of the objects.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path

from shared.graph.placeholder_sentences import NAME, NOUNS
from shared.text.word_lists import read_toml, word_sets

_TABLES: Mapping[str, Mapping[str, str]] = read_toml(Path(__file__).with_name("relations.toml"))


def _variants(phrases: str) -> Iterator[str]:
    """The phrases between bars. A slash in a phrase makes several."""
    for phrase in phrases.split("|"):
        yield from map(" ".join, product(*(word.split("/") for word in phrase.split())))


def _by_phrase(table: str) -> dict[str, str]:
    return {phrase: name for name, phrases in _TABLES[table].items() for phrase in _variants(phrases)}


# The type that each phrase or noun states.
PASSIVE, ACTIVE, REVERSE = _by_phrase("passive"), _by_phrase("active"), _by_phrase("reverse")
OBJECTS, SUBJECTS, WORKS = _by_phrase("objects"), _by_phrase("subjects"), _by_phrase("works")
KEYS = {**OBJECTS, **PASSIVE, **_by_phrase("keys")}
SUBJECT_KINDS, OBJECT_KINDS = _by_phrase("subject_kinds"), _by_phrase("object_kinds")
SYMMETRIC = frozenset({"SPOUSE_OF", "SIBLING_OF"})


def alternatives(words: Iterable[str]) -> str:
    """A pattern of any of the words, the longest first."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True))).replace(r"\ ", " ")


# A pattern, the types by its words, and whether the name before is the subject.
Form = tuple[re.Pattern[str], Mapping[str, str], bool]

ROLES = {**OBJECTS, **SUBJECTS}
_LISTS = word_sets(__file__)
_WORDS = {name: alternatives(words) for name, words in _LISTS.items()}
_THINGS = alternatives(NOUNS)
_ROLE_WORDS = alternatives(ROLES)
_OTHER = f"[^,;:{NAME[1:-1]}]"
_NAMES = rf"{NAME}(?:(?:, (?:the )?{NAME})*,? (?:and|&|und|et|y) (?:the )?{NAME})?"
# Behind the last name: another word may belong to it. "A, B or C" states nothing.
_END = (
    rf"(?=[,;:!]|\.(?! {NAME}| [A-Z])|$| (?:{_WORDS['after_names']})\b)"
    rf"(?!(?:, (?:the )?{NAME})*,? or )(?!,? and (?:the )?{NAME})"
)
_ARTICLE = "(?i:the|an?|our|der|die|das|dem|den|le|la|el)"
_NOUN = rf"(?:(?:{_THINGS}|(?:Mr|Mrs|Ms|Dr)\.?) )?"
_WORD = rf"(?!(?:{_WORDS['breaks']})\b)[^\W_][\w'’/-]*,? "
_WHO = "(?:, (?:which|who))?"
_COPULA = rf"{_WHO} (?:is|are|was|were|has been|have been|ist|wurde|est|a été|es|fue)"
_ADVERBS = f"(?: (?:{_WORDS['adverbs']}))*"
_ADJECTIVES = rf"(?:(?!(?:{_WORDS['lesser']})\b){_WORD}){{0,3}}?"
# A 1942 West German romantic comedy film; a company founded in 1984 and.
_PREDICATE = (
    rf" (?:an?|the|one of the) (?:{_WORD}|{NAME} (?=[a-z/])|/ |of "
    rf"|\w+ed in (?:{NAME} in )?\d{{4}},? (?:and )?){{0,14}}?"
)
# By the British writer Iain Banks; by Hong Kong singer Charlene Choi.
_OBJECTS = (
    rf"(?: {_ARTICLE})? (?:(?:{NAME} )?(?:{_WORD}){{0,4}}?(?:{_WORDS['agents']}),? (?:{_ARTICLE} )?"
    rf"|(?:{_WORD}){{0,4}}?(?:{_ARTICLE} )?)(?P<objects>{_NAMES}){_END}"
)
_NEAR_OBJECTS = (
    rf"(?: {_ARTICLE})? (?:late |(?:{_WORD}){{0,2}}(?:{_THINGS}|{_WORDS['agents']}) )?"
    rf"(?P<objects>{_NAMES}){_END}"
)
_BY = alternatives(phrase.removesuffix(" by") for phrase in PASSIVE if phrase.endswith(" by"))
# Written, directed and produced by.
_PASSIVE = rf"(?P<coordinated>(?:(?:{_BY})(?:,? and |, ))*)(?P<words>{alternatives(PASSIVE)})\b{_OBJECTS}"
_ROLE = (
    rf"(?:{_COPULA}| serves as| served as|,) (?:{_ARTICLE} )?{_ADJECTIVES}(?P<words>%s)"
    rf"(?: and (?:{_WORD}){{0,2}}[a-z]+)? (?:of|for|von|de|du){_NEAR_OBJECTS}"
)
_VERB = rf"{_ADVERBS} (?P<words>%s){_NEAR_OBJECTS}"

OPENING = re.compile(
    rf"(?:{_ARTICLE} )?{_NOUN}(?P<subjects>{_NAMES})"
    rf"(?:, (?!and\b|or\b|which\b|who\b){_OTHER}{{1,80}}(?:known as (?:just )?{NAME})?,)?(?=,? )"
)


def _form(pattern: str, types: Mapping[str, str], is_forward: bool = True) -> Form:
    return re.compile(pattern.replace("%s", alternatives(types))), types, is_forward


FORMS: tuple[Form, ...] = (
    _form(rf"(?:{_COPULA}|,){_ADVERBS} {_PASSIVE}", PASSIVE),
    _form(rf"{_COPULA}{_PREDICATE}{_PASSIVE}", PASSIVE),
    _form(rf"{_COPULA} (?:an?|the) {_OTHER}{{1,120}}, {_PASSIVE}", PASSIVE),
    _form(rf"{_COPULA}{_PREDICATE}(?P<words>%s) by{_OBJECTS}", WORKS),
    _form(_ROLE, SUBJECTS),
    _form(_ROLE, OBJECTS, is_forward=False),
    _form(_WHO + _VERB, ACTIVE),
    _form(_WHO + _VERB, REVERSE, is_forward=False),
)
# Born in Albany, New York and.
_PLACES = f"(?:, {NAME}){{0,2}}"
CONTINUATIONS: tuple[Form, ...] = (
    _form(rf"{_PLACES}(?:,? and|,)(?: is| was| are| were)?{_ADVERBS} {_PASSIVE}", PASSIVE),
    _form(rf"{_PLACES},? and{_VERB}", ACTIVE),
    _form(rf"{_PLACES},? and{_VERB}", REVERSE, is_forward=False),
)
# Alice's brother Carl.
POSSESSIVE = re.compile(
    rf"(?P<subjects>{NAME})['’]s {_ADJECTIVES}(?P<words>{_ROLE_WORDS})(?: is| was|,)? (?P<objects>{NAME})"
    r"(?=[.,;:!]| [a-z]|$)"
)
