"""The schema that sql/ declares, and the migration generated from it."""

import hashlib
import re

from local import ROOT

MIGRATIONS = ROOT / "supabase" / "migrations"
# Regenerated until the first release. rag.version() and shared/api/health.py name its date.
MIGRATION = MIGRATIONS / "20261124000000_schema.sql"
SOURCES = ROOT / "sql"


def declared_schema() -> str:
    """All files of sql/ and its folders, in order of their paths."""
    return "\n".join(path.read_text() for path in sorted(SOURCES.rglob("*.sql")))


def exposed_functions() -> dict[str, str]:
    """The kind of caller of each exposed function (direct, unguarded, worker, guarded), by its signature."""
    rows = re.findall(r"\('(\w+)', '(.+)'\)", (SOURCES / "99_grants.sql").read_text())
    return {signature: caller for caller, signature in rows}


def digest() -> str:
    """SHA-256 of the declared schema, in hexadecimal."""
    return hashlib.sha256(declared_schema().encode()).hexdigest()
