"""Models behind OpenAI-compatible endpoints, for threads: the `openai` client within our time limits.

chat_gateway.py is the same gateway's client for event loops.
"""

from typing import TYPE_CHECKING, Any, Self

from shared.clients.http_client import deadline, openai_client
from shared.config import Settings
from shared.errors import ConfigurationError, GenerationFailed, GenerationTimedOut
from shared.models.chat_stream import busy_error, choices, completion_text, read_completion, usage_in
from shared.text.token_count import count_tokens
from shared.types import GeneratedText, Usage

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


class ChatModel(OpenAIModel):
    def complete(self, system: str, user: str, **options: Any) -> GeneratedText:
        """One completion, which may be empty. The request is sent once: a caller waits for it, and a 429 has
        a Retry-After.

        Raises GenerationBusy, GenerationTimedOut or GenerationFailed.
        """
        import httpx2
        from openai import APITimeoutError, OpenAIError, RateLimitError

        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        request = {"model": self.model, "messages": messages, **options}
        try:
            # The raw response: the package's own types accept any content with status 200.
            with deadline(self.seconds):
                reply = self._client.post("/chat/completions", cast_to=httpx2.Response, body=request)
        except RateLimitError as limited:
            raise busy_error(limited.response.headers.get("retry-after", "")) from None
        except APITimeoutError:
            raise GenerationTimedOut from None
        except (OpenAIError, ValueError) as failed:
            raise GenerationFailed from failed
        body = read_completion(reply.content)
        if not any("message" in choice for choice in choices(body)[:1]):
            raise GenerationFailed(log_reason="no completion")
        text = completion_text(body)
        usage = usage_in(body) or Usage(count_tokens(system) + count_tokens(user), count_tokens(text))
        return GeneratedText(text, self.model, usage)
