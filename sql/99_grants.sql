-- Privileges of all roles on tables and functions. anon and service_role only execute PostgREST's pre-request function.

-- Tables: what the policies then restrict. Columns are listed where a role may write or read only these.
grant select on rag.settings to authenticated;
grant select on rag.tiers to authenticated;
grant select on rag.orgs, rag.members to authenticated;
grant update (record_days, restricts_collections) on rag.orgs to authenticated;
-- The trigger rag.check_consent restricts updates further.
grant insert (org_id, user_id, role, name, accepted_at), update (role, name, accepted_at), delete
  on rag.members to authenticated;
grant select on rag.oauth_clients to authenticated;
grant select, insert, delete on rag.groups, rag.group_members to authenticated;
grant update (description) on rag.groups to authenticated;
grant select, insert, update (access, original), delete on rag.collection_grants to authenticated;
grant select, insert, delete on rag.collections to authenticated;
-- All columns but created_by.
grant update (org_id, id, owner_id, name, description, metadata, config, loading_name, restricted_by, deleted_at,
  created_at, updated_at) on rag.collections to authenticated;
grant select, delete on rag.documents to authenticated;
-- All columns but created_by, which has its default.
grant insert (org_id, id, collection_id, owner_id, external_id, source_type, title, uri, lang, occurred_at, origin, author,
  state, labels, metadata, content, content_hash, status, error_code, error_message, filename, content_type,
  size_bytes, processing_info, created_at, updated_at),
  update (org_id, id, collection_id, owner_id, external_id, source_type, title, uri, lang, occurred_at, origin, author,
  state, labels, metadata, content, content_hash, status, error_code, error_message, filename, content_type,
  size_bytes, processing_info, created_at, updated_at)
  on rag.documents to authenticated;
grant select, insert, update, delete on rag.chunks to authenticated;
grant select, insert, update, delete on rag.originals to authenticated;
grant select, insert, update, delete on rag.facets to authenticated;
grant select, insert, delete on rag.jobs to authenticated;
grant update (collection_id, owner_id, user_id, next_ordinal, state, attempts, due_at, lease, step, error_code,
  error_message, passages_hash, embeddings, finished_at)
  on rag.jobs to authenticated;
grant select on rag.api_keys to authenticated;
grant insert (org_id, owner_id, name, prefix, hash, scopes, collection_id, expires_at, requests_per_minute)
  on rag.api_keys to authenticated;
grant update (last_used_at, expires_at, revoked_at, replaced_at) on rag.api_keys to authenticated;
grant select, insert, update, delete on rag.document_terms, rag.term_segments, rag.term_blocks,
  rag.stored_bytes to authenticated;
grant select, insert, delete on rag.object_removals to authenticated;
grant select, insert, delete on rag.webhooks to authenticated;
grant update (events, enabled, updated_at) on rag.webhooks to authenticated;
grant select (org_id, webhook_id, owner_id, url, description, failing_since, paused_until)
  on rag.endpoints to authenticated;
grant insert (org_id, webhook_id, url, description, secret) on rag.endpoints to authenticated;
grant update (url, description, secret, old_secret_until, failing_since, paused_until)
  on rag.endpoints to authenticated;
grant select on rag.deliveries to authenticated;
grant insert (org_id, webhook_id, collection_id, owner_id, event_id, event, object)
  on rag.deliveries to authenticated;
grant update (state, attempts, due_at, response_status, error, finished_at) on rag.deliveries to authenticated;
grant select, delete on rag.sources to authenticated;
grant insert (org_id, collection_id, owner_id, kind, address, endpoint, region, interval_seconds, max_items,
  include_noindex), update (user_id, interval_seconds, max_items, include_noindex, enabled, due_at,
  updated_at)
  on rag.sources to authenticated;
-- Without the credentials: no user reads them.
grant select (org_id, source_id, owner_id), insert (org_id, source_id, owner_id, credentials), update (credentials)
  on rag.source_credentials to authenticated;
