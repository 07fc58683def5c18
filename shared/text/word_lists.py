"""Data of a package: TOML files beside its modules."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def word_sets(module: str) -> dict[str, frozenset[str]]:
    """The lists of a module, given its `__file__`: the table of its name in the words.toml beside it."""
    path = Path(module)
    lists: dict[str, str] = read_toml(path.with_name("words.toml"))[path.stem]
    return {name: frozenset(words.split()) for name, words in lists.items()}
