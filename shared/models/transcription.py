"""Speech to text by an OpenAI-compatible endpoint."""

from shared.clients.http_client import deadline, openai_client
from shared.config import Settings
from shared.errors import TranscriptionFailed, UnreadableDocument
from shared.models.openai_model import OpenAIModel

# Other servers know the model by this name too.
MODEL, SECONDS = "whisper-1", 120.0


class Transcriber(OpenAIModel):
    def text(self, data: bytes, filename: str) -> str:
        """The text of a recording, whose format the endpoint knows by the file name's ending.

        Raises UnreadableDocument if the endpoint rejects the recording, TranscriptionFailed if it fails.
        """
        from openai import APIStatusError, OpenAIError

        try:
            with deadline(self.seconds):
                answer = self._client.audio.transcriptions.create(model=self.model, file=(filename, data))
                return str(answer.text)
        except APIStatusError as error:
            if error.status_code in (400, 413, 415, 422):
                raise UnreadableDocument(
                    "The recording could not be transcribed. Check the format of the file."
                ) from error
            raise TranscriptionFailed from error
        except (OpenAIError, ValueError, AttributeError) as error:
            raise TranscriptionFailed from error


def transcriber_for(settings: Settings) -> Transcriber | None:
    """The model that the settings name; None without a key."""
    if settings.rag_transcription_key is None:
        return None
    key = settings.rag_transcription_key.get_secret_value()
    client = openai_client(key, settings.rag_transcription_url, SECONDS)
    return Transcriber(client, MODEL, SECONDS)
