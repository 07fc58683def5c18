"""What may not be asked or shown, by a model's judgement, where one is configured."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shared.clients.http import deadline, gateway_client
from shared.config import Settings
from shared.errors import ConfigurationError, InvalidRequest, ModerationFailed
from shared.observability.tracing import step

if TYPE_CHECKING:
    from openai import OpenAI


class Moderator:
    """A moderation model behind an OpenAI-compatible gateway. Safe to use from many threads."""

    def __init__(self, client: "OpenAI", model: str, timeout_seconds: float) -> None:
        self._client = client
        self._seconds = timeout_seconds
        self.model = model

    def flagged(self, texts: Sequence[str]) -> list[bool]:
        """Whether each is harmful. Raises ModerationFailed: unjudged text is not shown."""
        from openai import OpenAIError

        try:
            with step("moderate"), deadline(self._seconds):
                answer = self._client.moderations.create(model=self.model, input=list(texts))
            flags = [result.flagged for result in answer.results]
        except (OpenAIError, ValueError, AttributeError, TypeError) as error:
            raise ModerationFailed from error
        if len(flags) != len(texts) or not all(isinstance(flag, bool) for flag in flags):
            raise ModerationFailed
        return flags

    def close(self) -> None:
        self._client.close()


def moderator_for(settings: Settings) -> Moderator | None:
    """The moderator that the settings select, None where they select none. Raises ConfigurationError for a
    model without a gateway."""
    if settings.rag_moderation_model is None:
        return None
    if settings.rag_llm_api_key is None:
        raise ConfigurationError("RAG_LLM_API_KEY: not set, but RAG_MODERATION_MODEL is")
    seconds = settings.rag_llm_timeout_seconds
    key = settings.rag_llm_api_key.get_secret_value()
    client = gateway_client(key, settings.rag_llm_url, seconds)
    return Moderator(client, settings.rag_moderation_model, seconds)


def require_moderator(moderator: Moderator | None) -> Moderator:
    """Raises InvalidRequest where there is none: nobody may believe that something was moderated."""
    if moderator is None:
        raise InvalidRequest(
            "moderation: there is no moderation model on this deployment.",
            code="moderation_off",
            details={"field": "moderation"},
        )
    return moderator
