"""Keywords of each family of documents, and their other senses: data for document_families.py."""

from collections.abc import Mapping

# By weight: 3 names the family, 2 belongs to it, 1 is ambiguous and counts in pairs. A space matches white
# space and hyphens. Plurals in s match too.
KEYWORDS: Mapping[str, Mapping[int, tuple[str, ...]]] = {
    "incidents": {
        3: ("incident", "outage", "postmortem", "post mortem", "root cause analysis", "rca", "sev [0-5]",
            "sev[0-5]"),
        2: ("downtime", "root cause", "pager ?duty", "went down", "was down", "incident report",
            "alert fired", "firing alert"),
        1: ("crash", "crashed", "degraded", "mitigated", "mitigation", "escalated", "unavailable", "broke",
            "alert",
            "on call", "oncall"),
    },
    "tickets": {
        3: ("ticket", "jira", "issue tracker", "bug report", "backlog", "(?:linear|github|gitlab) issue",
            "feature request"),
        2: ("(?:open|closed|known|related) issue", r"issue #?\d+", "bug", "user (?:story|stories)", "epic",
            "sprint",
            "support case", "to ?do list"),
        1: ("issue", "story", "stories", "task", "assignee", "assigned to", "triage", "blocked by",
            "reported"),
    },
    "code": {
        3: ("pull request", "merge request", "commit", "codebase", "source code", "prs?", "source file",
            "code review"),
        2: ("repository", "repositories", "repo", "stack ?trace", "implementation", "implemented", "refactor",
            "refactoring", "unit test", "import statement", "git diff"),
        1: ("function", "class", "classes", "method", "diff", "code", "implement", "module", "branch",
            "branches", "api call", "compile", "constructor", "decorator", "merged", "regex"),
    },
    "messages": {
        3: ("slack", "e ?mail", "message", "chat", "discord", "direct message", "dms?", "ms teams", "inbox"),
        2: ("conversation", "replied", "reply", "mailing list", "transcript", "wrote", "mentioned"),
        1: ("thread", "call", "said", "say", "asked", "told", "discussed", "discussion", "announced",
            "talked"),
    },
    "summaries": {
        3: ("summary", "summaries", "summari[sz]e", "digest", "meeting note", "meeting minutes", "recap",
            "tl;?dr"),
        2: ("overview", "weekly report", "status report", "standup", "stand up", "retrospective",
            "highlights", "changelog"),
        1: ("minutes of", "meeting", "decided", "decisions", "key points", "takeaways", "wrap up"),
    },
    "docs": {
        3: ("documentation", "docs?", "wiki", "handbook", "runbook", "(?:user|owner|reference) manual",
            "user guide", "readme", "knowledge base"),
        2: ("guide", "policy", "policies", "specification", "spec", "faq", "tutorial", "white ?paper",
            "article", "rfc", "architecture decision", "onboarding", "document"),
        1: ("manual", "documented", "explained", "procedure", "instructions", "guideline"),
    },
}  # fmt: skip
# A name as programs have them, beside a word of code.
NAME = r"[a-z0-9]+(?:_[a-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[\w.]+\(\)"

OTHER_SENSES = (
    # Code.
    r"(?:first|second|third|business|economy|world|upper|working|middle|yoga|fitness|dance|cooking"
    r"|language|evening"
    r"|training|master|asset|share)[\s-]+class(?:es)?", r"class\s+action", r"class\s*rooms?",
    r"class\s+schedule",
    r"(?:status|zip|postal|post|country|dress|qr|discount|promo(?:tion)?|coupon|voucher|referral|door"
    r"|gate|entry"
    r"|access|wi[\s-]?fi|area|dial(?:ing)?|tax|gift|vault|alarm|bar|building|security|booking|invite"
    r"|error|morse"
    r"|currency|cost|product|verification|pin)[\s-]+codes?", r"code\s+of\s+(?:conduct|ethics|practice)",
    r"codes?\s+(?:of|for)\s+the\s+(?:vault|door|safe|gate|alarm|building|garage|office)",
    r"job\s+functions?", r"function\s+rooms?", r"(?:bodily|social|business)\s+functions?",
    r"branch\s+(?:offices?|managers?|locations?|number)", r"(?:bank|local|nearest|regional)\s+branch(?:es)?",
    r"methods?\s+of\s+(?:payment|shipping|delivery|transport|contact)", r"payment\s+methods?",
    r"(?:shipping|delivery|contact)\s+methods?", r"commit(?:s|ted)?\s+to", r"commit\s+message",
    r"pr\s+(?:agency|agencies|firms?|teams?|campaigns?|departments?|managers?|strategy|releases?|crisis"
    r"|budget)",
    r"repositor(?:y|ies)\s+of(?!\s+code)", r"module\s+\w+\s+of\s+the\s+(?:training|course|class)",
    r"(?:training|course|learning)\s+modules?", r"compile\s+(?:a|an|the|my)", r"merged\s+compan(?:y|ies)",
    r"compan(?:y|ies)\s+(?:that\s+|which\s+)?merged",
    # Tickets.
    r"issue\s+(?:a|an|the|my|our|new)", r"issue\s+(?:refunds?|invoices?|shares|cards?|badges?|receipts?)",
    r"(?:health|medical|mental|legal|family|trust|date\s+of)\s+issues?", r"new\s+story",
    r"(?:success|customer|news|cover|short|back|life|love|bedtime|brand)\s+(?:story|stories)",
    r"(?:bug|insect)\s+spray", r"bug\s+bites?", r"task\s+forces?",
    # Incidents.
    r"(?:broke|break)\s+even", r"on[\s-]?call\s+(?:pay|allowance|compensation|bonus|hours)",
    r"alerts?\s+on\s+(?:my|the|your)\s+(?:phone|watch|computer)",
    # Messages.
    r"call[\s-]+cent(?:er|re)s?", r"(?:conference|phone|video|zoom|sales|cold|system|roll)\s+calls?",
    r"call(?:ed|s)?\s+(?:the|a|an)", r"error\s+messages?", r"message\s+(?:queue|broker|bus)",
    r"e[\s-]?mail\s+(?:address(?:es)?|signatures?|clients?|servers?|accounts?|lists?|templates?"
    r"|providers?|format"
    r"|domains?|marketing|password)", r"chat\s*gpt", r"chat\s*bots?",
    r"thread[\s-]+(?:pool|safety|safe|counts?)",
    r"slack\s+in\s+(?:the|our|my)\s+(?:schedule|plan|time\s?line|budget|rope|project|market|chain)",
    r"slack\s+(?:time|variables?|off)", r"(?:cut|some|any|enough)\s+slack(?=\s*$|\s+in\b)",
    # Summaries.
    r"(?:\d+|a\s+few|few|several|many|some|two|three|five|ten|fifteen|twenty|thirty"
    r"|sixty)[\s-]+minutes?\s+of",
    r"summary\s+(?:judge?ments?|dismissals?)",
    # Docs.
    r"manual\s+(?:labou?r|approvals?|work|override|transmission)", r"user\s+manual\s+override", r"spec\s+ops",
    r"(?:travel|tour)\s+guides?",
)  # fmt: skip
