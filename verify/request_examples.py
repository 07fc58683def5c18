"""Requests, and exceptions from the sweep, that cannot be generated from a schema."""

import hashlib
import secrets
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from verify.request_generator import ADDRESS
from verify.victim_objects import HASH, QUESTION, Values, record_of

Example = Callable[[Values], dict[str, Any]]

# Routes that create a user for every caller, if the deployment allows it: the sweep sends no valid request.
REGISTRATION = {"POST /v1/auth/register", "POST /api/v1/auth/register"}
# Routes that answer without a credential.
PUBLIC = REGISTRATION | {
    "GET /health",
    "GET /healthz",
    "GET /readyz",
    "GET /api/keys/health",
    "GET /v1/health",
    "GET /api/v1/health",
    "GET /.well-known/oauth-protected-resource",
    "GET /.well-known/oauth-protected-resource/mcp",
}
# Public routes that still check a credential if the request has one.
PUBLIC_WITH_CHECK = {"GET /v1/health", "GET /api/v1/health"}
# Opened by a signed link, which takes the place of a credential.
BY_LINK = {"GET /v1/documents/{document_id}/original", "GET /api/v1/documents/{document_id}/original"}
# The operators', each with the token of the deployment that opens it.
OPERATORS = {"GET /metrics": "metrics_token", "POST /functions/v1/ingest": "worker_token"}
# Routes that refuse a missing or invalid credential with 403 in place of 401.
FORBIDDEN_TO_UNAUTHENTICATED = {"POST /api/dify/retrieval"}
# Codes of a part of the product that the deployment has switched off.
SWITCHED_OFF = ("storage_off", "snapshots_off", "api_keys_off", "members_elsewhere")
# SQL functions that answer without the functions' secret.
OPEN_TO_BROWSERS = {
    "is_org_member",
    "rag_graph_of",
    "rag_graph_search",
    "rag_health",
    "rag_match",
    "rag_search",
    "rag_similar",
    "rag_widen",
}
# Targets that a key with any scope may call.
OPEN_TO_EVERY_SCOPE = {"GET /v1/orgs", "rag_list_orgs"}

# Targets of a user whom an org invites, who may belong to no org.
OF_THE_INVITED = {
    "GET /v1/invitations",
    "POST /v1/invitations/{org_id}",
    "rag_list_invitations",
    "rag_answer_invitation",
}

# Targets whose rightful request shows and changes nothing that is recognised: counters, states, links, files.
WITHOUT_EFFECT = {
    "GET /metrics",
    "GET /v1/documents/{document_id}/status",
    # Of an open collection.
    "GET /v1/collections/{collection_id}/access",
    # Empty where the deployment has memberships of its own.
    "GET /v1/members",
    "GET /v1/documents/{document_id}/url",
    "GET /v1/records/settings",
    "GET /v1/stats",
    "GET /v1/usage",
    "POST /functions/v1/ingest",
    "POST /persist/{index_name}",
    "is_org_member",
    "rag_check_load",
    "rag_get_calibration",
    "rag_get_access",
    "rag_health",
    "rag_check_rate_limit",
    "rag_store_content",
    "rag_record_metrics",
    "rag_record_tokens",
}
# SQL functions that the sweep calls only as an attacker: a valid one would do the worker's work for all orgs.
WITHOUT_CONTROL = {
    "rag_claim_calibration",
    "rag_claim_deliveries",
    "rag_claim_jobs",
    "rag_claim_removals",
    "rag_claim_sources",
    "rag_extend_hnsw",
    "rag_remove_deleted_collections",
    "rag_remove_expired_records",
    "rag_remove_old_calls",
    "rag_store_calibration",
}
# SQL functions of the worker's role.
OF_THE_WORKER = WITHOUT_CONTROL | {"rag_end_delivery", "rag_end_removal", "rag_end_source"}

