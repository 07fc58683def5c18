"""The schema that sql/ declares, and the migration generated from it."""

import hashlib
from pathlib import Path

from local import ROOT

MIGRATIONS = ROOT / "supabase" / "migrations"
# Regenerated until the first release. rag.version() and shared/api/health.py name its date.
MIGRATION = MIGRATIONS / "20261124000000_schema.sql"
SOURCES = ROOT / "sql"


def declared_schema() -> str:
    """All files of sql/ and its folders, in order of their paths."""
    return "\n".join(path.read_text() for path in sorted(SOURCES.rglob("*.sql")))


def write() -> Path:
    """Write the migration; its path."""
    MIGRATIONS.mkdir(exist_ok=True)
    MIGRATION.write_text(declared_schema())
    return MIGRATION


def digest() -> str:
    """SHA-256 of the declared schema, in hexadecimal."""
    return hashlib.sha256(declared_schema().encode()).hexdigest()
