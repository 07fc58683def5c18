"""Data of a package: TOML files beside its modules."""

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def word_sets(module: str) -> dict[str, frozenset[str]]:
    """The lists of a module, given its `__file__`: the table of its name in the words.toml beside it."""
    return _sets(_table(module))


def word_sets_by_language(module: str) -> Callable[[str | None], Mapping[str, frozenset[str]]]:
    """The lists of a module by a language's tag (de, en-GB). Without a tag, and for a language without lists,
    each list has the words of all languages. The table of the module's name has a table for each language.
    Words are case-folded, as their readers compare them: größte is grösste."""
    lists = {
        language: {name: frozenset(words.casefold().split()) for name, words in table.items()}
        for language, table in _table(module).items()
    }
    names = {name for of_language in lists.values() for name in of_language}
    whole = {
        name: frozenset[str]().union(*(of_language.get(name, ()) for of_language in lists.values()))
        for name in names
    }
    complete = {language: dict.fromkeys(names, frozenset[str]()) | sets for language, sets in lists.items()}
    return lambda tag: complete.get((tag or "").partition("-")[0].lower(), whole)


def keys_of_words(module: str, name: str) -> dict[str, str]:
    """The key of each word in a module's table of that name."""
    return {word: key for key, words in _table(module)[name].items() for word in words.split()}


def _sets(table: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    return {name: frozenset(words.split()) for name, words in table.items() if isinstance(words, str)}


def _table(module: str) -> dict[str, Any]:
    path = Path(module)
    table: dict[str, Any] = read_toml(path.with_name("words.toml"))[path.stem]
    return table
