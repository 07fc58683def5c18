"""What the attacks are made on: three secrets of three owners, and the doors that lead to them."""

import re
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from local.declared_schema import exposed_functions
from shared.ingestion.synchronous_ingestion import NewDocument, ingest
from shared.models.embeddings import embed
from shared.services import Services
from tests.actors import (
    DIMENSIONS,
    LEASED,
    READING,
    SECRET,
    Actor,
    hit_arguments,
    key_arguments,
    put_arguments,
    webhook_arguments,
)
from tests.conftest import People

QUESTION = "What is the code of the vault door?"
SECRETS = {"acme": "ACME-4417", "bolt": "BOLT-9052", "ann": "ANN-7731"}

# A direction in few letters: PostgREST does not read what comes with a token that it refuses, and may close
# the connection on more than 8 KB before its answer is read.
SHORT = [1.0, *[0] * (DIMENSIONS - 1)]

HTTP_ROUTES = ["/api/rag/search", "/api/rag/answer"]
ALIASES = ["/functions/v1/rag-search", "/functions/v1/rag-answer"]
MATCH = "/rest/v1/rpc/rag_match"
ENTRY_POINTS = [*HTTP_ROUTES, MATCH]
FUNCTIONS = sorted(
    signature.partition("(")[0] for signature, caller in exposed_functions().items() if caller != "worker"
)
every_route = pytest.mark.parametrize("route", ENTRY_POINTS)
every_http_route = pytest.mark.parametrize("route", HTTP_ROUTES)

