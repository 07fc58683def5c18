-- Extractions of entities: jobs (20_documents/40_jobs.sql), one for each document with chunks in a collection of the
-- graph. Most documents come with their entities; the worker extracts those of the others, as the user who added the
-- document, some chunks at a time. Each part is stored at once, so after a crash the next attempt continues behind the
-- last part. Replacing, retitling or deleting the document revokes the lease.

create function rag.enqueue_extractions(org_id uuid, documents rag.document_chunks[], later boolean)
returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.jobs (org_id, id, kind, document_id, collection_id, owner_id, user_id, state)
  select stored.org_id, stored.id, 'extraction', stored.id, stored.collection_id, stored.owner_id, rag.current_user_id(),
    case when exists (
      select from jsonb_array_elements(chunked.chunks) as item (body)
      where jsonb_typeof(item.body -> 'names') is distinct from 'array') then 'waiting' else 'done' end
  from unnest(enqueue_extractions.documents) as chunked
  join rag.documents as stored on stored.org_id = enqueue_extractions.org_id and stored.id = chunked.document_id
  on conflict (org_id, id) do update
  set state = case when jobs.state = 'done' or not enqueue_extractions.later then excluded.state else 'waiting' end,
    user_id = excluded.user_id, next_ordinal = 0, attempts = 0, due_at = now(), lease = null, error_code = null,
    error_message = null, finished_at = null;
$$;

comment on function rag.enqueue_extractions is
  'Record that documents have new chunks, which are extracted unless they come with names. `later`: chunks that are '
  'added to a document''s earlier ones.';

create function rag.requeue_extraction(org_id uuid, document_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.delete_dangling_relations(requeue_extraction.org_id, requeue_extraction.document_id);
  update rag.jobs
  set state = 'waiting', next_ordinal = 0, attempts = 0, due_at = now(), lease = null, finished_at = null,
    user_id = coalesce(rag.current_user_id(), user_id)
  where jobs.org_id = requeue_extraction.org_id and jobs.id = requeue_extraction.document_id
    and jobs.kind = 'extraction';
end;
$$;

comment on function rag.requeue_extraction is
  'Enqueue the extraction of a document whose title changed, and delete relations of the old title''s entities.';

create function public.rag_open_extraction(max_chunks integer default 100)
returns table (document_id uuid, title text, first integer, chunks text[])
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_write();
  job constant rag.jobs := rag.lock_job('extraction');
begin
  if max_chunks is null or max_chunks not between 1 and 1000 then
    raise exception 'max_chunks must be between 1 and 1000' using errcode = 'PT400', detail = 'invalid_max_chunks';
  elsif not rag.is_in_graph(job.org_id, job.collection_id) then
    perform rag.delete_graph_of_document(job.org_id, job.document_id);
    return;
  end if;
  if job.next_ordinal = 0 then
    perform rag.add_title_entities(documents)
    from rag.documents
    where documents.org_id = job.org_id and documents.id = job.document_id;
  end if;
  return query
  select job.document_id, documents.title, job.next_ordinal, array(
    select stored.content
    from rag.chunks as stored
    where stored.org_id = job.org_id and stored.document_id = job.document_id
      and stored.ordinal >= job.next_ordinal and stored.ordinal < job.next_ordinal + max_chunks
    order by stored.ordinal)
  from rag.documents
  where documents.org_id = job.org_id and documents.id = job.document_id;
end;
$$;

comment on function public.rag_open_extraction is
  'The next part of an extraction: the title, and the texts of the chunks from `first` on, max_chunks of them. No row '
  'for a document whose collection left the graph: the call deletes its extracted rows.';

create function public.rag_store_extraction(
  first integer, chunks jsonb, lease_seconds integer default 300
)
returns boolean
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_write();
  job constant rag.jobs := rag.lock_job('extraction');
  behind constant integer := first + jsonb_array_length(chunks);
  is_more constant boolean := exists (
    select from rag.chunks as stored
    where stored.org_id = job.org_id and stored.document_id = job.document_id and stored.ordinal >= behind);
begin
  perform rag.check_json('chunks', chunks);
  if first is distinct from job.next_ordinal then
    raise exception 'The chunks must continue at the next chunk of the lease. Claim the item again.'
      using errcode = 'PT409', detail = 'out_of_turn';
  end if;
  delete from rag.relations
  where relations.org_id = job.org_id and relations.document_id = job.document_id
    and relations.ordinal >= first and relations.ordinal < behind;
  delete from rag.mentions
  where mentions.org_id = job.org_id and mentions.document_id = job.document_id
    and mentions.ordinal >= first and mentions.ordinal < behind;
  perform rag.insert_names(job.org_id, array[rag.document_chunks(
    document_id => job.document_id, chunks => chunks, embedding_model => null)], first);
  if not is_more then
    perform rag.delete_dangling_relations(job.org_id, job.document_id);
  end if;
  update rag.jobs
  set state = case when is_more then 'running' else 'done' end, next_ordinal = case when is_more then behind else 0 end,
    lease = case when is_more then job.lease end,
    due_at = case when is_more then clock_timestamp() + make_interval(secs => lease_seconds) else clock_timestamp() end,
    -- A stored part resets the count of attempts.
    attempts = 0, error_code = null, error_message = null,
    finished_at = case when not is_more then clock_timestamp() end
  where jobs.org_id = job.org_id and jobs.id = job.id;
  return is_more;
end;
$$;

comment on function public.rag_store_extraction is
  'Replace the names and relations of the chunks from the ordinal `first` on (format: rag_put_documents). Returns '
  'whether further chunks follow. If so, the lease is extended; otherwise it ends.';
