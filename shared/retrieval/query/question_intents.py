"""Intents of a question: org-wide, fresh or timeless content."""

import re

from shared.retrieval.query import MAX_LENGTH

_BEGIN, _END = r"(?<![\w./:@#-])", r"(?![\w@]|[-./:]\w)"
_ORG_LEVEL = {
    "ownership": r"who\s+(?:owns?|is\s+the\s+owner|is\s+responsible|is\s+in\s+charge|maintains)"
    r"(?!\s+(?:of\s+|for\s+)?(?:this|that|my|your|his|her)\b)"
    r"|(?:which|what)\s+team\s+(?:owns|maintains|is\s+responsible)|ownership\s+of",
    # Technical policies are not the org's.
    "policy": r"(?<!security )(?<!cache )(?<!retry )(?<!network )polic(?:y|ies)|code\s+of\s+conduct",
    "roadmap": r"road[\s-]?maps?|okrs?|company\s+(?:goals?|strategy|vision)",
    "the whole org": r"(?:org(?:ani[sz]ation)?|company)[\s-]+wide|org\s+chart|(?:employee|staff)\s+handbook"
    r"|(?:across\s+)?(?:all|every|our)\s+(?:teams|departments)|our\s+(?:company|organi[sz]ation)",
}
_RULES = {
    name: re.compile(rf"{_BEGIN}(?:{pattern}){_END}", re.IGNORECASE) for name, pattern in _ORG_LEVEL.items()
}
_FRESH = re.compile(
    rf"{_BEGIN}(?:latest|newest|(?:most\s+)?recent(?:ly)?|lately|currently|right\s+now|these\s+days|news){_END}",
    re.IGNORECASE,
)
_TIMELESS = re.compile(
    rf"{_BEGIN}(?:definition\s+of|define|meaning\s+of|what\s+does\s+[\w-]+\s+(?:mean|stand\s+for)|history\s+of"
    rf"|historical(?:ly)?|original(?:ly)?|of\s+all\s+time|ever|oldest|earliest){_END}",
    re.IGNORECASE,
)


def org_level(text: str) -> tuple[str, str] | None:
    """The org-level topic of the question and the words that name it; None without one."""
    for name, pattern in _RULES.items():
        if words := _words(pattern, text):
            return name, words
    return None


def freshness(text: str) -> str | None:
    """The words that ask for new content."""
    return _words(_FRESH, text)


def timeless(text: str) -> str | None:
    """The words that ask for content that does not age."""
    return _words(_TIMELESS, text)


def _words(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text, 0, MAX_LENGTH)
    return match and " ".join(match.group().split())
