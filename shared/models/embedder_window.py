"""Window of a remote embedder, as its server reports it.

OpenAI's API reports none. vLLM and llama.cpp report it in the list of models, Text Embeddings Inference and
Ollama at routes of their own.
"""

from collections.abc import Mapping
from typing import Any

import httpx

from shared.clients.http_client import deadline, http_client

SECONDS = 3.0
MIN_WINDOW = 32


def reported_window(url: str, key: str, model: str) -> int | None:
    """The maximum of tokens of an input. None if the server at `url` reports none within three seconds."""
    root = url.removesuffix("/v1")
    try:
        with deadline(SECONDS), http_client(SECONDS) as client:
            client.headers["Authorization"] = f"Bearer {key}"
            return (
                _in_models(_body(client.get(f"{url}/models")), model)
                or _positive(_body(client.get(f"{root}/info")), "max_input_length")
                or _in_details(_body(client.post(f"{root}/api/show", json={"model": model})))
            )
    except (httpx.HTTPError, ValueError):
        return None


def _body(response: httpx.Response) -> Mapping[str, Any]:
    if not response.is_success:
        return {}
    body = response.json()
    return body if isinstance(body, Mapping) else {}


def _in_models(body: Mapping[str, Any], model: str) -> int | None:
    """vLLM's `max_model_len`; llama.cpp's context, of the server or else of the model."""
    models = [entry for entry in body.get("data") or [] if isinstance(entry, Mapping)]
    entry = next(
        (entry for entry in models if entry.get("id") == model), models[0] if len(models) == 1 else {}
    )
    details = entry.get("meta")
    return _positive(entry, "max_model_len") or (
        _positive(details, "n_ctx") or _positive(details, "n_ctx_train")
        if isinstance(details, Mapping)
        else None
    )


def _in_details(body: Mapping[str, Any]) -> int | None:
    """Ollama's details of a model; the name of the architecture precedes the key."""
    details = body.get("model_info")
    keys = [key for key in details if key.endswith(".context_length")] if isinstance(details, Mapping) else []
    return _positive(details, keys[0]) if isinstance(details, Mapping) and keys else None


def _positive(values: Mapping[str, Any], key: str) -> int | None:
    value = values.get(key)
    return value if type(value) is int and value >= MIN_WINDOW else None
