"""The catalogue, held against written lists: exposed objects, privileges, how tenants are told
apart. A new table or function needs an entry here.
"""

import httpx
import psycopg
import pytest

from local.declared_schema import exposed_functions
from local.tools import sql_reference
from shared.clients.supabase_storage import MAX_BYTES
from tests.actors import World, client
from tests.conftest import People

# Every exposed function, with its kind of caller. Each runs as its caller.
CALLERS = exposed_functions()
EXPOSED = set(CALLERS)
# An owner with BYPASSRLS is bound by no policy inside a definer function: each one needs a reason here.
SECURITY_DEFINER: dict[str, str] = {}

# What a signed-in user may do to each table, as far as its policies then let them.
GRANTS = {
    "settings": {"SELECT"},
    "tiers": {"SELECT"},
    "orgs": {"SELECT"},
    "members": {"SELECT"},
    "collections": {"SELECT", "INSERT", "DELETE"},
    "documents": {"SELECT", "DELETE"},
    "chunks": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "postings": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "term_counts": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "facets": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "title_entities": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "mentions": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "relations": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "extractions": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "originals": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "jobs": {"SELECT", "INSERT", "DELETE"},
    "webhooks": {"SELECT", "INSERT", "DELETE"},
    "deliveries": {"SELECT"},
    "object_removals": {"SELECT", "INSERT", "DELETE"},
    "api_keys": {"SELECT"},
    # No delete: a count that could be deleted could be started again.
    "rate_limits": {"SELECT", "INSERT", "UPDATE"},
    "request_counts": {"SELECT", "INSERT", "UPDATE"},
    "api_metrics": {"SELECT", "INSERT", "UPDATE"},
    "org_calls": {"SELECT", "INSERT", "UPDATE"},
    "token_usage": {"SELECT"},
    # No update, no delete: what happened stays as it was noted.
    "audit_events": {"SELECT"},
    # Only the review and the expiry of a record change.
    "request_records": {"SELECT", "INSERT", "DELETE"},
    "sources": {"SELECT", "DELETE"},
    "source_credentials": {"INSERT"},
    "source_items": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "query_embeddings": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "stored_responses": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "sessions": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    # No update: messages are final.
    "messages": {"SELECT", "INSERT", "DELETE"},
}
# Events are written by the user who causes them; their delivery is the worker's.
EVENT_COLUMNS = {"org_id", "webhook_id", "collection_id", "owner_id", "event_id", "event", "object"}
# All columns but created_by.
OF_COLLECTIONS = {
    "org_id", "id", "owner_id", "name", "description", "metadata", "config", "loading_name", "deleted_at",
    "created_at", "updated_at",
}  # fmt: skip
OF_DOCUMENTS = {
    "org_id", "id", "collection_id", "owner_id", "external_id", "source_type", "title", "uri", "lang",
    "occurred_at", "origin", "author", "state", "labels", "metadata", "content", "content_hash", "status",
    "error_code", "error_message", "filename", "content_type", "size_bytes", "processing_info", "created_at",
    "updated_at",
}  # fmt: skip
# Of these a signed-in user may write single columns. What a key may do never changes once it is made.
COLUMN_GRANTS = {
    "collections": {"UPDATE": OF_COLLECTIONS},
    "documents": {"INSERT": OF_DOCUMENTS, "UPDATE": OF_DOCUMENTS},
    "orgs": {"UPDATE": {"record_days"}},
    "request_records": {"UPDATE": {"expires_at", "rating", "reason", "verdict", "document_ids"}},
    "api_keys": {
        "INSERT": {"org_id", "owner_id", "name", "prefix", "hash", "scopes", "collection_id", "expires_at",
                   "requests_per_minute"},
        "UPDATE": {"last_used_at", "expires_at", "revoked_at", "replaced_at"},
    },
    "jobs": {
        "UPDATE": {"state", "attempts", "due_at", "lease", "step", "error_code", "error_message",
            "finished_at"},
    },
    "webhooks": {"UPDATE": {"events", "enabled", "updated_at"}},
    "audit_events": {
        "INSERT": {"org_id", "owner_id", "user_id", "event", "namespace", "collection_id", "document_count",
                   "chunk_count", "top_score"},
    },
    "token_usage": {
        "INSERT": {"org_id", "day", "quota", "tokens", "calls"},
        "UPDATE": {"tokens", "calls", "alerted_at", "exceeded_at"},
    },
    # No signed-in user reads a secret, not even their own.
    "endpoints": {
        "SELECT": {"org_id", "webhook_id", "owner_id", "url", "description", "failing_since", "paused_until"},
        "INSERT": {"org_id", "webhook_id", "url", "description", "secret"},
        "UPDATE": {"url", "description", "secret", "old_secret_until", "failing_since", "paused_until"},
    },
    "deliveries": {
        "INSERT": EVENT_COLUMNS,
        "UPDATE": {"state", "attempts", "due_at", "response_status", "error", "finished_at"},
    },
    "sources": {
        "INSERT": {"org_id", "collection_id", "owner_id", "kind", "address", "endpoint", "region",
                   "interval_seconds", "max_items"},
        "UPDATE": {"user_id", "interval_seconds", "max_items", "enabled", "due_at", "updated_at"},
    },
    # Only the worker reads credentials.
    "source_credentials": {"SELECT": {"org_id", "source_id", "owner_id"}, "UPDATE": {"credentials"}},
}  # fmt: skip
# Only the database's owner reads and writes them: no grants, and a policy that permits nothing.
OWNER_TABLES = {"other_embeddings"}
TABLES = set(GRANTS) | set(COLUMN_GRANTS) | OWNER_TABLES
# The worker's role sees jobs, of documents ids, states and how far they are read for names, collections that
# members deleted, which objects are to go because no document has them, and what webhooks are to be sent.
WORKER_FUNCTIONS = {
    "rag.clear_deliveries()",
    "rag.due_deliveries(integer)",
    "rag.due_extractions(integer)",
    "rag.due_jobs(integer)",
    "rag.fail_exhausted_jobs()",
    "rag_claim_deliveries(integer,integer)",
    "rag_claim_extractions(integer,integer)",
    "rag_claim_jobs(integer,integer)",
    "rag_claim_removals(integer)",
    "rag_claim_sources(integer,integer)",
    "rag_end_delivery(uuid,uuid,uuid,integer,text,integer)",
    "rag_end_removal(uuid,text)",
    "rag_end_source(uuid,uuid,uuid,jsonb,text,text,text,integer)",
    "rag_extend_hnsw(integer)",
    "rag_remove_deleted_collections()",
    "rag_remove_expired_records()",
    "rag_remove_old_calls()",
}
# PostgREST calls the first of them before each request, as any role.
OF_EVERY_ROLE = {"rag.check_request()", "rag.check_direct_size()"}
# What they, the triggers on what they change, and the functions' own health ask.
WORKER_HELPERS = {
    "rag_health()",
    "rag.is_direct_call()",
    "rag.functions_secret_status()",
    "rag.queues(uuid[])",
    "rag.version()",
    "rag.check_claim(integer,integer)",
    "rag.first_counted_day()",
    "rag.max_attempts()",
    "rag.paused_org_ids()",
    "rag.has_subscriber(uuid,uuid,text)",
    "rag.is_readable(jsonb)",
    "rag.is_metadata(jsonb)",
    "rag.is_visible_text(text)",
    "rag.is_chunk_location(jsonb)",
    "rag.is_whole(jsonb,integer,integer)",
    "rag.enqueue_event(uuid,uuid,uuid,text,jsonb)",
}
WORKER_GRANTS = {
    "jobs": {"SELECT"},
    "object_removals": {"SELECT", "DELETE"},
    "webhooks": {"SELECT"},
    "endpoints": {"SELECT"},
    "deliveries": {"SELECT", "DELETE"},
    "settings": {"SELECT"},
    "collections": {"DELETE"},
    "request_records": {"DELETE"},
    "org_calls": {"DELETE"},
    "sources": {"SELECT"},
    "source_credentials": {"SELECT"},
}
WORKER_COLUMN_GRANTS = {
    "jobs": {
        "UPDATE": {"state", "attempts", "due_at", "lease", "started_at", "finished_at", "step", "error_code",
                   "error_message"},
    },
    "documents": {
        "SELECT": {"org_id", "id", "collection_id", "status"},
        "UPDATE": {"status", "error_code", "error_message"},
    },
    "chunks": {"SELECT": {"org_id", "id", "in_hnsw"}, "UPDATE": {"in_hnsw"}},
    "collections": {"SELECT": {"org_id", "id", "deleted_at"}},
    "org_calls": {"SELECT": {"day"}},
    "webhooks": {"UPDATE": {"enabled", "updated_at"}},
    "endpoints": {"UPDATE": {"old_secret", "failing_since", "paused_until"}},
    "deliveries": {
        "INSERT": EVENT_COLUMNS,
        "UPDATE": {"state", "attempts", "due_at", "lease", "response_status", "error", "finished_at"},
    },
    "extractions": {
        "SELECT": {"org_id", "document_id", "owner_id", "user_id", "is_extracted", "attempts", "due_at",
                   "lease", "error_code", "error_message"},
        "UPDATE": {"attempts", "due_at", "lease", "error_code", "error_message", "updated_at"},
    },
    "originals": {"SELECT": {"org_id", "path"}},
    "orgs": {"SELECT": {"id", "tier"}},
    "tiers": {"SELECT": {"name", "is_paused"}},
    "request_records": {"SELECT": {"org_id", "id", "expires_at"}},
    "sources": {
        "UPDATE": {"state", "lease", "attempts", "due_at", "run_number", "resume_after", "started_at",
                   "finished_at", "listed", "stored", "deleted", "failed", "gone", "error_code",
                   "error_message"},
    },
    "object_removals": {"UPDATE": {"due_at", "attempts"}},
}  # fmt: skip
WORKER_POLICIES = {
    "the worker knows where webhooks lead",
    "the worker records the results of endpoints",
    "the worker sees subscriptions",
    "the worker sends deliveries",
    "the worker disables failing webhooks",
    "the worker claims jobs",
    "the worker claims extractions",
    "the worker leases extractions",
    "the worker leases jobs",
    "the worker sees which documents there are",
    "the worker sees deleted collections",
    "the worker removes deleted collections",
    "the worker sees old calls",
    "the worker removes old calls",
    "the worker sees which chunks are in the HNSW index",
    "the worker adds chunks to the HNSW index",
    "the worker gives documents up",
    "the worker sees objects to remove",
    "the worker puts removals off",
    "the worker ends removals",
    "the worker sees which objects documents have",
    "the worker reads the settings",
    "the worker sees the tiers of orgs",
    "the worker sees which tiers are paused",
    "the worker sees expired records",
    "the worker removes expired records",
    "the worker claims sources",
    "the worker leases sources",
    "the worker reads credentials of sources",
}
# What a document is made of and found by: under the same policies as itself.
OF_DOCUMENTS = {
    "documents", "chunks", "postings", "term_counts", "facets", "originals", "title_entities", "mentions",
    "relations", "extractions",
}  # fmt: skip
TENANT_TABLES = {
    "api_keys", "collections", "jobs", "object_removals", "webhooks", "endpoints", "deliveries",
    "audit_events", "stored_responses", "sessions", "messages", "org_calls", "token_usage", "request_records",
    "sources", "source_credentials", "source_items", *OF_DOCUMENTS,
}  # fmt: skip
# What narrows tokens that stand for API keys: restrictive policies, by table.
NARROWING = {
    "api_keys": {
        "a bound key stays in its collection",
        "a key manages keys with the scope for it",
        "keys are made for oneself, by oneself",
    },
    "collections": {
        "a bound key stays in its collection",
        "a key changes collections with collections:manage",
        "a key deletes collections with collections:manage",
        "a key makes collections with a scope that writes",
        "a collection keeps the name of its creator",
        "a deleted collection is seen by those who see documents in it",
    },
    "jobs": {
        "a bound key stays in its collection",
        "a key deletes with documents:write",
        "a key reads and writes with the scopes for it",
        "jobs are for oneself",
        "the holder of the lease continues a job",
    },
    "webhooks": {"admins change webhooks", "admins delete webhooks", "admins make webhooks"},
    "endpoints": {"admins alone see where webhooks lead"},
    "sources": {
        "a changed source runs as the user who changes it",
        "a source runs as the user who requests it",
        "admins manage sources",
    },
    "source_credentials": {"admins write credentials of sources"},
    "source_items": {"admins see items of sources"},
    "deliveries": {
        "admins have it told again",
        "admins see deliveries",
        "who changes something has it told",
    },
    "audit_events": {
        "a bound key stays in its collection",
        "a key notes what its scopes let it do",
        "admins read events",
        "events are of oneself",
    },
    "request_records": {
        "a bound key stays in its collection",
        "a key records and reads answers with a scope that asks",
        "expired records are invisible",
        "records are of oneself",
    },
    "stored_responses": {
        "a bound key stays in its collection",
        "a key has replies of its scopes",
        "a response belongs to its caller",
    },
    "object_removals": {
        "a bound key stays in its collection",
        "a key removes with a scope that deletes",
        "a key sees uploads with documents:write",
        "uploads are one's own",
        "objects of deleted documents are removed",
    },
} | {
    table: {
        "a bound key stays in its collection",
        "a key deletes with documents:write",
        "a key reads and writes with the scopes for it",
    }
    for table in OF_DOCUMENTS
}
NARROWING |= {
    table: {
        "a bound key stays in its collection",
        "a key chats with chat:read",
        "a session is its user's alone",
    }
    for table in ("sessions", "messages")
}
NARROWING["org_calls"] = {"calls are of oneself", "users count their own calls"}
NARROWING["token_usage"] = {"calls of the functions add tokens", "calls of the functions add more tokens"}
NARROWING["extractions"] |= {"documents are read in the name of who asks"}
NARROWING["originals"] |= {
    "an object is brought by who uploaded it",
    "an object takes a place by who uploaded it",
}
# Unique without org_id in front, and why no other tenant can learn anything from that.
UNIQUE_ACROSS_ORGS = {
    "orgs_pkey": "an org's own id is the org_id",
    "settings_pkey": "one row for the whole deployment",
    "tiers_pkey": "the same tiers for the whole deployment",
    "api_keys_hash": "a key is looked up before its org is known; only the key's holder knows its hash",
    "rate_limits_pkey": "a caller has one budget, whichever orgs they belong to; who it is the token says",
    "request_counts_pkey": "a user's own requests, whichever orgs they belong to",
    "api_metrics_pkey": "the same of what their requests did",
    "query_embeddings_pkey": "a user's own questions, seen by no other user, whichever orgs they belong to",
}
MEMBERSHIP = (
    "((org_id = ANY (ARRAY( SELECT rag.current_org_ids() AS current_org_ids)))"
    " AND ((owner_id IS NULL) OR (owner_id = ( SELECT auth.uid() AS uid))"
    " OR (org_id = ANY (ARRAY( SELECT rag.admin_org_ids() AS admin_org_ids)))))"
)
# A key is also seen by the token that looks it up, which knows its hash; usage by that of the metrics.
EXPRESSIONS = dict.fromkeys(TENANT_TABLES, MEMBERSHIP) | {
    "api_keys": f"({MEMBERSHIP} OR (hash = ( SELECT rag.lookup_hash() AS lookup_hash)))",
    "token_usage": f"({MEMBERSHIP} OR ( SELECT rag.reads_metrics() AS reads_metrics))",
}
# The token of the metrics writes nothing.
CHECKS = {"token_usage": MEMBERSHIP}

