"""Least caller and sufficient scopes of each target, stated apart from the code that checks them."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_suffix(".json")
# The worker is also the look-up of keys: a token for one purpose. `invited` is a user without an org, whom
# the victim org invites.
CALLERS = ("invited", "member", "admin", "worker")


@dataclass(frozen=True)
class Permission:
    """`caller`: the least caller whose request for the shared objects succeeds, one of CALLERS. An API key of
    that user needs one of `scopes`; the scope `admin` suffices everywhere. None: no scope is checked."""

    caller: str
    scopes: frozenset[str] | None

    @property
    def lesser_callers(self) -> tuple[str, ...]:
        return CALLERS[: CALLERS.index(self.caller)]


@cache
def permissions() -> dict[str, Permission]:
    """By the names of targets. A route stands for its aliases."""
    table = json.loads(TABLE.read_text())
    return {
        name: Permission(row["caller"], frozenset(row["scopes"]) if "scopes" in row else None)
        for name, row in table.items()
    }
