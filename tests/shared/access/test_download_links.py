"""The payload of a link, and that only the functions create one."""

import time
from typing import Any

import pytest
from itsdangerous import URLSafeSerializer
from jose import jwt

from shared.access.download_links import LIFETIME_SECONDS, Link, link_to, new_link, principal_of, public_url
from shared.access.token_signer import Signer
from shared.config import Settings
from shared.errors import PublicUrlUnset, Unauthorized
from shared.types import Principal, Scope

DOCUMENT = "0b8e7c1e-6f0d-4a3c-9a55-2f6f0d9c1a11"
SIGNER = Signer("a secret of at least thirty-two characters", "https://x.example/auth/v1", "authenticated")


def link(**changed: Any) -> Link:
    fields = {"document_id": DOCUMENT, "org_id": "org", "user_id": "user", "as_admin": False}
    return Link(**{**fields, "expires": int(time.time()) + LIFETIME_SECONDS, **changed})


def claims(token: str) -> dict[str, Any]:
    row: dict[str, Any] = jwt.get_unverified_claims(token)
    return row


def test_a_link_s_token_can_only_read_as_its_user_or_an_admin():
    caller = principal_of(SIGNER, link_to(SIGNER, link()), DOCUMENT)
    assert caller.user_id == "user"
    payload = claims(caller.token)
    restrictions = {"org": "org", "scopes": ["documents:read"], "document": DOCUMENT}
    assert (payload["sub"], payload["rag"]) == ("user", restrictions)
    assert payload["exp"] <= time.time() + 10
    assert caller.scopes == frozenset([Scope.DOCUMENTS_READ])
    admin = principal_of(SIGNER, link_to(SIGNER, link(as_admin=True)), DOCUMENT)
    assert claims(admin.token)["rag"] == {**restrictions, "scopes": ["documents:read", "admin"]}


def test_a_link_works_until_it_expires():
    row = {"id": DOCUMENT, "org_id": "org", "owner_id": None}
    before = int(time.time())
    made = new_link(Principal("user", "token"), row)
    assert before <= made.expires - LIFETIME_SECONDS <= time.time() + 1
    principal_of(SIGNER, link_to(SIGNER, link(expires=int(time.time()) + 60)), DOCUMENT)
    with pytest.raises(Unauthorized, match="expired"):
        principal_of(SIGNER, link_to(SIGNER, link(expires=int(time.time()) - 1)), DOCUMENT)


def forged(**changed: Any) -> str:
    """Another payload with the signature of a right one."""
    payload, _, signature = link_to(SIGNER, link()).rpartition(".")
    serializer = URLSafeSerializer("any key")
    values = serializer.load_payload(payload.encode())
    fields = dict(zip(("document_id", "org_id", "user_id", "as_admin", "expires"), values, strict=True))
    other = serializer.dump_payload([*{**fields, **changed}.values()]).decode()
    return f"{other}.{signature}"


OTHER = Signer("another secret of thirty-two characters", "https://x.example/auth/v1", "authenticated")


MADE_BY_OTHERS = {
    "nothing": lambda: "",
    "a dot": lambda: ".",
    "letters of no alphabet": lambda: "\u00e9.\u00e9",
    "a part": lambda: link_to(SIGNER, link())[:-1],
    "by another key": lambda: link_to(OTHER, link()),
    "a token": lambda: SIGNER.token(sub="user"),
    "another user": lambda: forged(user_id="ada"),
    "for ever": lambda: forged(expires=4_000_000_000),
    "to another document": lambda: link_to(SIGNER, link(document_id="another")),
}


def test_only_a_user_with_access_creates_a_link(subtests: pytest.Subtests):
    for forgery, make in MADE_BY_OTHERS.items():
        with subtests.test(forgery), pytest.raises(Unauthorized, match="not valid"):
            principal_of(SIGNER, make(), DOCUMENT)


PROJECT: dict[str, Any] = {"supabase_url": "https://Project.example:8443", "supabase_anon_key": "x"}
BY_HOST = {
    "localhost": "http://localhost",
    "LOCALHOST:8080": "http://localhost:8080",
    "127.0.0.1:54321": "http://127.0.0.1:54321",
    "[::1]:80": "http://[::1]:80",
    "project.example:8443": "https://Project.example:8443",
}
FORGED = [
    "", "evil.example", "evil.example:8443", "project.example", "project.example:8444", "evil@localhost",
    "localhost.evil.example", "localhost:80.evil.example", "localhost:", "localhost\n",
    "127.0.0.1.evil.example", "[::2]",
]  # fmt: skip


def test_a_link_s_host_does_not_depend_on_the_request(subtests: pytest.Subtests):
    unset, configured = Settings(**PROJECT), Settings(**PROJECT, rag_public_url="https://rag.example/base")
    assert {host: public_url(unset, "http", host) for host in BY_HOST} == BY_HOST
    for host in FORGED:
        with subtests.test(host), pytest.raises(PublicUrlUnset, match="RAG_PUBLIC_URL"):
            public_url(unset, "https", host)
    for host in [*BY_HOST, *FORGED]:
        assert public_url(configured, "http", host) == "https://rag.example/base"
        assert public_url(configured, "http", host, "x.on.aws") == "https://rag.example/base"
        assert public_url(unset, "http", host, "x.on.aws") == "https://x.on.aws"
