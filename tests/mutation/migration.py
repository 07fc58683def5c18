"""Last migration that plants a defect of sql/ in test databases."""

import re

# Every stack of the tests applies supabase/migrations, so an edit in sql/ alone reaches none of them.
PATH = "supabase/migrations/99999999999999_mutant.sql"

_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?\*/|\bbegin atomic\b.*?\bend(?=;)|'(?:[^']|'')*'|\"[^\"]*\"|\$(\w*)\$.*?\$\1\$|;|\w+|.",
    re.DOTALL,
)
_COMMENT = re.compile(r"\A(?:\s+|--[^\n]*|/\*.*?\*/)*", re.DOTALL)
_POLICY = re.compile(r'create policy ("[^"]+"|\w+)\s+on\s+([\w.]+)')
_TRIGGER = re.compile(r"create (?:constraint )?trigger (\w+)\s.*?\son\s+([\w.]+)", re.DOTALL)
_INDEX = re.compile(r"create (?:unique )?index (\w+)\s+on\s+(\w+)\.")


def statements(text: str) -> list[str]:
    """The statements of an SQL file, without the comments before them and without semicolons."""
    parts = [""]
    for token in _TOKEN.finditer(text):
        if token[0] == ";":
            parts.append("")
        else:
            parts[-1] += token[0]
    return [statement for part in parts if (statement := _COMMENT.sub("", part).strip())]


def script(before: str, after: str, execute: str | None) -> str:
    """The statements that bring a database from one text of a file to the other.

    Raises ValueError for a change that needs `execute`.
    """
    if execute is not None:
        return execute.strip().rstrip(";") + ";\n"
    old, new = statements(before), statements(after)
    if len(old) != len(new):
        raise ValueError("the number of statements changed: give the mutant an `execute` statement")
    changed = [
        repeatable(statement) for previous, statement in zip(old, new, strict=True) if previous != statement
    ]
    if not changed:
        raise ValueError("no statement changed: give the mutant an `execute` statement")
    return "\n".join(changed)


def repeatable(statement: str) -> str:
    """The statement in a form that a database which has it already accepts."""
    if statement.startswith(("create function", "create view")):
        return statement.replace("create ", "create or replace ", 1) + ";\n"
    if statement.startswith(("grant ", "revoke ", "alter ", "create or replace ", "comment ")):
        return statement + ";\n"
    if named := _POLICY.match(statement) or _TRIGGER.match(statement):
        kind = "policy" if statement.startswith("create policy") else "trigger"
        return f"drop {kind} {named[1]} on {named[2]};\n{statement};\n"
    if named := _INDEX.match(statement):
        return f"drop index {named[2]}.{named[1]};\n{statement};\n"
    raise ValueError(f"give the mutant an `execute` statement for: {statement.splitlines()[0]}")
