"""Models behind OpenAI-compatible endpoints, for threads: the `openai` client within our time limits.

chat_gateway.py is the same gateway's client for event loops.
"""

from typing import TYPE_CHECKING, Self

from shared.clients.http_client import openai_client
from shared.config import Settings
from shared.errors import ConfigurationError

if TYPE_CHECKING:
    from openai import OpenAI


class OpenAIModel:
    """One model of one endpoint. Safe to use from many threads. `seconds` is the limit of a whole request."""

    def __init__(self, client: "OpenAI", model: str, seconds: float) -> None:
        self._client = client
        self.model = model
        self.seconds = seconds

    @classmethod
    def of_gateway(cls, settings: Settings, setting: str, model: str | None, seconds: float) -> Self | None:
        """The gateway's model that a setting names, None where it names none. Raises ConfigurationError for a
        model without a key."""
        if model is None:
            return None
        if settings.rag_llm_api_key is None:
            raise ConfigurationError(
                f"{setting}: set RAG_LLM_API_KEY too; a gateway without keys accepts any value"
            )
        key = settings.rag_llm_api_key.get_secret_value()
        return cls(openai_client(key, settings.rag_llm_url, seconds, is_gateway=True), model, seconds)

    def close(self) -> None:
        self._client.close()
