"""Mentions of names in a text, and the text without them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Stands for each hidden character. It belongs to no word, script or sentence.
HIDDEN = "\x00"


@dataclass(frozen=True, slots=True)
class Mention:
    """text[start:end] mentions `name`. A nested mention is part of another one and has no relations."""

    start: int
    end: int
    name: str
    kind: str = "name"
    is_nested: bool = False


def hide(text: str, mentions: Iterable[Mention]) -> str:
    """The text with its mentions hidden, as long as before."""
    pieces: list[str] = []
    position = 0
    for mention in sorted(mentions, key=lambda mention: mention.start):
        if mention.is_nested or mention.start < position:
            continue
        pieces += [text[position : mention.start], HIDDEN * (mention.end - mention.start)]
        position = mention.end
    return "".join([*pieces, text[position:]])


def mention_of(match: re.Match[str], kind: str, group: int | str = 0) -> Mention:
    return Mention(match.start(group), match.end(group), match[group], kind)
