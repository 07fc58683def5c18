-- Export of a collection to a snapshot, a page at a time. Every member of the org may load a snapshot, so it contains
-- only documents that the whole org sees.

create function rag.snapshot_collection(collection_id uuid)
returns rag.collections
language plpgsql stable security invoker set search_path = ''
as $$
declare
  home constant rag.collections := rag.get_collection(snapshot_collection.collection_id);
begin
  if not rag.has_scope('documents:read', 'documents:write') then
    raise exception 'The API key may not read documents. Check its scopes.'
      using errcode = 'PT403', detail = 'missing_scope';
  elsif home.owner_id is not null then
    raise exception 'A private index cannot be persisted, since all members could load the snapshot. Choose another.'
      using errcode = 'PT400', detail = 'private_collection';
  elsif home.loading_name is not null or home.deleted_at is not null then
    raise exception 'There is no such collection. Check its id or name.'
      using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return home;
end;
$$;

comment on function rag.snapshot_collection is
  'The collection of that id; PT400 for a private collection, which cannot be exported.';

create function public.rag_begin_snapshot(name text)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  return (
    select jsonb_build_object('org_id', home.org_id, 'collection_id', home.id, 'description', home.description,
      'metadata', home.metadata, 'config', home.config)
    from rag.snapshot_collection((rag.require_collection(rag_begin_snapshot.name)).id) as home);
end;
$$;

comment on function public.rag_begin_snapshot is
  'The collection of that name, to export it; PT400 for a private collection.';

create function public.rag_snapshot_documents(
  collection_id uuid, after_created_at timestamptz default null, after_id uuid default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.snapshot_collection(rag_snapshot_documents.collection_id);
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('id', page.id, 'created_at', page.created_at)
      order by page.created_at, page.id), '[]')
    from (
      select documents.id, documents.created_at
      from rag.documents
      where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
        and (after_id is null or (documents.created_at, documents.id) > (after_created_at, after_id))
        and (documents.status = 'completed' or exists (
          select from rag.chunks where chunks.org_id = home.org_id and chunks.document_id = documents.id))
      order by documents.created_at, documents.id
      limit 2000
    ) as page);
end;
$$;

comment on function public.rag_snapshot_documents is
  '[{id, created_at}]: up to 2,000 documents that the whole org sees, oldest first, after the given created_at and id. '
  'Documents that are not completed and have no chunks are omitted.';

create function rag.snapshot_chunk(chunk rag.chunks)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object('span_start', chunk.span_start, 'span_end', chunk.span_end, 'token_count', chunk.token_count,
    'metadata', chunk.metadata, 'embedding', translate(encode(
      case extensions.vector_dims(chunk.embedding) when 1536 then rtrim(vector.bytes, '\x00') else vector.bytes end,
      'base64'), E'\n', ''))
  from (select substring(extensions.halfvec_send(chunk.embedding) from 5) as bytes) as vector;
$$;

comment on function rag.snapshot_chunk is
  'A chunk in the format of a snapshot, at most 12,288 bytes. The text of the chunk is a part of the document''s text. '
  'embedding: the values in half precision, high byte first, as base64, without the zeros '
  'at the end of 1,536 values.';

create function rag.snapshot_chunks(org_id uuid, document_id uuid, first integer, most integer)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(rag.snapshot_chunk(page.chunk) order by page.ordinal), '[]')
  from (
    select stored as chunk, stored.ordinal
    from rag.chunks as stored
    where stored.org_id = snapshot_chunks.org_id and stored.document_id = snapshot_chunks.document_id
      and stored.ordinal >= snapshot_chunks.first
    order by stored.ordinal
    limit least(snapshot_chunks.most, 512)
  ) as page;
$$;

comment on function rag.snapshot_chunks is
  'A document''s chunks from the ordinal `first` on: at most `most` and at most 512, which are four megabytes.';

create function rag.snapshot_document(home rag.collections, document_id uuid, first_character integer)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object('id', documents.id,
    -- The name is the external_id, or else the id, unless the id is another document's external_id.
    'name', case when documents.external_id is not null or not exists (
        select from rag.documents as other
        where other.org_id = home.org_id and other.collection_id = home.id and other.owner_id is null
          and other.external_id = documents.id::text)
      then rag.external_name(documents) end,
    'source_type', documents.source_type, 'title', documents.title, 'uri', documents.uri, 'lang', documents.lang,
    'occurred_at', documents.occurred_at, 'origin', documents.origin, 'author', documents.author,
    'state', documents.state, 'labels', documents.labels, 'metadata', documents.metadata,
    'content', substr(documents.content, first_character + 1, 1000000), 'length', length(documents.content),
    'filename', documents.filename,
    'content_type', documents.content_type, 'size_bytes', documents.size_bytes,
    'processing_info', documents.processing_info, 'created_at', documents.created_at,
    'updated_at', documents.updated_at, 'embedding_model', counted.model, 'chunk_count', counted.chunks,
    'chunks', case when first_character = 0
      then rag.snapshot_chunks(home.org_id, documents.id, 0, 256) else '[]' end)
  from rag.documents
  cross join lateral (
    select count(*) as chunks, min(chunks.embedding_model) as model
    from rag.chunks
    where chunks.org_id = home.org_id and chunks.document_id = documents.id
  ) as counted
  where documents.org_id = home.org_id and documents.id = snapshot_document.document_id;
$$;

comment on function rag.snapshot_document is
  'One document: a million characters of its text from first_character on, the length of the text, and the number of '
  'chunks. The first part of the text comes with the first chunks.';

create function public.rag_read_snapshot_documents(
  collection_id uuid, document_ids uuid[], first_character integer default 0
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.snapshot_collection(rag_read_snapshot_documents.collection_id);
  listed_id uuid;
  document jsonb;
  page jsonb[] := '{}';
  bytes bigint := 0;
begin
  if first_character is null or first_character < 0 then
    raise exception 'first_character must be at least 0' using errcode = 'PT400', detail = 'invalid_first_character';
  end if;
  for listed_id in
    select documents.id
    from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
      and documents.id = any (rag_read_snapshot_documents.document_ids)
    order by documents.created_at, documents.id
  loop
    document := rag.snapshot_document(home, listed_id, first_character);
    page := array_append(page, document);
    bytes := bytes + pg_column_size(document);
    exit when bytes > 4 << 20;
  end loop;
  return to_jsonb(page);
end;
$$;

comment on function public.rag_read_snapshot_documents is
  'The documents that still exist, oldest first, each as rag.snapshot_document returns it. A response ends after four '
  'megabytes; the caller requests the rest with another call.';

create function public.rag_read_snapshot_chunks(
  collection_id uuid, document_id uuid, updated_at timestamptz, first integer
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.snapshot_collection(rag_read_snapshot_chunks.collection_id);
begin
  if not exists (
    select from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
      and documents.id = rag_read_snapshot_chunks.document_id
      and documents.updated_at = rag_read_snapshot_chunks.updated_at
  ) then
    raise exception 'A document changed while it was persisted. Please try again.'
      using errcode = 'PT409', detail = 'document_changed';
  end if;
  return rag.snapshot_chunks(home.org_id, rag_read_snapshot_chunks.document_id, "first", 1000);
end;
$$;

comment on function public.rag_read_snapshot_chunks is
  'A document''s chunks from the ordinal `first` on (rag.snapshot_chunks); PT409 if the document has changed.';
