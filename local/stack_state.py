"""State of a stack between commands: stack.json in its folder."""

import json
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from local import access_tokens, declared_schema
from local.child_processes import Child


@dataclass
class State:
    """Ports, processes and secrets of a stack."""

    password: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    keys: str = "es256"
    jwt_secret: str = field(default_factory=lambda: secrets.token_urlsafe(40))
    private_key: dict[str, Any] | None = None
    metrics_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    worker_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    functions_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    # Secret in the playground's URL, which grants the demo users' tokens.
    playground_secret: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    # Not signed: the gateway knows it. Hosted projects accept it beside the anon key.
    publishable_key: str = field(default_factory=lambda: f"sb_publishable_{secrets.token_urlsafe(24)}")
    # Stored, because each ES256 signature differs.
    anon_key: str | None = None
    port: int = 0
    postgres_version: int = 18
    # SHA-256 of the schema that made the database. Until the first release there are no upgrades.
    schema: str = field(default_factory=declared_schema.digest)
    postgres_port: int = 0
    database: str = "postgres"
    postgrest_port: int = 0
    # Each with its audience, as the shell named them at the last start.
    third_party_issuers: dict[str, str | None] = field(default_factory=dict)
    children: dict[str, Child] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def signing_key(self) -> access_tokens.SigningKey:
        """The key that signs tokens: the shared secret, or after the first start the private key."""
        return self.private_key or self.jwt_secret

    @property
    def public_anon_key(self) -> str:
        return self.anon_key or access_tokens.anon_key(self.signing_key)


def load(file: Path) -> State | None:
    """The stored state, or None without the file."""
    try:
        stored = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    children = {name: Child(**child) for name, child in stored.pop("children").items()}
    return State(**stored, children=children)


def save(state: State, file: Path) -> None:
    draft = file.with_suffix(".tmp")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(asdict(state), indent=2))
    draft.replace(file)
