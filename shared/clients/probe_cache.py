"""One look for all who ask: what it saw is told to everybody for a while, so that strangers cannot make it
cost more. Nobody waits for another's look, but those who ask before the first has ended."""

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

Subject = TypeVar("Subject")
Seen = TypeVar("Seen")


class CachedProbe(Generic[Subject, Seen]):
    """`fresh` says for how many seconds something that was seen is told again. A look that raises is not
    remembered."""

    def __init__(self, look: Callable[[Subject], Seen], fresh: Callable[[Seen], float]) -> None:
        self._look = look
        self._fresh = fresh
        self._lock = Lock()
        self._seen: WeakKeyDictionary[Subject, tuple[Seen, float]] = WeakKeyDictionary()

    def at(self, subject: Subject, clock: Callable[[], float]) -> Seen:
        if not self._lock.acquire(blocking=subject not in self._seen):
            return self._seen[subject][0]
        try:
            if subject in self._seen:
                seen, when = self._seen[subject]
                if 0 <= clock() - when < self._fresh(seen):
                    return seen
            seen = self._look(subject)
            # From its end: one that waited in vain would be old at once.
            self._seen[subject] = (seen, clock())
            return seen
        finally:
            self._lock.release()
