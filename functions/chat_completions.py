"""chat-completions: OpenAI's chat completions, over documents for an index or the model rag; and models."""

from typing import Annotated

from starlette.responses import Response

from shared.answering.chat_completions import available_models
from shared.answering.chat_completions import completion as completions
from shared.api.app import create_app, lambda_handler
from shared.api.authentication import FreshCaller, require_scope, with_scope
from shared.api.contracts.index import chat_completions as wire
from shared.api.dependencies import Container
from shared.api.sse import DESCRIBED, EventStream, events
from shared.types import Principal, Scope

# Each request has the whole conversation. A megabyte is about 250,000 tokens, more than most models read.
MAX_BYTES = 1024 * 1024

app = create_app(wire, "chat-completions", max_body_bytes=MAX_BYTES, headers=wire.CLIENT_HEADERS)

Asker = Annotated[Principal, with_scope(Scope.CHAT_READ, Scope.RETRIEVALS_READ, anonymous=True)]


@app.post("/v1/chat/completions", response_model=wire.CompletionResponse, responses={200: DESCRIBED})
async def complete(
    caller: Asker, fresh_caller: FreshCaller, services: Container, body: wire.CompletionRequest
) -> Response:
    conversation = body.to_request()
    if conversation.bypasses_documents:
        require_scope(caller, Scope.CHAT_READ)
    if conversation.streams:
        stream = await completions.stream(services, fresh_caller, conversation)
        return EventStream(
            events(stream.parts, wire.encode_part, wire.encode_error, wire.DONE), stream.cleanup
        )
    answer, sources = await completions.complete(services, fresh_caller, conversation)
    return Response(wire.encode_answer(body, answer, sources), media_type="application/json")


@app.get("/v1/models")
def models(caller: Asker, services: Container) -> wire.Models:
    return wire.Models(data=[wire.Model(**model) for model in available_models.models(services, caller)])


handler = lambda_handler(app)
