"""Words of an endpoint's error, and their form in the log."""

import re
from collections.abc import Collection, Iterator
from typing import Any

MAX_LOGGED_CHARACTERS = 200
# LiteLLM without a database has these words for a wrong key.
WRONG_KEY = re.compile(
    r"(?:incorrect|invalid|missing|no) api.?key|api.?key.{0,20}(?:not valid|invalid)|no connected db",
    re.IGNORECASE,
)
NO_CREDIT = re.compile(
    r"insufficient[_ ](?:quota|balance|credit|funds)|exceeded your current quota|credit balance|"
    r"(?:no|out of|enough|more) credits?\b|payment required|plan and billing|"
    r"billing (?:hard )?limit|recharge|arrears",
    re.IGNORECASE,
)
WAIT = re.compile(r"(?:try again|retry).{0,20}?in (?:(\d+)m)?(\d+(?:\.\d+)?)(ms|s\b| seconds)", re.IGNORECASE)
NO_MODEL = re.compile(
    r"model.{0,80}(?:not (?:found|exist|supported)|does ?n.t exist|is not a valid|unknown)|"
    r"no endpoints found for|(?:no such|unknown|invalid|unsupported) model|model_not_found|try pulling",
    re.IGNORECASE | re.DOTALL,
)
_SECRET = re.compile(
    r"\b(?:sk|pk|key|gsk|xai|AIza)[-\w*.]{6,}|"
    r"\b(?:sk|pk|key|gsk|xai|AIza|pa|jina)[-_][-\w*.]{4,}|Bearer \S+",
    re.IGNORECASE,
)


def is_without_credit(status: int, words: str) -> bool:
    """Whether the account has no credit. Gemini names a quota where a rate limit is meant."""
    is_rate_limit = status == 429 and (WAIT.search(words) or "rate-limits" in words)
    if is_rate_limit and "insufficient_quota" not in words:
        return False
    return status == 402 or NO_CREDIT.search(words) is not None


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
