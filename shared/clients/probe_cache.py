"""A probe of a service with a shared, cached result: unauthenticated requests trigger no more probes.

Only requests that come before the first result wait for a probe that another request makes."""

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

Subject = TypeVar("Subject")
Result = TypeVar("Result")


class CachedProbe(Generic[Subject, Result]):
    """`lifetime` returns for how many seconds a result is used again. A probe that raises leaves none."""

    def __init__(self, probe: Callable[[Subject], Result], lifetime: Callable[[Result], float]) -> None:
        self._probe = probe
        self._lifetime = lifetime
        self._lock = Lock()
        self._results: WeakKeyDictionary[Subject, tuple[Result, float]] = WeakKeyDictionary()

    def at(self, subject: Subject, clock: Callable[[], float]) -> Result:
        if not self._lock.acquire(blocking=subject not in self._results):
            return self._results[subject][0]
        try:
            if subject in self._results:
                result, ended_at = self._results[subject]
                if 0 <= clock() - ended_at < self._lifetime(result):
                    return result
            result = self._probe(subject)
            # From the end of the probe: after a time-out, the result would be too old at once.
            self._results[subject] = (result, clock())
            return result
        finally:
            self._lock.release()