grant select, insert, update, delete on rag.source_items to authenticated;
grant select, insert, update, delete on rag.title_entities to authenticated;
grant select, insert, update, delete on rag.mentions to authenticated;
grant select, insert, update, delete on rag.relations to authenticated;
grant select, insert, update on rag.org_calls to authenticated;
grant select, insert (org_id, day, quota, tokens, calls), update (tokens, calls, alerted_at, exceeded_at)
  on rag.token_usage to authenticated;
grant select, insert, update, delete on rag.sessions to authenticated;
-- No update: a stored message does not change.
grant select, insert, delete on rag.messages to authenticated;
grant select, insert, update on rag.api_metrics to authenticated;
grant select, insert, update on rag.rate_limits to authenticated;
grant select, insert, update on rag.request_counts to authenticated;
grant select, insert, update, delete on rag.stored_responses to authenticated;
grant select, insert (org_id, owner_id, user_id, event, namespace, collection_id, document_count, chunk_count, top_score)
  on rag.audit_events to authenticated;
grant select, insert, delete on rag.request_records to authenticated;
grant update (expires_at, rating, reason, verdict, document_ids) on rag.request_records to authenticated;

-- The same for the worker's role, which is no member of an org.
grant select (org_id, id, deleted_at), delete on rag.collections to rag_worker;
grant select (org_id, id, in_hnsw), update (in_hnsw) on rag.chunks to rag_worker;
grant select (org_id, id, kind, document_id, collection_id, owner_id, user_id, state, attempts, due_at, lease, error_code,
  error_message, created_at, started_at, finished_at) on rag.jobs to rag_worker;
grant update (state, attempts, due_at, lease, started_at, finished_at, step, error_code, error_message,
  passages_hash, embeddings) on rag.jobs to rag_worker;
grant select (org_id, id, collection_id, status), update (status, error_code, error_message) on rag.documents to rag_worker;
grant select, delete on rag.object_removals to rag_worker;
grant update (due_at, attempts) on rag.object_removals to rag_worker;
grant select (org_id, path) on rag.originals to rag_worker;
grant select on rag.webhooks, rag.endpoints to rag_worker;
grant update (enabled, updated_at) on rag.webhooks to rag_worker;
grant update (old_secret, old_secret_id, failing_since, paused_until) on rag.endpoints to rag_worker;
grant select, delete on rag.deliveries to rag_worker;
grant insert (org_id, webhook_id, collection_id, owner_id, event_id, event, object) on rag.deliveries to rag_worker;
grant update (state, attempts, due_at, lease, response_status, error, finished_at)
  on rag.deliveries to rag_worker;
grant select on rag.sources, rag.source_credentials to rag_worker;
grant update (state, lease, attempts, due_at, run_number, resume_after, started_at, finished_at, listed, stored,
  deleted, failed, gone, left_out, error_code, error_message) on rag.sources to rag_worker;
grant select (day), delete on rag.org_calls to rag_worker;
grant select (bucket, started_at), delete on rag.rate_limits to rag_worker;
grant select, update (calibrations, calibration_claims) on rag.settings to rag_worker;
grant select (id, tier, served), update (served) on rag.orgs to rag_worker;
grant select (name, is_paused) on rag.tiers to rag_worker;
grant select (org_id, id, expires_at), delete on rag.request_records to rag_worker;

-- Functions of schema rag. PostgREST does not expose the schema. Exposed functions run as their caller, who therefore
-- executes the internal functions too.
revoke all on all functions in schema rag from public, anon, authenticated, service_role;
grant execute on all functions in schema rag to authenticated;
-- PostgREST's pre-request function runs as every role.
grant execute on function rag.check_request(), rag.check_direct_size() to public;
revoke execute on function rag.fail_exhausted_jobs(), rag.due_jobs(text, integer, uuid[]), rag.clear_deliveries(),
  rag.due_deliveries(integer), rag.secret_in_vault(uuid), rag.store_in_vault(), rag.erase_from_vault(),
  rag.broadcast_change() from authenticated;
