"""Each function's OpenAPI document is checked in: whatever changes what clients see, changes a file."""

import json

import pytest

from functions.server import SLUGS
from local import openapi


def test_the_document_is_the_one_that_is_checked_in(subtests: pytest.Subtests):
    """`make openapi` writes them anew."""
    for slug in SLUGS:
        with subtests.test(slug=slug):
            assert (openapi.FOLDER / f"{slug}.json").read_text() == openapi.document_text(slug)


def test_there_is_one_for_each_function_and_for_nothing_else():
    assert {path.stem for path in openapi.FOLDER.iterdir()} == set(SLUGS)


def test_every_operation_names_its_errors_with_their_form(subtests: pytest.Subtests):
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
