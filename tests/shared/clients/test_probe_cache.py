"""Looks that all who ask share: how often one looks, and who waits for whom."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from shared.clients.probe_cache import CachedProbe


class Thing:
    """The probed service."""


def test_a_probe_s_result_is_cached_for_its_time():
    ids: list[int] = []

    def look(_: Thing) -> int:
        ids.append(len(ids))
        return len(ids)

    # The first is told for ten seconds, what comes then for one.
    looks: CachedProbe[Thing, int] = CachedProbe(look, lambda value: 10 if value == 1 else 1)
    thing = Thing()
    messages = [looks.at(thing, lambda now=now: now) for now in (0.0, 9.9, 10.0, 10.9, 11.0)]  # type: ignore[misc]
    assert messages == [1, 1, 2, 2, 3]
    assert looks.at(Thing(), lambda: 11.0) == 4


def test_only_callers_without_a_cached_result_wait_for_a_probe():
    begun, ended, first = Event(), Event(), Event()

    def look(_: Thing) -> str:
        if not first.is_set():
            first.set()
            return "before"
        begun.set()
        assert ended.wait(10)
        return "after"

    looks: CachedProbe[Thing, str] = CachedProbe(look, lambda _: 0)
    thing = Thing()
    assert looks.at(thing, lambda: 0) == "before"
    with ThreadPoolExecutor(1) as other:
        looking = other.submit(looks.at, thing, lambda: 1)
        assert begun.wait(10)
        # Beside it.
        assert looks.at(thing, lambda: 1) == "before"
        ended.set()
        assert looking.result(10) == "after"


def test_a_failed_probe_is_not_cached():
    texts: list[Any] = [ValueError("x"), "well"]

    def look(_: Thing) -> str:
        reply = texts.pop(0)
        if isinstance(reply, ValueError):
            raise reply
        return str(reply)

    looks: CachedProbe[Thing, str] = CachedProbe(look, lambda _: 60)
    thing = Thing()
    with pytest.raises(ValueError, match="x"):
        looks.at(thing, lambda: 0)
    assert looks.at(thing, lambda: 0) == "well"
