"""The limit of one user's ingestions that run at the same time."""

import asyncio

import pytest

from shared.access.concurrent_ingestion_limit import MAX_WAITING, IngestionLimit
from shared.errors import ClientLeft, IngestionBusy


async def nothing() -> None:
    """A check that passes."""


def test_a_user_waits_for_a_slot_and_other_users_do_not():
    async def scenario() -> list[str]:
        limit, events = IngestionLimit(2), []

        async def ingest(user: str, number: int) -> None:
            async with limit.slot(user, 60, nothing):
                events.append(f"{user}{number} begins")
                await asyncio.sleep(0.3)
                events.append(f"{user}{number} ends")

        await asyncio.gather(*(ingest("a", number) for number in range(3)), ingest("b", 0))
        return events

    events = asyncio.run(scenario())
    assert set(events[:3]) == {"a0 begins", "a1 begins", "b0 begins"}
    assert events.index("a2 begins") > min(events.index("a0 ends"), events.index("a1 ends"))


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
