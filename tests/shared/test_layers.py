"""Imports flow one way: what a module of shared/ may know of the others, and of the world."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from local.tools import ROOT

SHARED = ROOT / "shared"
# Each module may import those of the lines above its own, and those before it on its own line.
LAYERS = (
    ("types", "errors", "config", "trace", "patience", "networks"),
    (
        "logs",
        "spans",
        "sse",
        "tokens",
        "sentences",
        "words",
        "sizes",
        "minilm",
        "postgrest",
        "jwks",
        "clean",
        "outline",
        "fields",
    ),
    ("hosted_rerankers", "local_reranker", "cross_encoder"),
    ("auth", "sign", "seals", "keys", "keyring", "links", "limit", "storage"),
    ("snapshots.places", "snapshots.halves", "snapshots.store", "snapshots.manifest", "snapshots.records"),
    ("readers.common", "readers.picture", "readers.pdf", "readers.markup", "readers.office"),
    ("readers.values", "readers.code", "readers.__main__"),
    ("sandbox", "kinds", "transcribe", "convert", "fetch"),
    ("splitting.marks", "splitting.parts", "splitting.legal", "splitting.academic", "splitting.questions"),
    ("splitting.document_types", "splitting.grammars", "splitting.plan", "splitting.split"),
    (
        "graph.evidence",
        "graph.nouns",
        "graph.spots",
        "graph.dates",
        "graph.kinds",
        "graph.roles",
        "graph.verbs",
        "graph.stopped",
        "graph.tokens",
        "graph.marks",
        "graph.phrases",
        "graph.keys",
    ),
    ("graph.runs", "graph.quoted", "graph.unspaced", "graph.titles", "graph.aliases", "graph.lines"),
    ("graph.telling", "graph.clauses", "graph.hinges", "graph.ends", "graph.relations"),
    ("graph.extract", "graph.asked", "graph.rows", "graph.read", "graph.context"),
    ("embed", "remember", "chunk", "match", "policy", "extract"),
    (
        "routing.periods",
        "routing.dates",
        "routing.relative",
        "routing.spoken",
        "routing.sides",
        "routing.doubts",
        "routing.english",
        "routing.tongues",
        "routing.times",
    ),
    (
        "routing.evidence",
        "routing.families",
        "routing.intents",
        "routing.frames",
        "routing.abbreviations",
        "routing.expand",
        "routing.rewrite",
        "routing.ways",
        "routing.route",
    ),
    ("searched", "highlight", "context", "moderate", "ids", "places", "contents", "idempotency"),
    (
        "support.verdicts",
        "support.markers",
        "support.markup",
        "support.words",
        "support.numbers",
        "support.facts",
    ),
    (
        "support.unspaced",
        "support.names",
        "support.negation",
        "support.roles",
        "support.quotations",
        "support.frames",
    ),
    ("support.passages", "support.coverage", "support.check", "support.units", "support.stream"),
    (
        "generate",
        "passages",
        "ingest",
        "rerank",
        "collections",
        "documents",
        "named",
        "indexes",
        "measures",
    ),
    ("chat.asked", "chat.replies", "chat.reading", "chat.gateway"),
    ("uploads", "removals", "snapshots.persist", "snapshots.loading", "snapshots.load"),
    ("jobs", "prepare", "work"),
    ("graph.reply", "graph.model", "graph.reading", "graph.build"),
    ("webhooks", "deliver"),
    ("pipeline", "chat.complete", "metrics", "retrieval", "alike"),
    ("conversations.nouns", "conversations.presets", "conversations.thinking", "conversations.memory"),
    ("conversations.sessions",),
    ("conversations.rewrite", "conversations.deep", "conversations.prompt"),
    ("conversations.work", "conversations.writing", "conversations.turn"),
    ("answers.prompt", "answers.compose", "answers.answer", "answers.once"),
    ("dialects.moments", "dialects.rag", "dialects.api_keys", "dialects.platform", "dialects.detail"),
    ("dialects.collections", "dialects.documents", "dialects.webhooks", "dialects.index", "dialects.chat"),
    ("dialects.conversations", "dialects.conversed", "dialects.chat_sessions"),
    ("dialects.v1", "dialects.search", "dialects.similar", "dialects.contents", "dialects.answer"),
    ("looks", "probes", "health", "stats", "dialects.retrievals", "dialects.administration"),
    ("dialects.knowledge", "knowledge", "agent_tool"),
    ("callers", "once", "edge", "app"),
)
ORDER = [module for layer in LAYERS for module in layer]
# Slow to import, and not needed by every process; and who may import it when it is.
LAZY = {
    "openai": {"embed", "generate", "moderate", "patience", "transcribe", "routing.rewrite", "graph.model"},
    "mangum": {"app"},
    "supabase": set[str](),
    "fsspec": {"snapshots.store"},
    "opentelemetry": {"spans"},
}
# What reads strangers' files does it in a process of its own: nothing but a reader imports these.
APART = {"pypdfium2", "html_to_markdown", "lxml", "mammoth", "pptx", "openpyxl", "tree_sitter"}
READERS = {"shared.readers.pdf", "shared.readers.markup", "shared.readers.office", "shared.readers.code"}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SHARED).with_suffix("").parts)


MODULES = {name_of(path): path for path in sorted(SHARED.rglob("*.py")) if path.name != "__init__.py"}
every_module = pytest.mark.parametrize("module", MODULES)


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def imported(nodes: Iterator[ast.AST]) -> set[str]:
    """Full names of what is imported; of `from a import b` both a and a.b, since b may be a module."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def of_shared(names: set[str]) -> set[str]:
    return {name.removeprefix("shared.") for name in names if name.startswith("shared.")} & set(MODULES)


