"""Speech to text, by the OpenAI-compatible endpoint that is configured; without one, no sound is read."""

from shared.clients.http import deadline, openai_client
from shared.config import Settings
from shared.errors import TranscriptionFailed, UnreadableDocument
from shared.models.openai_model import OpenAIModel


class Transcriber(OpenAIModel):
    """A speech-to-text model."""

    def text(self, data: bytes, filename: str) -> str:
        """The speech of a recording; the file name's ending tells the endpoint its format.

        Raises UnreadableDocument for what the endpoint refuses, TranscriptionFailed when it fails.
        """
        from openai import APIStatusError, OpenAIError

        try:
            with deadline(self.seconds):
                answer = self._client.audio.transcriptions.create(model=self.model, file=(filename, data))
                return str(answer.text)
        except APIStatusError as error:
            if error.status_code in (400, 413, 415, 422):
                raise UnreadableDocument("The sound could not be written down.") from error
            raise TranscriptionFailed from error
        except (OpenAIError, ValueError, AttributeError) as error:
            raise TranscriptionFailed from error


def transcriber_for(settings: Settings) -> Transcriber | None:
    """The one that the settings name; None without a key."""
    if settings.rag_transcription_key is None:
        return None
    key = settings.rag_transcription_key.get_secret_value()
    seconds = settings.rag_transcription_timeout_seconds
    client = openai_client(key, settings.rag_transcription_url, seconds)
    return Transcriber(client, settings.rag_transcription_model, seconds)
