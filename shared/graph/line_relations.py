"""The relations that lines tell, once it is known what they are about."""

from collections.abc import Iterator, Sequence

from shared.graph.alias_resolution import AliasMap
from shared.graph.mentions import Mention
from shared.graph.structured_lines import LineRelation
from shared.graph.types import Relation

_BY_ITSELF = 0.9
_BY_HEADING = 0.85
_BY_TITLE = 0.8


def told_by(
    lines: Sequence[LineRelation], spots: Sequence[Mention], aliases: AliasMap, subject: Mention | None
) -> Iterator[Relation]:
    for line in lines:
        about, confidence = line.subject, _BY_ITSELF
        if about is None and line.heading is not None:
            about, confidence = _heading(line.heading, spots), _BY_HEADING
        if about is None:
            about, confidence = subject, _BY_TITLE
        if about is None:
            continue
        whole = aliases.whole(about).name
        for spot in line.objects:
            other = aliases.whole(spot).name
            first, second = (whole, other) if line.key.forward else (other, whole)
            yield Relation(first, line.key.type, second, confidence)


def _heading(heading: tuple[int, int], spots: Sequence[Mention]) -> Mention | None:
    """What a heading names, if that is most of it."""
    start, end = heading
    for spot in spots:
        if start <= spot.start and spot.end <= end and 2 * (spot.end - spot.start) > end - start:
            return None if spot.kind == "date" else spot
    return None
