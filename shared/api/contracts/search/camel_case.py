"""Base models and ids of the search contract, with names in camelCase."""

from functools import partial
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel

from shared.api.contracts.shared_fields import ResponseModel
from shared.text.prefixed_ids import id_with_prefix

DocumentId = Annotated[str, BeforeValidator(partial(id_with_prefix, "doc"))]
ChunkId = Annotated[str, BeforeValidator(partial(id_with_prefix, "chnk"))]
WorkspaceId = Annotated[str, BeforeValidator(partial(id_with_prefix, "ws"))]


class WireModel(BaseModel):
    """Model with camelCase names. Unknown fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)


class ResponsePart(WireModel, ResponseModel):
    """Part of a response, which is made of an object by the names of its fields or their aliases."""
