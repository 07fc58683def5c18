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
from verify import temporary_rows
from verify.target_deployment import Deployment
from verify.temporary_rows import Member, Memberships, TemporaryRows

SCOPES = tuple(str(scope) for scope in Scope)
TOKEN_SECONDS = 3600
RAG_MEMBERS = Memberships()


@dataclass(frozen=True)
class Person:
    id: str
    email: str
    org_id: str | None = None


@dataclass(frozen=True)
class Actors:
    """Members of the victim org: `admin`, `member` who owns the private objects, `colleague`, and `guest`,
    who sends no request. Members of another org: `foreign_admin` and `foreign_member`. `stranger` and
    `invited` belong to no org; the victim org invites the latter.

    Each marker is a random string in every text of the objects of its kind: those of the victim org, those
    that are private to the member, those in the collection that the bound keys belong to, and the org itself.
    """

    deployment: Deployment
    database: psycopg.Connection[Any]
    signer: Signer
    org_id: str
    foreign_org_id: str
    admin: Person
    member: Person
    colleague: Person
    guest: Person
    foreign_admin: Person
    foreign_member: Person
    stranger: Person
    invited: Person
    marker: str
    private_marker: str
    other_marker: str
    org_marker: str
    # Ids of API keys, and the key id in all minted tokens: rate limits count by key id.
    key_ids: list[str] = field(default_factory=list)

    @property
    def people(self) -> tuple[Person, ...]:
        return tuple(value for value in vars(self).values() if isinstance(value, Person))

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
def create_actors(deployment: Deployment, memberships: Memberships = RAG_MEMBERS) -> Iterator[Actors]:
    """Two orgs with their users, without a rate limit; deleted at the end."""
    with psycopg.connect(deployment.database_url, autocommit=True) as database:
        org_id, foreign_org_id = str(uuid4()), str(uuid4())
        admin, member, colleague, guest = (_person(org_id) for _ in range(4))
        foreign_admin, foreign_member = (_person(foreign_org_id) for _ in range(2))
        stranger, invited = (_person(None) for _ in range(2))
        marker, private_marker, other_marker, org_marker = (f"marker{secrets.token_hex(8)}" for _ in range(4))
        actors = Actors(
            deployment, database, deployment.signer, org_id, foreign_org_id, admin, member, colleague,
            guest, foreign_admin, foreign_member, stranger, invited, marker, private_marker, other_marker,
            org_marker,
            [temporary_rows.key_id_of(org_id)],
        )  # fmt: skip
        user_ids = [person.id for person in actors.people]
        try:
            _create(actors, user_ids, memberships)
            yield actors
        finally:
            rows = TemporaryRows([org_id, foreign_org_id], user_ids, actors.key_ids)
            temporary_rows.remove(database, rows, memberships, deployment)


def _create(actors: Actors, user_ids: list[str], memberships: Memberships) -> None:
    orgs = {actors.org_id: f"victim {actors.org_marker}", actors.foreign_org_id: "another org"}
    members = [
        Member(
            person.org_id,
            orgs[person.org_id],
            person.id,
            "admin" if person in (actors.admin, actors.foreign_admin) else "member",
        )
        for person in actors.people
        if person.org_id
    ]
    temporary_rows.create(actors.database, orgs, user_ids, members, memberships)


def _person(org_id: str | None) -> Person:
    person_id = str(uuid4())
    return Person(person_id, temporary_rows.email_of(person_id), org_id)


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


def act_as(connection: psycopg.Connection[Any], user_id: str, role: str = "authenticated") -> None:
    """Set the role and the claims of that user, as PostgREST does it, until the transaction ends."""
    # The present role may be anon, who may not read rag.settings.
    connection.execute("set local role none")
    connection.execute(
        "select set_config('request.jwt.claims', jsonb_build_object('iss', issuer, 'sub', %s::text, 'role', "
        "%s::text)::text, true) from rag.settings",
        [user_id, role],
    )
    connection.execute("select set_config('role', %s, true)", [role])
