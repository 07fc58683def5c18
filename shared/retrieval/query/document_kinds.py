"""Families of documents that a question may be after, by words that say so, and which kinds are of each."""

import re
from collections.abc import Mapping
from enum import StrEnum

from shared.retrieval.query import MAX_LENGTH
from shared.retrieval.query.kind_keywords import ELSEWHERE, EVIDENCE, NAME


class Family(StrEnum):
    """In the order in which ties are broken: what is rarer and told apart more surely comes first."""

    INCIDENTS = "incidents"
    TICKETS = "tickets"
    CODE = "code"
    MESSAGES = "messages"
    SUMMARIES = "summaries"
    DOCS = "docs"


# Documents' source types. No kind is of two families.
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

_ELSEWHERE = re.compile(rf"(?<!\w)(?:{'|'.join(ELSEWHERE)})(?!\w)", re.IGNORECASE)
_NAME = re.compile(rf"(?<![\w/@.-])(?:{NAME})(?![\w@])")
# Less than this may be chance.
ENOUGH = 2


def _pattern(phrase: str) -> str:
    plural = "" if phrase[-1] in "s?]y+)" else "s?"
    return phrase.replace(" ?", r"[\s-]?").replace(" ", r"[\s-]+") + plural


_WEIGHTS = {
    (family, weight): re.compile(
        rf"(?<![\w./@#-])(?:{'|'.join(map(_pattern, phrases))})(?![\w@]|[-./:]\w)", re.IGNORECASE
    )
    for family in Family
    for weight, phrases in EVIDENCE[family].items()
}


def family_of(text: str) -> tuple[Family, str] | None:
    """The family that most speaks for, with the word that said so most surely; None when too little does."""
    text = _ELSEWHERE.sub(" , ", text[:MAX_LENGTH])
    evidence: dict[Family, str] = {}
    scores: dict[Family, int] = {}
    for (family, weight), pattern in _WEIGHTS.items():
        words = [" ".join(match.group().split()) for match in pattern.finditer(text)]
        if words:
            evidence.setdefault(family, words[0])
            distinct = {word.lower().removesuffix("s") for word in words}
            scores[family] = scores.get(family, 0) + weight * len(distinct)
    if Family.CODE in scores and _NAME.search(text):
        scores[Family.CODE] += 1
    best = max(Family, key=lambda family: scores.get(family, 0))
    return (best, evidence[best]) if scores.get(best, 0) >= ENOUGH else None
