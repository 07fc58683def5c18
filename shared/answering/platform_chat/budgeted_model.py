"""What a model is asked on the way to an answer: within a time, and within so many tokens for all of it."""

import asyncio
import logging
import math
import secrets

from shared.errors import RagError
from shared.models.chat_gateway import ChatGateway
from shared.models.chat_reply import choices, content_of, usage_in
from shared.text.token_count import count_tokens
from shared.types import Usage

log = logging.getLogger("rag")


class BudgetedModel:
    """One turn's calls, and what they cost. `tokens` and `seconds` are for all of them."""

    def __init__(self, gateway: ChatGateway, model: str, tokens: int, seconds: float) -> None:
        self._gateway = gateway
        self._model = model
        self._tokens = tokens
        self._until = asyncio.get_running_loop().time() + seconds
        self.usage = Usage()

    @property
    def is_spent(self) -> bool:
        used = self.usage.prompt_tokens + self.usage.completion_tokens
        return used >= self._tokens or asyncio.get_running_loop().time() >= self._until

    async def ask(
        self, task: str, material: str, max_tokens: int, seconds: float = math.inf, **words: object
    ) -> str | None:
        """What the model says to a task over material, which is data; None where it fails, takes longer than
        so many seconds, or nothing is left to spend. The task may say {nonce}, which stands in the markers
        around the material, and the words."""
        nonce = secrets.token_hex(8)
        system = task.format(nonce=nonce, **words)
        user = f"<<material-{nonce}>>\n{material}\n<<end-{nonce}>>"
        cost = count_tokens(system) + count_tokens(user)
        used = self.usage.prompt_tokens + self.usage.completion_tokens
        if self.is_spent or used + cost > self._tokens:
            return None
        until = min(self._until, asyncio.get_running_loop().time() + seconds)
        request = {
            "model": self._model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "temperature": 0,
            "max_tokens": max_tokens,
        }
        try:
            async with asyncio.timeout_at(until):
                answer = await self._gateway.complete(request)
        except (RagError, TimeoutError) as failed:
            # A question can be answered without: it is looked for as it stands.
            log.warning("a model failed on the way to an answer: %s", type(failed).__name__)
            self._add(Usage(cost, 0))
            return None
        text = "".join(content_of(choice.get("message")) for choice in choices(answer)[:1])
        # Half a character is none.
        text = text.encode("utf-8", "replace").decode()
        self._add(usage_in(answer) or Usage(cost, count_tokens(text)))
        return text

    def _add(self, usage: Usage) -> None:
        self.usage = Usage(
            self.usage.prompt_tokens + usage.prompt_tokens,
            self.usage.completion_tokens + usage.completion_tokens,
        )
