"""Each function's OpenAPI document is checked in: whatever changes what clients see, changes a file."""

import json

import pytest

from functions.server import SLUGS
from local.tools import openapi


def test_the_document_equals_the_checked_in_one(subtests: pytest.Subtests):
    """`make generated` writes them anew."""
    for slug in SLUGS:
        with subtests.test(slug=slug):
            assert (openapi.FOLDER / f"{slug}.json").read_text() == openapi.document_text(slug)


def test_there_is_exactly_one_document_for_each_function():
    assert {path.stem for path in openapi.FOLDER.iterdir()} == set(SLUGS)


def test_every_operation_documents_its_errors(subtests: pytest.Subtests):
    for slug in SLUGS:
        with subtests.test(slug=slug):
            document = json.loads(openapi.document_text(slug))
            for operations in document["paths"].values():
                for operation in operations.values():
                    errors = {
                        status: what for status, what in operation["responses"].items() if status >= "400"
                    }
                    assert "500" in errors
                    assert all("content" in what or status == "503" for status, what in errors.items())