OURS = """
    from pg_proc
    where pronamespace in ('rag'::regnamespace, 'public'::regnamespace)
      and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = pg_proc.oid
        and deptype = 'e')
"""


def functions(world: World, condition: str = "true") -> set[str]:
    """Our functions that a condition on pg_proc holds of."""
    return {name for (name,) in world.sql(f"select oid::regprocedure::text {OURS} and ({condition})")}


def test_the_server_has_the_requested_postgres_version(world: World, pytestconfig: pytest.Config):
    ((version,),) = world.sql("select current_setting('server_version_num')::integer / 10000")
    assert version == pytestconfig.getoption("postgres")


def test_the_exposed_functions_are_the_documented_list(world: World):
    assert functions(world, "pronamespace = 'public'::regnamespace") == EXPOSED


def test_the_reference_is_generated_and_every_object_has_a_comment(world: World):
    with psycopg.connect(world.stack.database_url()) as connection:
        text = sql_reference.reference(connection)
    assert "\n\nNone\n" not in text
    assert "| None |" not in text
    assert sql_reference.PATH.read_text() == text, "run: make generated"


def test_every_exposed_function_is_security_invoker(world: World):
    exposed_definers = "pronamespace = 'public'::regnamespace and prosecdef"
    assert functions(world, exposed_definers) == set()


