"""Rules on the imports of shared/ that import-linter cannot state: lazy imports, parsers, the environment."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from local import ROOT

SHARED = ROOT / "shared"
# Slow to import, and not needed by every process; and who may import it when it is.
LAZY = {
    "openai": {
        "clients.http_client", "generation.generators", "models.moderation", "models.openai_embedder",
        "models.openai_model", "models.transcription",
    },
    "mangum": {"api.app"},
    "supabase": set[str](),
    "fsspec": {"clients.snapshot_store", "ingestion.sources.bucket"},
    "s3fs": {"ingestion.sources.bucket"},
    "aiohttp": {"ingestion.sources.bucket"},
    "opentelemetry": {"observability.opentelemetry"},
}  # fmt: skip
# What reads strangers' files does it in a process of its own: of the parsers, others import these alone.
APART = {
    "pypdfium2", "html_to_markdown", "lxml", "pptx", "tree_sitter", "trafilatura", "protego", "chardet",
}  # fmt: skip
PARSERS = "shared.ingestion.parsers."
FOR_OTHERS = {f"{PARSERS}{name}" for name in ("parsed_file", "markdown_table", "ocr", "charsets")}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SHARED).with_suffix("").parts)


MODULES = {name_of(path): path for path in sorted(SHARED.rglob("*.py")) if path.name != "__init__.py"}
ENVIRONMENT = {"environ", "environb", "getenv"}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def imported(nodes: Iterator[ast.AST]) -> set[str]:
    """Full names of all imports; of `from a import b` both a and a.b, since b may be a module."""
    results: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            results |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            results |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return results


@cache
def imports(module: str) -> set[str]:
    """Full names of all imports of a module, inside functions too."""
    return imported(ast.walk(tree(module)))


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


def offenders(results: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """Modules with forbidden names, and these names."""
    return {module: sorted(names) for module, names in results.items() if names}


def _last_name(node: ast.Attribute | ast.Name) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id


def test_only_config_reads_the_environment():
    reads = {
        module: {
            ast.unparse(node)
            for node in ast.walk(tree(module))
            if isinstance(node, ast.Attribute | ast.Name) and _last_name(node) in ENVIRONMENT
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
    by_name = {module: of_libraries(imported(at_import(tree(module).body)), set(LAZY)) for module in MODULES}
    assert offenders(by_name) == {}


def test_only_parsers_import_file_libraries():
    """Readers run in a process of their own, so no other process loads a parser."""
    readers = {name for module in MODULES if (name := f"shared.{module}").startswith(PARSERS)} - FOR_OTHERS
    by_name = {
        name: of_libraries(imports(module), APART) | (imports(module) & readers)
        for module in MODULES
        if (name := f"shared.{module}") not in readers
    }
    assert offenders(by_name) == {}


def test_every_module_has_a_docstring():
    assert [module for module in MODULES if not ast.get_docstring(tree(module))] == []
