"""Deep reasoning: a question taken apart, each part looked for, and what is still missing asked for again,
within a number of parts, tokens and seconds. A model plans, or rules where there is none or it fails;
whatever it plans, a part is looked for once, and a plan without a new one is the last.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from shared.answering.platform_chat.budgeted_model import BudgetedModel
from shared.answering.platform_chat.types import Sources, Step, SubQuery
from shared.text.normalize import has_invisible
from shared.types import Match, SearchResult

# How often it is asked what is missing, the first plan included.
ROUNDS = 3
MAX_TOKENS = 600
MAX_CHARACTERS = 500
# What the model sees of a passage when it says what is missing, and of how many.
GLIMPSE_CHARACTERS = 400
GLIMPSES = 3
SYNTHESIS = "Putting together what was found"
_REPLY = (
    'Reply with JSON alone: {{"steps": [{{"description": "...", "query": "..."}}]}}, at most {most} of them; '
    "description says in a few words what the step finds out, query is one question for a search engine, "
    "whole in itself, in the question's language."
)
PLAN = (
    "You plan how to answer a question from an organization's documents. Do not answer it. Take it apart "
    "into the smaller questions whose answers are needed. " + _REPLY
)
MISSING = (
    "You judge whether enough was found to answer a question. You get the question, and what was looked for "
    "and found. Where something that the answer needs is missing, and could be in other documents, "
    'say what to look for, otherwise reply {{"steps": []}}. ' + _REPLY
)
# A longer question is a text, and is looked for as it is. These patterns know single blanks alone.
_LONGEST = 2_000
_QUESTION_ENDS = re.compile(r"(?<=[?？]) ")
_AND = re.compile(
    r" ?(?:;|,? (?:and|or|und|oder|et|y) (?=(?:who|what|when|where|why|which|how|whose|wer|was|wann|wo|"
    r"warum|welche\w*|wie|qui|que|quand|où|pourquoi|quel\w*|comment|quién|qué|cuándo|dónde|por qué|cuál|"
    r"cómo)\b)) ?",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"\b(?:compare|differences? between|contrast) (?P<one>[^,;?.]{2,80}?) (?:and|with|to|versus|vs\.?) "
    r"(?P<other>[^,;?.]{2,80}?)(?=[,;?.]| (?:in|for|on|by|regarding)\b|$)",
    re.IGNORECASE,
)

Look = Callable[[str], Awaitable[SearchResult]]


@dataclass(frozen=True, slots=True)
class Part:
    """What is to be found out, in a few words, and what to look for."""

    description: str
    query: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many parts a question may have, and how long they may take together."""

    parts: int
    seconds: float


@dataclass(slots=True)
class SubQueryResults:
    """What was found for each part, in the order in which they were looked for."""

    by_query: dict[str, SearchResult] = field(default_factory=dict)

    def by_score(self) -> tuple[Match, ...]:
        """All of them, each once, those with the highest scores first: as they are shown and cited."""
        return tuple(sorted(self.matches(), key=lambda match: -match.score))

    def matches(self) -> tuple[Match, ...]:
        """The best of each part, then the second of each, and so on, each once: as a model reads them, whose
        room may end before the last."""
        found: dict[str, Match] = {}
        lists = [found_for.matches for found_for in self.by_query.values()]
        for place in range(max(map(len, lists), default=0)):
            for matches in lists:
                if place < len(matches):
                    found.setdefault(matches[place].chunk_id, matches[place])
        return tuple(found.values())


async def answer_in_steps(
    question: str, look: Look, thinking: BudgetedModel | None, bounds: Bounds, findings: SubQueryResults
) -> AsyncGenerator[Step | SubQuery | Sources]:
    """Look for the question part by part; what is found goes to the findings. Raises what `look` raises."""
    until = asyncio.get_running_loop().time() + bounds.seconds
    number, seen = 0, set[str]()
    parts = await _planned(question, thinking, bounds.parts)
    for turn in range(ROUNDS):
        room = bounds.parts - number
        fresh = _without_known(parts, seen)
        if not fresh or room < 1:
            break
        for part in fresh[:room]:
            if number and asyncio.get_running_loop().time() >= until:
                break
            number += 1
            yield Step(number, part.description)
            yield SubQuery(part.query)
            found = findings.by_query[part.query] = await look(part.query)
            yield Sources(found.matches)
        if thinking is None or turn == ROUNDS - 1 or asyncio.get_running_loop().time() >= until:
            break
        parts = await _missing(question, findings, thinking, bounds.parts - number)
    yield Step(number + 1, SYNTHESIS)


def _without_known(parts: Sequence[Part], seen: set[str]) -> list[Part]:
    """Those that were not looked for yet, however they are written; from now on they are seen."""
    fresh = []
    for part in parts:
        folded = " ".join(re.findall(r"\w+", part.query.casefold()))
        if folded not in seen:
            seen.add(folded)
            fresh.append(part)
    return fresh


async def _planned(question: str, thinking: BudgetedModel | None, most: int) -> list[Part]:
    planned = None
    if thinking is not None:
        planned = _read(await thinking.ask(PLAN, question, MAX_TOKENS, most=most))
    return planned or parts_by_rules(question)


async def _missing(
    question: str, findings: SubQueryResults, thinking: BudgetedModel, room: int
) -> list[Part]:
    if room < 1:
        return []
    told = [f"QUESTION: {question}"]
    for query, found in findings.by_query.items():
        told.append(f"LOOKED FOR: {query}")
        told += [
            f"FOUND: {match.title}: {match.text[:GLIMPSE_CHARACTERS]}" for match in found.matches[:GLIMPSES]
        ]
    return _read(await thinking.ask(MISSING, "\n\n".join(told), MAX_TOKENS, most=room)) or []


def parts_by_rules(question: str) -> list[Part]:
    """The questions in it one by one, of two things that are compared each by itself; at least the
    question."""
    line = " ".join(question.split())
    if len(line) > _LONGEST:
        return [Part(f"Looking for: {line[:MAX_CHARACTERS]}", question)]
    parts = [part.strip() for asked in _QUESTION_ENDS.split(line) for part in _AND.split(asked)]
    if compared := _COMPARED.search(line):
        parts += [compared["one"], compared["other"]]
    # What belongs together may be said in one place: the whole comes first.
    queries = dict.fromkeys([line, *filter(None, parts)])
    return [Part(f"Looking for: {query}", query) for query in queries]


def _read(reply: str | None) -> list[Part] | None:
    """The parts in a model's reply; None where it is no such reply."""
    text = reply or ""
    try:
        said = json.loads(text[text.find("{") : text.rfind("}") + 1])
        steps = said["steps"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    if not isinstance(steps, list):
        return None
    return [part for step in steps if (part := _part(step))]


def _part(step: object) -> Part | None:
    if not isinstance(step, dict) or (query := _line(step.get("query"))) is None:
        return None
    return Part(_line(step.get("description")) or f"Looking for: {query}", query)


def _line(text: object) -> str | None:
    # (JSON may say half a character, which nothing stores.)
    line = text.encode("utf-8", "replace").decode().strip() if isinstance(text, str) else ""
    is_line = 0 < len(line) <= MAX_CHARACTERS and len(line.splitlines()) == 1 and not has_invisible(line)
    return line if is_line else None
