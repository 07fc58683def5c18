"""How much an org has, for those who administer it."""

from typing import Any

from shared.pipeline import Pipeline
from shared.types import Principal


def stats(core: Pipeline, caller: Principal) -> dict[str, Any]:
    """How much there is in the orgs that the caller administers. Raises Forbidden where that is none."""
    (row,) = core.database.call(caller, "rag_stats", {}, again=True)
    return dict(row)