grant execute on function rag.fail_exhausted_jobs(), rag.due_jobs(text, integer, uuid[]), rag.clear_deliveries(),
  rag.due_deliveries(integer), rag.secret_in_vault(uuid) to rag_worker;
-- The functions that the worker's statements call in checks, triggers and rag_health.
grant execute on function rag.is_visible_text(text), rag.is_metadata(jsonb), rag.is_readable(jsonb),
  rag.paused_org_ids(), rag.has_subscriber(uuid, uuid, text), rag.enqueue_event(uuid, uuid, uuid, text, jsonb),
  rag.version(), rag.queues(uuid[]), rag.add_stored_bytes(uuid, bigint),
  rag.is_direct_call(), rag.functions_secret_status(),
  rag.current_user_id(), rag.token_claim(), rag.is_issuers(jsonb), rag.check_claim(integer, integer), rag.max_attempts(),
  rag.is_chunk_location(jsonb), rag.is_whole(jsonb, integer, integer), rag.first_counted_day(),
  rag.is_calibrations(jsonb), rag.is_dimensions(jsonb), rag.needs_calibration(rag.settings, text, text)
  to rag_worker;

-- Exposed functions: schema public, by kind of caller. Supabase grants new functions of schema public to its API roles,
-- so each grant begins with a revoke. Tests and verify/ read this list.
do $$
declare
  exposed record;