def at_import(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes that run when the module is imported: outside functions and TYPE_CHECKING."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            yield from at_import(statement.orelse)
            continue
        yield statement
        for part in ("body", "orelse", "finalbody"):
            yield from at_import(getattr(statement, part, []))
        for handler in getattr(statement, "handlers", []):
            yield from at_import(handler.body)


def test_the_layers_name_every_module():
    assert sorted(ORDER) == sorted(MODULES)


@every_module
def test_imports_flow_one_way(module: str):
    allowed = set(ORDER[: ORDER.index(module)])
    assert of_shared(imported(ast.walk(tree(module)))) <= allowed


@every_module
def test_the_core_knows_no_dialect(module: str):
    if not module.startswith("dialects."):
        assert not [name for name in imported(ast.walk(tree(module))) if name.startswith("shared.dialects")]


@every_module
def test_a_dialect_only_renders(module: str):
    if module.startswith("dialects."):
        assert of_shared(imported(ast.walk(tree(module)))) <= {
            "types",
            "errors",
            "policy",
            "keys",
            "sizes",
            "dialects.rag",
            "dialects.platform",
            "dialects.detail",
            "dialects.index",
            "dialects.conversations",
            "dialects.moments",
            "dialects.v1",
            "dialects.search",
            "searched",
            "routing.ways",
            "trace",
            "chat.asked",
            "chat.replies",
            "conversations.nouns",
            "conversations.presets",
            "health",
            "sse",
        }


@every_module
def test_the_core_knows_nothing_of_what_is_built_around_it(module: str):
    roots = {name.split(".")[0] for name in imported(ast.walk(tree(module)))}
    assert not roots & {"local", "tests", "bench", "functions"}


@every_module
def test_only_config_reads_the_environment(module: str):
    reads = {
        ast.unparse(node)
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Attribute | ast.Name)
        and ast.unparse(node) in {"os.environ", "os.environb", "os.getenv", "environ", "getenv"}
    }
    assert not reads or module == "config"


@every_module
def test_what_is_slow_to_import_is_imported_only_where_and_when_it_is_needed(module: str):
    everywhere, at_once = imported(ast.walk(tree(module))), imported(at_import(tree(module).body))
    for library, users in LAZY.items():
        assert not [name for name in at_once if f"{name}.".startswith(f"{library}.")]
        assert module in users or not [name for name in everywhere if f"{name}.".startswith(f"{library}.")]


@every_module
def test_files_of_strangers_are_read_apart(module: str):
    names = imported(ast.walk(tree(module)))
    if f"shared.{module}" not in READERS:
        assert not READERS & names
        assert not {name.split(".")[0] for name in names} & APART


@every_module
def test_every_module_says_what_it_is_for(module: str):
    said = ast.get_docstring(tree(module))
    assert said
