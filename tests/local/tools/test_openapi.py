"""Each contract's OpenAPI document is checked in: whatever changes what clients see, changes a file."""

import json
from importlib import import_module

import pytest

from functions.server import SLUGS
from local.tools import openapi


def test_the_document_equals_the_checked_in_one(subtests: pytest.Subtests):
    for contract in openapi.CONTRACTS:
        with subtests.test(contract=contract):
            text = openapi.document_text(contract)
            assert (openapi.FOLDER / f"{contract}.json").read_text() == text, "run: make generated"


def test_each_function_is_in_exactly_one_document():
    assert sorted(slug for slugs in openapi.CONTRACTS.values() for slug in slugs) == sorted(SLUGS)
    assert {path.stem for path in openapi.FOLDER.iterdir()} == set(openapi.CONTRACTS)


def test_the_documents_describe_every_served_route_but_the_second_prefix():
    """The attack sweep, the fuzzer and the test of events take routes from the apps or from operations()."""
    served = {
        (slug, method, path)
        for slug, module in SLUGS.items()
        for path, operations in import_module(module).app.openapi()["paths"].items()
        for method in operations
    }
    listed = list(openapi.operations())
    assert len(listed) == len(served)
    assert set(listed) == served


def test_every_operation_documents_its_errors():
    faults = []
    for file in openapi.FOLDER.iterdir():
        for path, operations in json.loads(file.read_text())["paths"].items():
            for method, operation in operations.items():
                errors = {status: what for status, what in operation["responses"].items() if status >= "400"}
                if "500" not in errors or any(
                    "content" not in what and status != "503" for status, what in errors.items()
                ):
                    faults.append(f"{method} {path}")
    assert faults == []
