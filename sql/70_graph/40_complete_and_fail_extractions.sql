-- Functions that the worker calls for an extraction that it has claimed: as the user of the extraction, with a token
-- that names the lease (rag.lease_of_token), some chunks at a time. Each part is stored at once, so after a crash the
-- next attempt continues behind the last part. Replacing, retitling or deleting the document revokes the lease.

create function public.rag_open_extraction(max_chunks integer default 100)
returns table (document_id uuid, level smallint, title text, first integer, chunks jsonb)
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
  if held.level = 0 and held.next_ordinal = 0 then
    perform rag.add_title_entities(documents)
    from rag.documents
    where documents.org_id = held.org_id and documents.id = held.document_id;
  end if;
  return query
  select held.document_id, held.level, documents.title, held.next_ordinal, coalesce(part.chunks, '[]')
  from rag.documents
  cross join lateral (
    select jsonb_agg(jsonb_build_object('content', stored.content, 'names', known.names)
      order by stored.ordinal) as chunks
    from rag.chunks as stored
    cross join lateral (
      select coalesce(jsonb_agg(
        jsonb_build_object('name', mentions.name, 'surfaces', mentions.surfaces)), '[]') as names
      from rag.mentions
      where mentions.org_id = stored.org_id and mentions.document_id = stored.document_id
        and mentions.ordinal = stored.ordinal
    ) as known
    where stored.org_id = held.org_id and stored.document_id = held.document_id
      and stored.ordinal >= held.next_ordinal and stored.ordinal < held.next_ordinal + max_chunks
  ) as part
  where documents.org_id = held.org_id and documents.id = held.document_id;
end;
$$;

comment on function public.rag_open_extraction is
  'The next part of an extraction: the level so far, the title, and the chunks from `first` on, max_chunks of them: '
  '{content, names}, with the known entities of the chunk, {name, surfaces}. No row for a document whose collection '
  'left the graph: the call deletes its extracted rows.';

create function public.rag_store_extraction(
  first integer, chunks jsonb, model text default null, prompt_tokens bigint default 0,
  completion_tokens bigint default 0, code text default null, message text default null,
  lease_seconds integer default 300
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
  read constant integer[] := array(
    select (first + item.place - 1)::integer
    from jsonb_array_elements(chunks) with ordinality as item (body, place)
    where jsonb_typeof(item.body -> 'names') = 'array');
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
    and relations.ordinal = any (read);
  delete from rag.mentions
  where mentions.org_id = held.org_id and mentions.document_id = held.document_id and mentions.ordinal = any (read);
  perform rag.insert_names(held.org_id, array[rag.document_chunks(
    document_id => held.document_id, chunks => chunks, embedding_model => null)], first);
  if not is_more then
    perform rag.delete_dangling_relations(held.org_id, held.document_id);
  end if;
  update rag.extractions as known
  set next_ordinal = case when is_more then behind else 0 end,
    level = case when is_more then held.level when model is null then 1 else 2 end,
    model = coalesce(rag_store_extraction.model, held.model),
    prompt_tokens = held.prompt_tokens + rag_store_extraction.prompt_tokens,
    completion_tokens = held.completion_tokens + rag_store_extraction.completion_tokens,
    lease = case when is_more then held.lease end,
    due_at = case when is_more then clock_timestamp() + make_interval(secs => lease_seconds) else clock_timestamp() end,
    -- It went on.
    attempts = 0,
    -- The pause has ended; chunks that could not be read stay unread.
    error_code = coalesce(code, case when held.error_code = 'unreadable_reply' then held.error_code end),
    error_message = coalesce(message, case when held.error_code = 'unreadable_reply' then held.error_message end),
    updated_at = clock_timestamp()
  where known.org_id = held.org_id and known.document_id = held.document_id;
  return is_more;
end;
$$;

comment on function public.rag_store_extraction is
  'Store the names and relations of the chunks from `first` on (as rag_put_document takes them), in the place of '
  'their previous entities; a chunk without names keeps its present ones. model: the model that extracted them, '
  'null for the rules. prompt_tokens, completion_tokens: the cost. code, message: why a chunk could not be read. '
  'Returns whether further chunks follow; then the lease is extended, otherwise it ends.';

create function public.rag_fail_extraction(
  code text default null, message text default null, retry_seconds integer default null,
  prompt_tokens bigint default 0, completion_tokens bigint default 0
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
  set lease = null, attempts = case when code is null then greatest(held.attempts - 1, 0) else held.attempts end,
    due_at = clock_timestamp() + make_interval(secs => case when code is null then coalesce(retry_seconds, 0)
      else retry_seconds end),
    prompt_tokens = held.prompt_tokens + rag_fail_extraction.prompt_tokens,
    completion_tokens = held.completion_tokens + rag_fail_extraction.completion_tokens,
    error_code = coalesce(code, held.error_code), error_message = coalesce(message, held.error_message),
    updated_at = clock_timestamp()
  where known.org_id = held.org_id and known.document_id = held.document_id;
end;
$$;

comment on function public.rag_fail_extraction is
  'Record a failed extraction with its reason and its cost. retry_seconds: the pause before the next attempt; '
  'null: none, and the row has the error. Without a code there is no error: the extraction is due again, and the '
  'attempt does not count. The document is not locked, since its lock may be the one that the extraction could not '
  'get.';
