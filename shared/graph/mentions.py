"""Places in a text where something is named, and the text with those hidden that are taken."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

# As long as what it stands for; of no word, no script, and no sentence.
HIDDEN = "\x00"


@dataclass(frozen=True, slots=True)
class Mention:
    """text[start:end] names `name`. Nested ones are parts of another, and take no part in relations."""

    start: int
    end: int
    name: str
    kind: str = "name"
    nested: bool = False


def hide(text: str, spots: Iterable[Mention]) -> str:
    """The text, as long, without what is named already."""
    pieces: list[str] = []
    reached = 0
    for spot in sorted(spots, key=lambda spot: spot.start):
        if spot.nested or spot.start < reached:
            continue
        pieces += [text[reached : spot.start], HIDDEN * (spot.end - spot.start)]
        reached = spot.end
    return "".join([*pieces, text[reached:]])


def spot_of(match: re.Match[str], kind: str, group: int | str = 0, name: str | None = None) -> Mention:
    return Mention(match.start(group), match.end(group), name or match[group], kind)
