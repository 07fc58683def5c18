"""Words that comments, docstrings, messages and documents avoid (the rules of prose in CONTRIBUTING.md)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from local import ROOT

AVOIDED = re.compile(
    r"\b(whoever|nobody|somebody|everybody|anybody)\b"
    r"|\bwhat(ever)? (is|was|are|were)\b"
    # Participles as nouns.
    r"|\b(the|a|all|each|its|their|these) (said|found|asked|wanted|kept)(?=[.,;:)]| (is|are|in|of|by|that)\b)"
    # Metaphors.
    r"|\b(patience|hinges?|seals?|sealed)\b",
    re.IGNORECASE,
)
# A string or a comment of Python. The module tokenize takes eight times as long.
STRING_OR_COMMENT = re.compile(
    r"""(?:'{3}(?:[^\\]|\\.)*?'{3}|"{3}(?:[^\\]|\\.)*?"{3}|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|(#[^\n]*)""",
    re.DOTALL,
)
# Quotations, code and links are not this project's prose.
QUOTED = re.compile(r"```.*?```|`[^`]*`|\"[^\"\n]*\"|“[^”]*”", re.DOTALL)
CODE = ("shared", "functions", "local", "bench", "verify", "sdk/python", "tests")
PAGES = (
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "sql/README.md",
    "sdk/*/README.md",
)  # fmt: skip
COMMENTED = (
    "Makefile",
    "Dockerfile",
    ".env.example",
    "*.yml",
    ".github/workflows/*.yml",
    "*.toml",
    "*.txt",
    ".ci/run",
)
SCRIPTS = ("local/playground/*.js", "local/playground/*.html", "sdk/typescript/src/**/*.ts")
# Texts that contracts fix to the letter.
FIXED: tuple[str, ...] = ()


def _python(path: Path) -> Iterator[str]:
    """Comments, docstrings and the messages of raised errors."""
    text = path.read_text()
    yield from (comment[1] for comment in STRING_OR_COMMENT.finditer(text) if comment[1])
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
        if isinstance(node, ast.Raise):
            constants = (part for part in ast.walk(node) if isinstance(part, ast.Constant))
            yield from (part.value for part in constants if isinstance(part.value, str))


def _prose() -> Iterator[tuple[Path, str]]:
    for folder in CODE:
        for path in ROOT.glob(f"{folder}/**/*.py"):
            yield from ((path, text) for text in _python(path))
    # In SQL, strings are comments of the catalogue and messages.
    for pattern in ("sql/**/*.sql", *PAGES):
        yield from ((path, path.read_text()) for path in ROOT.glob(pattern))
    for pattern in (*COMMENTED, *SCRIPTS):
        for path in ROOT.glob(pattern):
            yield from ((path, line) for line in re.findall(r"(?:^|\s)(?:#|//|/?\*+)\s.*", path.read_text()))


def test_no_avoided_words():
    faults = [
        f"{path.relative_to(ROOT)}: …{text[max(0, match.start() - 40) : match.end() + 40]!r}"
        for path, text in _prose()
        if not path.is_relative_to(ROOT / "tests" / "mutation" / "mutants")
        for match in AVOIDED.finditer(QUOTED.sub(lambda quoted: " " * len(quoted[0]), text))
        if not any(fixed in text for fixed in FIXED)
    ]
    assert faults == []
