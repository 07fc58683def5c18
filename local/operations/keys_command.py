"""Command `keys`: manages API keys through /api/keys, as their owner.

The owner is a user of the local stack, or with --url the owner of the token in RAG_TOKEN.
"""

import argparse
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from local.demo_corpus import org_id_of
from local.errors import CommandError
from local.operations.api_client import ApiError
from shared.access.api_keys import PREFIXES
from shared.types import Scope

MAX_WIDTH = 1000


def run(client: httpx.Client, options: argparse.Namespace) -> None:
    """Raises CommandError with the API's message on an error response."""
    options.action(client, options)


def create(client: httpx.Client, options: argparse.Namespace) -> None:
    days = options.days
    body = {
        "name": options.name,
        "scopes": options.scope,
        "kind": options.kind,
        "org_id": options.org and org_id_of(options.org),
        "collection": options.collection,
        "expires_at": (datetime.now(UTC) + timedelta(days=days)).isoformat() if days is not None else None,
    }
    _print_key(_json(client.post("/api/keys", json=body)))


def rotate(client: httpx.Client, options: argparse.Namespace) -> None:
    body = {"overlap_seconds": options.overlap}
    _print_key(_json(client.post(f"/api/keys/{options.id}/rotate", json=body)))


def revoke(client: httpx.Client, options: argparse.Namespace) -> None:
    _json(client.delete(f"/api/keys/{options.id}"))
    print("revoked")


def list_keys(client: httpx.Client, options: argparse.Namespace) -> None:
    table = Table("id", "name", "begins", "scopes", "collection", "expires", "last used", "state", box=None)
    for key in _json(client.get("/api/keys"))["keys"]:
        cells = [key[name] for name in ("id", "name", "prefix")]
        cells += [" ".join(key["scopes"]), key["collection"] or "all"]
        cells += [(key[name] or "never")[:16] for name in ("expires_at", "last_used_at")]
        table.add_row(*cells, _state(key))
    # Nothing is cut to the terminal's width: `revoke` and `rotate` need the whole id.
    Console(width=MAX_WIDTH).print(table)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    owner = argparse.ArgumentParser(add_help=False)
    owner.add_argument("--user", metavar="EMAIL", help="the owner of the keys, on the local stack")
    owner.add_argument(
        "--url", help="a deployment, instead of the local stack; the owner's token is in RAG_TOKEN"
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    create_parser = actions.add_parser("create", parents=[owner], help="create a key and show it once")
    create_parser.set_defaults(action=create)
    create_parser.add_argument("--name", required=True)
    create_parser.add_argument(
        "--scope",
        required=True,
        action="append",
        choices=[str(scope) for scope in Scope],
        help="repeat it for several scopes",
    )
    create_parser.add_argument("--kind", default="live", choices=list(PREFIXES))
    create_parser.add_argument("--org", metavar="ORG", help="required for members of several orgs")
    create_parser.add_argument("--collection", metavar="NAME", help="bind the key to this collection")
    create_parser.add_argument("--days", type=int, help="days until the key expires; without, never")

    actions.add_parser("list", parents=[owner], help="your keys").set_defaults(action=list_keys)
    rotate_parser = actions.add_parser("rotate", parents=[owner], help="replace a key by a new one")
    rotate_parser.set_defaults(action=rotate)
    rotate_parser.add_argument("id")
    rotate_parser.add_argument(
        "--overlap", type=int, default=0, metavar="SECONDS", help="the old one stays valid that long"
    )
    revoke_parser = actions.add_parser("revoke", parents=[owner], help="revoke a key")
    revoke_parser.set_defaults(action=revoke)
    revoke_parser.add_argument("id")


def _state(key: dict[str, Any]) -> str:
    if key["revoked_at"]:
        return "revoked"
    expires_at = key["expires_at"]
    return "expired" if expires_at and datetime.fromisoformat(expires_at) <= datetime.now(UTC) else "works"


def _json(response: httpx.Response) -> Any:
    if response.is_success:
        return response.json() if response.content else None
    raise CommandError(f"{response.status_code}: {ApiError(response)}")


def _print_key(key: dict[str, Any]) -> None:
    print(key["key"])
    # Output is the key alone, for KEY=$(… keys create …).
    note = f"id {key['id']}; {' '.join(key['scopes'])}; store the key now, since it is not shown again"
    print(note, file=sys.stderr)
