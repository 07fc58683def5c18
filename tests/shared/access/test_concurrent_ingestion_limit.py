"""The limit of one user's ingestions that run at the same time."""

import asyncio

import pytest

from shared.access.concurrent_ingestion_limit import MAX_WAITING, IngestionLimit
from shared.errors import ClientLeft, IngestionBusy


async def nothing() -> None:
    """A check that passes."""


def test_no_more_than_eight_requests_of_a_user_wait():
    async def scenario() -> None:
        limit = IngestionLimit(1)

        async def wait() -> None:
            async with limit.slot("a", 60, nothing):
                pass

        async with limit.slot("a", 0, nothing):
            waiting = [asyncio.create_task(wait()) for _ in range(MAX_WAITING)]
            await asyncio.sleep(0)
            with pytest.raises(IngestionBusy):
                await wait()
            async with limit.slot("b", 0, nothing):
                pass
        await asyncio.gather(*waiting)

    asyncio.run(scenario())


def test_a_waiting_client_that_disconnects_takes_no_slot():
    async def leave() -> None:
        raise ClientLeft

    async def scenario() -> None:
        limit = IngestionLimit(1)
        async with limit.slot("a", 0, nothing):
            with pytest.raises(ClientLeft):
                async with limit.slot("a", 60, leave):
                    pass
        async with limit.slot("a", 0, nothing):
            pass

    asyncio.run(scenario())


def test_a_failed_ingestion_returns_its_slot():
    async def scenario() -> None:
        limit = IngestionLimit(1)
        with pytest.raises(ZeroDivisionError):
            async with limit.slot("a", 0, nothing):
                raise ZeroDivisionError
        async with limit.slot("a", 0, nothing):
            pass

    asyncio.run(scenario())