def test_only_the_listed_functions_are_security_definer(world: World):
    """In whatever schema: ours are those that the migrating role owns."""
    rows = world.sql(
        "select oid::regprocedure::text from pg_proc where prosecdef and proowner = 'postgres'::regrole"
    )
    assert {name for (name,) in rows} == set(SECURITY_DEFINER)


def test_every_function_sets_its_search_path(world: World):
    assert functions(world, "proconfig is null or not proconfig @> array['search_path=\"\"']") == set()


def test_every_function_declares_its_volatility(world: World):
    """Volatile is the default, and keeps a function out of policies' one evaluation a statement."""
    assert functions(world, "provolatile = 'v'") == {
        "rag.time_ordered_id()",
        "rag.begin_call()",
        "rag.begin_write()",
        "rag.renew_plans()",
        "rag_delete_session(uuid)",
        "rag_save_turn(uuid,uuid,uuid,text,jsonb)",
        "rag_delete_records(uuid)",
        "rag_label_record(text,text,uuid[])",
        "rag_rate_record(text,text,text)",
        "rag_record_request(jsonb)",
        "rag_remove_expired_records()",
        "rag_update_record_settings(uuid,integer)",
        "rag.shorten_retention()",
        "rag.take_slot(text,integer)",
        "rag.limit_direct_call()",
        "rag.add_title_entities(rag.documents)",
        "rag.on_graph_setting_changed(rag.collections,boolean)",
        "rag.delete_dangling_relations(uuid,uuid)",
        "rag.delete_graph_of_document(uuid,uuid)",
        "rag.lock_leased(anyelement,boolean)",
        "rag.index_new_titles()",
        "rag.index_changed_title()",
        "rag.insert_names(uuid,rag.document_chunks[],integer)",
        "rag.insert_mentions(uuid,rag.document_chunks[],integer)",
        "rag.insert_relations(uuid,rag.document_chunks[],integer)",
        "rag.move_graph_of_document()",
        "rag.enqueue_extractions(uuid,rag.document_chunks[],boolean)",
        "rag.requeue_extraction(uuid,uuid)",
        "rag.enqueue_collection(rag.collections,boolean)",
        "rag_build_graph(uuid,boolean)",
        "rag_claim_extractions(integer,integer)",
        "rag_fail_extraction(text,text,integer,boolean)",
        "rag_store_extraction(integer,jsonb,integer)",
        "rag_open_extraction(integer)",
        "rag.clear_deliveries()",
        "rag.delete_expired_responses(uuid)",
        "rag.try_claim_response(uuid,text,text,text,integer)",
        "rag_claim_response(uuid,text,text,integer,uuid,text)",
        "rag_store_response(uuid,text,uuid,integer,text,text,uuid[])",
        "rag_release_response(uuid,text,uuid)",
        "rag.milliseconds_since(timestamp with time zone)",
        "rag.count_org_call()",
        "rag.running_load(uuid)",
        "rag.insert_chunks(uuid,rag.document_chunks[],integer)",
        "rag.id_at_position(bigint)",
        "rag_cancel_load(uuid)",
        "rag_begin_load(text,boolean,integer,jsonb)",
        "rag_finish_load(uuid,boolean)",
        "rag_load_chunks(uuid,uuid,jsonb,text,boolean)",
        "rag_load_documents(uuid,jsonb,bigint)",
        "rag.insert_documents(rag.collections,rag.new_document[])",
        "rag.new_documents(rag.collections,jsonb)",
        "rag.put_documents(rag.collections,rag.new_document[],boolean)",
        "rag.replace_documents(uuid,rag.new_document[],rag.stored_document[])",
        "rag_put_documents(text,jsonb,boolean)",
        "rag_delete_named(text,text[])",
        "rag_record_metrics(jsonb)",
        "rag_record_tokens(bigint,integer,bigint,integer)",
        "rag.add_tokens(text,bigint,integer)",
        "rag.enqueue_quota_events(rag.token_usage,text,bigint)",
        "rag.count_changed_terms()",
        "rag.delete_term_counts()",
        "rag.count_hits(uuid,text,integer,integer,integer)",
        "rag.count_request(text,text)",
        "rag.ensure_collection(uuid,text)",
        "rag.fold_term_counts(uuid,uuid,uuid,text[])",
        "rag.take_term_counts(tid[])",
        "rag.enqueue_job(rag.documents,jsonb)",
        "rag.fail_exhausted_jobs()",
        "rag.store_original(rag.documents,bytea,text,text,text)",
        "rag.take_upload_once(rag.collections,text)",
        "rag.index_changed_chunks()",
        "rag.index_changed_document()",
        "rag.index_new_facets()",
        "rag.index_changed_facets()",
        "rag.index_words(uuid,uuid[])",
        "rag.delete_documents_of_collection()",
        "rag.require_undeleted_collection()",
        "rag.store_old_secret()",
        "rag.prevent_key_revival()",
        "rag.delete_failed_duplicate(rag.documents,text)",
        "rag.exchange_embeddings(uuid,text)",
        "rag.put_other_embeddings(uuid,text,jsonb)",
        "rag.set_dimensions(text,integer)",
        "rag.enqueue_object_removal()",
        "rag.delete_chunks(uuid,uuid[])",
        "rag.take_upload(rag.collections,text)",
        "rag.check_collection_quota(uuid)",
        "rag.check_document_quota(rag.collections)",
        "rag.check_key_quota(uuid)",
        "rag.enqueue_event(uuid,uuid,uuid,text,jsonb)",
        "rag.enqueue_collection_event()",
        "rag.enqueue_document_event()",
        "rag_add_document(uuid,jsonb)",
        "rag_claim_deliveries(integer,integer)",
        "rag_begin_upload(uuid,text,bigint)",
        "rag_claim_jobs(integer,integer)",
        "rag_claim_removals(integer)",
        "rag_end_removal(uuid,text)",
        "rag_claim_sources(integer,integer)",
        "rag_end_source(uuid,uuid,uuid,jsonb,text,text,text,integer)",
        "rag_create_source(uuid,text,text,integer,integer,text,text,jsonb)",
        "rag_update_source(uuid,integer,integer,boolean,jsonb)",
        "rag_run_source(uuid)",
        "rag_delete_source(uuid,boolean)",
        "rag_list_source_items(jsonb,integer)",
        "rag_put_source_item(text,text,jsonb,integer)",
        "rag_delete_missing_items(integer,integer)",
        "rag_extend_hnsw(integer)",
        "rag_remove_deleted_collections()",
        "rag_remove_old_calls()",
        "rag_retry_jobs(uuid[])",
        "rag_store_content(text,integer)",
        "rag_complete_job(jsonb,jsonb)",
        "rag_create_collection(text,text,jsonb,jsonb,uuid,boolean)",
        "rag_create_key(text,text,text,text[],uuid,text,timestamp with time zone)",
        "rag_create_webhook(text,text,text[],uuid,text,uuid)",
        "rag_delete_collection(uuid,boolean)",
        "rag_delete_document(uuid)",
        "rag_delete_documents(uuid[])",
        "rag_delete_webhook(uuid)",
        "rag_end_delivery(uuid,uuid,uuid,integer,text,integer)",
        "rag_fail_job(text,text,integer,boolean)",
        "rag_check_rate_limit(text,text,integer,integer,integer)",
        "rag_open_job(integer)",
        "rag_open_key()",
        "rag_put_document(jsonb,jsonb)",
        "rag_record_event(text,text,integer,integer,double precision,jsonb)",
        "rag_put_query_embedding(text,extensions.vector,integer)",
        "rag_repeat_delivery(uuid,uuid)",
        "rag_extend_job(text,integer)",
        "rag_revoke_key(uuid)",
        "rag_rotate_key(uuid,text,text,integer)",
        "rag_rotate_webhook(uuid,text,integer)",
        "rag_update_collection(uuid,text,text,jsonb,jsonb)",
        "rag_update_document(uuid,jsonb)",
        "rag_update_webhook(uuid,text,text[],text,boolean)",
    }


