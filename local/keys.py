"""python -m local keys: API keys from the command line, over /api/keys, as their owner.

Of the local stack's users by default; of any deployment with --url and the owner's token in RAG_TOKEN.
"""

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from local.api_client import client_of
from local.corpus import org_id_of
from local.processes import StackError
from local.stack import Stack
from shared.access.api_keys import BEGINNINGS
from shared.types import Scope


def run(stack: Stack, options: argparse.Namespace) -> None:
    """Raises StackError with what the API said, when it is not a success."""
    if not options.url and not options.user:
        raise StackError("whose keys? --user EMAIL")
    with client_of(stack, options.url, options.user) as client:
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
    _shown_once(_json(client.post("/api/keys", json=body)))


def rotate(client: httpx.Client, options: argparse.Namespace) -> None:
    body = {"overlap_seconds": options.overlap}
    _shown_once(_json(client.post(f"/api/keys/{options.id}/rotate", json=body)))


def revoke(client: httpx.Client, options: argparse.Namespace) -> None:
    _json(client.delete(f"/api/keys/{options.id}"))
    print("revoked")


def listing(client: httpx.Client, options: argparse.Namespace) -> None:
    table = Table("id", "name", "begins", "scopes", "collection", "expires", "last used", "state", box=None)
    for key in _json(client.get("/api/keys"))["keys"]:
        cells = [key[name] for name in ("id", "name", "prefix")]
        cells += [" ".join(key["scopes"]), key["collection"] or "all"]
        cells += [(key[name] or "never")[:16] for name in ("expires_at", "last_used_at")]
        table.add_row(*cells, _state(key))
    Console(soft_wrap=True).print(table)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    owner = argparse.ArgumentParser(add_help=False)
    owner.add_argument("--user", metavar="EMAIL", help="the owner, of the local stack")
    owner.add_argument("--url", help="another deployment; the owner's token is then in RAG_TOKEN")
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    making = actions.add_parser("create", parents=[owner], help="make a key and show it, this once")
    making.set_defaults(action=create)
    making.add_argument("--name", required=True)
    making.add_argument("--scope", required=True, action="append", choices=list(Scope))
    making.add_argument("--kind", default="live", choices=list(BEGINNINGS))
    making.add_argument("--org", metavar="ORG", help="needed by members of several")
    making.add_argument("--collection", metavar="NAME", help="bind the key to this one")
    making.add_argument("--days", type=int, help="until it expires")

    actions.add_parser("list", parents=[owner], help="your keys").set_defaults(action=listing)
    rotating = actions.add_parser("rotate", parents=[owner], help="replace a key by a new one")
    rotating.set_defaults(action=rotate)
    rotating.add_argument("id")
    rotating.add_argument("--overlap", type=int, default=0, metavar="SECONDS", help="the old one goes on")
    revoking = actions.add_parser("revoke", parents=[owner], help="end a key")
    revoking.set_defaults(action=revoke)
    revoking.add_argument("id")


def _state(key: dict[str, Any]) -> str:
    if key["revoked_at"]:
        return "revoked"
    expires_at = key["expires_at"]
    return "expired" if expires_at and datetime.fromisoformat(expires_at) <= datetime.now(UTC) else "works"


def _json(answer: httpx.Response) -> Any:
    if answer.is_success:
        return answer.json() if answer.content else None
    try:
        said = answer.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        said = answer.text[:200]
    raise StackError(f"{answer.status_code}: {said}")


def _shown_once(key: dict[str, Any]) -> None:
    print(key["key"])
    print(f"id {key['id']}; {' '.join(key['scopes'])}; keep it now, it is not shown again")
