"""Abbreviations and their long forms: data for expansion.py."""

# Both directions are used, and each form occurs once. Capitals match capitals alone: mr, hr and rag are
# words.
ABBREVIATIONS = {
    "k8s": "kubernetes", "db": "database", "auth": "authentication", "authz": "authorization",
    "PR": "pull request", "PRs": "pull requests", "MR": "merge request", "config": "configuration",
    "env": "environment", "repo": "repository", "docs": "documentation", "infra": "infrastructure",
    "prod": "production", "perf": "performance", "admin": "administrator", "postgres": "postgresql",
    "js": "javascript", "i18n": "internationalization", "l10n": "localization", "a11y": "accessibility",
    "o11y": "observability", "SLA": "service level agreement", "SLO": "service level objective",
    "SSO": "single sign-on", "MFA": "multi-factor authentication", "2fa": "two-factor authentication",
    "RLS": "row-level security", "RBAC": "role-based access control", "CI": "continuous integration",
    "RCA": "root cause analysis", "OOM": "out of memory", "DLQ": "dead letter queue", "JWT": "json web token",
    "CLI": "command line", "VPN": "virtual private network", "VM": "virtual machine",
    "LLM": "large language model", "RAG": "retrieval augmented generation",
    "NLP": "natural language processing", "faq": "frequently asked questions",
    "OKR": "objectives and key results", "KPI": "key performance indicator", "POC": "proof of concept",
    "PTO": "paid time off", "WFH": "work from home", "HR": "human resources", "QA": "quality assurance",
    "NDA": "non-disclosure agreement", "GDPR": "general data protection regulation",
    "SRE": "site reliability engineering", "TLS": "transport layer security",
}  # fmt: skip
# Names with inner capitals that are one word.
NAMES = frozenset({
    "github", "gitlab", "javascript", "typescript", "postgresql", "mysql", "mongodb", "sqlite",
    "linkedin", "youtube", "openai", "devops", "graphql", "whatsapp", "paypal", "stackoverflow",
    "bitbucket", "cloudflare", "clickhouse", "duckdb", "opensearch", "elasticsearch", "dynamodb", "macos",
    "wordpress", "salesforce", "hubspot", "servicenow", "powershell", "powerpoint", "fastapi",
    "websocket", "tiktok", "facebook", "airbnb", "doordash", "jetbrains", "intellij",
})  # fmt: skip
