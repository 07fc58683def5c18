"""Speech to text, by the OpenAI-compatible endpoint that is configured; without one, no sound is read."""

from typing import TYPE_CHECKING

from shared.clients.http import deadline, openai_client
from shared.config import Settings
from shared.errors import TranscriptionFailed, UnreadableDocument

if TYPE_CHECKING:
    from openai import OpenAI


class Transcriber:
    """Writes down what is said. Safe to use from many threads."""

    def __init__(self, client: "OpenAI", model: str, timeout_seconds: float) -> None:
        self._client = client
        self._seconds = timeout_seconds
        self.model = model

    def text(self, data: bytes, filename: str) -> str:
        """What is said in it; the name's end tells the endpoint its format.

        Raises UnreadableDocument for what the endpoint refuses, TranscriptionFailed when it fails.
        """
        from openai import APIStatusError, OpenAIError

        try:
            with deadline(self._seconds):
                answer = self._client.audio.transcriptions.create(model=self.model, file=(filename, data))
                return str(answer.text)
        except APIStatusError as error:
            if error.status_code in (400, 413, 415, 422):
                raise UnreadableDocument("The sound could not be written down.") from error
            raise TranscriptionFailed from error
        except (OpenAIError, ValueError, AttributeError) as error:
            raise TranscriptionFailed from error

    def close(self) -> None:
        self._client.close()


def transcriber_for(settings: Settings) -> Transcriber | None:
    """The one that the settings name; None without a key."""
    if settings.rag_transcription_key is None:
        return None
    key, seconds = (
        settings.rag_transcription_key.get_secret_value(),
        settings.rag_transcription_timeout_seconds,
    )
    client = openai_client(key, settings.rag_transcription_url, seconds)
    return Transcriber(client, settings.rag_transcription_model, seconds)
