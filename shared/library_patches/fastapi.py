"""FastAPI route that builds the models of its error responses for the OpenAPI description alone.

Written for FastAPI 0.165.0, whose `APIRoute` builds them at once and stores them in `response_fields`. Only
the description reads that attribute. Hence this module replaces it by a property.
Without it, the creation of a route takes twice as long: half a second of the start of all functions.
Guarded by tests/shared/library_patches/test_fastapi.py and tests/local/tools/test_openapi.py.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from fastapi.routing import APIRoute
from fastapi.utils import create_model_field


class LazyResponsesRoute(APIRoute):
    def __init__(
        self, path: str, endpoint: Callable[..., Any], *, responses: dict[int | str, Any], **options: Any
    ) -> None:
        super().__init__(path, endpoint, **options)
        self.responses = responses
        # The attribute would hide the property below.
        del self.response_fields

    @cached_property
    def response_fields(self) -> dict[int | str, Any]:  # type: ignore[override]
        return {
            status: create_model_field(f"Response_{status}", response["model"], mode="serialization")
            for status, response in self.responses.items()
            if "model" in response
        }
