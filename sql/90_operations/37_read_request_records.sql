-- Reading and erasing records of requests: the explanation of an answer, the org's setting, deletion.

create function rag.get_record(record_id text)
returns rag.request_records
language plpgsql stable security invoker set search_path = ''
as $$
declare
  own constant uuid[] := array(select rag.current_org_ids());
  ids uuid[];
  found_record rag.request_records;
begin
  perform rag.require_scope('chat:read', 'retrievals:read');
  if record_id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    select * into found_record from rag.request_records where org_id = any (own) and id = record_id::uuid;
  end if;
  if found_record.id is null then
    ids := array(
      select id from rag.request_records where org_id = any (own) and request_id = record_id
      order by created_at desc limit 10);
    -- Clients choose request ids: none of these requests may take the place of another.
    if cardinality(ids) > 1 then
      raise exception 'Several requests have this id. Use the id of a record, the latest first: %', array_to_string(ids, ', ')
        using errcode = 'PT409', detail = 'request_id_repeated';
    end if;
    select * into found_record from rag.request_records where org_id = any (own) and id = ids[1];
  end if;
  if found_record.id is null then
    raise exception 'There is no record of such a request. Check its id, and that your organization records requests.'
      using errcode = 'PT404', detail = 'record_not_found';
  end if;
  return found_record;
end;
$$;

comment on function rag.get_record is
  'The record of that id, or the only one with that request id. PT404 for a record that the caller may not read, PT409 '
  'with the ids of the records if the caller may read several with that request id.';

create function rag.passages_of_record(record rag.request_records)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'rank', position, 'chunk_id', chunk_id, 'document_id', document_id, 'score', score,
    'title', title, 'text', content, 'is_visible', content is not null,
    'legs', array_remove(array[
      case when similarity is not null
        then jsonb_build_object('leg', 'semantic', 'rank', similarity_rank, 'score', similarity) end,
      case when word_score > 0 then jsonb_build_object('leg', 'keyword', 'rank', word_rank, 'score', word_score) end,
      case when graph_sourced then jsonb_build_object('leg', 'graph', 'rank', graph_rank, 'score', score) end,
      case when relevance is not null
        then jsonb_build_object('leg', 'reranker', 'rank', relevance_rank, 'score', relevance) end
    ], null)) order by position), '[]')
  from (
    select item.position, passage.*, documents.title, chunks.content,
      rank() over (order by passage.similarity desc nulls last) as similarity_rank,
      rank() over (order by passage.word_score desc nulls last) as word_rank,
      rank() over (order by passage.graph_sourced desc nulls last, passage.score desc) as graph_rank,
      rank() over (order by passage.relevance desc nulls last) as relevance_rank
    from jsonb_array_elements(record.passages) with ordinality as item (body, position)
    cross join lateral jsonb_to_record(item.body) as passage (chunk_id uuid, document_id uuid,
      score double precision, similarity double precision, word_score double precision, relevance double precision,
      graph_sourced boolean)
    left join rag.chunks on chunks.org_id = record.org_id and chunks.id = passage.chunk_id
    left join rag.documents on documents.org_id = record.org_id and documents.id = chunks.document_id
  ) as ranked;
$$;

comment on function rag.passages_of_record is
  'The record''s passages with the title and text that the caller sees today, and their rank among the passages in '
  'each leg of the search that scored them.';

create function public.rag_get_record(record_id text)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call() and rag.require_scope('chat:read');
  present constant rag.request_records := rag.get_record(rag_get_record.record_id);
  passages constant jsonb := rag.passages_of_record(present);
  is_complete constant boolean := not jsonb_path_exists(passages, '$[*] ? (@.is_visible == false)');
begin
  return to_jsonb(present) || jsonb_build_object(
    'passages', passages, 'is_complete', is_complete, 'is_answered', present.answer is not null,
    'document_ids', array(
      select documents.id from rag.documents
      where documents.org_id = present.org_id and documents.id = any (present.document_ids) order by documents.id))
    || case when is_complete then '{}' else jsonb_build_object('answer', null, 'prompt', null, 'because', '[]'::jsonb,
      'queries', (
        -- A model may have rewritten the others from passages or earlier answers.
        select jsonb_agg(case when item.query ->> 'text' = present.question then item.query
          else item.query - 'words' || '{"text": null}' end order by item.position)
        from jsonb_array_elements(present.queries) with ordinality as item (query, position))) end;
end;
$$;

comment on function public.rag_get_record is
  'A record by its id or its request id, with the passages as the caller sees them today. If the caller does not see '
  'one of them, because it was deleted, replaced or made private, is_complete is false, and what may repeat its text is '
  'left out: answer, prompt, because, and the text of each query that is not the question itself. document_ids: those '
  'that the caller sees. PT404 for a record of another user, unless the caller administers the org. A key needs the '
  'scope chat:read.';

create function public.rag_delete_records(user_id uuid default null)
returns integer
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  removed integer;
begin
  perform rag.begin_call(), rag.require_scope('admin');
  delete from rag.request_records
  where org_id = any (array(select rag.current_org_ids())) and owner_id = coalesce(user_id, rag.current_user_id());
  get diagnostics removed = row_count;
  return removed;
end;
$$;

comment on function public.rag_delete_records is
  'Delete the records of a user, by default the caller, in the caller''s orgs; their number. Admins delete those of any '
  'user of their orgs, others delete only their own. A key needs the scope admin.';

create function public.rag_get_record_settings(org_id uuid default null)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call() and rag.require_scope('chat:read', 'retrievals:read');
  org constant uuid := rag.resolve_org(rag_get_record_settings.org_id);
begin
  return jsonb_build_object('org_id', org,
    'retention_days', (select orgs.record_days from rag.orgs where orgs.id = org));
end;
$$;

comment on function public.rag_get_record_settings is
  '{"org_id", "retention_days"}: the days for which the org records requests, null if it records none. Every member '
  'may know. PT400 and PT404 as rag.resolve_org.';

create function public.rag_update_record_settings(retention_days integer, org_id uuid default null)
returns jsonb
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(rag_update_record_settings.org_id);
  days constant integer := rag_update_record_settings.retention_days;
begin
  perform rag.require_admin(org);
  if days not between 1 and 3650 then
    raise exception 'retention_days must be between 1 and 3650, or null for no records'
      using errcode = 'PT400', detail = 'invalid_retention';
  end if;
  update rag.orgs set record_days = days where id = org;
  return jsonb_build_object('org_id', org, 'retention_days', days);
end;
$$;

comment on function public.rag_update_record_settings is
  'Record the org''s requests for that many days from now on; null stops it and deletes the org''s records. A shorter '
  'retention also applies to earlier records, a longer one does not. PT403 for a caller who is no admin.';
