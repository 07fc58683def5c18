"""Keys that say a relation: of key: value lines, of YAML, and of the columns of tables."""

import re
from dataclasses import dataclass
from functools import lru_cache

from shared.graph.relation_patterns import NOUNS, RELATIONS, phrase_at, phrases_under

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_APART = re.compile(r"[\W_]+")
_MORE = {key: type_ for type_ in RELATIONS for key in phrases_under(type_, "keys")}
# What a block of lines is about, and what the rows of a table are.
SUBJECTS = frozenset(
    "name service component repository repo project app application module id dienst servicio".split()  # noqa: SIM905
)
_NEVER = frozenset(
    {"report", "child", "children", "partner", "capital", "patch", "trigger", "section", "part", "twin"}
)


@dataclass(frozen=True, slots=True)
class Key:
    """Forward: what the line is about is the subject, and the value the object."""

    type: str
    forward: bool = True


def spelled(key: str) -> str:
    """dependsOn, depends_on and Depends-On are depends on."""
    return _APART.sub(" ", _CAMEL.sub(" ", key)).strip().lower()


@lru_cache(4096)
def key_of(text: str) -> Key | None:
    key = spelled(text)
    if key in _MORE:
        return Key(_MORE[key], forward=_MORE[key] != "ALIAS_OF" or key == "duplicate of")
    words = key.split()
    if not 0 < len(words) <= 4 or key in _NEVER:
        return None
    if (role := NOUNS.get("-".join(words))) is not None:
        return Key(role.type, role.is_object)
    phrase = phrase_at(words, 0)
    if phrase is not None and phrase[1] == len(words) and phrase[0].rest:
        return Key(phrase[0].type, phrase[0].forward)
    return None