begin
  for exposed in
    select * from (values
      -- Browsers may call these with the user's token alone (rag.limit_direct_call).
      ('direct', 'rag_graph_of(uuid,uuid[],uuid,integer)'),
      ('direct', 'rag_graph_search(text,extensions.vector,text,integer,jsonb,integer,double precision,text[],integer,text,integer)'),
      ('direct', 'rag_match(extensions.vector,integer,jsonb)'),
      ('direct', 'rag_search(text,extensions.vector,text,integer,jsonb,integer,double precision,text[])'),
      ('direct', 'rag_similar(uuid,uuid,text,integer,jsonb,text,extensions.vector,text,text[])'),
      ('direct', 'rag_widen(uuid[],integer)'),
      -- Policies call the first, health checks the second. Neither returns documents.
      ('unguarded', 'is_org_member(uuid)'),
      ('unguarded', 'rag_health()'),
      -- Only the worker's role calls these.
      ('worker', 'rag_claim_calibration(text,text,integer)'),
      ('worker', 'rag_claim_deliveries(integer,integer)'),
      ('worker', 'rag_claim_jobs(text,integer,integer,uuid[])'),
      ('worker', 'rag_claim_removals(integer)'),
      ('worker', 'rag_claim_sources(integer,integer)'),
      ('worker', 'rag_end_delivery(uuid,uuid,uuid,integer,text,integer)'),
      ('worker', 'rag_end_removal(uuid,text)'),
      ('worker', 'rag_end_source(uuid,uuid,uuid,jsonb,text,text,text,integer)'),
      ('worker', 'rag_extend_hnsw(integer)'),
      ('worker', 'rag_remove_deleted_collections()'),
      ('worker', 'rag_remove_expired_records()'),
      ('worker', 'rag_remove_old_calls()'),
      ('worker', 'rag_store_calibration(text,text,jsonb)'),
      -- These also require the functions' secret (rag.begin_call, rag.begin_write).
      ('guarded', 'rag_add_document(uuid,jsonb)'),
      ('guarded', 'rag_answer_invitation(uuid,boolean)'),
      ('guarded', 'rag_begin_load(text,boolean,integer,jsonb)'),
      ('guarded', 'rag_begin_snapshot(text)'),
      ('guarded', 'rag_begin_upload(uuid,text,bigint)'),
      ('guarded', 'rag_build_graph(uuid,boolean)'),
      ('guarded', 'rag_cancel_load(uuid)'),
      ('guarded', 'rag_check_load(text,boolean)'),
      ('guarded', 'rag_check_rate_limit(text,text,integer,integer,integer)'),
      ('guarded', 'rag_check_upload(uuid,bigint)'),
      ('guarded', 'rag_claim_response(uuid,text,text,integer,uuid,text)'),
      ('guarded', 'rag_complete_job(jsonb,jsonb)'),
      ('guarded', 'rag_create_collection(text,text,jsonb,jsonb,uuid,boolean)'),
      ('guarded', 'rag_create_key(text,text,text,text[],uuid,text,timestamp with time zone)'),
      ('guarded', 'rag_create_source(uuid,text,text,integer,integer,text,text,jsonb,boolean)'),
      ('guarded', 'rag_create_webhook(text,text,text[],uuid,text,uuid)'),
      ('guarded', 'rag_delete_collection(uuid,boolean)'),
      ('guarded', 'rag_delete_document(uuid)'),
      ('guarded', 'rag_delete_documents(uuid[])'),
      ('guarded', 'rag_delete_group(text,uuid)'),
      ('guarded', 'rag_delete_missing_items(integer,integer)'),
      ('guarded', 'rag_delete_named(text,text[])'),
      ('guarded', 'rag_delete_records(uuid)'),
      ('guarded', 'rag_delete_session(uuid)'),
      ('guarded', 'rag_delete_source(uuid,boolean)'),
      ('guarded', 'rag_delete_webhook(uuid)'),
      ('guarded', 'rag_extend_job(text,integer,text,extensions.halfvec[])'),
      ('guarded', 'rag_fail_job(text,text,integer,boolean,boolean)'),
      ('guarded', 'rag_find_collection(text)'),
      ('guarded', 'rag_find_documents(text,text[])'),
      ('guarded', 'rag_finish_load(uuid,boolean)'),
      ('guarded', 'rag_get_access(uuid)'),
      ('guarded', 'rag_get_calibration(text)'),
      ('guarded', 'rag_get_collection(uuid)'),
      ('guarded', 'rag_get_contents(uuid,text[],uuid[],uuid,boolean,boolean)'),
      ('guarded', 'rag_get_document(uuid)'),
      ('guarded', 'rag_get_original(uuid)'),
      ('guarded', 'rag_get_record(text)'),
      ('guarded', 'rag_get_record_settings(uuid)'),
      ('guarded', 'rag_label_record(text,text,uuid[])'),
      ('guarded', 'rag_judged_search(text,extensions.vector,text,integer,jsonb,integer,double precision,text[],text,integer)'),
      ('guarded', 'rag_list_collections(integer,integer,text,text)'),
      ('guarded', 'rag_list_deliveries(uuid,integer,integer)'),
      ('guarded', 'rag_list_documents(uuid,integer,integer,text,text,text,text)'),
      ('guarded', 'rag_list_events(integer,integer,text,text)'),
      ('guarded', 'rag_list_groups(uuid)'),
      ('guarded', 'rag_list_invitations()'),
      ('guarded', 'rag_list_jobs(text,integer,integer)'),
      ('guarded', 'rag_list_keys(uuid)'),
      ('guarded', 'rag_list_members(integer,integer,boolean)'),
      ('guarded', 'rag_list_named(text,integer,integer,integer,jsonb)'),
      ('guarded', 'rag_list_names()'),
      ('guarded', 'rag_list_orgs()'),
      ('guarded', 'rag_list_records(integer,integer,text,boolean,text,boolean)'),
      ('guarded', 'rag_list_session_messages(uuid,integer,integer)'),
      ('guarded', 'rag_list_sessions(integer,integer)'),
      ('guarded', 'rag_list_usage(integer)'),
      ('guarded', 'rag_list_source_items(jsonb,integer)'),
      ('guarded', 'rag_list_sources(uuid)'),
      ('guarded', 'rag_list_webhooks(uuid)'),
      ('guarded', 'rag_load_chunks(uuid,uuid,jsonb,text,boolean)'),
      ('guarded', 'rag_load_documents(uuid,jsonb,bigint)'),
      ('guarded', 'rag_metrics()'),
      ('guarded', 'rag_open_extraction(integer)'),
      ('guarded', 'rag_open_job(integer)'),
      ('guarded', 'rag_open_key()'),
      ('guarded', 'rag_open_session(uuid,uuid,integer)'),
      ('guarded', 'rag_put_access(uuid,boolean,jsonb)'),
      ('guarded', 'rag_put_documents(text,jsonb,boolean,uuid)'),
      ('guarded', 'rag_put_group(text,uuid[],text,uuid)'),
      ('guarded', 'rag_put_member(uuid,uuid,text,text)'),
      ('guarded', 'rag_rate_record(text,text,text)'),
      ('guarded', 'rag_put_source_item(text,text,jsonb,integer)'),
      ('guarded', 'rag_read_document(uuid,integer,integer)'),
      ('guarded', 'rag_read_snapshot_chunks(uuid,uuid,timestamp with time zone,integer)'),
      ('guarded', 'rag_read_snapshot_documents(uuid,uuid[],integer)'),
      ('guarded', 'rag_record_event(text,text,integer,integer,double precision,jsonb)'),
      ('guarded', 'rag_record_metrics(jsonb)'),
      ('guarded', 'rag_record_request(jsonb)'),
      ('guarded', 'rag_record_tokens(bigint,integer,bigint,integer)'),
      ('guarded', 'rag_release_response(uuid,text,uuid)'),
      ('guarded', 'rag_remove_member(uuid,uuid)'),
      ('guarded', 'rag_repeat_delivery(uuid,uuid)'),
      ('guarded', 'rag_resolve_workspace(uuid,uuid)'),
      ('guarded', 'rag_restrict_new_collections(boolean,uuid)'),
      ('guarded', 'rag_retry_jobs(uuid[])'),
      ('guarded', 'rag_revoke_key(uuid)'),
      ('guarded', 'rag_rotate_key(uuid,text,text,integer)'),
      ('guarded', 'rag_rotate_webhook(uuid,text,integer)'),
      ('guarded', 'rag_run_source(uuid)'),
      ('guarded', 'rag_save_turn(uuid,uuid,uuid,text,jsonb)'),
      ('guarded', 'rag_snapshot_documents(uuid,timestamp with time zone,uuid)'),
      ('guarded', 'rag_stats(integer)'),
      ('guarded', 'rag_store_content(text,bigint,integer)'),
      ('guarded', 'rag_store_extraction(integer,jsonb,integer)'),
      ('guarded', 'rag_store_response(uuid,text,uuid,integer,text,text,uuid[])'),
      ('guarded', 'rag_summarize_records(integer)'),
      ('guarded', 'rag_update_collection(uuid,text,text,jsonb,jsonb)'),
      ('guarded', 'rag_update_document(uuid,jsonb)'),
      ('guarded', 'rag_update_record_settings(integer,uuid)'),
      ('guarded', 'rag_update_source(uuid,integer,integer,boolean,jsonb,boolean)'),
      ('guarded', 'rag_update_webhook(uuid,text,text[],text,boolean)')
    ) as listed (caller, signature)
  loop
    execute format('revoke all on function public.%s from public, anon, authenticated, service_role',
      exposed.signature);
    execute format('grant execute on function public.%s to %s', exposed.signature,
      case exposed.caller when 'worker' then 'rag_worker' else 'authenticated' end);
  end loop;
end;
$$;

-- The public /health has no user: the worker's role calls it.
grant execute on function public.rag_health() to rag_worker;

-- PostgREST serves the functions at once, also where no event trigger tells it of a change of the schema.
notify pgrst, 'reload schema';

-- Of the migration (10_identity/50_tenant_policies.sql).
drop procedure rag.admit_members(text, text), rag.bind_keys(text), rag.require_edit(text), rag.restrict_keys(text, text[]);