def test_the_schema_public_has_no_table_view_or_type_of_the_project(world: World):
    rows = world.sql(
        "select relname from pg_class where relnamespace = 'public'::regnamespace "
        "union all select typname from pg_type where typnamespace = 'public'::regnamespace"
    )
    assert rows == []


def test_other_roles_execute_the_pre_request_function_only(world: World):
    executed = {
        role: functions(world, f"has_function_privilege('{role}', oid, 'execute')")
        for role in ("anon", "service_role")
    }
    assert executed == {"anon": OF_EVERY_ROLE, "service_role": OF_EVERY_ROLE}


def test_public_executes_the_pre_request_function_only(world: World):
    """Grantee 0 is PUBLIC; an ACL that was never set grants it."""
    granted = "exists (select from aclexplode(coalesce(proacl, acldefault('f', proowner))) where grantee = 0)"
    assert functions(world, granted) == OF_EVERY_ROLE


def test_authenticated_can_execute_every_function_of_the_project(world: World):
    executed = functions(world, "has_function_privilege('authenticated', oid, 'execute')")
    assert executed == functions(world) - WORKER_FUNCTIONS


def test_the_worker_s_role_can_execute_its_own_functions(world: World):
    executed = functions(world, "has_function_privilege('rag_worker', oid, 'execute')")
    assert executed == WORKER_FUNCTIONS | WORKER_HELPERS | OF_EVERY_ROLE
    assert world.sql(
        "select rolcanlogin, rolbypassrls, rolsuper from pg_roles where rolname = 'rag_worker'"
    ) == [(False, False, False)]


