"""Tests that do not count: equality with a copy of the code, and its form."""

# A path, or a test's id.
EXCLUSIONS = (
    # The schema equals the declared schema.
    "tests/sql/test_migrations.py",
    # The catalogue equals the release's.
    "tests/verify/test_catalogue.py",
    "tests/verify/test_run.py",
    # The defect is a migration, newer than the newest that the code names.
    "tests/functions/test_administration.py::test_code_and_database_have_the_newest_migration",
    # The routes equal the checked-in OpenAPI documents.
    "tests/local/tools/test_openapi.py",
    # The form of modules, documents and packages.
    "tests/deploy/test_workflows.py",
    "tests/sdk/test_python_package.py",
    "tests/shared/test_imports.py",
    "tests/shared/test_errors.py::test_the_docstring_is_the_default_message",
    "tests/shared/test_errors.py::test_every_error_class_has_a_docstring_a_status_and_its_own_code",
    "tests/shared/test_errors.py::test_every_code_in_sql_has_its_error_class",
    "tests/test_docs.py",
    "tests/test_prose.py",
)


def pytest_options() -> list[str]:
    """The options of pytest that leave these tests out."""
    return [f"--{'deselect' if '::' in name else 'ignore'}={name}" for name in EXCLUSIONS]