# Names that mean something else to one function, by its slug.
ALIASES: Mapping[str, Mapping[str, str]] = {
    "knowledge": {"document_id": "document_name"},
    "dify": {"knowledge_id": "collection_id"},
}
# By method and path without a leading /api: what the body holds besides what the schema says.
BODIES: dict[str, Example] = {
    "POST /v1/chat": lambda _: {"message": QUESTION, "stream": False},
    "POST /v1/chat/completions": lambda _: {
        "messages": [{"role": "user", "content": QUESTION}],
        "stream": False,
    },
    "POST /v1/similar": lambda values: {"subject": {"kind": "document", "documentId": values["document_id"]}},
    "PATCH /v1/collections/{collection_id}": lambda values: {"description": f"new {values['marker']}"},
    "PATCH /v1/documents/{document_id}": lambda values: {"title": f"New {values['marker']}"},
    "POST /v1/members": lambda values: {
        "user_id": values["guest_id"],
        "name": f"new {values['marker']}",
    },
    "POST /v1/groups": lambda values: {"name": f"group {values['marker']}", "user_ids": []},
    "PATCH /v1/orgs/{org_id}": lambda _: {"restricts_collections": True},
    "POST /v1/collections/{collection_id}/access": lambda values: {
        "restricted": True,
        "grants": [{"group": f"group {values['marker']}", "access": "view"}],
    },
    "POST /v1/invitations/{org_id}": lambda _: {"accept": False},
    "PATCH /v1/webhooks/{webhook_id}": lambda values: {"description": f"new {values['marker']}"},
    "POST /v1/records/{record_id}/feedback": lambda values: {"reason": f"new {values['marker']}"},
    "POST /v1/sources": lambda _: {"address": ADDRESS},
    "PATCH /v1/sources/{source_id}": lambda _: {"interval_seconds": 7200},
    "POST /v1/auth/register": lambda _: {"email": "no address"},
    "POST /v1/documents/upload": lambda _: {"filename": "a.pdf", "size_bytes": 10},
}
# Path parameters that name another object than the parameter's name suggests.
PATHS: dict[str, Example] = {
    "GET /v1/documents/{document_id}/original": lambda values: {"document_id": values["waiting_id"]},
    "DELETE /v1/members/{user_id}": lambda values: {"user_id": values["guest_id"]},
}
QUERIES: dict[str, Example] = {
    "DELETE /v1/groups": lambda values: {"name": f"group {values['marker']}"},
    "DELETE /v1/collections/{collection_id}": lambda _: {"cascade": "true"},
    "POST /load/{index_name}": lambda _: {"overwrite": "true"},
}
# A request that the admin sends before the attacks.
FIRST = {"POST /load/{index_name}": "POST /persist/{index_name}"}


def _chunk(values: Values, text: str) -> dict[str, Any]:
    end = len(text)
    return {
        "span_start": 0,
        "span_end": end,
        "token_count": 1,
        "embedding": values["embedding"],
    }


def _document(values: Values, **more: Any) -> dict[str, Any]:
    text = f"{QUESTION} {values['marker']}"
    return {
        "title": "New", "content": text, "embedding_model": values["stored_model"], **more,
    }  # fmt: skip


def _digest() -> str:
    return hashlib.sha256(secrets.token_bytes(8)).hexdigest()


def _new_key(_: Values) -> dict[str, Any]:
    return {"prefix": "mn_live_abcd", "hash": _digest(), "scopes": ["documents:read"]}


def _secret() -> str:
    return f"whsec_{'A' * 43}="