def test_no_role_of_postgrest_creates_objects_in_the_project_s_schemas(world: World):
    creating = world.sql(
        "select role, schema from unnest(array['anon', 'authenticated', 'authenticator', 'rag_worker', "
        "'service_role']) as role, unnest(array['rag', 'public']) as schema "
        "where has_schema_privilege(role, schema, 'create')"
    )
    assert creating == []


def test_table_grants_are_the_documented_list(world: World):
    """To signed-in users and the worker what the lists say; to anon, service_role and the public nothing."""
    rows = world.sql(
        "select relname, grantee::regrole::text, array_agg(privilege_type) "
        "from pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner))) "
        "where relnamespace = 'rag'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f') "
        "and grantee <> relowner group by 1, 2"
    )
    assert {table: set(privileges) for table, role, privileges in rows if role == "authenticated"} == GRANTS
    assert {
        table: set(privileges) for table, role, privileges in rows if role == "rag_worker"
    } == WORKER_GRANTS
    assert [row for row in rows if row[1] not in ("authenticated", "rag_worker")] == []
    columns = world.sql(
        "select relname, grantee::regrole::text, privilege_type, array_agg(attname::text) "
        "from pg_attribute join pg_class on pg_class.oid = attrelid, aclexplode(attacl) "
        "where relnamespace = 'rag'::regnamespace group by 1, 2, 3"
    )
    assert {(table, role, privilege, frozenset(names)) for table, role, privilege, names in columns} == {
        (table, role, privilege, frozenset(names))
        for role, tables in (("authenticated", COLUMN_GRANTS), ("rag_worker", WORKER_COLUMN_GRANTS))
        for table, privileges in tables.items()
        for privilege, names in privileges.items()
    }


