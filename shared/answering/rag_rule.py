"""Answers of the rag contract: its rule is a ceiling of confidence, or decides alone."""

import time
from collections.abc import Sequence
from dataclasses import replace

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.config import Settings
from shared.generation.confidence import CONTRACT_THRESHOLDS, judge_by_contract, limit_to_ceiling
from shared.services import Services
from shared.types import Answer, Judgement, Match, Principal, Query, Thresholds


async def answer(services: Services, caller: Principal, query: Query) -> Answer:
    """As pipeline.answer, with a level by the rag contract's rule if the settings name its thresholds, else
    no higher than the rule permits. Raises a RagError."""
    started = time.perf_counter()
    searched = await run_in_threadpool(pipeline.search_and_judge, services, caller, query)
    judgement = _judged(searched.judgement, searched.matches, services.settings)
    return await pipeline.write_answer(
        services, query, replace(searched, judgement=judgement), started=started
    )


def _judged(judgement: Judgement, matches: Sequence[Match], settings: Settings) -> Judgement:
    high, medium = settings.rag_confidence_high_threshold, settings.rag_confidence_medium_threshold
    if high is None and medium is None:
        return limit_to_ceiling(judgement, matches)
    if high is None:
        high = max(CONTRACT_THRESHOLDS.high, medium or 0.0)
    if medium is None:
        medium = min(CONTRACT_THRESHOLDS.medium, high)
    return judge_by_contract(judgement, matches, Thresholds(high, medium))
