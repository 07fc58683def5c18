"""The nouns of extraction: what a chunk names, and how it says that these are related."""

import re
from dataclasses import dataclass
from typing import Any

from shared.graph.name_folding import fold

# A document that names ten thousand things stays bounded, a chunk.
MOST_LETTERS = 200
MOST_NAMES = 200
MOST_RELATIONS = 200
_IDEOGRAPHS = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]{2}")

KINDS = frozenset(
    {
        "person",
        "organization",
        "team",
        "place",
        "service",
        "work",
        "identifier",
        "email",
        "date",
        "name",
    }
)


@dataclass(frozen=True, slots=True)
class Name:
    """Something named. `surfaces`: its spellings in the text; weight 0..1: how prominent it is."""

    name: str
    kind: str
    surfaces: tuple[str, ...]
    weight: float

    def row(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "said": list(self.surfaces),
            "weight": round(self.weight, 3),
        }


@dataclass(frozen=True, slots=True)
class Relation:
    """`subject` and `object` are names of the same chunk, or the document's title."""

    subject: str
    type: str
    object: str
    confidence: float

    def row(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "type": self.type,
            "object": self.object,
            "confidence": round(self.confidence, 3),
        }


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one chunk names and says."""

    names: tuple[Name, ...] = ()
    relations: tuple[Relation, ...] = ()

    def row(self) -> dict[str, Any]:
        """The keys that a chunk's row gains."""
        return {
            "names": [name.row() for name in self.names],
            "relations": [relation.row() for relation in self.relations],
        }


def is_name(name: str) -> bool:
    """Whether it is neither too long nor too short: two letters or digits, or ideographs."""
    if not name or len(name) > MOST_LETTERS:
        return False
    folded = fold(name)
    return sum(map(str.isalnum, folded)) >= 2 or _IDEOGRAPHS.search(folded) is not None
