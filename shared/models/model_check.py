"""Requests of a word to an answering model, which show whether it answers."""

import asyncio

from shared.errors import GenerationTimedOut, RagError
from shared.models.chat_gateway import ChatGateway
from shared.models.model_capabilities import Author

WORDS = "Reply with the word: yes"
MAX_TOKENS = 16


def error_of(gateway: ChatGateway, seconds: float) -> RagError | None:
    """The error of a request to the model, within so many seconds; None for an answer. For a thread without
    an event loop."""
    message = {"role": "user", "content": WORDS}
    request = {"model": gateway.model, "messages": [message], "temperature": 0, "max_tokens": MAX_TOKENS}

    async def ask() -> None:
        async with asyncio.timeout(seconds):
            await gateway.complete(request, Author.PRODUCT)

    try:
        asyncio.run(ask())
    except TimeoutError:
        return GenerationTimedOut()
    except RagError as error:
        return error
    return None
