"""Data of a package: TOML files beside its modules."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def word_sets(module: str, language: str | None = None) -> dict[str, frozenset[str]]:
    """The lists of a module, given its `__file__`: the table of its name in the words.toml beside it, or that
    table's of a language."""
    table = _table(module)
    lists = table[language].items() if language else table.items()
    return {name: frozenset(words.split()) for name, words in lists if isinstance(words, str)}


def keys_of_words(module: str, name: str) -> dict[str, str]:
    """The key of each word in a module's table of that name."""
    return {word: key for key, words in _table(module)[name].items() for word in words.split()}


def _table(module: str) -> dict[str, Any]:
    path = Path(module)
    table: dict[str, Any] = read_toml(path.with_name("words.toml"))[path.stem]
    return table