# What an error of the HTTP endpoints never says: SQL and its errors, our tables, our code, a token.
INTERNALS = re.compile(
    r"\bselect\b|\binsert\b|\bupdate\b|\brelation\b|\bcolumn\b|\bpolicy\b|\bpermission denied\b|sqlstate|"
    r"PGRST|PT4\d\d|\brag[._]|\bpublic\.|postgres|postgrest|psycopg|httpx|Traceback|File \"|\.py\b|eyJ",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Library:
    """One secret each: of the org Acme, of the org Bolt, and ann's own, which is private in Acme."""

    services: Services
    client: httpx.Client
    people: People
    acme_document: str
    bolt_document: str
    ann_document: str

    def call(self, function: str, headers: dict[str, str]) -> httpx.Response:
        """A call that would be ann's good right, by the caller of the headers."""
        reply = {"org_id": self.people.acme.id, "key_hash": "0" * 64, "claim": self.acme_document}
        arguments: dict[str, Any] = {
            "rag_match": {"query_vector": SHORT},
            "rag_search": {"query_vector": SHORT, "query_text": QUESTION},
            "rag_similar": {"document_id": self.acme_document},
            "rag_widen": {"chunk_ids": [self.acme_document], "neighbours": 1},
            "rag_create_collection": {"name": "a", "org_id": self.people.acme.id},
            "rag_list_collections": {},
            "rag_get_collection": {"collection_id": self.acme_document},
            "rag_update_collection": {"collection_id": self.acme_document, "name": "b"},
            "rag_delete_collection": {"collection_id": self.acme_document},
            "rag_add_document": {
                "collection_id": self.acme_document,
                "document": {"title": "a", "bytes": "eA=="},
            },
            "rag_list_documents": {"collection_id": self.acme_document},
            "rag_get_document": {"document_id": self.acme_document},
            "rag_read_document": {"document_id": self.acme_document},
            "rag_update_document": {"document_id": self.acme_document, "changes": {"title": "b"}},
            "rag_get_original": {"document_id": self.acme_document},
            "rag_begin_upload": {"collection_id": self.acme_document, "name": "a.pdf", "size_bytes": 1},
            **LEASED,
            **READING,
            "rag_build_graph": {"collection_id": self.acme_document},
            "rag_begin_snapshot": {"name": "default"},
            "rag_snapshot_documents": {"collection_id": self.acme_document},
            "rag_read_snapshot_documents": {
                "collection_id": self.acme_document,
                "document_ids": [self.acme_document],
            },
            "rag_read_snapshot_chunks": {
                "collection_id": self.acme_document,
                "document_id": self.acme_document,
                "updated_at": "2026-01-01T00:00:00Z",
                "first": 0,
            },
            "rag_check_load": {"name": "a"},
            "rag_begin_load": {"name": "a", "overwrite": False, "documents": 0, "collection": {}},
            "rag_load_documents": {"collection_id": self.acme_document, "documents": [], "first": 0},
            "rag_load_chunks": {
                "collection_id": self.acme_document,
                "document_id": self.acme_document,
                "chunks": [],
                "embedding_model": "m",
                "last": True,
            },
            "rag_finish_load": {"collection_id": self.acme_document},
            "rag_cancel_load": {"collection_id": self.acme_document},
            "rag_create_source": {
                "collection_id": self.acme_document,
                "kind": "website",
                "address": "https://docs.example.com/",
            },
            "rag_list_sources": {},
            "rag_update_source": {"source_id": self.acme_document, "enabled": False},
            "rag_run_source": {"source_id": self.acme_document},
            "rag_delete_source": {"source_id": self.acme_document},
            "rag_record_request": {"record": {}},
            "rag_record_tokens": {"model_tokens": 1},
            "rag_get_record": {"record_id": self.acme_document},
            "rag_rate_record": {"record_id": self.acme_document, "rating": "up"},
            "rag_label_record": {"record_id": self.acme_document, "verdict": "right"},
            "rag_list_records": {},
            "rag_summarize_records": {},
            "rag_delete_records": {},
            "rag_get_record_settings": {},
            "rag_update_record_settings": {"retention_days": 1},
            "rag_list_source_items": {"items": [{"item": "https://docs.example.com/a"}]},
            "rag_put_source_item": {"item": "https://docs.example.com/a", "document": {}},
            "rag_delete_missing_items": {"max_items": 1},
            "rag_create_webhook": webhook_arguments(),
            "rag_list_webhooks": {},
            "rag_update_webhook": {"webhook_id": self.acme_document, "enabled": False},
            "rag_rotate_webhook": {"webhook_id": self.acme_document, "secret": SECRET},
            "rag_delete_webhook": {"webhook_id": self.acme_document},
            "rag_list_deliveries": {"webhook_id": self.acme_document},
            "rag_repeat_delivery": {"webhook_id": self.acme_document, "delivery_id": self.acme_document},
            "rag_put_document": put_arguments(self.people.acme, [SHORT]),
            "rag_delete_document": {"document_id": self.acme_document},
            "rag_delete_documents": {"document_ids": [self.acme_document]},
            "rag_list_jobs": {},
            "rag_retry_jobs": {"job_ids": [self.acme_document]},
            "rag_check_rate_limit": hit_arguments(),
            "rag_judged_search": {"query_vector": SHORT, "query_text": QUESTION},
            "is_org_member": {"org_id": self.people.acme.id},
            "rag_create_key": key_arguments(org_id=self.people.acme.id),
            "rag_list_keys": {},
            "rag_rotate_key": {
                "key_id": self.acme_document,
                **{name: key_arguments()[name] for name in ("prefix", "hash")},
            },
            "rag_revoke_key": {"key_id": self.acme_document},
            "rag_open_key": {},
            "rag_metrics": {},
            "rag_health": {},
            "rag_stats": {},
            "rag_list_usage": {},
            "rag_list_members": {},
            "rag_find_collection": {"collection": "default"},
            "rag_list_names": {},
            "rag_list_orgs": {},
            "rag_find_documents": {"collection": "default", "names": [self.acme_document]},
            "rag_put_documents": {"collection": "default", "documents": []},
            "rag_list_named": {"collection": "default", "limit": 10},
            "rag_delete_named": {"collection": "default", "names": [self.acme_document]},
            "rag_record_metrics": {"measures": []},
            "rag_record_event": {"event": "knowledge.retrieve", "namespace": "support"},
            "rag_list_events": {},
            "rag_resolve_workspace": {"org_id": self.people.acme.id},
            "rag_claim_response": {
                "org_id": self.people.acme.id,
                "key_hash": "0" * 64,
                "body_hash": "0" * 64,
                "lease_seconds": 60,
            },
            "rag_store_response": {**reply, "status": 200, "body": "{}", "request_id": "r"},
            "rag_release_response": reply,
            "rag_get_contents": {
                "org_id": self.people.acme.id,
                "kinds": ["document"],
                "ids": [self.acme_document],
            },
            "rag_graph_search": {"query_text": QUESTION, "query_vector": SHORT},
            "rag_graph_of": {"org_id": self.people.acme.id, "document_ids": [self.acme_document]},
            "rag_open_session": {},
            "rag_save_turn": {
                "session_id": None,
                "org_id": self.people.acme.id,
                "collection_id": None,
                "title": "a",
                "messages": [{"role": "user", "content": "a"}],
            },
            "rag_list_sessions": {},
            "rag_list_session_messages": {"session_id": self.acme_document},
            "rag_delete_session": {"session_id": self.acme_document},
            "rag_get_calibration": {"model": "all-MiniLM-L6-v2"},
            "rag_get_query_embedding": {"hash": "0" * 64, "max_age_seconds": 60},
            "rag_put_query_embedding": {"hash": "0" * 64, "embedding": SHORT, "max_age_seconds": 60},
        }
        return self.client.post(f"/rest/v1/rpc/{function}", json=arguments[function], headers=headers)

    @property
    def needle(self) -> list[float]:
        return embed(self.services.embedder, [QUESTION])[0]

    def ask(self, route: str, headers: dict[str, str], **filters: Any) -> httpx.Response:
        """The question at that door, by the caller of the headers."""
        body: dict[str, Any] = {"query_text": QUESTION, "top_k": 50, "filters": filters}
        if route == MATCH:
            model = {"model": self.services.embedder.model, **filters}
            body = {"query_vector": self.needle, "top_k": 50, "filters": model}
        return self.client.post(route, json=body, headers=headers)

    def secrets(self, route: str, actor: Actor, token: str | None = None, **filters: Any) -> set[str]:
        """Whose secrets this user finds at that door."""
        answer = self.ask(route, actor.headers(token), **filters)
        assert answer.status_code == 200, answer.text
        return {whose for whose, secret in SECRETS.items() if secret in answer.text}

    def is_unchanged(self) -> bool:
        """Whether all users still find their first results."""
        return (
            self.secrets(MATCH, self.people.ann) == {"acme", "ann"}
            and self.secrets(MATCH, self.people.alf) == {"acme"}
            and self.secrets(MATCH, self.people.bob) == {"bolt"}
        )


def store(services: Services, actor: Actor, secret: str, **fields: Any) -> str:
    """A document that answers the question with that secret; its id."""
    assert actor.org is not None
    text = f"The code of the vault door is {secret}. Nobody else may know the code of the vault door."
    document = NewDocument(org_id=actor.org.id, title="The vault door", text=text, **fields)
    return ingest(services.database, services.embedder, actor.principal, document).document_id


def assert_tells_nothing(answer: httpx.Response, library: Library, asker: Actor | None = None) -> None:
    """Nothing of documents, of other orgs, of tokens or keys, and no stack trace."""
    people = library.people
    own = asker.org.id if asker and asker.org else None
    hidden = [library.acme_document, library.bolt_document, library.ann_document, *SECRETS.values()]
    hidden += [org.id for org in (people.acme, people.bolt) if org.id != own]
    hidden += ["vault", "eyJ", "Traceback", 'File "', people.ann.stack.state.jwt_secret]
    hidden += [people.ann.stack.state.password]
    assert [text for text in hidden if text in answer.text] == []


def assert_refused(answer: httpx.Response, status: int, library: Library) -> None:
    """An error in the rag contract's envelope that helps and tells nothing."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"status", "error"}
    assert set(body["error"]) == {"code", "message"}
    assert body["status"] == "error"
    assert not INTERNALS.search(answer.text), answer.text
    assert_tells_nothing(answer, library)
