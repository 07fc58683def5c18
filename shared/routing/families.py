"""Families of documents that a question may be after,
by words that say so; and which kinds belong to each."""

import re
from collections.abc import Mapping
from enum import StrEnum

from shared.routing import MAX_LENGTH


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
        "faq",
        "notion", "confluence", "guide", "manual", "runbook", "handbook", "policy", "spec", "rfc", "adr",
        "readme",
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

# What says so, and how surely: 3 names the family, 2 belongs to it, 1 is often said of it. A space is any
# white space or a hyphen; plurals in s are seen to.
_EVIDENCE: Mapping[Family, Mapping[int, tuple[str, ...]]] = {
    Family.INCIDENTS: {
        3: ("incident", "outage", "postmortem", "post mortem", "root cause analysis", "rca", "sev [0-5]",
        "sev[0-5]"),
        2: ("downtime", "root cause", "on call", "oncall", "pager ?duty", "went down", "was down", "alert",
        "incident report"),
        1: ("crashed", "degraded", "mitigated", "mitigation", "escalated", "unavailable", "broke"),
    },
    Family.TICKETS: {
        3: ("ticket", "jira", "issue tracker", "bug report", "backlog", "linear issue", "github issue",
        "feature request"),
        2: ("issue", "bug", "story", "stories", "epic", "sprint", "support case", "to ?do list"),
        1: ("task", "assignee", "assigned to", "triage", "blocked by", "reported"),
    },
    Family.CODE: {
        3: ("pull request", "merge request", "commit", "codebase", "source code", "prs?", "source file",
        "code review"),
        2: (
            "repository", "repositories", "repo", "function", "class", "method", "stack ?trace",
            "implementation", "implemented",
            "refactor", "refactoring", "unit test", "diff", "import statement", "code",
        ),
        1: ("implement", "module", "branch", "api call", "compile", "constructor", "decorator", "merged",
        "regex"),
    },
    Family.MESSAGES: {
        3: ("slack", "e ?mail", "message", "chat", "discord", "direct message", "dms?", "ms teams", "inbox"),
        2: ("thread", "conversation", "replied", "reply", "mailing list", "transcript", "wrote", "mentioned",
        "call"),
        1: ("said", "say", "asked", "told", "discussed", "discussion", "announced", "talked"),
    },
    Family.SUMMARIES: {
        3: ("summary", "summaries", "summari[sz]e", "digest", "meeting note", "meeting minutes",
        "minutes of", "recap", "tl;?dr"),
        2: ("overview", "weekly report", "status report", "standup", "stand up", "retrospective",
        "highlights", "changelog"),
        1: ("decided", "decisions", "key points", "takeaways", "wrap up"),
    },
    Family.DOCS: {
        3: ("documentation", "docs?", "wiki", "handbook", "manual", "runbook", "user guide", "readme",
        "knowledge base"),
        2: (
            "guide", "policy", "policies", "specification", "spec", "faq", "tutorial", "white ?paper",
            "article",
            "rfc", "architecture decision", "onboarding", "document", "how ?to",
        ),
        1: ("documented", "explained", "how do i", "how do we", "what is", "procedure", "instructions",
        "guideline"),
    },
}  # fmt: skip
# Said of something else: "class action", "call the function", "issue a refund".
_ELSEWHERE = re.compile(
    r"\b(?:class\s+(?:action|room)|status\s+code|zip\s+code|postal\s+code|country\s+code|code\s+of\s+conduct|dress"
    r"\s+code|qr\s+code|error\s+codes?|error\s+messages?|commit\s+message|commit\s+to|message\s+(?:queue|broker|bus)"
    r"|issue\s+(?:a|an|the)\s|call(?:ed|s)?\s+(?:the|a|an)\s|system\s+call|user\s+manual\s+override|chat\s*gpt"
    r"|chat\s*bots?|thread\s+(?:pool|safety|safe)|method\s+of\s+payment|payment\s+method|new\s+story)",
    re.IGNORECASE,
)


def _pattern(phrase: str) -> str:
    plural = "" if phrase[-1] in "s?]y" else "s?"
    return phrase.replace(" ?", r"[\s-]?").replace(" ", r"[\s-]+") + plural


_WEIGHTS = {
    (family, weight): re.compile(
        rf"(?<![\w./@#-])(?:{'|'.join(map(_pattern, phrases))})(?![\w@]|[-./:]\w)", re.IGNORECASE
    )
    for family, by_weight in _EVIDENCE.items()
    for weight, phrases in by_weight.items()
}


def family_of(text: str) -> tuple[Family, str] | None:
    """The family that most speaks for, with the word that said so most surely; None when nothing says."""
    text = _ELSEWHERE.sub(" ", text[:MAX_LENGTH])
    said: dict[Family, str] = {}
    scores: dict[Family, int] = {}
    for (family, weight), pattern in _WEIGHTS.items():
        words = [" ".join(found.group().split()) for found in pattern.finditer(text)]
        if words:
            said.setdefault(family, words[0])
            scores[family] = scores.get(family, 0) + weight * len({word.lower() for word in words})
    if not scores:
        return None
    best = max(Family, key=lambda family: scores.get(family, 0))
    return best, said[best]
