"""Waits of the SDKs with Supabase Realtime, over unmodified clients of Supabase: shorter where it works,
and as without it where it fails."""

import asyncio
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from realtime import AsyncRealtimeChannel, AsyncRealtimeClient
from supabase import AsyncClient, AsyncClientOptions, acreate_client

from local import ROOT
from mnemosyne import AsyncMnemosyne
from mnemosyne.aio import realtime
from mnemosyne.models.document import Document
from mnemosyne.retries import Waiting
from tests.realtime_server import FAILURES, RealtimeServer
from tests.sdk.python_client import DOCUMENT, ran
from tests.sdk.typescript_package import KEY, Package, Row
from tests.stand_in_server import Reply, Request, StandIn

ORG, OWNER = "4be3f7db-0000-4000-8000-00000000000a", "4be3f7db-0000-4000-8000-00000000000b"
SHARED, PRIVATE = f"rag:{ORG}", f"rag:{ORG}:{OWNER}"
# The documents that are completed with a message on a channel.
REPORTED = {SHARED: ["shared", "shared-late", "shared-next"], PRIVATE: ["private"]}
TOKEN = "a.b.c"
# Without a message, the next poll while a channel is joined comes after ten seconds.
PROMPT_SECONDS = 8
Run = Callable[[list[Row]], list[Row]]


class Project:
    """Documents: REPORTED ones are completed after their second poll, with a message of Realtime, and others
    at their third or fourth, without one. Realtime's servers by the ways in which they work."""

    def __init__(self, api: StandIn) -> None:
        self.url = api.url
        self.polls: Counter[str] = Counter()
        self.servers: dict[str, RealtimeServer] = {}
        self.joined, self.ended = threading.Event(), threading.Event()
        self._completed: set[str] = set()
        api.replies(Reply(json=self._document))

    def case(self, way: str, *names: str, **more: Any) -> Row:
        channels = {(TOKEN, SHARED), (TOKEN, PRIVATE)}
        server = RealtimeServer(way, may_join=lambda *join: join in channels)
        server.after_join = lambda topic: self._complete(server, topic)
        self.servers[way] = server
        return {"url": server.url, "ids": names, "timeout": 0.4 if way == "is-silent" else 60, **more}

    def _document(self, request: Request) -> Row:
        name = request.path.rpartition("/")[2]
        self.polls[name] += 1
        if name == "shared-late":
            # The wait begins to follow a channel that another one has joined.
            self.joined.wait(PROMPT_SECONDS)
        # A client would join a refused channel again after a second.
        is_reported = any(name in names for names in REPORTED.values())
        last = math.inf if is_reported else 4 if name == "refuses" else 3
        is_completed = name in self._completed or self.polls[name] >= last
        owner = OWNER if name in REPORTED[PRIVATE] else None
        status = "completed" if is_completed else "processing"
        return {**DOCUMENT, "id": name, "org_id": ORG, "owner_id": owner, "status": status}

    def _complete(self, server: RealtimeServer, topic: str) -> None:
        """Complete the documents of a channel, with two messages for each, after a message for another."""
        while not self.ended.wait(0.1):
            if topic == SHARED:
                self.joined.set()
            names = [name for name in REPORTED[topic] if self.polls[name] > 1]
            server.broadcast(topic, "document", {"id": "another", "status": "completed"})
            # A wait that polls now polls too often.
            self.ended.wait(0.3)
            self._completed.update(names)
            for name in 2 * names:
                server.broadcast(topic, "document", {"id": name, "status": "completed"})


@pytest.fixture
def project(gateway: StandIn) -> Iterator[Project]:
    project = Project(gateway)
    yield project
    project.ended.set()


def check_realtime(project: Project, run: Run) -> None:
    """The waits end promptly though they poll rarely: first, then when their channel is joined, then after a
    message for their own document. They share channels, and leave them; the next wait joins again."""
    case = project.case("works", "private", "shared", "shared-late", later="shared-next")
    with project.servers["works"] as server:
        (result,) = run([case])
    names = [*case["ids"], case["later"]]
    assert result["states"] == [f"{name} completed" for name in names]
    assert [project.polls[name] for name in names] == [3] * len(names)
    assert (result["seconds"] < PROMPT_SECONDS, result["channels"], server.faults) == (True, [], [])
    assert sorted(server.joins) == [SHARED, SHARED, PRIVATE]


def check_failures(project: Project, run: Run) -> None:
    """The waits poll. A failed channel is left and not joined again; the caller's own channel stays open."""
    ways = ("refuses", "is-silent", "rejects", *FAILURES)
    cases = [project.case("works", "own", own=SHARED), *(project.case(way, way) for way in ways)]
    with ExitStack() as running:
        for server in project.servers.values():
            running.enter_context(server)
        results = run(cases)
    for case, result in zip(cases, results, strict=True):
        channels = [f"realtime:{SHARED}"] if "own" in case else []
        assert (result["states"], result["channels"]) == ([f"{case['ids'][0]} completed"], channels)
        assert result["seconds"] < PROMPT_SECONDS, case
    joins = {way: server.joins for way, server in project.servers.items()}
    assert joins == {way: [] if way == "rejects" else [SHARED] for way in joins}
    assert [server.faults for server in project.servers.values()] == [[]] * len(joins)


