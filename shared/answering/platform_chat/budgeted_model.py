"""Model calls before an answer: they share a budget of tokens and time."""

import asyncio
import logging
import math

from shared.errors import RagError
from shared.models.chat_gateway import ChatGateway
from shared.models.chat_stream import completion_text, usage_in
from shared.models.model_capabilities import Author
from shared.text.prompt_fence import Fence
from shared.text.token_count import count_tokens
from shared.types import Usage

log = logging.getLogger("rag")


class BudgetedModel:
    """The calls of one turn and their usage. `tokens` and `seconds` limit all of them together."""

    def __init__(self, gateway: ChatGateway, model: str, tokens: int, seconds: float) -> None:
        self._gateway = gateway
        self._model = model
        self._tokens = tokens
        self._deadline = asyncio.get_running_loop().time() + seconds
        self.usage = Usage()

    @property
    def is_exhausted(self) -> bool:
        return self.usage.total_tokens >= self._tokens or asyncio.get_running_loop().time() >= self._deadline

    async def ask(
        self, task: str, material: str, max_tokens: int, seconds: float = math.inf, **placeholders: object
    ) -> str | None:
        """The model's reply to a task over the material, which is fenced as data. None after a failure or a
        time-out, or if the budget is exhausted. `placeholders` are those of the task."""
        fence = Fence()
        system = fence.system_prompt(task.format(**placeholders), "material")
        user = fence.wrap("material", material)
        cost = count_tokens(system) + count_tokens(user)
        if self.is_exhausted or self.usage.total_tokens + cost > self._tokens:
            return None
        deadline = min(self._deadline, asyncio.get_running_loop().time() + seconds)
        request = {
            "model": self._model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "temperature": 0,
            "max_tokens": max_tokens,
        }
        try:
            async with asyncio.timeout_at(deadline):
                answer = await self._gateway.complete(request, Author.PRODUCT)
        except (RagError, TimeoutError) as failed:
            # The turn proceeds without the reply.
            log.warning(
                "a model call before the answer failed (%s): the answer proceeds without it",
                type(failed).__name__,
            )
            self.usage += Usage(cost, 0)
            return None
        # Lone surrogates are replaced.
        text = completion_text(answer).encode("utf-8", "replace").decode()
        self.usage += usage_in(answer) or Usage(cost, count_tokens(text))
        return text
