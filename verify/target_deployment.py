"""Deployment under attack, and findings about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.access.token_signer import Signer
from shared.clients.postgrest import SECRET_HEADER

ISSUER_PATH = "/auth/v1"


class SetupFailed(Exception):
    """A run cannot begin or go on: the message says why and what to do."""


@dataclass(frozen=True)
class Deployment:
    """`url` serves every function; `project_url` is the Supabase project, with PostgREST below /rest/v1.

    `signing_key` is the HS256 secret or the private JWK of the project. `database_url` must name a role that
    row security does not bind. `functions_secret` is RAG_FUNCTIONS_SECRET of the functions. Without an
    operator's token the routes that need it are only attacked. `third_party_issuers` are those of the
    functions with their audiences; None: unknown.
    """

    url: str
    project_url: str
    anon_key: str
    database_url: str = field(repr=False)
    signing_key: str | Mapping[str, Any] = field(repr=False)
    functions_secret: str = field(repr=False)
    metrics_token: str | None = field(default=None, repr=False)
    worker_token: str | None = field(default=None, repr=False)
    audience: str = "authenticated"
    issuer: str | None = None
    third_party_issuers: Mapping[str, str | None] | None = None

    @property
    def project_headers(self) -> dict[str, str]:
        """Headers of a call to PostgREST, besides the caller's token."""
        return {"apikey": self.anon_key, SECRET_HEADER: self.functions_secret}

    @property
    def signer(self) -> Signer:
        key = self.signing_key if isinstance(self.signing_key, str) else dict(self.signing_key)
        return Signer(key, self.token_issuer, self.audience)

    @property
    def token_issuer(self) -> str:
        """The `iss` of the project's tokens."""
        return self.issuer or f"{self.project_url}{ISSUER_PATH}"


@dataclass(frozen=True, order=True)
class Finding:
    """A route, function, table or other object; the attack on it or the property that differs; and what the
    response or the database showed."""

    target: str
    attack: str
    detail: str

    def __str__(self) -> str:
        return f"{self.target}: {self.attack}: {self.detail}"
