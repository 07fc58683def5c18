"""Users and credentials of a sweep."""

import base64
import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psycopg

from shared.access.api_keys import hash_of
from shared.access.token_signer import Signer
from shared.types import Scope
from verify.target_deployment import Deployment

SCOPES = tuple(str(scope) for scope in Scope)
TOKEN_SECONDS = 3600
# Tables of a person's own, which hold no org to delete them with.
TABLES_OF_A_USER = {
    "rate_limits": "caller_id",
    "request_counts": "user_id",
    "api_metrics": "user_id",
    "query_embeddings": "user_id",
}


@dataclass(frozen=True)
class Person:
    id: str
    email: str
    org_id: str | None = None


@dataclass(frozen=True)
class Actors:
    """Members of the victim org: `admin`, `member` who owns the private objects, and `fellow`. Members of the
    rival org: `rival_admin` and `rival_member`. `stranger` belongs to no org.

    Each marker is a random string in every text of the objects of its kind: those of the victim org, those
    that are private to the member, those in the collection that the bound keys belong to, and the org itself.
    """

    deployment: Deployment
    database: psycopg.Connection[Any]
    signer: Signer
    org_id: str
    rival_org_id: str
    admin: Person
    member: Person
    fellow: Person
    rival_admin: Person
    rival_member: Person
    stranger: Person
    marker: str
    private_marker: str
    other_marker: str
    org_marker: str
    # Ids of API keys, and the key id in all minted tokens: rate limits count by key id.
    key_ids: list[str] = field(default_factory=list)

    @property
    def people(self) -> tuple[Person, ...]:
        return (self.admin, self.member, self.fellow, self.rival_admin, self.rival_member, self.stranger)

    def sql(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement past row security; its rows."""
        cursor = self.database.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []

    def token(self, person: Person, seconds: int = TOKEN_SECONDS, **claims: Any) -> str:
        """A token of that user; `claims` override or add."""
        return self.signer.token(seconds, **{"sub": person.id, "email": person.email, **claims})

    def key_token(self, person: Person, scopes: Sequence[str], **claims: Any) -> str:
        """The token that an API key of that user is exchanged for."""
        rag = {"org": person.org_id, "key": self.key_ids[0], "scopes": list(scopes), **claims}
        return self.token(person, rag=rag)

    def key(
        self,
        owner: Person,
        scopes: Sequence[str],
        *,
        collection_id: str | None = None,
        column: str | None = None,
    ) -> str:
        """A new API key's text. `column` names the timestamp that ends the key: expires_at or revoked_at."""
        text = f"mn_live_{secrets.token_urlsafe(32)}"
        (row,) = self.sql(
            "insert into rag.api_keys (org_id, owner_id, name, prefix, hash, scopes, collection_id) "
            "values (%s, %s, %s, %s, %s, %s, %s) returning id",
            owner.org_id, owner.id, f"credential {secrets.token_hex(4)}", text[:12], hash_of(text),
            list(scopes), collection_id,
        )  # fmt: skip
        self.key_ids.append(str(row[0]))
        if column:
            statement = f"update rag.api_keys set {column} = now() - interval '1 minute' where id = %s"  # noqa: S608
            self.sql(statement, row[0])
        return text


@contextmanager
def create_actors(deployment: Deployment) -> Iterator[Actors]:
    """Two orgs with their users, without a rate limit; deleted at the end."""
    with psycopg.connect(deployment.database_url, autocommit=True) as database:
        org_id, rival_org_id = str(uuid4()), str(uuid4())
        admin, member, fellow = (_person(org_id) for _ in range(3))
        rival_admin, rival_member, stranger = _person(rival_org_id), _person(rival_org_id), _person(None)
        marker, private_marker, other_marker, org_marker = (f"marker{secrets.token_hex(8)}" for _ in range(4))
        actors = Actors(
            deployment, database, deployment.signer, org_id, rival_org_id, admin, member, fellow, rival_admin,
            rival_member, stranger, marker, private_marker, other_marker, org_marker,
            [str(uuid4())],
        )  # fmt: skip
        try:
            _create(actors)
            yield actors
        finally:
            _delete(actors)


def _person(org_id: str | None) -> Person:
    person_id = str(uuid4())
    return Person(person_id, f"{person_id}@sweep.example", org_id)


def _tier(actors: Actors) -> str:
    return f"sweep-{actors.org_id[:8]}"


def _create(actors: Actors) -> None:
    actors.sql(
        "insert into rag.tiers (name, rag_requests_per_minute, api_requests_per_minute) values (%s, %s, %s)",
        _tier(actors), 10**6, 10**6,
    )  # fmt: skip
    for org_id, name in ((actors.org_id, f"victim {actors.org_marker}"), (actors.rival_org_id, "rival")):
        actors.sql("insert into rag.orgs (id, name, tier) values (%s, %s, %s)", org_id, name, _tier(actors))
    for person in actors.people:
        actors.sql("insert into auth.users (id, email) values (%s, %s)", person.id, person.email)
        if person.org_id:
            role = "admin" if person in (actors.admin, actors.rival_admin) else "member"
            statement = "insert into rag.members (org_id, user_id, role) values (%s, %s, %s)"
            actors.sql(statement, person.org_id, person.id, role)


def _delete(actors: Actors) -> None:
    people = [person.id for person in actors.people] + actors.key_ids
    actors.sql("delete from rag.orgs where id = any (%s::uuid[])", [actors.org_id, actors.rival_org_id])
    actors.sql(
        "delete from rag.object_removals where org_id = any (%s::uuid[])",
        [actors.org_id, actors.rival_org_id],
    )
    actors.sql("delete from rag.tiers where name = %s", _tier(actors))
    for table, column in TABLES_OF_A_USER.items():
        actors.sql(f"delete from rag.{table} where {column} = any (%s::uuid[])", people)  # noqa: S608
    actors.sql("delete from auth.users where id = any (%s::uuid[])", people)


def unsigned(token: str) -> str:
    """The same claims under `alg: none`."""
    header = (
        base64.urlsafe_b64encode(json.dumps({"alg": "none", "typ": "JWT"}).encode()).rstrip(b"=").decode()
    )
    return f"{header}.{token.split('.')[1]}."


def with_claims_of(token: str, claims: str) -> str:
    """The header and signature of one token around the claims of another."""
    header, _, signature = token.split(".")
    return f"{header}.{claims.split('.')[1]}.{signature}"