def check_lost_messages(project: Project, run: Run) -> None:
    """The wait polls beside Realtime, which sends nothing."""
    case = project.case("is-deaf", "lost")
    with project.servers["is-deaf"] as server:
        (result,) = run([case])
    assert (result["states"], server.joins, project.polls["lost"]) == (["lost completed"], [SHARED], 3)
    assert result["seconds"] < PROMPT_SECONDS


async def supabase_of(case: Row) -> AsyncClient:
    realtime_options: Any = {"timeout": case["timeout"]}
    options = AsyncClientOptions(realtime=realtime_options, auto_refresh_token=False)
    supabase = await acreate_client(case["url"], "sb_publishable_x", options)
    await supabase.realtime.set_auth(TOKEN)
    return supabase


def in_python(project: Project, cases: list[Row]) -> list[Row]:
    """What realtime.mjs does, with supabase-py."""

    private: Any = {"config": {"private": True}}

    async def result(client: AsyncMnemosyne, case: Row) -> Row:
        supabase = await supabase_of(case)
        if own := case.get("own"):
            await supabase.channel(own, private).subscribe()

        async def wait(name: str) -> str:
            ended = await client.documents.wait_until_ready(name, 60, supabase)
            return f"{ended.id} {ended.status}"

        began = time.monotonic()
        states = await asyncio.gather(*map(wait, case["ids"]))
        if later := case.get("later"):
            states.append(await wait(later))
        seconds = time.monotonic() - began
        channels = [channel.topic for channel in supabase.get_channels()]
        await supabase.realtime.close()
        return {"states": states, "seconds": seconds, "channels": channels}

    async def results() -> list[Row]:
        async with AsyncMnemosyne(KEY, project.url) as client:
            return await asyncio.gather(*(result(client, case) for case in cases))

    return ran(results())


def in_typescript(typescript: Package, project: Project, cases: list[Row], **pauses: int) -> list[Row]:
    given = {"root": f"{ROOT}/", "token": TOKEN, "client": {"apiKey": KEY, "baseUrl": project.url}}
    results: list[Row] = typescript.run("realtime.mjs", {**given, "cases": cases, **pauses})
    return results


def test_python_waits_with_realtime(project: Project, monkeypatch: pytest.MonkeyPatch):
    def pause(waiting: Waiting, _: float | None = None) -> float:
        # Long at first: what ends it is Realtime. Later a wait without Realtime would poll too often.
        is_first, waiting.longest = waiting.longest != 0.1, 0.1
        return 9.0 if is_first else 0.1

    monkeypatch.setattr(Waiting, "pause", pause)
    check_realtime(project, lambda cases: in_python(project, cases))


def test_python_waits_where_realtime_fails(project: Project):
    check_failures(project, lambda cases: in_python(project, cases))


def test_python_waits_without_messages(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(realtime, "POLL_SECONDS", 0.1)
    check_lost_messages(project, lambda cases: in_python(project, cases))


def test_python_polls_where_a_wait_begins_as_the_last_one_ends(project: Project):
    case = project.case("is-deaf")
    document = Document.model_validate({**DOCUMENT, "org_id": ORG})

    async def pauses() -> list[float]:
        supabase = await supabase_of(case)
        first, second = (realtime.Changes(supabase, Waiting(60)) for _ in range(2))
        began = time.monotonic()
        await first.pause(PROMPT_SECONDS, document)
        joined = time.monotonic()
        leaving = asyncio.create_task(first.aclose())
        await asyncio.sleep(0)
        await second.pause(0.2, document)
        ended = time.monotonic()
        await asyncio.gather(leaving, second.aclose())
        return [joined - began, ended - joined]

    with project.servers["is-deaf"] as server:
        to_join, between_polls = ran(pauses())
    assert (server.joins, server.faults) == ([SHARED], [])
    assert to_join < PROMPT_SECONDS > between_polls > 0.19


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (AsyncRealtimeClient, "get_channels"), (AsyncRealtimeClient, "channel"),
        (AsyncRealtimeChannel, "on_broadcast"),
    ],
)  # fmt: skip
def test_python_waits_although_the_client_fails(
    project: Project, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
):
    """The wait polls, and the next one subscribes."""
    working, failures = getattr(owner, name), [RuntimeError("Not now.")]

    def fail_once(*given: Any) -> Any:
        if failures:
            raise failures.pop()
        return working(*given)

    monkeypatch.setattr(owner, name, fail_once)
    case = project.case("works", "polls", later="shared")
    with project.servers["works"] as server:
        (result,) = in_python(project, [case])
    assert result["states"] == ["polls completed", "shared completed"]
    assert (server.joins, result["channels"]) == ([SHARED], [])


def test_typescript_waits_with_realtime(typescript: Package, project: Project):
    pauses = {"first": 9_000, "next": 100, "removal": 300}
    check_realtime(project, lambda cases: in_typescript(typescript, project, cases, **pauses))


def test_typescript_waits_where_realtime_fails(typescript: Package, project: Project):
    check_failures(project, lambda cases: in_typescript(typescript, project, cases))


def test_typescript_waits_without_messages(typescript: Package, project: Project):
    check_lost_messages(project, lambda cases: in_typescript(typescript, project, cases, beside=100))
