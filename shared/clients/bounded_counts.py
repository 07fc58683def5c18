"""Counts by name with a bound, such as the waiting calls of each user."""

from collections import Counter
from threading import Lock


class BoundedCounts:
    """Safe to use from many threads."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = Lock()

    def add(self, name: str, most: int) -> bool:
        """Count one more, unless there are as many as allowed."""
        with self._lock:
            if self._counts[name] >= most:
                return False
            self._counts[name] += 1
            return True

    def subtract(self, name: str) -> None:
        with self._lock:
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]