def test_every_table_has_row_security_enabled_and_forced(world: World):
    rows = world.sql(
        "select relname, relrowsecurity, relforcerowsecurity from pg_class "
        "where relnamespace = 'rag'::regnamespace and relkind in ('r', 'p', 'f')"
    )
    assert {name for name, _, _ in rows} == TABLES
    assert [name for name, enabled, forced in rows if not (enabled and forced)] == []


def test_no_view_bypasses_row_security(world: World):
    views = "select relname from pg_class where relnamespace = 'rag'::regnamespace and relkind in ('v', 'm')"
    assert world.sql(views) == []


def test_tenant_tables_are_those_with_an_org(world: World):
    rows = world.sql(
        "select relname from pg_attribute join pg_class on pg_class.oid = attrelid "
        "where relnamespace = 'rag'::regnamespace and relkind in ('r', 'p') and attname = 'org_id'"
    )
    assert {name for (name,) in rows} - {"members"} == TENANT_TABLES | OWNER_TABLES


def test_every_tenant_table_has_one_policy_with_the_membership_expression(world: World):
    """Word for word, for reading as for writing, so that one overlay can swap it everywhere."""
    rows = world.sql(
        "select relname, polcmd::text, polpermissive, polroles::regrole[]::text[], "
        "pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid) "
        "from pg_policy join pg_class on pg_class.oid = polrelid where relname = any (%s) and polpermissive "
        "and polroles <> array['rag_worker'::regrole::oid]",
        sorted(TENANT_TABLES),
    )
    assert sorted(rows) == [
        (table, "*", True, ["authenticated"], expression, CHECKS.get(table, expression))
        for table, expression in sorted(EXPRESSIONS.items())
    ]


