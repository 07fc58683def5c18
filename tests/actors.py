"""Actors, not tokens: orgs, the people in them, and documents of theirs, made for one test."""

import hashlib
import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from uuid import uuid4

import httpx
import psycopg

from local import access_tokens
from local.stack import Stack
from shared.clients.postgrest import SECRET_HEADER
from shared.types import Principal

MODEL = "all-MiniLM-L6-v2"
DIMENSIONS = 1536
# The id of nothing at all.
NOBODYS = "5a0e4f1c-9d0b-4b5e-8a53-0c7d1e6f2b94"
# What a webhook may be signed with.
SECRET = f"whsec_{'A' * 43}="
# What a lease lets its holder call, and with what.
LEASED: dict[str, dict[str, Any]] = {
    "rag_open_job": {},
    "rag_store_content": {"content_hash": "0" * 64, "size_bytes": 1},
    "rag_extend_job": {"step": "storing", "lease_seconds": 60},
    "rag_complete_job": {"document": {"title": "x", "content": "x"}, "chunks": []},
    "rag_fail_job": {"code": "processing_failed", "message": "x"},
}
# The same of a document that is read for names.
READING: dict[str, dict[str, Any]] = {
    "rag_open_extraction": {"max_chunks": 10},
    "rag_store_extraction": {"first": 0, "chunks": [{"names": [{"name": "Eve Root"}]}]},
    "rag_fail_job": {"code": "extraction_failed", "message": "x"},
}


@cache
def client() -> httpx.Client:
    """One for all actors, since making one takes longer than most requests; conftest.py closes it."""
    return httpx.Client(timeout=300)


@dataclass(frozen=True)
class Org:
    id: str
    name: str


@dataclass(frozen=True)
class Actor:
    """A signed-in user of the stack."""

    stack: Stack
    id: str
    email: str
    org: Org | None = None
    # Without the functions' secret, as a browser that calls PostgREST itself.
    is_direct: bool = False

    def direct(self) -> "Actor":
        """The same user, as a browser that calls PostgREST itself."""
        return replace(self, is_direct=True)

    def token(self, **claims: Any) -> str:
        return access_tokens.user_token(self.stack.signing_key, self.stack.url, self.id, self.email, **claims)

    @property
    def principal(self) -> Principal:
        return Principal(self.id, self.token())

    def headers(self, token: str | None = None) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {token or self.token()}", "apikey": self.stack.publishable_key}
        return headers if self.is_direct else headers | {SECRET_HEADER: self.stack.state.functions_secret}

    def post(self, path: str, body: Any = None, *, token: str | None = None) -> httpx.Response:
        """POST to the stack's gateway as this user."""
        return client().post(f"{self.stack.url}{path}", json=body, headers=self.headers(token))

    def request(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str
    ) -> httpx.Response:
        """Any request to the stack's gateway as this user, or with another bearer."""
        address = f"{self.stack.url}{path}"
        return client().request(method, address, json=body, headers={**self.headers(token), **headers})

    def raw(self, method: str, path: str, body: str, *, token: str | None = None) -> httpx.Response:
        """A request with a body that says it is JSON and may be none."""
        headers = {**self.headers(token), "Content-Type": "application/json"}
        return client().request(method, f"{self.stack.url}{path}", content=body.encode(), headers=headers)

    def key_token(self, **claims: Any) -> str:
        """What an API key of this user's is exchanged for: narrowed to their org, and by the claims."""
        org = self.org.id if self.org else None
        return self.token(rag={"org": org, "key": str(uuid4()), "scopes": ["admin"], **claims})

    def search(self, text: str, **body: Any) -> httpx.Response:
        return self.post("/api/rag/search", {"query_text": text, **body})

    def answer(self, text: str, **body: Any) -> httpx.Response:
        return self.post("/api/rag/answer", {"query_text": text, **body})

    def rpc(self, function: str, arguments: Any = None, *, token: str | None = None) -> httpx.Response:
        """Call an SQL function straight through PostgREST."""
        return self.post(f"/rest/v1/rpc/{function}", arguments or {}, token=token)

    def match(self, vector: Sequence[float], top_k: int = 100, **filters: Any) -> list[dict[str, Any]]:
        answer = self.rpc("rag_match", {"query_vector": list(vector), "top_k": top_k, "filters": filters})
        assert answer.status_code == 200, answer.text
        rows: list[dict[str, Any]] = answer.json()
        return rows

    def store(self, arguments: dict[str, Any], *, token: str | None = None) -> httpx.Response:
        """Store the document of put_arguments straight through PostgREST."""
        return self.rpc("rag_put_documents", store_arguments(**arguments), token=token)

    def put(self, vectors: Sequence[Sequence[float]], **fields: Any) -> str:
        """A document with a chunk for each vector, whose text is its number; the document's id."""
        answer = self.store(put_arguments(self.org, vectors, **fields))
        assert answer.status_code == 200, answer.text
        document_id: str = answer.json()[0]["document_id"]
        return document_id


def put_arguments(org: Org | None, vectors: Sequence[Sequence[float]], **fields: Any) -> dict[str, Any]:
    """A document and its chunks, whose texts are numbers, with these vectors."""
    texts = [str(number) for number in range(len(vectors))]
    content = "\n".join(texts) or "text"
    document = {
        "org_id": org.id if org else None,
        "title": "a document",
        "content": content,
        "embedding_model": MODEL,
        **fields,
    }
    chunks = []
    end = -1
    for text, vector in zip(texts, vectors, strict=True):
        start, end = end + 1, end + 1 + len(text)
        chunks.append({"span_start": start, "span_end": end, "token_count": 1, "embedding": list(vector)})
    return {"document": document, "chunks": chunks}


