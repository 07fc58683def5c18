"""Environment variables of a stack's gateway, functions, PostgREST and worker."""

import json
import os
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from pydantic import TypeAdapter, ValidationError

from local import ROOT, access_tokens
from local.errors import CommandError
from local.shell_environment import no_proxy_for_loopback, settings_of_the_shell
from local.stack_state import State
from shared.clients.http_client import http_client
from shared.config import ThirdPartyIssuer

ISSUERS = "RAG_THIRD_PARTY_ISSUERS"
POOL_SIZES = ("PGRST_DB_POOL", "PGRST_DB_POOL_ACQUISITION_TIMEOUT")


def of_functions(state: State) -> dict[str, str]:
    """Environment of a function that uses the stack as its Supabase project."""
    project = {
        "SUPABASE_URL": state.url,
        "SUPABASE_ANON_KEY": state.publishable_key,
        "RAG_FUNCTIONS_SECRET": state.functions_secret,
    }
    if state.private_key is None:
        project["SUPABASE_JWT_SECRET"] = state.jwt_secret
    return project


def of_gateway(state: State, folder: Path) -> dict[str, str]:
    key = state.signing_key
    return {
        "RAG_SNAPSHOT_URL": f"file://{folder / 'snapshots'}",
        **of_worker(state),
        "LOCAL_PROJECT_KEYS": f"{state.publishable_key} {state.public_anon_key}",
        "LOCAL_POSTGREST_URL": f"http://127.0.0.1:{state.postgrest_port}",
        "RAG_METRICS_TOKEN": state.metrics_token,
        "RAG_WORKER_TOKEN": state.worker_token,
        # For the playground: signs the demo users' tokens, and the secret that grants them.
        "LOCAL_SIGNING_KEY": json.dumps(key),
        "LOCAL_PLAYGROUND_SECRET": state.playground_secret,
        "LOCAL_JWKS": json.dumps(access_tokens.public_jwks(key)),
    }


def of_worker(state: State) -> dict[str, str]:
    return {
        **settings_of_the_shell(),
        **no_proxy_for_loopback(),
        "PYTHONPATH": str(ROOT),
        **of_functions(state),
        # Only the functions sign; see of_functions.
        **({"RAG_SIGNING_KEY": json.dumps(state.private_key)} if state.private_key else {}),
    }


def third_party_issuers() -> list[ThirdPartyIssuer]:
    """The issuers of the shell's RAG_THIRD_PARTY_ISSUERS. Raises CommandError."""
    try:
        return TypeAdapter(list[ThirdPartyIssuer]).validate_json(os.environ.get(ISSUERS) or "[]")
    except ValidationError:
        raise CommandError(f"{ISSUERS} is no list of issuers (docs/third-party-sign-in.md)") from None


def of_postgrest(state: State, database_url: str) -> dict[str, str]:
    """`database_url`: as the role authenticator. With third-party issuers, PostgREST has their keys too, and
    checks no audience, as in a project that trusts them. Raises CommandError."""
    key, issuers = state.signing_key, third_party_issuers()
    secret = key if isinstance(key, str) else json.dumps(access_tokens.public_jwks(key))
    environment = {
        "PGRST_DB_URI": database_url,
        "PGRST_DB_SCHEMAS": "public",
        "PGRST_DB_EXTRA_SEARCH_PATH": "public,extensions",
        "PGRST_DB_ANON_ROLE": "anon",
        "PGRST_DB_MAX_ROWS": "1000",
        "PGRST_DB_POOL": "10",
        "PGRST_JWT_SECRET": json.dumps({"keys": _keys(key, issuers)}) if issuers else secret,
        "PGRST_SERVER_HOST": "127.0.0.1",
        "PGRST_SERVER_PORT": str(state.postgrest_port),
        "PGRST_LOG_LEVEL": "warn",
        # The developer may set pool sizes, but no addresses or secrets.
        **{name: os.environ[name] for name in POOL_SIZES if name in os.environ},
    }
    return environment if issuers else environment | {"PGRST_JWT_AUD": access_tokens.AUDIENCE}


def _keys(key: access_tokens.SigningKey, issuers: Sequence[ThirdPartyIssuer]) -> list[dict[str, Any]]:
    """The stack's key, and those that the issuers publish."""
    keys: list[dict[str, Any]] = access_tokens.public_jwks(key)["keys"]
    if isinstance(key, str):
        secret = urlsafe_b64encode(key.encode()).decode().rstrip("=")
        keys = [{"kty": "oct", "k": secret, "alg": "HS256"}]
    with http_client(30) as client:
        for each in issuers:
            try:
                keys += client.get(each.jwks_url).raise_for_status().json()["keys"]
            except (httpx.HTTPError, ValueError, TypeError, KeyError):
                raise CommandError(
                    f"the keys of {each.issuer} cannot be read from {each.jwks_url}; "
                    f"check jwks_url in {ISSUERS}"
                ) from None
    return keys