# Arguments of SQL functions that their names and types do not give.
ARGUMENTS: dict[str, Example] = {
    "rag_put_documents": lambda values: {
        "documents": [
            _document(values, chunks=[_chunk(values, QUESTION)], external_id=values["document_name"])
        ]
    },
    "rag_add_document": lambda values: {
        "document": {"title": "New", "bytes": "eA=="},
        "collection_id": values["collection_id"],
    },
    "rag_update_document": lambda values: {"changes": {"title": f"New {values['marker']}"}},
    "rag_update_collection": lambda values: {"description": f"new {values['marker']}"},
    "rag_delete_collection": lambda _: {"cascade": True},
    "rag_create_collection": lambda _: {"name": f"new {secrets.token_hex(4)}"},
    "rag_create_key": lambda values: _new_key(values) | {"name": "new"},
    "rag_rotate_key": lambda _: {"prefix": "mn_live_abcd", "hash": _digest()},
    "rag_create_webhook": lambda _: {
        "url": ADDRESS, "secret": _secret(), "events": ["document.deleted"],
    },
    "rag_rotate_webhook": lambda _: {"secret": _secret()},
    "rag_update_webhook": lambda values: {"description": f"new {values['marker']}"},
    "rag_create_source": lambda _: {"kind": "website", "address": ADDRESS},
    "rag_update_source": lambda _: {"interval_seconds": 7200},
    "rag_list_source_items": lambda values: {"items": [{"item": f"https://sites.invalid/{values['marker']}"}]},
    "rag_put_source_item": lambda values: {
        "item": f"https://sites.invalid/{values['marker']}",
        "document": {"title": f"New {values['marker']}", "bytes": "eQ=="},
    },
    "rag_match": lambda values: {"filters": {"model": values["stored_model"], "org_id": values["org_id"]}},
    "rag_search": lambda values: {"query_text": QUESTION, "query_vector": values["embedding"]},
    "rag_graph_search": lambda values: {"query_text": QUESTION, "query_vector": values["embedding"]},
    "rag_similar": lambda values: {
        "document_id": values["document_id"], "chunk_id": None, "query_text": None, "query_vector": None,
    },
    "rag_answer_invitation": lambda _: {"accept": False},
    "rag_list_members": lambda _: {"invited": False},
    "rag_put_member": lambda values: {
        "user_id": values["guest_id"], "role": "member", "name": f"new {values['marker']}",
    },
    "rag_put_group": lambda values: {"name": f"group {values['marker']}", "user_ids": []},
    "rag_delete_group": lambda values: {"name": f"group {values['marker']}"},
    "rag_put_access": lambda values: {
        "restricted": True, "grants": [{"group": f"group {values['marker']}", "access": "view"}],
    },
    "rag_restrict_new_collections": lambda _: {"restricts": True},
    "rag_remove_member": lambda values: {"user_id": values["guest_id"]},
    "rag_get_original": lambda values: {"document_id": values["waiting_id"]},
    "rag_get_contents": lambda values: {
        "kinds": ["document"],
        "ids": [values["document_id"]],
        "chunks": True,
    },
    "rag_find_collection": lambda values: {"collection": values["collection"]},
    "rag_begin_snapshot": lambda values: {"name": values["collection"]},
    "rag_check_load": lambda values: {"name": values["collection"], "overwrite": True},
    "rag_begin_load": lambda values: {
        "name": values["collection"], "overwrite": True, "documents": 1, "collection": {},
    },
    "rag_load_documents": lambda values: {
        "collection_id": values["load_id"],
        "documents": [_document(values, name="a", created_at="2026-01-01T00:00:00Z")], "first": 1,
    },
    "rag_load_chunks": lambda values: {
        "collection_id": values["load_id"], "document_id": values["load_document_id"],
        "chunks": [_chunk(values, QUESTION)], "last": True,
        "embedding_model": values["stored_model"],
    },
    "rag_finish_load": lambda values: {"collection_id": values["load_id"]},
    "rag_cancel_load": lambda values: {"collection_id": values["load_id"]},
    "rag_snapshot_documents": lambda _: {},
    "rag_read_snapshot_chunks": lambda _: {"first": 0},
    "rag_claim_response": lambda _: {
        "key_hash": _digest(), "body_hash": HASH, "lease_seconds": 60, "scope": "chat:read",
    },
    "rag_store_response": lambda _: {"key_hash": HASH, "status": 200, "body": "{}", "request_id": "r"},
    "rag_release_response": lambda _: {"key_hash": HASH},
    "rag_check_rate_limit": lambda _: {
        "function": "rag-search",
        "bucket": "rag",
        "requests": 10**6,
        "window_seconds": 60,
    },
    "rag_judged_search": lambda values: {"query_text": QUESTION, "query_vector": values["embedding"]},
    "rag_record_event": lambda _: {"event": "knowledge.retrieve"},
    "rag_label_record": lambda values: {"verdict": "wrong", "document_ids": [values["document_id"]]},
    "rag_list_records": lambda _: {"limit": 10},
    "rag_rate_record": lambda values: {"rating": "down", "reason": f"new {values['marker']}"},
    "rag_record_metrics": lambda _: {"measures": []},
    "rag_record_tokens": lambda _: {"model_tokens": 1, "model_calls": 1},
    "rag_record_request": lambda values: {"record": record_of(values["org_id"], QUESTION)},
    "rag_open_session": lambda _: {"history": 10},
    "rag_save_turn": lambda values: {
        "title": "new", "messages": [{"role": "user", "content": f"and {values['marker']}"}],
    },
    "rag_begin_upload": lambda _: {"name": "a.pdf", "size_bytes": 10},
    "rag_check_upload": lambda _: {"size_bytes": 10},
    "rag_claim_jobs": lambda _: {"kind": "ingestion", "max_items": 1, "lease_seconds": 60},
    "rag_claim_calibration": lambda _: {"question_set": "another"},
    "rag_store_calibration": lambda _: {
        "question_set": "another",
        "calibration": {
            "slope": 9, "intercept": 9, "high": 0, "medium": 0, "ceiling_high": 0, "ceiling_medium": 0,
        },
    },
    "rag_store_content": lambda _: {"content_hash": _digest(), "size_bytes": 1},
    "rag_extend_job": lambda _: {"step": "storing", "lease_seconds": 60},
    "rag_complete_job": lambda values: {"document": _document(values), "chunks": [_chunk(values, QUESTION)]},
    "rag_fail_job": lambda _: {"code": "processing_failed", "message": "x"},
    "rag_store_extraction": lambda _: {"first": 0, "chunks": [{"names": [{"name": "Eve Root"}]}]},
    "rag_end_removal": lambda values: {"path": values.get("removal_path", "a")},
    "rag_end_source": lambda values: {
        "source_id": values["source_lease"][0], "lease": values["source_lease"][1], "counts": {"listed": 1},
    },
    "rag_end_delivery": lambda values: {
        "delivery_id": values.get("delivery_lease", values["delivery_id"])[0],
        "lease": values.get("delivery_lease", [str(uuid4())])[-1], "response_status": 200,
    },
}  # fmt: skip
