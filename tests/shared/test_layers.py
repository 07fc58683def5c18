"""Imports flow one way: what a module of shared/ may know of the others, and of the world."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from local.tools import ROOT

SHARED = ROOT / "shared"
# Each module may import those of the lines above its own, and those before it on its own line.
LAYERS = (
    ("types", "errors", "config", "trace", "resolver", "concurrency", "patience", "networks"),
    (
        "logs",
        "spans",
        "sse",
        "tokens",
        "sentences",
        "words",
        "rows",
        "languages",
        "citations",
        "refusals",
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
    ("looks", "pipeline", "chat.complete", "chat.models", "metrics", "retrieval", "alike"),
    ("conversations.grammar", "conversations.english", "conversations.german", "conversations.french"),
    ("conversations.spanish", "conversations.follow_ups"),
    ("conversations.nouns", "conversations.presets", "conversations.thinking", "conversations.memory"),
    ("conversations.sessions",),
    ("conversations.rewrite", "conversations.deep", "conversations.prompt"),
    ("conversations.work", "conversations.writing", "conversations.turn"),
    ("answers.prompt", "answers.compose", "answers.answer", "answers.once"),
    (
        "dialects.ignored",
        "dialects.moments",
        "dialects.rag",
        "dialects.api_keys",
        "dialects.platform",
        "dialects.detail",
    ),
    ("dialects.collections", "dialects.documents", "dialects.webhooks", "dialects.index", "dialects.chat"),
    ("dialects.conversations", "dialects.conversed", "dialects.chat_sessions"),
    ("dialects.v1", "dialects.search", "dialects.similar", "dialects.contents", "dialects.answer"),
    ("probes", "health", "stats", "orgs", "dialects.retrievals", "dialects.administration"),
    ("dialects.knowledge", "knowledge", "agent_tool"),
    ("callers", "once", "edge", "app", "reference"),
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
# Modules of shared/ that a dialect may import.
USED_BY_DIALECTS = {
    "types",
    "errors",
    "policy",
    "refusals",
    "keys",
    "sizes",
    "dialects.rag",
    "dialects.platform",
    "dialects.detail",
    "dialects.index",
    "dialects.conversations",
    "dialects.ignored",
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
ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "environ", "getenv"}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def imported(nodes: Iterator[ast.AST]) -> set[str]:
    """Full names of all imports; of `from a import b` both a and a.b, since b may be a module."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@cache
def imports(module: str) -> set[str]:
    """Full names of all imports of a module, inside functions too."""
    return imported(ast.walk(tree(module)))


def of_shared(names: set[str]) -> set[str]:
    return {name.removeprefix("shared.") for name in names if name.startswith("shared.")} & set(MODULES)


def of_libraries(names: set[str], libraries: set[str]) -> set[str]:
    """The names that are one of the libraries, or one of their modules."""
    return {name for name in names if any(f"{name}.".startswith(f"{library}.") for library in libraries)}


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


def offenders(found: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """Modules with forbidden names, and these names."""
    return {module: sorted(names) for module, names in found.items() if names}


def test_the_layers_name_every_module():
    assert sorted(ORDER) == sorted(MODULES)


def test_imports_are_written_in_full():
    relative = {
        module: {
            ast.unparse(node)
            for node in ast.walk(tree(module))
            if isinstance(node, ast.ImportFrom) and node.level > 0
        }
        for module in MODULES
    }
    assert offenders(relative) == {}


def test_imports_flow_one_way():
    """A module imports only modules that stand before it in the order."""
    later = {module: of_shared(imports(module)) - set(ORDER[:place]) for place, module in enumerate(ORDER)}
    assert offenders(later) == {}


def test_the_core_imports_no_dialect():
    dialects = {
        module: {name for name in imports(module) if name.startswith("shared.dialects")}
        for module in MODULES
        if not module.startswith("dialects.")
    }
    assert offenders(dialects) == {}


def test_a_dialect_imports_only_what_it_renders():
    others = {
        module: of_shared(imports(module)) - USED_BY_DIALECTS
        for module in MODULES
        if module.startswith("dialects.")
    }
    assert others
    assert offenders(others) == {}


def test_the_core_imports_no_package_that_is_built_on_it():
    outside = {"local", "tests", "bench", "functions"}
    assert offenders({module: of_libraries(imports(module), outside) for module in MODULES}) == {}


def test_only_config_reads_the_environment():
    reads = {
        module: {
            ast.unparse(node)
            for node in ast.walk(tree(module))
            if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node) in ENVIRONMENT
        }
        for module in MODULES
    }
    assert reads.pop("config")
    assert offenders(reads) == {}


def test_slow_libraries_are_imported_only_by_their_users():
    for library, users in LAZY.items():
        others = {module: of_libraries(imports(module), {library}) for module in set(MODULES) - users}
        assert offenders(others) == {}


def test_slow_libraries_are_imported_only_within_functions():
    found = {module: of_libraries(imported(at_import(tree(module).body)), set(LAZY)) for module in MODULES}
    assert offenders(found) == {}


def test_only_readers_import_parsers_of_files():
    """Readers run in a process of their own, so no other process loads a parser."""
    found = {
        module: of_libraries(imports(module), APART) | (imports(module) & READERS)
        for module in MODULES
        if f"shared.{module}" not in READERS
    }
    assert offenders(found) == {}


def test_every_module_has_a_docstring():
    assert [module for module in MODULES if not ast.get_docstring(tree(module))] == []
