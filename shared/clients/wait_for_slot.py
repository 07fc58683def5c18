"""The wait of a call that SQL refused, because too many of its user or org are running (rag.take_slot)."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from shared.clients.bounded_counts import BoundedCounts
from shared.clients.http_client import retry
from shared.errors import TooManyCalls
from shared.types import Principal, PrincipalSource

# While the user or org has too many concurrent calls, for five seconds: most calls end in some hundredths of
# a second, and each attempt costs the database. Each waiting call holds one of the process's forty threads.
SLOT_PAUSES = 0.01, 0.03, 0.1, 0.3, *(0.7,) * 6
MAX_WAITING_OF_USER, MAX_WAITING_OF_ORG, MAX_WAITING = 8, 12, 24
# Of a long write, whose body may have megabytes.
LONG_PAUSES = (0.4, 0.9, 1.5, 2.2)

_waiting_calls = BoundedCounts()


def with_slot(
    caller: PrincipalSource, call: Callable[[Principal], Any], pauses: Sequence[float] = SLOT_PAUSES
) -> Any:
    """The result of the call, repeated for some seconds while the user or org has too many concurrent calls.
    Raises TooManyCalls at once when eight calls of the user, twelve of the org, or 24 of the process wait
    already, so that one org leaves places to the others."""
    has_places: bool | None = None
    with ExitStack() as places:

        def pause(error: BaseException) -> float | None:
            nonlocal has_places
            if not isinstance(error, TooManyCalls):
                return None
            if has_places is None:
                has_places = _take_places(_principal(caller), error.org_id, places)
            return 0.0 if has_places else None

        return retry(lambda: call(_principal(caller)), pauses, pause)


def _take_places(principal: Principal, org_id: str, places: ExitStack) -> bool:
    """Whether the call may wait. It leaves its places as the stack closes."""
    # A download link has scopes and no key. Its reads take no place of the user who created it.
    is_link = principal.scopes is not None and principal.key_id is None
    for name, most in (
        (f"user {principal.user_id} {is_link}", MAX_WAITING_OF_USER),
        (f"org {org_id}", MAX_WAITING_OF_ORG if org_id else MAX_WAITING),
        ("", MAX_WAITING),
    ):
        if not _waiting_calls.add(name, most):
            return False
        places.callback(_waiting_calls.subtract, name)
    return True


def _principal(caller: PrincipalSource) -> Principal:
    return caller if isinstance(caller, Principal) else caller()
