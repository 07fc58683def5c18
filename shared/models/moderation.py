"""Moderation of questions and results, by a model where one is configured."""

from collections.abc import Sequence

from shared.clients.http_client import deadline
from shared.errors import InvalidRequest, ModerationFailed
from shared.models.openai_model import OpenAIModel
from shared.tracing import step


class Moderator(OpenAIModel):
    def flagged(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is harmful. Raises ModerationFailed if a result is missing."""
        from openai import OpenAIError

        try:
            with step("moderate"), deadline(self.seconds):
                answer = self._client.moderations.create(model=self.model, input=list(texts))
            flags = [result.flagged for result in answer.results]
        except (OpenAIError, ValueError, AttributeError, TypeError) as failed:
            raise ModerationFailed from failed
        if len(flags) != len(texts) or not all(isinstance(flag, bool) for flag in flags):
            raise ModerationFailed
        return flags


def require_moderator(moderator: Moderator | None) -> Moderator:
    """Raises InvalidRequest where there is none: no caller may believe that texts were moderated."""
    if moderator is None:
        raise InvalidRequest(
            "moderation: this deployment has no moderation model. Send the request without it.",
            code="moderation_off",
            details={"field": "moderation"},
        )
    return moderator
