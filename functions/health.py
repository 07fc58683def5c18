"""health: is the database reachable, and what does this deployment really use. Needs no token."""

from typing import Any

from starlette.responses import JSONResponse

from shared.api.app import create_app, lambda_handler
from shared.api.contracts import rag
from shared.api.dependencies import Core
from shared.api.health import queue_state, source
from shared.api.probes import State
from shared.models.embeddings import DIMENSIONS
from shared.models.reranking import described

app = create_app(rag, "health", errors=(500,))


@app.get("/health", responses={503: {"description": "The same report, of a database that is gone"}})
def health(core: Core) -> JSONResponse:
    reachable = core.is_reachable()
    settings = core.settings
    report: dict[str, Any] = {
        # KAITO's words; its clients ask for detail too.
        "status": "Healthy" if reachable else "Unhealthy",
        "detail": None if reachable else "The database does not answer.",
        "database": "reachable" if reachable else "unreachable",
        "embedder": {
            "model": core.embedder.model,
            "source": source(settings.openai_api_key, settings.rag_embedding_url),
            "stored_dimensions": DIMENSIONS,
        },
        "generator": {
            "model": core.generator.model,
            "source": source(settings.rag_llm_api_key, settings.rag_llm_url),
        },
        "reranker": {**described(settings), "enabled": settings.rag_rerank_enabled},
        "thresholds": {"high": core.thresholds.high, "medium": core.thresholds.medium},
        # Deployed by itself, this function has no signing key. Then /api/v1/health reports the queue, and
        # /api/keys/health the keys.
        "queue": queue_state(core) if reachable else State.UNKNOWN,
        "api_keys": core.key_ring.algorithm if core.key_ring else "not in this process",
    }
    return JSONResponse(report, 200 if reachable else 503)


handler = lambda_handler(app)
