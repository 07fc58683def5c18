"""What a question wants beyond its words: something of the whole org, something fresh, something timeless."""

import re

from shared.routing import MAX_LENGTH

_BEGIN, _END = r"(?<![\w./:@#-])", r"(?![\w@]|[-./:]\w)"
# Policies of machines, which are no org's.
_OF_MACHINES = (
    r"(?:row[\s-]+level(?:[\s-]+security)?|rls|cors|csp|content[\s-]+security|cach(?:e|ing)|retry|back[\s-]?off"
    r"|eviction|iam|bucket|(?:auto)?scaling|network|restart|pod|lifecycle|replication|select|insert|update|delete"
    r"|storage|table|database|routing|admission|referrer|same[\s-]+origin|restrictive|permissive|alter|create|drop"
    r"|s3|queue|rate[\s-]+limit(?:ing)?|load[\s-]+balancing|scheduling|pull|compaction|write|reward|gradient)"
)
_ORG_LEVEL = (
    (
        "ownership",
        r"who\s+(?:owns|own|is\s+the\s+owner|are\s+the\s+owners|is\s+responsible|is\s+in\s+charge|is\s+accountable"
        r"|maintains)|(?:which|what)\s+team\s+(?:owns|maintains|is\s+responsible)|owned\s+by\s+(?:which|what)"
        r"|(?:service|team|code|product|component)\s+owner(?:s|ship)?|ownership\s+of\s+(?:the\s+)?[\w-]+\s+"
        r"(?:service|team|product|component|system|process|budget|area)",
    ),
    (
        "policy",
        rf"(?<!-)(?P<machine>{_OF_MACHINES}[\s-]+(?:[\w-]+\s+)?)?polic(?:y|ies)(?!\s+(?:engine|object|expression"
        r"|class|function|json|gradient|network|based\s+routing)\b)|code\s+of\s+conduct",
    ),
    ("roadmap", r"road[\s-]?maps?|okrs?|company\s+(?:goals?|strategy|vision|objectives?)"),
    (
        "the whole org",
        r"(?:org(?:ani[sz]ation)?|company|firm|business)[\s-]+wide|across\s+(?:(?:the|our)\s+(?:whole\s+|entire\s+)?"
        r"(?:company|org|organi[sz]ation|business)|(?:all|our|the)\s+(?:teams|departments|workspaces))"
        r"|(?:all|every|each)\s+(?:teams?|departments?|workspaces?)|(?:our|the\s+whole|the\s+entire)\s+"
        r"(?:company|organi[sz]ation|org)|company\s+(?:values|holidays?|handbook|culture|structure)|org\s+chart"
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
    """What makes the question one about the whole org, and the words that say so; None where nothing does."""
    for name, pattern in _RULES:
        for found in pattern.finditer(text[:MAX_LENGTH]):
            if not found.groupdict().get("machine"):
                return name, " ".join(found.group().split())
    return None


def fresh(text: str) -> str | None:
    """The word by which the question asks for what is new."""
    found = _FRESH.search(text[:MAX_LENGTH])
    return found and " ".join(found.group().split())


def timeless(text: str) -> str | None:
    """The words by which the question asks for what does not age."""
    found = _TIMELESS.search(text[:MAX_LENGTH])
    return found and " ".join(found.group().split())
