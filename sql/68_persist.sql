-- A collection as a file: what persisting reads, a page at a time. A snapshot may be loaded by anybody of the org, so it
-- holds what the whole org may see and nothing else.

-- The collection whose snapshot is made; PT400 for somebody's own.
create function rag.collection_to_persist(collection_id uuid)
returns rag.collections
language plpgsql stable security invoker set search_path = ''
as $$
declare
  home constant rag.collections := rag.collection_of(collection_to_persist.collection_id);
begin
  if not rag.has_scope('documents:read', 'documents:write') then
    raise exception 'this key may not read documents' using errcode = 'PT403', detail = 'missing_scope';
  elsif home.owner_id is not null then
    raise exception 'a private index is not persisted: anybody of the org could load it'
      using errcode = 'PT400', detail = 'private_collection';
  elsif home.loads is not null then
    raise exception 'there is no such collection' using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return home;
end;
$$;

create function public.rag_begin_persist(name text)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select rag.begin_call();

  select jsonb_build_object('org_id', home.org_id, 'collection_id', home.id, 'description', home.description,
    'metadata', home.metadata, 'config', home.config)
  from rag.collection_to_persist((rag.require_collection(rag_begin_persist.name)).id) as home;
$$;

-- [{id, created_at, chunk_count, bytes}]: up to 2,000 documents of the whole org after that one, the oldest first.
-- Those that have never become chunks are left out.
create function public.rag_list_to_persist(
  collection_id uuid, after_created_at timestamptz default null, after_id uuid default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.collection_to_persist(rag_list_to_persist.collection_id);
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('id', page.id, 'created_at', page.created_at,
      'chunk_count', counted.chunks, 'bytes', page.bytes) order by page.created_at, page.id), '[]')
    from (
      select documents.id, documents.created_at, octet_length(documents.content) as bytes
      from rag.documents
      where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
        and (after_id is null or (documents.created_at, documents.id) > (after_created_at, after_id))
        and (documents.status = 'completed' or exists (
          select from rag.chunks where chunks.org_id = home.org_id and chunks.document_id = documents.id))
      order by documents.created_at, documents.id
      limit 2000
    ) as page
    cross join lateral (
      select count(*) as chunks
      from rag.chunks
      where chunks.org_id = home.org_id and chunks.document_id = page.id
    ) as counted);
end;
$$;

-- A chunk as a snapshot has it; its text is in the document's. The embedding: its values in half precision, high byte first, as base64, without the
-- zeros at its end.
create function rag.persisted(chunk rag.chunks)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object('span_start', chunk.span_start, 'span_end', chunk.span_end, 'token_count', chunk.token_count,
    'metadata', chunk.metadata, 'embedding', translate(encode(
      rtrim(substring(extensions.halfvec_send(chunk.embedding) from 5), '\x00'), 'base64'), E'\n', ''));
$$;

-- Those of the documents that are still there, each with its first 256 chunks and how many it has. Each is whole:
-- as it is at this moment.
create function public.rag_read_to_persist(collection_id uuid, document_ids uuid[])
returns jsonb
language plpgsql stable security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.collection_to_persist(rag_read_to_persist.collection_id);
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('id', documents.id,
      -- One that has no name of its own goes by its id, and keeps that name: unless somebody else has it.
      'name', case when documents.external_id is not null or not exists (
          select from rag.documents as other
          where other.org_id = home.org_id and other.collection_id = home.id and other.owner_id is null
            and other.external_id = documents.id::text)
        then rag.name_of(documents) end,
      'source_type', documents.source_type, 'title', documents.title, 'uri', documents.uri, 'lang', documents.lang,
      'occurred_at', documents.occurred_at, 'origin', documents.origin, 'author', documents.author,
      'state', documents.state, 'labels', documents.labels, 'metadata', documents.metadata,
      'content', documents.content, 'filename', documents.filename,
      'content_type', documents.content_type, 'size_bytes', documents.size_bytes,
      'processing_info', documents.processing_info, 'created_at', documents.created_at,
      'updated_at', documents.updated_at, 'embedding_model', counted.model, 'chunk_count', counted.chunks,
      'chunks', coalesce(first.chunks, '[]')) order by documents.created_at, documents.id), '[]')
    from rag.documents
    cross join lateral (
      select count(*) as chunks, min(chunks.embedding_model) as model
      from rag.chunks
      where chunks.org_id = home.org_id and chunks.document_id = documents.id
    ) as counted
    cross join lateral (
      select jsonb_agg(rag.persisted(passage) order by passage.ordinal) as chunks
      from rag.chunks as passage
      where passage.org_id = home.org_id and passage.document_id = documents.id and passage.ordinal < 256
    ) as first
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
      and documents.id = any (rag_read_to_persist.document_ids));
end;
$$;

-- Up to a thousand chunks of a document from that one on; PT409 when it is no longer as it was then.
create function public.rag_read_chunks_to_persist(
  collection_id uuid, document_id uuid, updated_at timestamptz, first integer
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.collection_to_persist(rag_read_chunks_to_persist.collection_id);
begin
  if not exists (
    select from rag.documents
    where documents.org_id = home.org_id and documents.collection_id = home.id and documents.owner_id is null
      and documents.id = rag_read_chunks_to_persist.document_id
      and documents.updated_at = rag_read_chunks_to_persist.updated_at
  ) then
    raise exception 'a document changed while it was persisted; please try again'
      using errcode = 'PT409', detail = 'document_changed';
  end if;
  return (
    select coalesce(jsonb_agg(rag.persisted(chunks) order by chunks.ordinal), '[]')
    from rag.chunks
    where chunks.org_id = home.org_id and chunks.document_id = rag_read_chunks_to_persist.document_id
      and chunks.ordinal >= "first" and chunks.ordinal < "first" + 1000);
end;
$$;

revoke all on function rag.collection_to_persist(uuid), rag.persisted(rag.chunks),
  public.rag_begin_persist(text), public.rag_list_to_persist(uuid, timestamptz, uuid),
  public.rag_read_to_persist(uuid, uuid[]),
  public.rag_read_chunks_to_persist(uuid, uuid, timestamptz, integer)
  from public, anon, service_role;
grant execute on function rag.collection_to_persist(uuid), rag.persisted(rag.chunks),
  public.rag_begin_persist(text), public.rag_list_to_persist(uuid, timestamptz, uuid),
  public.rag_read_to_persist(uuid, uuid[]),
  public.rag_read_chunks_to_persist(uuid, uuid, timestamptz, integer)
  to authenticated;
