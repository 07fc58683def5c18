"""Intents of a question: org-wide, fresh or timeless content."""

import re

from shared.retrieval.query import MAX_LENGTH

# Characters before the word policy that are examined.
_NEAR = 60
_BEGIN, _END = r"(?<![\w./:@#-])", r"(?![\w@]|[-./:]\w)"
# Things that a person owns rather than the org.
_THING = (
    r"(?:files?|bugs?|tickets?|issues?|tasks?|laptops?|computers?|phones?|desks?|keys?|repos?|repositor(?:y|ies)"
    r"|branch(?:es)?|pull\s+requests?|prs?|commits?|folders?|documents?|docs?|threads?|rows?|tables?|columns?"
    r"|locks?|mutex(?:es)?|pointers?|objects?|process(?:es)?|variables?|buckets?|cars?|accounts?)"
)
_NOT_THIS = (
    rf"(?!\s+(?:(?:of|for)\s+)?(?:this|that|these|my|your|the|his|her)\s+(?:[\w-]+\s+)?{_THING}(?!\w))"
)
_FIELD = r"(?!\s+(?:fields?|columns?|ids?|tags?|labels?|attributes?|annotations?|keys?|propert(?:y|ies))\b)"
# Technical and insurance policies, which are not the org's.
_TECHNICAL = (
    r"(?:row[\s-]+level(?:[\s-]+security)?|rls|cors|csp|content[\s-]+security|cach(?:e|ing)|retry|back[\s-]?off"
    r"|eviction|iam|bucket|(?:auto)?scaling|network|restart|pod|lifecycle|replication|select|insert|update|delete"
    r"|storage|table|database|routing|admission|referrer|same[\s-]+origin|restrictive|permissive|alter|create|drop"
    r"|s3|queue|rate[\s-]+limit(?:ing)?|load[\s-]+balancing|scheduling|pull|compaction|write|reward|gradient"
    r"|kubernetes|k8s|kyverno|opa|rego|gatekeeper|aws|azure|gcp|terraform|docker|regex|insurance)"
)
_TECHNOLOGIES = (
    r"(?:kubernetes|k8s|kyverno|opa|rego|gatekeeper|aws|azure|gcp|iam|terraform|docker|helm|postgres(?:ql)?|supabase"
    r"|redis|kafka|s3|yaml|json)"
)
_BEFORE_POLICY = re.compile(rf"(?<![\w-]){_TECHNICAL}[\s/-]+(?:[\w-]+\s+)?$", re.IGNORECASE)
_ORG_LEVEL = (
    (
        "ownership",
        rf"who\s+(?:owns|own|is\s+the\s+owner|are\s+the\s+owners|is\s+responsible|is\s+in\s+charge|is\s+accountable"
        rf"|maintains){_NOT_THIS}"
        r"|(?:which|what)\s+team\s+(?:owns|maintains|is\s+responsible)"
        r"|owned\s+by\s+(?:which|what)\s+(?:teams?|departments?|groups?|squads?|divisions?|units?|orgs?)"
        rf"|(?:service|team|code|product|component)\s+owner(?:s|ship)?{_FIELD}|ownership\s+of\s+(?:the\s+)?[\w-]+\s+"
        r"(?:service|team|product|component|system|process|budget|area)",
    ),
    (
        "policy",
        r"(?P<policy>polic(?:y|ies))(?!\s+(?:engine|objects?|expressions?|class|functions?|gradient|network"
        r"|based\s+routing|numbers?|documents?|regex(?:es)?|holders?|files?|ids?|manifests?|crds?|statements?)\b)"
        rf"(?!\s+(?:(?:in|on|of|for|with)\s+(?:the\s+|our\s+)?)?{_TECHNOLOGIES}(?!\w))|code\s+of\s+conduct",
    ),
    (
        "roadmap",
        r"(?:road[\s-]?maps?|okrs?)(?!\s+(?:components?|pages?|views?|widgets?|tables?|apis?|screens?|tabs?|plugins?"
        r"|templates?|endpoints?|class(?:es)?|modules?)\b)|company\s+(?:goals?|strategy|vision|objectives?)",
    ),
    (
        "the whole org",
        r"(?:org(?:ani[sz]ation)?|company|firm|business)[\s-]+wide|across\s+(?:(?:the|our)\s+(?:whole\s+|entire\s+)?"
        r"(?:company|org|organi[sz]ation|business)|(?:all|our|the)\s+(?:teams|departments|workspaces))"
        r"|(?:all|every|each)\s+(?:teams?|departments?|workspaces?)(?!\s+(?:members?|leads?|channels?|messages?|chats?"
        r"|calls?|meetings?|buttons?)\b)"
        rf"|(?:our|the\s+whole|the\s+entire)\s+(?:company|organi[sz]ation|org)(?!(?:['’]s)?\s+{_THING}(?!\w))"
        r"|company\s+(?:values|holidays?|handbook|culture|structure)|org\s+chart"
        r"|(?:employee|staff)\s+handbook|headcount",
    ),
)
_RULES = [(name, re.compile(rf"{_BEGIN}(?:{pattern}){_END}", re.IGNORECASE)) for name, pattern in _ORG_LEVEL]
_FRESH = re.compile(
    rf"{_BEGIN}(?:latest|newest|most\s+recent|recent(?:ly)?|lately|currently|right\s+now|these\s+days"
    rf"|up[\s-]+to[\s-]+date|news|nowadays|as\s+of\s+now){_END}",
    re.IGNORECASE,
)
_TIMELESS = re.compile(
    rf"{_BEGIN}(?:definition\s+of|define|meaning\s+of|what\s+does\s+[\w-]+\s+(?:mean|stand\s+for)|history\s+of"
    r"|historical(?:ly)?|original(?:ly)?|of\s+all\s+time|all[\s-]+time|at\s+any\s+time|ever|oldest|earliest"
    rf"|the\s+first\s+time|from\s+the\s+beginning|regardless\s+of\s+(?:date|age|time)){_END}",
    re.IGNORECASE,
)


def org_level(text: str) -> tuple[str, str] | None:
    """The org-level topic of the question and the words that name it; None without one."""
    for name, pattern in _RULES:
        for match in pattern.finditer(text[:MAX_LENGTH]):
            if not _is_technical_policy(text, match):
                return name, " ".join(match.group().split())
    return None


def _is_technical_policy(text: str, match: re.Match[str]) -> bool:
    if not match.groupdict().get("policy"):
        return False
    return _BEFORE_POLICY.search(text, max(0, match.start() - _NEAR), match.start()) is not None


def freshness(text: str) -> str | None:
    """The words that ask for new content."""
    match = _FRESH.search(text[:MAX_LENGTH])
    return match and " ".join(match.group().split())


def timeless(text: str) -> str | None:
    """The words that ask for content that does not age."""
    match = _TIMELESS.search(text[:MAX_LENGTH])
    return match and " ".join(match.group().split())