def store_arguments(document: dict[str, Any], chunks: Any) -> dict[str, Any]:
    """What rag_put_documents takes for one document."""
    fields = {"collection": "default", "org_id": None, **document}
    place = {name: fields.pop(name) for name in ("collection", "org_id")}
    return {**place, "documents": [{**fields, "chunks": chunks}]}


def hit_arguments(**more: Any) -> dict[str, Any]:
    """What rag_check_rate_limit takes, by default for one of sixty requests a minute of rag-search."""
    return {"function": "rag-search", "bucket": "rag", "requests": 60, "window_seconds": 60, **more}


def key_arguments(**more: Any) -> dict[str, Any]:
    """What rag_create_key takes, for a key whose text is unknown."""
    digest = hashlib.sha256(uuid4().bytes).hexdigest()
    return {
        "name": "a key",
        "prefix": "mn_live_abcd",
        "hash": digest,
        "scopes": ["retrievals:read"],
        **more,
    }


def webhook_arguments(**more: Any) -> dict[str, Any]:
    """What rag_create_webhook takes, for one that is told of everything there is."""
    events = ["collection.created", "document.processing_completed", "document.deleted"]
    return {"url": "https://hooks.example/in", "secret": SECRET, "events": events, **more}


def vector(seed: int, dimensions: int = 384) -> list[float]:
    """A unit vector drawn from that seed, padded to 1536."""
    draw = random.Random(seed)  # noqa: S311  # not a secret
    raw = [draw.gauss(0, 1) for _ in range(dimensions)]
    length = math.sqrt(sum(value * value for value in raw))
    return [round(value / length, 5) for value in raw] + [0.0] * (DIMENSIONS - dimensions)


class World:
    """Makes orgs and people, as a deployer does: with SQL, past row security."""

    def __init__(self, stack: Stack, database: str | None = None) -> None:
        self.stack = stack
        self._connection = psycopg.connect(stack.database_url(database=database), autocommit=True)
        self._tiers: list[str] = []

    def close(self) -> None:
        if self._tiers:
            self.sql("update rag.orgs set tier = 'standard' where tier = any (%s)", self._tiers)
            self.sql("delete from rag.tiers where name = any (%s)", self._tiers)
        self._connection.close()

    def sql(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement as the deployer; its rows."""
        cursor = self._connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []

    def as_user(self, actor: Actor, statement: str, *parameters: Any, **claims: Any) -> list[tuple[Any, ...]]:
        """Run a statement as PostgREST would for this user."""
        claims = {"sub": actor.id, "role": "authenticated", **claims}
        with self._connection.transaction():
            self._connection.execute(
                "select set_config('request.jwt.claims', %s, true)", [json.dumps(claims)]
            )
            self._connection.execute("set local role authenticated")
            cursor = self._connection.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    def as_role(self, role: str, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement as PostgREST would for a token of that role, without a user."""
        with self._connection.transaction():
            self._connection.execute(f"set local role {role}".encode())
            cursor = self._connection.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    def org(self, name: str = "an org") -> Org:
        org = Org(str(uuid4()), name)
        self.add([org], [])
        return org

    def tier(
        self,
        org: Org,
        *,
        day: int | None = None,
        rag: int | None = None,
        api: int | None = None,
        collections: int | None = None,
        documents: int | None = None,
        file_bytes: int | None = None,
        storage_bytes: int | None = None,
        upload_bytes_per_minute: int | None = None,
    ) -> None:
        """Put the org into a tier of its own: requests a day, and a minute in each bucket; collections,
        documents in each, bytes of a file, of all files and texts, and of uploads a minute."""
        name = f"test-{uuid4().hex[:16]}"
        self._tiers.append(name)
        limits = (day, rag, api, collections, documents, file_bytes, storage_bytes, upload_bytes_per_minute)
        self.sql("insert into rag.tiers values (%s, %s, %s, %s, %s, %s, %s, %s, %s)", name, *limits)
        self.sql("update rag.orgs set tier = %s where id = %s", name, org.id)

    def user(self, *orgs: Org, role: str = "member") -> Actor:
        """A user who belongs to these orgs, and writes to the first."""
        (user,) = self.add([], [(orgs, role)])
        return user

    def add(self, orgs: Sequence[Org], users: Sequence[tuple[Sequence[Org], str]]) -> list[Actor]:
        """Insert the orgs, and a user for each sequence of orgs and role. One statement, since most tests add
        eight rows and each statement costs a round trip and a commit."""
        # Here, where no other thread creates one at the same time: of two, one would never be closed.
        client()
        ids = [str(uuid4()) for _ in users]
        emails = [f"{user_id}@test.example" for user_id in ids]
        members = [
            (org.id, user_id, role)
            for user_id, (user_orgs, role) in zip(ids, users, strict=True)
            for org in user_orgs
        ]
        self.sql(
            "with orgs as (insert into rag.orgs (id, name) select * from unnest(%s::uuid[], %s::text[])), "
            "users as (insert into auth.users (id, email) select * from unnest(%s::uuid[], %s::text[])) "
            "insert into rag.members (org_id, user_id, role) "
            "select * from unnest(%s::uuid[], %s::uuid[], %s::text[])",
            [org.id for org in orgs], [org.name for org in orgs], ids, emails,
            *([row[column] for row in members] for column in range(3)),
        )  # fmt: skip
        return [
            Actor(self.stack, user_id, email, user_orgs[0] if user_orgs else None)
            for user_id, email, (user_orgs, _) in zip(ids, emails, users, strict=True)
        ]
