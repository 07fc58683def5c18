"""Words of an endpoint's error, and their form in the log."""

import re
from collections.abc import Collection, Iterator
from typing import Any

MAX_LOGGED_CHARACTERS = 200
_SECRET = re.compile(
    r"\b(?:sk|pk|key|gsk|xai|AIza)[-\w*.]{6,}|"
    r"\b(?:sk|pk|key|gsk|xai|AIza|pa|jina)[-_][-\w*.]{4,}|Bearer \S+",
    re.IGNORECASE,
)


def strings_in(value: Any, without: Collection[str] = ()) -> Iterator[str]:
    """The strings in a JSON value, in order, but not those in fields of the names in `without`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            if name not in without:
                yield from strings_in(part, without)
    elif isinstance(value, list):
        for part in value:
            yield from strings_in(part, without)


def logged(words: str, key: str) -> str:
    """The beginning of the words, without the `key` of the endpoint and what looks like another."""
    return _SECRET.sub("…", words.replace(key, "…") if key else words)[:MAX_LOGGED_CHARACTERS]
