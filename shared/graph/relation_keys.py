"""Keys that state a relation: in key: value lines, YAML and headings of table columns."""

import re
from dataclasses import dataclass
from functools import lru_cache

from shared.graph.relation_patterns import NOUNS, RELATIONS, phrase_at, phrases_of_key

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_APART = re.compile(r"[\W_]+")
_TYPES_BY_KEY = {key: type_ for type_ in RELATIONS for key in phrases_of_key(type_, "keys")}
# Keys whose value is the subject of a block of lines.
SUBJECT_KEYS = frozenset(
    "name service component repository repo project app application module id dienst servicio".split()  # noqa: SIM905
)
_AMBIGUOUS_KEYS = frozenset(
    {"report", "child", "children", "partner", "capital", "patch", "trigger", "section", "part", "twin"}
)


@dataclass(frozen=True, slots=True)
class Key:
    """The value of a forward key is the object of the relation, that of another key its subject."""

    type: str
    is_forward: bool = True


def normalize_key(key: str) -> str:
    """ "depends on" for dependsOn, depends_on and Depends-On."""
    return _APART.sub(" ", _CAMEL.sub(" ", key)).strip().lower()


@lru_cache(4096)
def key_of(text: str) -> Key | None:
    key = normalize_key(text)
    if key in _TYPES_BY_KEY:
        return Key(_TYPES_BY_KEY[key], is_forward=_TYPES_BY_KEY[key] != "ALIAS_OF" or key == "duplicate of")
    words = key.split()
    if not 0 < len(words) <= 4 or key in _AMBIGUOUS_KEYS:
        return None
    if (role := NOUNS.get("-".join(words))) is not None:
        return Key(role.type, role.is_object)
    phrase = phrase_at(words, 0)
    if phrase is not None and phrase[1] == len(words) and phrase[0].following:
        return Key(phrase[0].type, phrase[0].is_forward)
    return None
