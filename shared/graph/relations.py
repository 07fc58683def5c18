"""Relations that sentences say."""

from shared.graph.nouns import Relation
from shared.graph.spots import Spot


def relations_of(text: str, spots: list[Spot], subject: Spot | None) -> tuple[list[Relation], dict[str, str]]:
    return [], {}
