-- Every function that PostgREST exposes, and who may execute it. Supabase grants new functions of schema public
-- to its API roles, so each grant begins with a revoke. Tests and the sweep of attacks read this list.
do $$
declare
  exposed record;
begin
  for exposed in
    select * from (values
      -- Browsers may call these with the user's token alone (rag.begin_direct_read).
      ('direct', 'rag_graph_of(uuid,uuid[],uuid,integer)'),
      ('direct', 'rag_graph_search(text,extensions.vector,text,integer,jsonb,integer,double precision,text[],integer,text[])'),
      ('direct', 'rag_match(extensions.vector,integer,jsonb)'),
      ('direct', 'rag_search(text,extensions.vector,text,integer,jsonb,integer,double precision,text,text[])'),
      ('direct', 'rag_similar(uuid,uuid,text,integer,jsonb,text,extensions.vector,text,text[])'),
      ('direct', 'rag_widen(uuid[],integer)'),
      -- Policies call the first, health checks the second. Neither returns documents.
      ('unguarded', 'is_org_member(uuid)'),
      ('unguarded', 'rag_health()'),
      -- Only the worker's role calls these.
      ('worker', 'rag_claim_deliveries(integer,integer)'),
      ('worker', 'rag_claim_extractions(integer,integer,boolean)'),
      ('worker', 'rag_claim_jobs(integer,integer)'),
      ('worker', 'rag_claim_removals(integer)'),
      ('worker', 'rag_end_delivery(uuid,uuid,uuid,integer,text,integer)'),
      ('worker', 'rag_end_removal(uuid,text)'),
      ('worker', 'rag_remove_deleted_collections()'),
      -- These also require the functions' secret (rag.begin_call, rag.begin_write).
      ('guarded', 'rag_abandon_load(uuid)'),
      ('guarded', 'rag_add_document(uuid,jsonb)'),
      ('guarded', 'rag_begin_load(text,boolean,integer,jsonb)'),
      ('guarded', 'rag_begin_persist(text)'),
      ('guarded', 'rag_begin_upload(uuid,text,bigint)'),
      ('guarded', 'rag_build_graph(uuid,boolean)'),
      ('guarded', 'rag_check_load(text,boolean)'),
      ('guarded', 'rag_claim_reply(uuid,text,text,integer,uuid,text)'),
      ('guarded', 'rag_complete_job(jsonb,jsonb)'),
      ('guarded', 'rag_contents(uuid,text[],uuid[],uuid,boolean,boolean)'),
      ('guarded', 'rag_create_collection(text,text,jsonb,jsonb,uuid,boolean)'),
      ('guarded', 'rag_create_key(text,text,text,text[],uuid,text,timestamp with time zone)'),
      ('guarded', 'rag_create_webhook(text,text,text[],uuid,text,uuid)'),
      ('guarded', 'rag_delete_collection(uuid,boolean)'),
      ('guarded', 'rag_delete_document(uuid)'),
      ('guarded', 'rag_delete_named(text,text[])'),
      ('guarded', 'rag_delete_session(uuid)'),
      ('guarded', 'rag_delete_webhook(uuid)'),
      ('guarded', 'rag_fail_extraction(text,text,integer,bigint,bigint)'),
      ('guarded', 'rag_fail_job(text,text,integer,boolean)'),
      ('guarded', 'rag_find_collection(text)'),
      ('guarded', 'rag_find_documents(text,text[])'),
      ('guarded', 'rag_finish_load(uuid,boolean)'),
      ('guarded', 'rag_get_collection(uuid)'),
      ('guarded', 'rag_get_document(uuid)'),
      ('guarded', 'rag_get_original(uuid)'),
      ('guarded', 'rag_hit(text,text,integer,integer,integer)'),
      ('guarded', 'rag_keep_content(text,integer)'),
      ('guarded', 'rag_keep_extraction(integer,jsonb,text,bigint,bigint,text,text,integer)'),
      ('guarded', 'rag_keep_reply(uuid,text,uuid,integer,text,text,uuid[])'),
      ('guarded', 'rag_keep_turn(uuid,uuid,uuid,text,jsonb)'),
      ('guarded', 'rag_list_collections(integer,integer,text,text)'),
      ('guarded', 'rag_list_deliveries(uuid,integer,integer)'),
      ('guarded', 'rag_list_documents(uuid,integer,integer,text,text,text)'),
      ('guarded', 'rag_list_events(integer,integer,text,text)'),
      ('guarded', 'rag_list_keys(uuid)'),
      ('guarded', 'rag_list_named(text,integer,integer,integer,jsonb)'),
      ('guarded', 'rag_list_names()'),
      ('guarded', 'rag_list_orgs()'),
      ('guarded', 'rag_list_session_messages(uuid,integer,integer)'),
      ('guarded', 'rag_list_sessions(integer,integer)'),
      ('guarded', 'rag_list_to_persist(uuid,timestamp with time zone,uuid)'),
      ('guarded', 'rag_list_webhooks(uuid)'),
      ('guarded', 'rag_load_chunks(uuid,uuid,jsonb,text,boolean)'),
      ('guarded', 'rag_load_documents(uuid,jsonb,bigint)'),
      ('guarded', 'rag_locate(uuid,uuid)'),
      ('guarded', 'rag_measure(jsonb)'),
      ('guarded', 'rag_metrics()'),
      ('guarded', 'rag_open_extraction(integer)'),
      ('guarded', 'rag_open_job(integer)'),
      ('guarded', 'rag_open_key()'),
      ('guarded', 'rag_open_session(uuid,uuid,integer)'),
      ('guarded', 'rag_put_document(jsonb,jsonb)'),
      ('guarded', 'rag_put_documents(text,jsonb,boolean)'),
      ('guarded', 'rag_read_chunks_to_persist(uuid,uuid,timestamp with time zone,integer)'),
      ('guarded', 'rag_read_to_persist(uuid,uuid[],integer)'),
      ('guarded', 'rag_recall_embedding(text,integer)'),
      ('guarded', 'rag_record_event(text,text,integer,integer,double precision,jsonb)'),
      ('guarded', 'rag_release_reply(uuid,text,uuid)'),
      ('guarded', 'rag_remember_embedding(text,extensions.vector,integer)'),
      ('guarded', 'rag_repeat_delivery(uuid,uuid)'),
      ('guarded', 'rag_report_job(text,integer)'),
      ('guarded', 'rag_revoke_key(uuid)'),
      ('guarded', 'rag_rotate_key(uuid,text,text,integer)'),
      ('guarded', 'rag_rotate_webhook(uuid,text,integer)'),
      ('guarded', 'rag_stats(integer)'),
      ('guarded', 'rag_update_collection(uuid,text,text,jsonb,jsonb)'),
      ('guarded', 'rag_update_document(uuid,jsonb)'),
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

-- For the public /health, which has no user.
grant execute on function public.rag_health() to rag_worker;