def test_every_tenant_table_restricts_api_keys_as_documented(world: World):
    rows = world.sql(
        "select relname, array_agg(polname::text) from pg_policy "
        "join pg_class on pg_class.oid = polrelid and relnamespace = 'rag'::regnamespace "
        "where not polpermissive group by 1"
    )
    assert {table: set(names) for table, names in rows} == NARROWING


def test_every_policy_is_for_authenticated_except_the_worker_s(world: World):
    rows = world.sql(
        "select polname, polroles::regrole[]::text[] from pg_policy join pg_class on pg_class.oid = polrelid "
        "where relnamespace = 'rag'::regnamespace"
    )
    assert {name for name, roles in rows if roles == ["rag_worker"]} == WORKER_POLICIES
    others = [roles for name, roles in rows if name not in WORKER_POLICIES]
    # Members read their orgs, and admins change one column: two policies of rag.orgs.
    assert len(others) == len(TABLES) + 1 + sum(map(len, NARROWING.values()))
    assert {tuple(roles) for roles in others} == {("authenticated",)}


def test_the_storage_policies_are_the_documented_list(world: World):
    """Restrictive ones: no other policy that the project may have opens the bucket."""
    rows = world.sql(
        "select polname, polpermissive, polcmd::text, polroles::regrole[]::text[] from pg_policy "
        "where polrelid = 'storage.objects'::regclass"
    )
    assert sorted(rows) == [
        ("rag: an object is deleted by a token that names it", False, "d", ["authenticated"]),
        ("rag: an object is read by who reads its document", False, "r", ["authenticated"]),
        ("rag: an object is stored by who was told to", False, "a", ["authenticated"]),
        ("rag: anon does not use the bucket of originals", False, "*", ["anon"]),
        ("rag: no object is changed", False, "w", ["authenticated"]),
        ("rag: signed-in users use the bucket of originals", True, "*", ["authenticated"]),
    ]
    buckets = world.sql("select id, public, file_size_limit from storage.buckets")
    assert buckets == [("rag-originals", False, MAX_BYTES)]


