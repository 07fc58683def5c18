-- The write path of every API: a document and its chunks go in, are replaced or go away in one
-- transaction, so that no reader ever sees half of one. The callers are the functions of this project,
-- as their user; row security checks every row that is written.

-- document: org_id, title, content, content_hash and embedding_model; optionally external_id, collection
-- (a name, "default" unless given), private (true: only the caller and the org's admins see it),
-- source_type, uri, lang, occurred_at, origin, author, state, labels, metadata. A private and a shared document
-- of one external_id are two documents: to make one private, put it as private and delete the shared one.
-- chunks: an array of {content, span_start, span_end, token_count, embedding, metadata} in reading order.
create function public.rag_put_document(document jsonb, chunks jsonb)
returns table (document_id uuid, replaced boolean, chunk_count integer)
language plpgsql volatile security invoker set search_path = ''
-- PostgREST applies it before the call. A document of thousands of chunks takes its time: each is entered
-- into the HNSW index.
set statement_timeout = '60s'
as $$
declare
  input record;
  home rag.collections;
  stored record;
begin
  select * into input from jsonb_to_record(document) as fields (
    org_id uuid, external_id text, collection text, private boolean, source_type text, title text,
    uri text, lang text, occurred_at timestamptz, origin text, author text, state text, labels text[],
    metadata jsonb, content text, content_hash text, embedding_model text);

  -- Row security would refuse the rows as well, but with an error that reads like a fault of ours.
  if input.org_id is null or input.org_id not in (select rag.current_org_ids()) then
    raise exception 'no such org' using errcode = 'PT404', detail = 'org_not_found';
  end if;

  if octet_length(input.content) > (rag.tier_of(input.org_id)).file_bytes then
    raise exception 'this org''s tier takes no texts of that size' using errcode = 'PT413', detail = 'file_too_large';
  end if;
  home := rag.ensure_collection(input.org_id, auth.uid(), coalesce(input.collection, 'default'));

  insert into rag.documents as present (org_id, collection_id, owner_id, external_id, source_type, title,
    uri, lang, occurred_at, origin, author, state, labels, metadata, content, content_hash)
  values (input.org_id, home.id, case when input.private then auth.uid() else home.owner_id end,
    input.external_id, coalesce(input.source_type, 'doc'), input.title, input.uri, input.lang,
    input.occurred_at, input.origin, input.author, input.state, coalesce(input.labels, '{}'),
    coalesce(input.metadata, '{}'), input.content, input.content_hash)
  on conflict (org_id, collection_id, owner_id, external_id) where external_id is not null
  do update set source_type = excluded.source_type, title = excluded.title, uri = excluded.uri,
    lang = excluded.lang, occurred_at = excluded.occurred_at, origin = excluded.origin,
    author = excluded.author, state = excluded.state, labels = excluded.labels, metadata = excluded.metadata,
    content = excluded.content, content_hash = excluded.content_hash, status = 'completed', error_code = null,
    error_message = null, updated_at = clock_timestamp()
  -- An inserted row has no xmax, one that was there was locked by this transaction.
  returning present.*, present.xmax::text <> '0' as was_there into stored;

  if not stored.was_there then
    perform rag.require_room_for_a_document(home);
  else
    -- What was brought before and is still to be worked on is older than this.
    delete from rag.jobs
    where jobs.org_id = stored.org_id and jobs.document_id = stored.id and jobs.state in ('waiting', 'running');
    delete from rag.originals where originals.org_id = stored.org_id and originals.document_id = stored.id;
  end if;
  -- The upsert holds the row: a second writer of the same document waits for it, then replaces these.
  chunk_count := rag.replace_chunks(stored.org_id, stored.id, chunks, input.embedding_model);
  document_id := stored.id;
  replaced := stored.was_there;
  return next;
end;
$$;

-- The document's chunks, in the place of those that it had; how many. It repeats the document's row in them.
create function rag.replace_chunks(org_id uuid, document_id uuid, chunks jsonb, embedding_model text)
returns integer
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  stored rag.documents;
  chunk_count integer;
begin
  select documents.* into stored
  from rag.documents
  where documents.org_id = replace_chunks.org_id and documents.id = replace_chunks.document_id;
  if exists (
    select from jsonb_array_elements(replace_chunks.chunks) as item (body)
    where (item.body ->> 'span_end')::integer > length(stored.content)
  ) then
    raise exception 'a chunk ends behind its document' using errcode = 'PT400', detail = 'span_outside';
  end if;

  delete from rag.chunks where chunks.org_id = stored.org_id and chunks.document_id = stored.id;

  insert into rag.chunks (org_id, document_id, collection_id, owner_id, ordinal, content, span_start,
    span_end, token_count, source_type, lang, occurred_at, embedding_model, embedding, metadata)
  select stored.org_id, stored.id, stored.collection_id, stored.owner_id, item.position - 1,
    fields.content, fields.span_start, fields.span_end, fields.token_count, stored.source_type,
    stored.lang, stored.occurred_at, replace_chunks.embedding_model, fields.embedding,
    coalesce(fields.metadata, '{}')
  from jsonb_array_elements(replace_chunks.chunks) with ordinality as item (body, position),
    jsonb_to_record(item.body) as fields (content text, span_start integer, span_end integer,
      token_count integer, embedding extensions.halfvec(1536), metadata jsonb);
  get diagnostics chunk_count = row_count;
  return chunk_count;
end;
$$;

-- True when it was there to delete; another org's document is not there.
create function public.rag_delete_document(document_id uuid)
returns boolean
language sql volatile security invoker set search_path = ''
as $$
  with gone as (
    delete from rag.documents
    where org_id = any (array(select rag.current_org_ids())) and id = rag_delete_document.document_id
    returning 1
  )
  select exists (select from gone);
$$;

revoke all on function public.rag_put_document(jsonb, jsonb), public.rag_delete_document(uuid),
  rag.replace_chunks(uuid, uuid, jsonb, text)
  from public, anon, service_role;
grant execute on function public.rag_put_document(jsonb, jsonb), public.rag_delete_document(uuid),
  rag.replace_chunks(uuid, uuid, jsonb, text)
  to authenticated;
