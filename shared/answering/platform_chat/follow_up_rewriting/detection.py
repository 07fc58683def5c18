"""Detection of follow-up questions by the grammar of their language.

A follow-up has a pronoun, possessive, comparison or ellipsis that refers to nothing in the question itself. A
definite noun alone ("the deadline") is no sign: it may be the organization's only one.
"""

import re
from collections.abc import Iterator

from shared.answering.platform_chat.follow_up_rewriting.grammar import Grammar, read_grammar
from shared.text.function_words import FUNCTION_WORDS
from shared.text.language_detection import ENGLISH, language_of

GRAMMARS: dict[str, Grammar] = {
    "en": read_grammar("english"),
    "de": read_grammar("german"),
    "fr": read_grammar("french"),
    "es": read_grammar("spanish"),
}
# Content words of a complete question.
MIN_WORDS = 2
# Characters of a complete question in scripts without spaces: those of text/language_detection.py, and Lao.
MIN_UNSPACED_CHARACTERS = 6
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
# Only the beginning of a longer text is examined.
MAX_CHARACTERS = 1_000
# "Another question: ..." announces a change of subject.
_ANNOUNCEMENT = re.compile(r"^[^:?]{1,40}: (?=\W*\w)")
_WORD = re.compile(r"\w+(?:-\w+)*")


def is_follow_up(question: str) -> bool:
    """Whether the question depends on an earlier one."""
    line = " ".join(question.split())[:MAX_CHARACTERS].replace("’", "'")
    line = _ANNOUNCEMENT.sub("", line)
    language = language_of(line)
    if language not in GRAMMARS:
        language = ENGLISH
    grammar = GRAMMARS[language]
    if grammar.continuation.match(line):
        return True
    # The replacement keeps all positions.
    text = grammar.expletive.sub(lambda phrase: "·" * len(phrase.group()), line)
    if grammar.preposition.match(line) and not grammar.interrogative.search(line):
        return True
    if _is_fragment(text, grammar, language):
        return True
    return bool(grammar.elliptical.search(text)) or any(_unresolved(text, grammar))


def _is_fragment(text: str, grammar: Grammar, language: str) -> bool:
    words = [word for word in _WORD.findall(text) if word.casefold() not in FUNCTION_WORDS[language]]
    if len(words) >= MIN_WORDS:
        return False
    if _UNSPACED.search(text):
        return len(text) < MIN_UNSPACED_CHARACTERS
    # "What is SAML?" has one content word, and is complete.
    asks = re.match(r"\W*\w+ \w", text) and grammar.interrogative.match(text.lstrip("· ¿¡"))
    return not (words and asks and grammar.noun.search(text))


def _unresolved(text: str, grammar: Grammar) -> Iterator[bool]:
    """For each referring word of the question: whether its referent is missing."""
    nouns = _positions(grammar.noun, text)
    boundaries = _positions(grammar.boundary, text)
    yield grammar.drops_subject and not nouns
    # A clause before the main one may refer forward.
    first_end = boundaries[0] if boundaries and grammar.subordinator.match(text) else 0

    # From this position, a noun is in an earlier clause.
    first_noun = min(nouns, default=len(text))
    later = min((position for position in boundaries if position > first_noun), default=len(text))

    def in_another_clause(position: int) -> bool:
        return position > later or position < first_end < max(nouns, default=0)

    for position in _positions(grammar.pronoun, text):
        yield not in_another_clause(position)
    for position in _positions(grammar.incomplete, text):
        yield not (in_another_clause(position) or position > min(nouns, default=position))


def _positions(pattern: re.Pattern[str], text: str) -> list[int]:
    return [match.start() for match in pattern.finditer(text)]
