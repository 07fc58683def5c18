"""Grammar of a language's follow-up questions, as patterns."""

import re
from dataclasses import dataclass
from pathlib import Path

from shared.text.language_detection import MONTH_NAMES, WEEKDAYS
from shared.text.word_lists import read_toml


@dataclass(frozen=True, slots=True)
class Grammar:
    """Patterns over a question in one line.

    `continuation`: a beginning that continues an earlier message ("and", "what about"). `expletive`: phrases
    in which a pronoun or an adverb refers to nothing outside ("it rains", "there is", "this year", "those
    who"), and nouns that only frame the question ("which day"). `pronoun`: refers to a noun of another
    clause. In the clause of its own, grammar rules out the subject. `incomplete`: possessives, and phrases
    that lack their noun ("the second one"): any noun before serves. `elliptical`: nothing in the question can
    complete it (a comparison with nothing). `noun`: the beginning of a noun that a pronoun may refer to.
    `boundary`: between two clauses. `subordinator`: begins a clause that may stand before the main one.
    `preposition`: begins a phrase; `interrogative`: any word or verb that makes it a question.
    `drops_subject`: a pronoun as the subject is left out, and stands in the verb."""

    continuation: re.Pattern[str]
    expletive: re.Pattern[str]
    pronoun: re.Pattern[str]
    incomplete: re.Pattern[str]
    noun: re.Pattern[str]
    boundary: re.Pattern[str]
    subordinator: re.Pattern[str]
    preposition: re.Pattern[str]
    interrogative: re.Pattern[str]
    elliptical: re.Pattern[str] = re.compile(r"(?!)")
    drops_subject: bool = False


def read_grammar(language: str) -> Grammar:
    """The grammar in the TOML file of the language. A string is a pattern at the beginning of a question, an
    array has the alternatives anywhere in it. Line breaks in a pattern are ignored, and <name> is a fragment.
    """
    data = read_toml(Path(__file__).with_name(f"{language}.toml"))
    fragments = {"weekdays": "|".join(WEEKDAYS), "months": MONTH_NAMES}

    def expand(pattern: str) -> str:
        return re.sub(r"<(\w+)>", lambda name: fragments[name[1]], re.sub(r"(?:\A|\n) *", "", pattern))

    def compiled(value: str | list[str]) -> re.Pattern[str]:
        if isinstance(value, str):
            return re.compile(rf"^\W*(?:{expand(value)})(?!\w)", re.IGNORECASE)
        return re.compile("|".join(f"(?:{expand(one)})" for one in value), re.IGNORECASE)

    for name, pattern in data["fragments"].items():
        fragments[name] = expand(pattern)
    grammar = {"preposition": "<preposition>", **data["grammar"]}
    return Grammar(
        drops_subject=grammar.pop("drops_subject", False),
        **{name: compiled(value) for name, value in grammar.items()},
    )
