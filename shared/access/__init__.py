"""Authentication and limits: JWTs, API keys, signed tokens and links, rate limit, idempotency keys."""