def test_unique_keys_start_with_the_org_with_documented_exceptions(world: World):
    """A key that is unique across orgs tells one tenant of another's rows, and cannot be distributed."""
    rows = world.sql(
        "select indexrelid::regclass::text, attname from pg_index "
        "join pg_class on pg_class.oid = indrelid and relnamespace = 'rag'::regnamespace "
        "join pg_attribute on attrelid = indrelid and attnum = indkey[0] where indisunique"
    )
    otherwise = {index.removeprefix("rag.") for index, first in rows if first != "org_id"}
    assert otherwise == set(UNIQUE_ACROSS_ORGS)
    assert len(rows) > len(otherwise)


def test_every_table_has_a_primary_key(world: World):
    rows = world.sql(
        "select relname from pg_class where relnamespace = 'rag'::regnamespace and relkind in ('r', 'p') "
        "and not exists (select from pg_index where indrelid = pg_class.oid and indisprimary)"
    )
    assert rows == []


def test_foreign_keys_between_tenant_tables_include_the_org(world: World):
    """(org_id, x) refers to (org_id, id): no row can hang on another tenant's."""
    rows = world.sql(
        "select child.relname, parent.relname, "
        "array(select attname::text from unnest(conkey) with ordinality as key (number, place) "
        "  join pg_attribute on attrelid = conrelid and attnum = number order by place), "
        "array(select attname::text from unnest(confkey) with ordinality as key (number, place) "
        "  join pg_attribute on attrelid = confrelid and attnum = number order by place) "
        "from pg_constraint join pg_class as child on child.oid = conrelid "
        "join pg_class as parent on parent.oid = confrelid "
        "where contype = 'f' and child.relnamespace = 'rag'::regnamespace"
    )
    between = [row for row in rows if row[0] in TENANT_TABLES and row[1] in TENANT_TABLES]
    assert {(child, parent) for child, parent, _, _ in between} == {
        ("documents", "collections"),
        ("chunks", "documents"),
        ("facets", "documents"),
        ("api_keys", "collections"),
        ("originals", "documents"),
        ("title_entities", "documents"),
        ("mentions", "chunks"),
        ("relations", "chunks"),
        ("extractions", "documents"),
        ("jobs", "documents"),
        ("endpoints", "webhooks"),
        ("deliveries", "webhooks"),
        ("sources", "collections"),
        ("source_credentials", "sources"),
        ("source_items", "sources"),
        ("source_items", "documents"),
        ("sessions", "collections"),
        ("messages", "sessions"),
        ("messages", "collections"),
    }
    assert [row for row in between if row[2][0] != "org_id" or row[3][0] != "org_id"] == []
    # And every tenant row hangs, directly or not, on an org.
    assert ("collections", "orgs", ["org_id"], ["id"]) in rows


def test_embeddings_are_stored_in_the_row(world: World):
    rows = world.sql(
        "select attstorage::text, format_type(atttypid, atttypmod) from pg_attribute "
        "where attrelid = 'rag.chunks'::regclass and attname = 'embedding'"
    )
    assert rows == [("p", "extensions.halfvec")]


def test_a_member_cannot_reach_the_schema_through_postgrest(people: People):
    """406 is PostgREST's word for a schema that it does not expose."""
    headers = {**people.ann.headers(), "Accept-Profile": "rag", "Content-Profile": "rag"}
    tables = [(method, table) for method in ("GET", "HEAD", "POST", "PATCH", "DELETE")
              for table in ("chunks", "documents", "members", "orgs", "settings")]  # fmt: skip
    calls = [(method, "rpc/current_org_ids") for method in ("GET", "HEAD", "POST")]
    reached = []
    for method, path in tables + calls:
        body: dict[str, str] | None = {} if method in ("POST", "PATCH") else None
        address = f"{people.ann.stack.url}/rest/v1/{path}"
        answer = client().request(method, address, headers=headers, json=body)
        if answer.status_code != 406:
            reached.append((method, path, answer.status_code, answer.text))
    assert reached == []


def test_postgrest_offers_members_the_documented_list_and_anon_nothing(people: People):
    """Its own description of itself, which follows privileges."""

    def offered(headers: dict[str, str]) -> set[str]:
        answer = httpx.get(f"{people.ann.stack.url}/rest/v1/", headers=headers)
        assert answer.status_code == 200
        return set(answer.json()["paths"]) - {"/"}

    assert offered(people.ann.headers()) == {
        f"/rpc/{name.partition('(')[0]}" for name in EXPOSED - WORKER_FUNCTIONS
    }
    assert offered({"apikey": people.ann.stack.anon_key}) == set()


def test_a_member_cannot_call_unexposed_functions(people: People):
    internal = (
        "current_org_ids", "admin_org_ids", "memberships", "ensure_collection", "set_config", "jwt", "uid",
    )  # fmt: skip
    statuses = {name: people.ann.rpc(name).status_code for name in internal}
    assert statuses == dict.fromkeys(internal, 404)
