"""The names, numbers, dates and identifiers of a question that no passage contains, in any spelling."""

from collections.abc import Iterator, Sequence, Set

from shared.generation.grounding.evidence_windows import EvidencePassages
from shared.generation.grounding.facts import forms_within_ranges
from shared.generation.grounding.sentence_support import assertion_of
from shared.generation.grounding.terms import POSSESSIVE, WORD, content_stems
from shared.generation.other_spellings import Spellings, counting_numbers
from shared.types import Match

# A shorter one before a period is an abbreviation, as in "St. Louis".
MIN_NAME = 3
# Of a question with more names only these are looked up in other spellings.
MAX_SPELLINGS = 20


def missing_names(question: str, matches: Sequence[Match]) -> tuple[str, ...]:
    """names_missing_in the texts of the matches."""
    return names_missing_in(question, EvidencePassages(matches))


def names_missing_in(question: str, passages: EvidencePassages) -> tuple[str, ...]:
    """In the order and spelling of the question."""
    # The first word has a capital in any case.
    assertion = assertion_of(question[:1].lower() + question[1:])
    facts = [fact for fact in assertion.facts if not fact.is_soft and not fact.accepted & passages.forms]
    if facts:
        within = frozenset[str]().union(*(forms_within_ranges(passage.text) for passage in passages.all))
        facts = [fact for fact in facts if not fact.accepted & within]
    names = {
        name
        for name in assertion.names
        if name not in passages.names and not content_stems([name]) <= passages.stems
    }
    missing = dict.fromkeys([*(fact.text for fact in facts), *_as_written(names, question)])
    if not missing:
        return ()
    spellings = Spellings("\n".join(f"{passage.match.title}\n{passage.text}" for passage in passages.all))
    ignored = {name for name in [*missing][:MAX_SPELLINGS] if spellings.have(name)}
    ignored |= counting_numbers(question)
    return tuple(name for name in missing if name not in ignored)


def _as_written(names: Set[str], question: str) -> Iterator[str]:
    """The names as the question writes them, neighbours as one: "Christmas Eve", "Wi-Fi"."""
    start = end = -1
    for word in WORD.finditer(question):
        text = POSSESSIVE.sub("", word.group())
        is_short = len(text) < MIN_NAME and question.startswith(".", word.end())
        if is_short or names.isdisjoint((text.casefold(), word.group().casefold())):
            continue
        if start >= 0 and question[end : word.start()] not in (" ", "-"):
            yield question[start:end]
            start = -1
        start, end = word.start() if start < 0 else start, word.start() + len(text)
    if start >= 0:
        yield question[start:end]
