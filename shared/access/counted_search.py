"""Search that counts its request and the tokens of its embedding, in one call of the database."""

from typing import Any

from shared.access import token_quotas
from shared.access.rate_limit import UncountedCaller
from shared.access.token_quotas import Quota
from shared.clients.postgrest import Database
from shared.errors import RateLimited


def counted_search(database: Database, caller: UncountedCaller, arguments: dict[str, Any]) -> Any:
    """The rows of rag_search with these arguments, or, if they have no mode, of rag_match. Raises a RagError:
    RateLimited if a limit refuses the request, EmbeddingQuotaExceeded if the org had used up its tokens
    before the embedding."""
    check, usage = caller.check, token_quotas.current.get() or token_quotas.TokenUsage()
    embeddings = [call for call in usage.calls if call[0] is Quota.EMBEDDING]
    tokens = token_quotas.TokenUsage(embeddings).arguments()
    counts = {name: tokens[name] for name in ("embedding_tokens", "embedding_calls")}
    # Repeated after a broken connection: the request and its tokens may then count twice.
    result = database.call(
        caller, "rag_counted_search", arguments | check.arguments() | counts, idempotent=True
    )
    check.read(result["windows"] or [])
    check.may_embed = Quota.EMBEDDING not in result["exceeded_quotas"]
    usage.calls = [call for call in usage.calls if call not in embeddings]
    usage.exceeded = check.exceeded_quotas
    if not check.tightest.admitted:
        raise RateLimited(headers=check.tightest.retry_after)
    if embeddings:
        token_quotas.require(Quota.EMBEDDING)
    return result["matches"]
