"""Models of a route's error responses, built for the description alone."""

from typing import Any, ClassVar

from fastapi import FastAPI
from pydantic_core import core_schema

from shared.library_patches.fastapi import LazyResponsesRoute


class ErrorBody:
    builds: ClassVar[int] = 0

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> core_schema.CoreSchema:
        cls.builds += 1
        return core_schema.str_schema()


def test_the_models_of_error_responses_are_built_by_the_description():
    app = FastAPI(responses={404: {"model": ErrorBody}})
    app.router.route_class = LazyResponsesRoute

    @app.get("/")
    def handler() -> None: ...

    assert ErrorBody.builds == 0
    response = app.openapi()["paths"]["/"]["get"]["responses"]["404"]
    assert response["content"]["application/json"]["schema"]["type"] == "string"
    assert ErrorBody.builds == 1
