"""Objects of the victim org, one of each kind."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from verify.actors import Actors, Person
from verify.target_deployment import SetupFailed

QUESTION = "What is the code of the vault door?"
OF_OTHER = """
select documents.id, chunks.id, coalesce(external_id, title)
from rag.documents join rag.chunks on chunks.org_id = documents.org_id and chunks.document_id = documents.id
where documents.collection_id = %s
"""
HASH = hashlib.sha256(b"sweep").hexdigest()
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Objects:
    """`shared`, `private` and `restricted` map the name of a parameter to the victim's value for it: of an
    object that the org shares, of one that is private to the member, and of one in a collection that the
    member's group alone may view. `ids` are those of all rows of the org."""

    shared: Values
    private: Values
    restricted: Values
    ids: frozenset[str]
    private_ids: frozenset[str]
    other_collection_id: str

    @property
    def forged_link(self) -> str:
        """The signed link to an original, with another signature."""
        link: str = self.shared["link"]
        return link[:-8] + link[-8:].swapcase()


class ObjectFactory:
    """Creates and deletes the victim's objects, as the victim."""

    def __init__(self, actors: Actors, client: httpx.Client) -> None:
        self._actors = actors
        self._client = client
        name = f"other {actors.other_marker}"
        collection = {"name": name, "description": name}
        self.other_id: str = self._post(actors.admin, "/v1/collections", collection)["id"]
        self._ingest_other()
        self._rpc(actors.admin, "rag_put_group", {"name": name, "user_ids": [actors.member.id]})
        grants = [{"group": name, "access": "manage"}]
        access = {"collection_id": self.other_id, "restricted": True, "grants": grants}
        self._rpc(actors.admin, "rag_put_access", access)

    def create(self) -> Objects:
        """Create new objects in place of the previous ones."""
        actors = self._actors
        self.delete()
        actors.sql(
            "update rag.orgs set record_days = 30, restricts_collections = false where id = %s", actors.org_id
        )
        marker, private_marker = actors.marker, actors.private_marker
        name, private_name = f"collection {marker}", f"collection {private_marker}"
        collection = {
            "name": name, "description": f"about {marker}", "metadata": {"note": marker},
            "config": {"enable_knowledge_graph": True},
        }  # fmt: skip
        collection_id = self._post(actors.admin, "/v1/collections", collection)["id"]
        private_collection = {"name": private_name, "description": f"about {private_marker}", "private": True}
        private_collection_id = self._post(actors.member, "/v1/collections", private_collection)["id"]
        document_name, private_name_of_document = f"document {marker}", f"document {private_marker}"
        self._ingest(actors.admin, name, document_name, marker)
        self._ingest(actors.member, private_name, private_name_of_document, private_marker)
        ((document_id, chunk_id, embedding, model),) = actors.sql(
            "select documents.id, chunks.id, chunks.embedding::text, chunks.embedding_model "
            "from rag.documents join rag.chunks "
            "on chunks.org_id = documents.org_id and chunks.document_id = documents.id "
            "where documents.org_id = %s and documents.collection_id = %s",
            actors.org_id, collection_id,
        )  # fmt: skip
        vector = [round(float(number), 3) for number in embedding.strip("[]").split(",")]
        vector = [int(number) if number == int(number) else number for number in vector]
        private_document_id = self._private_document(name, vector, model)
        ((private_chunk_id,),) = actors.sql(
            "select id from rag.chunks where org_id = %s and document_id = %s",
            actors.org_id,
            private_document_id,
        )
        self._invite()
        waiting_id = self._waiting_document(collection_id)
        session_id = self._session(collection_id)
        webhook_id, delivery_id = self._webhook(collection_id)
        source_id, source_lease = (
            self._source(collection_id),
            self._source_lease(collection_id, str(document_id)),
        )
        load = {"name": f"load {marker}", "overwrite": False, "documents": 1, "collection": {}}
        load_id = self._rpc(actors.admin, "rag_begin_load", load)
        group = {"name": f"group {marker}", "user_ids": [actors.guest.id], "description": f"about {marker}"}
        self._rpc(actors.admin, "rag_put_group", group)
        event = {"event": "knowledge.retrieve", "namespace": name}
        self._rpc(actors.admin, "rag_record_event", event)
        common = {
            "org_id": actors.org_id, "organization_id": actors.org_id, "query_vector": vector,
            "embedding": vector, "vector": vector, "stored_model": model, "session_id": session_id,
            "hash": HASH, "claim": self._claim(), "load_id": load_id, "waiting_id": waiting_id,
            "load_document_id": self._load_document(load_id, model), "marker": marker,
            "webhook_id": webhook_id, "delivery_id": delivery_id,
            "job_ids": [self._failed_job(collection_id)],
            "source_id": source_id,
            "source_lease": source_lease,
            "guest_id": self._guest(), "updated_at": self._updated_at(document_id),
            **self._upload(collection_id),
        }  # fmt: skip
        shared = common | {
            **_names(collection_id, name, str(document_id), document_name, str(chunk_id)),
            "key_id": self._key(actors.admin, marker), "removal_path": self._removal(collection_id),
            "delivery_lease": self._delivery_lease(webhook_id, collection_id),
            "job_lease": self._job_lease(waiting_id),
            "extraction_lease": self._extraction_lease(str(document_id)),
            "link": self._link(actors.admin, waiting_id), "key_hash_of_key": self._hash_of_key(),
            "record_id": self._record(actors.admin, marker, collection_id, str(document_id), str(chunk_id)),
        }  # fmt: skip
        private = common | {
            **_names(
                private_collection_id, private_name, private_document_id, private_name_of_document,
                str(private_chunk_id),
            ),
            "key_id": self._key(actors.member, private_marker),
            "record_id": self._record(
                actors.member, private_marker, private_collection_id, private_document_id,
                str(private_chunk_id),
            ),
        }  # fmt: skip
        private_ids = [
            session_id,
            *(private[name] for name in ("collection_id", "document_id", "chunk_id", "key_id", "record_id")),
        ]
        if not actors.sql(OF_OTHER, self.other_id):  # A planted hole let an attack delete it.
            self._ingest_other()
        ((other_document_id, other_chunk_id, other_name),) = actors.sql(OF_OTHER, self.other_id)
        restricted = shared | _names(
            self.other_id,
            f"other {actors.other_marker}",
            str(other_document_id),
            other_name,
            str(other_chunk_id),
        )
        # So that no worker reads a document for names while the sweep runs.
        postpone = (
            "update rag.jobs set due_at = now() + interval '1 day' where org_id = %s and kind = 'extraction'"
        )
        actors.sql(postpone, actors.org_id)
        return Objects(shared, private, restricted, self._ids(), frozenset(private_ids), self.other_id)

    def _ingest_other(self) -> None:
        marker = self._actors.other_marker
        self._ingest(self._actors.admin, f"other {marker}", f"document {marker}", marker)

    def delete(self) -> None:
        """Delete all but the credentials of the sweep and the collection that bound keys belong to."""
        self._delete(self._actors.org_id, [self.other_id])
        self._delete(self._actors.foreign_org_id, [])

    def delete_attackers_objects(self, objects: Objects) -> None:
        """Delete what attackers created under the names of the victim's objects."""
        collections = [
            objects.shared["collection_id"],
            objects.private["collection_id"],
            objects.shared["load_id"],
        ]
        statement = "delete from rag.collections where org_id = %s and id <> all (%s::uuid[])"
        self._actors.sql(statement, self._actors.org_id, [self.other_id, *collections])
        # An admin of another org may invite every user to that org.
        guest = self._actors.guest
        self._actors.sql(
            "delete from rag.members where user_id = %s and org_id <> %s", guest.id, guest.org_id
        )
        self._delete(self._actors.foreign_org_id, [])

    def _delete(self, org_id: str, collections: list[str]) -> None:
        statement = "delete from rag.collections where org_id = %s and id <> all (%s::uuid[])"
        self._actors.sql(statement, org_id, collections)
        self._actors.sql(
            "delete from rag.api_keys where org_id = %s and name not like 'credential %%'", org_id
        )
        for table in (
            "sessions", "webhooks", "stored_responses", "audit_events", "object_removals", "request_records",
        ):  # fmt: skip
            self._actors.sql(f"delete from rag.{table} where org_id = %s", org_id)  # noqa: S608

    def _ids(self) -> frozenset[str]:
        """The ids of all rows of the org, of the org itself and of its users."""
        actors = self._actors
        tables = actors.sql(
            "select relname from pg_class where relnamespace = 'rag'::regnamespace and relkind in ('r', 'p') "
            "and 2 = (select count(*) from pg_attribute where attrelid = pg_class.oid "
            "and attname in ('org_id', 'id') and atttypid = 'uuid'::regtype)"
        )
        people = (actors.admin, actors.member, actors.colleague, actors.guest, actors.invited)
        ids = {actors.org_id, *(person.id for person in people)}
        for (table,) in tables:
            rows = actors.sql(f"select id from rag.{table} where org_id = %s", actors.org_id)  # noqa: S608
            ids |= {str(row_id) for (row_id,) in rows}
        return frozenset(ids)

    def _ingest(self, person: Person, namespace: str, document_name: str, marker: str) -> None:
        document = {
            "document_id": document_name, "text": _text(marker), "title": f"Vault Door {marker}",
            "source": f"source {marker}", "metadata": {"note": marker},
        }  # fmt: skip
        self._post(person, f"/api/v1/knowledge/{namespace}/documents", {"documents": [document]})

    def _private_document(self, collection: str, vector: list[float], model: str) -> str:
        """The member's own document in the collection that the org shares."""
        actors = self._actors
        text = _text(actors.private_marker)
        document = {
            "private": True, "title": f"Note {actors.private_marker}", "content": text,
            "embedding_model": model, "metadata": {"note": actors.private_marker},
            "chunks": [
                {"span_start": 0, "span_end": len(text), "token_count": 10, "embedding": vector}
            ],
        }  # fmt: skip
        arguments = {"org_id": actors.org_id, "collection": collection, "documents": [document]}
        return str(self._rpc(actors.member, "rag_put_documents", arguments)[0]["document_id"])

    def _waiting_document(self, collection_id: str) -> str:
        """A document with an original, a job and an idempotent reply."""
        marker = self._actors.marker
        body = {
            "collection_id": collection_id,
            "title": f"Letter {marker}",
            "content": f"Letter: {_text(marker)}",
        }
        headers = {"Idempotency-Key": f"sweep-{uuid4()}"}
        return str(self._post(self._actors.admin, "/v1/documents/text", body, **headers)["id"])

    def _upload(self, collection_id: str) -> dict[str, str]:
        """The ticket of a file that is uploaded and not yet a document; nothing if Storage is not set up."""
        actors = self._actors
        content = f"<p>{_text(actors.marker)}</p>".encode()
        body = {
            "collection_id": collection_id,
            "filename": f"{actors.marker}.html",
            "size_bytes": len(content),
        }
        address = f"{actors.deployment.url}/v1/documents/upload"
        headers = {"Authorization": f"Bearer {actors.token(actors.admin)}"}
        answer = self._client.post(address, json=body, headers=headers)
        if "storage_off" in answer.text:
            return {}
        begun = self._json(answer)
        self._json(self._client.put(begun["upload_url"], content=content))
        return {"upload": begun["upload"]}

    def _guest(self) -> str:
        """A member who may be removed."""
        guest = self._actors.guest
        statement = "insert into rag.members (org_id, user_id) values (%s, %s) on conflict do nothing"
        self._actors.sql(statement, guest.org_id, guest.id)
        return guest.id

    def _invite(self) -> None:
        statement = (
            "insert into rag.members (org_id, user_id, accepted_at) values (%s, %s, null) "
            "on conflict (org_id, user_id) do update set accepted_at = null"
        )
        self._actors.sql(statement, self._actors.org_id, self._actors.invited.id)

    def _session(self, collection_id: str) -> str:
        actors = self._actors
        turn = {
            "session_id": None, "org_id": actors.org_id, "collection_id": collection_id,
            "title": f"Talk {actors.private_marker}",
            "messages": [{"role": "user", "content": f"Tell {actors.private_marker}"}],
        }  # fmt: skip
        self._rpc(actors.member, "rag_save_turn", turn)
        ((session_id,),) = actors.sql("select id from rag.sessions where org_id = %s", actors.org_id)
        return str(session_id)

    def _load_document(self, load_id: str, model: str) -> str:
        """A document of the collection that is being loaded."""
        document = {
            "name": "loaded", "title": "Loaded", "content": f"{QUESTION} {self._actors.marker}",
            "embedding_model": model, "created_at": "2026-01-01T00:00:00Z",
        }  # fmt: skip
        arguments = {"collection_id": load_id, "documents": [document], "first": 0}
        return str(self._rpc(self._actors.admin, "rag_load_documents", arguments)[0]["document_id"])

    def _webhook(self, collection_id: str) -> tuple[str, str]:
        actors = self._actors
        body = {
            "url": f"https://hooks.invalid/{actors.marker}", "events": ["document.deleted"],
            "collection_id": collection_id, "description": f"about {actors.marker}",
        }  # fmt: skip
        webhook_id = self._post(actors.admin, "/v1/webhooks", body)["id"]
        # So that the worker sends nothing to it. No name server knows the address.
        pause = "update rag.endpoints set paused_until = now() + interval '1 day' where org_id = %s"
        actors.sql(pause, actors.org_id)
        ((delivery_id,),) = actors.sql(
            "insert into rag.deliveries (org_id, webhook_id, collection_id, event_id, event, object, state) "
            "values (%s, %s, %s, gen_random_uuid(), 'document.deleted', "
            "jsonb_build_object('title', %s::text), 'done') returning id",
            actors.org_id, webhook_id, collection_id, actors.marker,
        )  # fmt: skip
        return str(webhook_id), str(delivery_id)

    def _record(
        self, person: Person, marker: str, collection_id: str, document_id: str, chunk_id: str
    ) -> str:
        """A record of a question of that person."""
        actors = self._actors
        passage = {"chunk_id": chunk_id, "document_id": document_id, "score": 0.5, "similarity": 0.5}
        record = record_of(actors.org_id, f"{QUESTION} {marker}") | {
            "collection_id": collection_id, "passages": [passage],
        }  # fmt: skip
        self._rpc(person, "rag_record_request", {"record": record})
        statement = "select id from rag.request_records where org_id = %s and owner_id = %s"
        return str(actors.sql(statement, actors.org_id, person.id)[0][0])

    def _source(self, collection_id: str) -> str:
        """A source that the worker does not run during the sweep."""
        credentials = dict.fromkeys(("access_key_id", "secret_access_key"), f"secret {self._actors.marker}")
        body = {
            "collection_id": collection_id, "kind": "bucket", "address": f"s3://{self._actors.marker}",
            "credentials": credentials,
        }  # fmt: skip
        source_id = self._post(self._actors.admin, "/v1/sources", body)["id"]
        postpone = "update rag.sources set due_at = now() + interval '1 day' where org_id = %s"
        self._actors.sql(postpone, self._actors.org_id)
        return str(source_id)

    def _source_lease(self, collection_id: str, document_id: str) -> tuple[str, str]:
        """The id and the lease of a running source, with an item that its listing has not found yet."""
        actors, source_id, lease = self._actors, str(uuid4()), str(uuid4())
        actors.sql(
            "insert into rag.sources (org_id, id, collection_id, user_id, kind, address, interval_seconds, "
            "max_items, state, lease, run_number, due_at) values (%s, %s, %s, %s, 'website', %s, 86400, 10, "
            "'running', %s, 2, now() + interval '1 day')",
            actors.org_id, source_id, collection_id, actors.admin.id,
            f"https://sites.invalid/running/{actors.marker}", lease,
        )  # fmt: skip
        actors.sql(
            "insert into rag.source_items (org_id, source_id, item, document_id, run_number) "
            "values (%s, %s, %s, %s, 1)",
            actors.org_id, source_id, f"https://sites.invalid/{actors.marker}", document_id,
        )  # fmt: skip
        return source_id, lease

    def _key(self, person: Person, marker: str) -> str:
        body = {"name": f"key {marker}", "scopes": ["documents:read"]}
        key_id = str(self._post(person, "/api/keys", body)["id"])
        self._actors.key_ids.append(key_id)
        return key_id

    def _hash_of_key(self) -> str:
        statement = "select hash from rag.api_keys where org_id = %s and name like 'key %%' limit 1"
        return str(self._actors.sql(statement, self._actors.org_id)[0][0])

    def _claim(self) -> str:
        """The claim of an idempotency key by a running request of the admin."""
        actors, claim = self._actors, str(uuid4())
        actors.sql(
            "insert into rag.stored_responses (org_id, owner_id, caller_id, key_hash, body_hash, claim, "
            "due_at, created_at) values (%s, %s, %s, %s, %s, %s, now() + interval '1 hour', now())",
            actors.org_id, actors.admin.id, actors.admin.id, HASH, HASH, claim,
        )  # fmt: skip
        return claim

    def _job_lease(self, document_id: str) -> str:
        lease = str(uuid4())
        self._actors.sql(
            "update rag.jobs set state = 'running', attempts = 1, lease = %s, started_at = now(), "
            "due_at = now() + interval '1 hour' where org_id = %s and document_id = %s",
            lease, self._actors.org_id, document_id,
        )  # fmt: skip
        return lease

    def _failed_job(self, collection_id: str) -> str:
        """A job that failed, of a document of its own."""
        actors = self._actors
        ((job_id,),) = actors.sql(
            "with failed as (insert into rag.documents "
            "(org_id, collection_id, title, content, content_hash, status) "
            "values (%s, %s, %s, '', %s, 'failed') returning org_id, id, collection_id) "
            "insert into rag.jobs "
            "(org_id, document_id, collection_id, user_id, document, state, finished_at) "
            "select org_id, id, collection_id, %s, '{}', 'failed', now() from failed returning id",
            actors.org_id, collection_id, f"Failed {actors.marker}", "0" * 64, actors.admin.id,
        )  # fmt: skip
        return str(job_id)

    def _delivery_lease(self, webhook_id: str, collection_id: str) -> tuple[str, str]:
        """The id and the lease of a running delivery."""
        delivery_id, lease = str(uuid4()), str(uuid4())
        self._actors.sql(
            "insert into rag.deliveries (org_id, id, webhook_id, collection_id, event_id, event, object, "
            "state, lease, due_at) values (%s, %s, %s, %s, gen_random_uuid(), 'document.deleted', '{}', "
            "'running', %s, now() + interval '1 hour')",
            self._actors.org_id, delivery_id, webhook_id, collection_id, lease,
        )  # fmt: skip
        return delivery_id, lease

    def _removal(self, collection_id: str) -> str:
        """The path of an object in Storage that is to be deleted tomorrow."""
        actors = self._actors
        path = f"{actors.org_id}/{collection_id}/{actors.member.id}/{uuid4()}/{actors.marker}"
        actors.sql(
            "insert into rag.object_removals (org_id, path, collection_id, due_at) "
            "values (%s, %s, %s, now() + interval '1 day')",
            actors.org_id, path, collection_id,
        )  # fmt: skip
        return path

    def _extraction_lease(self, document_id: str) -> str:
        """The lease of the worker that extracts the document's names."""
        lease = str(uuid4())
        self._actors.sql(
            "insert into rag.jobs "
            "(org_id, id, kind, document_id, collection_id, user_id, state, lease, due_at) "
            "select org_id, id, 'extraction', id, collection_id, %s, 'running', %s, "
            "now() + interval '1 hour' from rag.documents where org_id = %s and id = %s "
            "on conflict (org_id, id) do update "
            "set user_id = excluded.user_id, state = 'running', next_ordinal = 0, lease = excluded.lease, "
            "due_at = excluded.due_at",
            self._actors.admin.id, lease, self._actors.org_id, document_id,
        )  # fmt: skip
        return lease

    def _updated_at(self, document_id: object) -> str:
        ((moment,),) = self._actors.sql("select updated_at from rag.documents where id = %s", document_id)
        return str(moment.isoformat())

    def _link(self, person: Person, document_id: str) -> str:
        """The token of a signed link to the document's original."""
        answer = self._send(person, "GET", f"/v1/documents/{document_id}/url", None)
        return str(httpx.URL(answer["url"]).params["token"])

    def _post(self, person: Person, path: str, body: Any, **headers: str) -> Any:
        return self._send(person, "POST", path, body, **headers)

    def _rpc(self, person: Person, function: str, arguments: Any) -> Any:
        deployment = self._actors.deployment
        address = f"{deployment.project_url}/rest/v1/rpc/{function}"
        return self._send(person, "POST", address, arguments, **deployment.project_headers)

    def _send(self, person: Person, method: str, path: str, body: Any, **headers: str) -> Any:
        address = path if path.startswith("http") else f"{self._actors.deployment.url}{path}"
        authorization = {"Authorization": f"Bearer {self._actors.token(person)}"}
        return self._json(self._client.request(method, address, json=body, headers=authorization | headers))

    def _json(self, answer: httpx.Response) -> Any:
        if answer.is_error:
            raise SetupFailed(
                f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text[:500]}"
                ". The sweep needs a deployment whose users can create their objects; check url, signing_key "
                "and database_url."
            )
        return answer.json() if answer.content else None


def record_of(org_id: str, question: str) -> dict[str, Any]:
    """As rag_record_request takes it."""
    return {
        "org_ids": [org_id], "request_id": uuid4().hex, "function": "chat", "question": question,
        "queries": [{"text": question, "mode": "hybrid"}], "passages": [], "confidence": "medium",
        "score": 0.5, "because": [], "prompt_tokens": 0, "completion_tokens": 0, "milliseconds": 1,
    }  # fmt: skip


def _text(marker: str) -> str:
    return f"The code of the vault door is {marker}. Ask Ada Lovelace at Babbage Engines for the vault door."


def _names(
    collection_id: str, name: str, document_id: str, document_name: str, chunk_id: str
) -> dict[str, Any]:
    return {
        "collection_id": collection_id, "workspace_id": collection_id, "x_workspace_id": collection_id,
        "collection_ids": [collection_id], "collection": name, "index_name": name, "namespace": name,
        "document_id": document_id, "document_ids": [document_id], "id": document_id, "ids": [document_id],
        "document_name": document_name, "doc_id": document_name, "doc_ids": [document_name],
        "names": [document_name], "chunk_id": chunk_id, "chunk_ids": [chunk_id],
    }  # fmt: skip
