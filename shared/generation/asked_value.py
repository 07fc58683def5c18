"""The value that a question asks for: money, a percentage, a version, a count, or any number or time.

A text with another value does not answer: an uptime of 99.9 % is no price.
"""

import re
from enum import StrEnum
from itertools import pairwise, takewhile

from shared.generation.grounding.numbers import NUMBER, UNITS
from shared.generation.passage_statements import Statement, StatementKind
from shared.generation.value_tokens import has_value
from shared.text.word_lists import word_sets

_WORDS = word_sets(__file__)
_CURRENCIES = {"usd", "eur", "gbp", "jpy", "chf"}
_SIGN = re.compile(r"[$€£¥₹₩₽₺]|\b(?:USD|EUR|GBP|CHF|JPY|INR|CAD|AUD|CNY|SEK|NOK|DKK|PLN)\b")
_VERSION = re.compile(r"\bv?\d+(?:\.\d+)+\b|\b(?:version|release|v)\.? ?\d", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
# The noun stands among the first words of the question, as in "In which Slicer version".
FIRST_WORDS = 5


class AskedValue(StrEnum):
    MONEY = "money"
    PERCENTAGE = "percentage"
    VERSION = "version"
    COUNT = "count"
    ANY = "any"


def asked_value(question: str, *, is_value: bool, is_which: bool) -> AskedValue | None:
    """`is_value`: whether the question word asks for a number or a time; `is_which`: for something. None for
    a question for something else than a value."""
    words = _WORD.findall(question.casefold())
    # Not "What is new in version 2".
    neighbours = pairwise(["", *words[:FIRST_WORDS]])
    first = {word for before, word in neighbours if before not in _WORDS["prepositions"]}
    if (is_value or is_which) and not _WORDS["versions"].isdisjoint(first):
        return AskedValue.VERSION
    if (is_value or is_which) and not _WORDS["percentages"].isdisjoint(first):
        return AskedValue.PERCENTAGE
    prices = _WORDS["costs"] | _WORDS["prices"]
    # "What does it cost", "Was kostet", "What is the price of"; not "What cost reductions", "price lists".
    is_verb = not _WORDS["auxiliaries"].isdisjoint(words[1:2]) and not _WORDS["costs"].isdisjoint(words[2:])
    subject = [*takewhile(lambda word: word not in _WORDS["prepositions"], words[2:])]
    is_price = (
        is_verb or not _WORDS["costs_second"].isdisjoint(words[1:2]) or not prices.isdisjoint(subject[-1:])
    )
    if (is_which and is_price) or (is_value and not prices.isdisjoint(words)):
        return AskedValue.MONEY
    if is_value and not _WORDS["many"].isdisjoint(first):
        return AskedValue.COUNT
    return AskedValue.ANY if is_value else None


def has_asked_value(statement: Statement, asked: AskedValue, question: str) -> bool:
    """Whether the statement has a value of that kind that is not in the question."""
    text = statement.text
    if asked is AskedValue.VERSION:
        known = question.casefold()
        return any(version[0].casefold() not in known for version in _VERSION.finditer(text))
    words = {*_WORD.findall(text.casefold())}
    if asked is AskedValue.PERCENTAGE:
        return "%" in text or not _WORDS["percentages"].isdisjoint(words)
    if not has_value(text, question):
        return asked is AskedValue.MONEY and not _WORDS["free"].isdisjoint(words)
    # The cells of a table often have no currency, and a number in one is seldom a year.
    is_table = statement.kind in (StatementKind.ROW, StatementKind.FACT)
    numbers = [number for number in NUMBER.finditer(text) if is_table or not _YEAR.fullmatch(number["value"])]
    if asked is AskedValue.MONEY:
        units = [UNITS.get((number["before"] or number["kind"] or "").casefold()) for number in numbers]
        return _SIGN.search(text) is not None or any(
            unit in _CURRENCIES or (is_table and unit is None) for unit in units
        )
    return asked is AskedValue.ANY or any(number["value"] not in question for number in numbers)
