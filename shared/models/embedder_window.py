"""Window of a remote embedder, as its server reports it.

OpenAI's API reports none. vLLM and llama.cpp report it in the list of models, Text Embeddings Inference and
Ollama at routes of their own.
"""

from collections.abc import Mapping
from typing import Any

import httpx

from shared.clients.http_client import deadline, http_client
from shared.errors import EmbeddingFailed

SECONDS = 3.0
# A smaller window leaves no room for a title and a passage.
MIN_WINDOW = 128


def reported_window(url: str, key: str, model: str) -> int | None:
    """The maximum of tokens of an input; None if the server at `url` reports none.

    Raises EmbeddingFailed for a server that does not answer within three seconds.
    """
    root = url.removesuffix("/v1")
    try:
        with deadline(SECONDS), http_client(SECONDS) as client:
            client.headers["Authorization"] = f"Bearer {key}"
            return (
                _window_in_models(_body_of(client.get(f"{url}/models")), model)
                or _number_in(_body_of(client.get(f"{root}/info")), "max_input_length")
                or _window_in_details(_body_of(client.post(f"{root}/api/show", json={"model": model})))
            )
    except (httpx.HTTPError, UnicodeError) as error:
        raise EmbeddingFailed(log_reason=type(error).__name__) from None


def _body_of(response: httpx.Response) -> Mapping[str, Any]:
    """The JSON object of the response; empty for another response."""
    try:
        body = response.json() if response.is_success else {}
    except ValueError:
        body = {}
    return body if isinstance(body, Mapping) else {}


def _window_in_models(body: Mapping[str, Any], model: str) -> int | None:
    """vLLM's `max_model_len`; llama.cpp's context, of the server or else of the model."""
    data = body.get("data")
    models = [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, list) else []
    named = [entry for entry in models if entry.get("id") == model] or models[: len(models) == 1]
    for entry in named[:1]:
        details = entry.get("meta")
        context = details if isinstance(details, Mapping) else {}
        return (
            _number_in(entry, "max_model_len")
            or _number_in(context, "n_ctx")
            or _number_in(context, "n_ctx_train")
        )
    return None


def _window_in_details(body: Mapping[str, Any]) -> int | None:
    """Ollama's details of a model; the name of the architecture precedes the key."""
    details = body.get("model_info")
    if not isinstance(details, Mapping):
        return None
    keys = [key for key in details if key.endswith(".context_length")]
    return _number_in(details, keys[0]) if keys else None


def _number_in(values: Mapping[str, Any], key: str) -> int | None:
    value = values.get(key)
    return value if type(value) is int and value >= MIN_WINDOW else None
