"""Lines of the form key: value whose key names a relation."""

from shared.graph.spots import Spot


def lines_of(text: str) -> list[Spot]:
    return []
