"""Grammar of a language's follow-up questions, as patterns."""

import re
from dataclasses import dataclass

# Matches nowhere.
NONE = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class Grammar:
    """Patterns over a question in one line.

    `continuation`: a beginning that continues an earlier message ("and", "what about"). `expletive`: phrases
    in which a pronoun or an adverb refers to nothing outside ("it rains", "there is", "this year", "those
    who"), and nouns that only frame the question ("which day"). `pronoun`: refers to a noun of another
    clause. In the clause of its own, grammar rules out the subject. `inverted`: a pronoun that may repeat the
    subject before it ("la laiterie est-elle"). `incomplete`: possessives, and phrases that lack their noun
    ("the second one"): any noun before serves. `elliptical`: nothing in the question can complete it ("who
    else", a comparison with nothing). `choice`: a question word whose noun is missing ("which is ...?"),
    unless a noun follows. `noun`, `question_noun`: the beginning of a noun that a pronoun may refer to;
    `question_noun` is the noun that the question asks for ("which trucks"). `boundary`: between two clauses.
    `subordinator`: begins a clause that may stand before the main one. `preposition`: begins a phrase;
    `interrogative`: any word or verb that makes it a question. `drops_subject`: a pronoun as the subject is
    left out, and stands in the verb."""

    continuation: re.Pattern[str]
    expletive: re.Pattern[str]
    pronoun: re.Pattern[str]
    incomplete: re.Pattern[str]
    elliptical: re.Pattern[str]
    choice: re.Pattern[str]
    noun: re.Pattern[str]
    question_noun: re.Pattern[str]
    boundary: re.Pattern[str]
    subordinator: re.Pattern[str]
    preposition: re.Pattern[str]
    interrogative: re.Pattern[str]
    inverted: re.Pattern[str] = NONE
    drops_subject: bool = False


def begins(words: str) -> re.Pattern[str]:
    """One of the alternatives at the beginning."""
    return re.compile(rf"^\W*(?:{words})(?!\w)", re.IGNORECASE)


def anywhere(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in alternatives), re.IGNORECASE)
