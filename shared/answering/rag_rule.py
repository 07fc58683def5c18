"""Answers of the rag contract, whose confidence has the contract's rule as a ceiling."""

import time
from dataclasses import replace

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.generation.confidence import limit_to_ceiling
from shared.services import Services
from shared.types import Answer, Principal, Query


async def answer(services: Services, caller: Principal, query: Query) -> Answer:
    """As pipeline.answer, with a level no higher than the rag contract's rule permits. Raises a RagError."""
    started = time.perf_counter()
    searched = await run_in_threadpool(pipeline.search_and_judge, services, caller, query)
    judgement = limit_to_ceiling(searched.judgement, searched.matches)
    return await pipeline.write_answer(
        services, query, replace(searched, judgement=judgement), started=started
    )
