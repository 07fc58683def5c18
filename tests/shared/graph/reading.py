"""One chunk read, for tests: what it names, and what it says is related."""

from shared.graph.rule_extractor import extract
from shared.graph.types import Extraction

# Names nothing.
NOTES = "Notes"


def read(text: str, title: str = NOTES) -> Extraction:
    return extract(title, [text])[0]


def names(text: str, title: str = NOTES) -> list[str]:
    return [name.name for name in read(text, title).names]


def kinds(text: str, title: str = NOTES) -> dict[str, str]:
    return {name.name: name.kind for name in read(text, title).names}


def relation_texts(text: str, title: str = NOTES) -> list[str]:
    """The relations, as a reader would say them."""
    return [f"{one.subject} {one.type} {one.object}" for one in read(text, title).relations]
