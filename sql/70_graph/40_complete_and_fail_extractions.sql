-- Functions that the worker calls for an extraction that it has claimed: as the user of the extraction, with a token
-- that names the lease (rag.lease_of_token), some chunks at a time. Each part is stored at once, so after a crash the
-- next attempt continues behind the last part. Replacing, retitling or deleting the document revokes the lease.

create function public.rag_open_extraction(max_chunks integer default 100)
returns table (document_id uuid, title text, first integer, chunks text[])
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_write();
  held constant rag.extractions := rag.lock_leased(null::rag.extractions);
begin
  if max_chunks is null or max_chunks not between 1 and 1000 then
    raise exception 'max_chunks must be between 1 and 1000' using errcode = 'PT400', detail = 'invalid_max_chunks';
  elsif not rag.is_in_graph(held.org_id, held.collection_id) then
    perform rag.delete_graph_of_document(held.org_id, held.document_id);
    return;
  end if;
  if held.next_ordinal = 0 then
    perform rag.add_title_entities(documents)
    from rag.documents
    where documents.org_id = held.org_id and documents.id = held.document_id;
  end if;
  return query
  select held.document_id, documents.title, held.next_ordinal, array(
    select stored.content
    from rag.chunks as stored
    where stored.org_id = held.org_id and stored.document_id = held.document_id
      and stored.ordinal >= held.next_ordinal and stored.ordinal < held.next_ordinal + max_chunks
    order by stored.ordinal)
  from rag.documents
  where documents.org_id = held.org_id and documents.id = held.document_id;
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
  held constant rag.extractions := rag.lock_leased(null::rag.extractions);
  behind constant integer := first + jsonb_array_length(chunks);
  is_more constant boolean := exists (
    select from rag.chunks as stored
    where stored.org_id = held.org_id and stored.document_id = held.document_id and stored.ordinal >= behind);
begin
  perform rag.check_json('chunks', chunks);
  if first is distinct from held.next_ordinal then
    raise exception 'The chunks must continue at the next chunk of the lease. Claim the item again.'
      using errcode = 'PT409', detail = 'out_of_turn';
  end if;
  delete from rag.relations
  where relations.org_id = held.org_id and relations.document_id = held.document_id
    and relations.ordinal >= first and relations.ordinal < behind;
  delete from rag.mentions
  where mentions.org_id = held.org_id and mentions.document_id = held.document_id
    and mentions.ordinal >= first and mentions.ordinal < behind;
  perform rag.insert_names(held.org_id, array[rag.document_chunks(
    document_id => held.document_id, chunks => chunks, embedding_model => null)], first);
  if not is_more then
    perform rag.delete_dangling_relations(held.org_id, held.document_id);
  end if;
  update rag.extractions as known
  set next_ordinal = case when is_more then behind else 0 end, is_extracted = not is_more,
    lease = case when is_more then held.lease end,
    due_at = case when is_more then clock_timestamp() + make_interval(secs => lease_seconds) else clock_timestamp() end,
    -- A stored part resets the count of attempts.
    attempts = 0, error_code = null, error_message = null, updated_at = clock_timestamp()
  where known.org_id = held.org_id and known.document_id = held.document_id;
  return is_more;
end;
$$;

comment on function public.rag_store_extraction is
  'Replace the names and relations of the chunks from the ordinal `first` on (format: rag_put_document). Returns '
  'whether further chunks follow. If so, the lease is extended; otherwise it ends.';

create function public.rag_fail_extraction(
  code text default null, message text default null, retry_seconds integer default null,
  is_attempt boolean default true
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  held constant rag.extractions := rag.lock_leased(null::rag.extractions, with_document => false);
begin
  update rag.extractions as known
  set lease = null, attempts = greatest(held.attempts - case when is_attempt then 0 else 1 end, 0),
    due_at = clock_timestamp() + make_interval(secs => retry_seconds),
    error_code = coalesce(code, held.error_code), error_message = coalesce(message, held.error_message),
    updated_at = clock_timestamp()
  where known.org_id = held.org_id and known.document_id = held.document_id;
end;
$$;

comment on function public.rag_fail_extraction is
  'End the attempt of an extraction that failed (with an error) or is postponed (without one). The extraction is due '
  'again after retry_seconds; null: never. is_attempt: whether the attempt counts. The function does not lock the '
  'document, because the extraction may have failed for that lock.';
