"""Deep reasoning: decomposition of a question into queries, and searches for them within limits.

A model plans the queries, and further ones from the matches; rules plan without a model or after a failure.
Each query is searched once. A plan without a new query ends the search."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from shared.answering.platform_chat.budgeted_model import BudgetedModel
from shared.answering.platform_chat.types import ReasoningStep, Sources, SubQuery
from shared.text.normalize import is_one_line
from shared.types import JudgedSearch, Judgement, Match

# The budget of tokens and partial questions, and the time limit as a share of the model's time-out.
MULTI_STEP_TOKENS, MULTI_STEP_QUERIES, MULTI_STEP_SHARE = 20_000, 6, 2
# Plans per question, with the first.
ROUNDS = 3
MAX_TOKENS = 600
MAX_CHARACTERS = 500
# The passages in the request for a further plan.
PASSAGE_CHARACTERS = 400
MAX_PASSAGES = 3
SYNTHESIS = "Putting together what was found"
_REPLY = (
    'Reply with JSON alone: {{"steps": [{{"description": "...", "query": "..."}}]}}, at most {limit} of '
    "them; description says in a few words what the step finds out, query is one question for a search "
    "engine, whole in itself, in the question's language."
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
# A longer question is not decomposed. The patterns below expect single spaces.
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

Search = Callable[[str], Awaitable[JudgedSearch]]


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A short description for the user, and the search query."""

    description: str
    query: str


@dataclass(slots=True)
class SubQueryResults:
    """Results by query, in the order of the searches."""

    by_query: dict[str, JudgedSearch] = field(default_factory=dict)

    def median(self) -> Judgement:
        """The median confidence of the queries. A model's query may match well and answer nothing."""
        judgements = [result.judgement for result in self.by_query.values()]
        ordered = sorted(judgements, key=lambda judgement: judgement.score)
        return ordered[len(ordered) // 2]

    def by_score(self) -> tuple[Match, ...]:
        """Distinct matches with the highest scores first, as they are shown and cited."""
        return tuple(sorted(self.matches(), key=lambda match: -match.score))

    def matches(self) -> tuple[Match, ...]:
        """Distinct matches, the best of each query, then the second of each, and so on: the model's context
        may be too small for all."""
        matches_by_id: dict[str, Match] = {}
        lists = [result.matches for result in self.by_query.values()]
        for rank in range(max(map(len, lists), default=0)):
            for matches in lists:
                if rank < len(matches):
                    matches_by_id.setdefault(matches[rank].chunk_id, matches[rank])
        return tuple(matches_by_id.values())


async def search_in_steps(
    question: str,
    search: Search,
    query_model: BudgetedModel | None,
    results: SubQueryResults,
    *,
    max_queries: int,
    seconds: float,
) -> AsyncGenerator[ReasoningStep | SubQuery | Sources]:
    """Search the planned queries; adds to `results`. Raises as `search`."""
    deadline = asyncio.get_running_loop().time() + seconds
    number, seen = 0, set[str]()
    plan = await _plan(question, query_model, max_queries)
    for turn in range(ROUNDS):
        room = max_queries - number
        new = _new_queries(plan, seen)
        if not new or room < 1:
            break
        for planned in new[:room]:
            if number and asyncio.get_running_loop().time() >= deadline:
                break
            number += 1
            yield ReasoningStep(number, planned.description)
            yield SubQuery(planned.query)
            result = results.by_query[planned.query] = await search(planned.query)
            yield Sources(result.matches)
        if query_model is None or turn == ROUNDS - 1 or asyncio.get_running_loop().time() >= deadline:
            break
        plan = await _plan_missing(question, results, query_model, max_queries - number)
    yield ReasoningStep(number + 1, SYNTHESIS)


def _new_queries(plan: Sequence[PlannedQuery], seen: set[str]) -> list[PlannedQuery]:
    """The queries that are not in `seen`, by their words; adds them to it."""
    new = []
    for query in plan:
        folded = " ".join(re.findall(r"\w+", query.query.casefold()))
        if folded not in seen:
            seen.add(folded)
            new.append(query)
    return new


async def _plan(question: str, query_model: BudgetedModel | None, limit: int) -> list[PlannedQuery]:
    plan = None
    if query_model is not None:
        plan = _parse_plan(await query_model.ask(PLAN, question, MAX_TOKENS, limit=limit))
    return plan or plan_by_rules(question)


async def _plan_missing(
    question: str, results: SubQueryResults, query_model: BudgetedModel, room: int
) -> list[PlannedQuery]:
    if room < 1:
        return []
    lines = [f"QUESTION: {question}"]
    for query, result in results.by_query.items():
        lines.append(f"LOOKED FOR: {query}")
        lines += [
            f"FOUND: {match.title}: {match.text[:PASSAGE_CHARACTERS]}"
            for match in result.matches[:MAX_PASSAGES]
        ]
    return _parse_plan(await query_model.ask(MISSING, "\n\n".join(lines), MAX_TOKENS, limit=room)) or []


def plan_by_rules(question: str) -> list[PlannedQuery]:
    """The question, its single questions, and each of two compared things."""
    line = " ".join(question.split())
    if len(line) > _LONGEST:
        return [PlannedQuery(f"Looking for: {line[:MAX_CHARACTERS]}", question)]
    parts = [part.strip() for sentence in _QUESTION_ENDS.split(line) for part in _AND.split(sentence)]
    if compared := _COMPARED.search(line):
        parts += [compared["one"], compared["other"]]
    # One passage may answer the whole question.
    queries = dict.fromkeys([line, *filter(None, parts)])
    return [PlannedQuery(f"Looking for: {query}", query) for query in queries]


def _parse_plan(reply: str | None) -> list[PlannedQuery] | None:
    """The queries of a model's reply; None for an invalid reply."""
    text = reply or ""
    try:
        reply_object = json.loads(text[text.find("{") : text.rfind("}") + 1])
        steps = reply_object["steps"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    if not isinstance(steps, list):
        return None
    return [query for step in steps if (query := _parse_step(step))]


def _parse_step(step: object) -> PlannedQuery | None:
    if not isinstance(step, dict) or (query := _line(step.get("query"))) is None:
        return None
    return PlannedQuery(_line(step.get("description")) or f"Looking for: {query}", query)


def _line(text: object) -> str | None:
    # JSON may have lone surrogates, which Postgres cannot store.
    line = text.encode("utf-8", "replace").decode().strip() if isinstance(text, str) else ""
    return line if is_one_line(line, MAX_CHARACTERS) else None
