"""Families of documents: their kinds, and the keywords by which a question asks for them."""

import re
from collections.abc import Mapping
from enum import StrEnum

from shared.retrieval.query import MAX_LENGTH
from shared.retrieval.query.family_keywords import KEYWORDS, NAME, OTHER_SENSES


class Family(StrEnum):
    """In the order that breaks ties: rarer and more distinct families first."""

    INCIDENTS = "incidents"
    TICKETS = "tickets"
    CODE = "code"
    MESSAGES = "messages"
    SUMMARIES = "summaries"
    DOCS = "docs"


# Source types by family; each belongs to one family.
KINDS: Mapping[Family, tuple[str, ...]] = {
    Family.DOCS: (
        "doc", "docs", "document", "pdf", "web", "webpage", "page", "html", "wiki", "markdown", "article",
        "faq", "notion", "confluence", "guide", "manual", "runbook", "handbook", "policy", "spec", "rfc",
        "adr", "readme",
    ),
    Family.CODE: (
        "code", "file", "source_file", "pull_request", "pr", "merge_request", "commit", "diff", "repository",
        "gist", "snippet", "notebook", "review",
    ),
    Family.TICKETS: ("issue", "ticket", "task", "bug", "story", "epic", "subtask", "feature_request",
    "support_case"),
    Family.MESSAGES: (
        "message", "email", "mail", "chat", "slack", "slack_message", "teams", "discord", "thread", "comment",
        "conversation", "discussion", "transcript",
    ),
    Family.INCIDENTS: ("incident", "postmortem", "post_mortem", "outage", "alert", "page_alert",
    "incident_report"),
    Family.SUMMARIES: ("summary", "digest", "meeting_notes", "minutes", "notes", "report", "standup",
    "recap", "changelog"),
}  # fmt: skip

_OTHER_SENSES = re.compile(rf"(?<!\w)(?:{'|'.join(OTHER_SENSES)})(?!\w)", re.IGNORECASE)
_NAME = re.compile(rf"(?<![\w/@.-])(?:{NAME})(?![\w@])")
MIN_SCORE = 2


def _pattern(phrase: str) -> str:
    plural = "" if phrase[-1] in "s?]y+)" else "s?"
    return phrase.replace(" ?", r"[\s-]?").replace(" ", r"[\s-]+") + plural


_WEIGHTS = {
    (family, weight): re.compile(
        rf"(?<![\w./@#-])(?:{'|'.join(map(_pattern, phrases))})(?![\w@]|[-./:]\w)", re.IGNORECASE
    )
    for family in Family
    for weight, phrases in KEYWORDS[family].items()
}


def family_of(text: str) -> tuple[Family, str] | None:
    """The family with the highest score, with its strongest keyword; None below MIN_SCORE."""
    text = _OTHER_SENSES.sub(" , ", text[:MAX_LENGTH])
    keywords: dict[Family, str] = {}
    scores: dict[Family, int] = {}
    for (family, weight), pattern in _WEIGHTS.items():
        words = [" ".join(match.group().split()) for match in pattern.finditer(text)]
        if words:
            keywords.setdefault(family, words[0])
            distinct = {word.lower().removesuffix("s") for word in words}
            scores[family] = scores.get(family, 0) + weight * len(distinct)
    if Family.CODE in scores and _NAME.search(text):
        scores[Family.CODE] += 1
    best = max(Family, key=lambda family: scores.get(family, 0))
    return (best, keywords[best]) if scores.get(best, 0) >= MIN_SCORE else None
