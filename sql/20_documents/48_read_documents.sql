-- Functions to list, read and download documents. They run as their caller.

create type rag.document as (
  id uuid, org_id uuid, collection_id uuid, owner_id uuid, created_by uuid, external_id text, title text,
  source_type text, uri text, lang text, metadata jsonb, filename text, content_type text, size_bytes bigint, content_hash text,
  status text, error_code text, error_message text, processing_info jsonb, chunk_count bigint,
  total_tokens bigint, step text, attempts integer, created_at timestamptz, updated_at timestamptz,
  processed_at timestamptz
);

comment on type rag.document is 'A document as a list returns it.';

create function rag.render(document rag.documents)
returns rag.document
language sql stable security invoker set search_path = ''
as $$
  select document.id, document.org_id, document.collection_id, document.owner_id, document.created_by,
    document.external_id, document.title, document.source_type, document.uri, document.lang, document.metadata,
    document.filename, document.content_type, document.size_bytes,
    -- For a failed document, the hash of its latest original, although searches may still find an earlier version.
    coalesce(
      case when document.status = 'failed' then (
        select originals.content_hash from rag.originals
        where originals.org_id = document.org_id and originals.document_id = document.id) end,
      document.content_hash),
    document.status,
    -- During ingestion: the error of the previous attempt.
    coalesce(document.error_code, job.error_code), coalesce(document.error_message, job.error_message),
    document.processing_info, counted.chunks, counted.tokens, job.step, job.attempts, document.created_at,
    document.updated_at,
    -- Without a job: the time of the last change.
    case when document.status <> 'processing' then coalesce(job.finished_at, document.updated_at) end
  from (
    select count(*) as chunks, coalesce(sum(chunks.token_count), 0) as tokens
    from rag.chunks
    where chunks.org_id = document.org_id and chunks.document_id = document.id
  ) as counted
  left join lateral (
    select jobs.step, jobs.attempts, jobs.error_code, jobs.error_message, jobs.finished_at
    from rag.jobs
    where jobs.org_id = document.org_id and jobs.document_id = document.id and jobs.kind = 'ingestion'
    order by jobs.created_at desc
    limit 1
  ) as job on true;
$$;

comment on function rag.render(rag.documents) is
  'A document as a list returns it, with its chunks counted and its latest ingestion job.';

create function rag.get_document(document_id uuid)
returns rag.documents
language plpgsql stable security invoker set search_path = ''
as $$
declare
  found_document rag.documents;
begin
  select * into found_document
  from rag.documents
  where org_id = any (array(select rag.current_org_ids())) and id = get_document.document_id;
  if not found then
    raise exception 'There is no such document. Check its id.' using errcode = 'PT404', detail = 'document_not_found';
  end if;
  return found_document;
end;
$$;

comment on function rag.get_document is 'The document of that id; PT404 for one that the caller does not see.';

create function public.rag_list_documents(
  collection_id uuid, "limit" integer default 20, "offset" integer default 0, status text default null,
  sort_by text default 'created_at', "order" text default 'desc', name text default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.collections := rag.get_collection(collection_id);
begin
  perform rag.check_page("limit", "offset", "order", sort_by, array['created_at', 'title', 'size_bytes']);
  if status not in ('processing', 'completed', 'failed') then
    raise exception 'status must be processing, completed or failed'
      using errcode = 'PT400', detail = 'invalid_status';
  elsif length(name) not between 1 and 200 then
    raise exception 'name must have 1 to 200 characters' using errcode = 'PT400', detail = 'invalid_name';
  end if;
  return (
    with placed as (
      select listed.id, row_number() over (
        order by case sort_by when 'title' then listed.title end, case sort_by
          when 'created_at' then listed.created_at end, case sort_by
          when 'size_bytes' then coalesce(listed.size_bytes, 0) end, listed.id) as position
      from rag.documents as listed
      where listed.org_id = home.org_id and listed.collection_id = home.id
        and (rag_list_documents.status is null or listed.status = rag_list_documents.status)
        and (name is null or strpos(lower(listed.title), lower(normalize(name, nfc))) > 0
          or strpos(lower(listed.filename), lower(normalize(name, nfc))) > 0)
    ), page as (
      select placed.id, case "order" when 'desc' then -placed.position else placed.position end as turn
      from placed
      order by turn
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from placed),
      'documents', coalesce(jsonb_agg(to_jsonb(shown) order by page.turn), '[]'))
    from page
    join rag.documents on documents.org_id = home.org_id and documents.id = page.id
    cross join lateral rag.render(documents) as shown);
end;
$$;

comment on function public.rag_list_documents is
  '{"total", "documents": [...]}: a page of a collection''s documents, and their number. name: only those whose title '
  'or file name contains it, in upper or lower case.';

create function public.rag_get_document(document_id uuid)
returns setof rag.document
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  return query
    select shown.* from rag.render(rag.get_document(rag_get_document.document_id)) as shown;
end;
$$;

comment on function public.rag_get_document is 'A document; PT404 for one that the caller does not see.';

create function public.rag_read_document(
  document_id uuid, "offset" integer default 0, "limit" integer default 10000
)
returns table (id uuid, collection_id uuid, title text, uri text, status text, notes jsonb, characters integer,
  text text)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
begin
  perform rag.begin_call(), rag.require_scope('documents:read', 'retrievals:read', 'chat:read');
  if ("offset" between 0 and 20000000 and "limit" between 1 and 100000) is not true then
    raise exception 'offset must be from 0 to 20000000, and limit from 1 to 100000'
      using errcode = 'PT400', detail = 'invalid_page';
  end if;
  return query
  select document.id, document.collection_id, document.title, document.uri, document.status,
    coalesce(document.processing_info -> 'notes', '[]'), length(document.content),
    substr(document.content, "offset" + 1, "limit")
  from rag.get_document(document_id) as document;
end;
$$;

comment on function public.rag_read_document is
  'A part of a document''s text: `limit` characters from `offset` on, and the number of characters of the whole. PT404 '
  'for a document that the caller does not see, PT403 for a key without a scope that reads.';

create function public.rag_get_original(document_id uuid)
returns table (filename text, content_type text, bytes text, url text, path text)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call();
  return query
    select document.filename, document.content_type, encode(originals.bytes, 'base64'), originals.url,
      originals.path
    from rag.get_document(rag_get_original.document_id) as document
    join rag.originals on originals.org_id = document.org_id and originals.document_id = document.id;
end;
$$;

comment on function public.rag_get_original is
  'The original of a document: bytes in base64, the address, or the path of the object.';
