-- Functions to add, list, read, change and download documents. They run as their caller.

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
    -- While it is worked on: why it did not work at once.
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
    where jobs.org_id = document.org_id and jobs.document_id = document.id
    order by jobs.created_at desc
    limit 1
  ) as job on true;
$$;

comment on function rag.render(rag.documents) is
  'A document as a list returns it, with its chunks counted and its latest job.';

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
    raise exception 'there is no such document' using errcode = 'PT404', detail = 'document_not_found';
  end if;
  return found_document;
end;
$$;

comment on function rag.get_document is 'The document of that id; PT404 for one that the caller does not see.';

create function public.rag_add_document(collection_id uuid, document jsonb)
returns setof rag.document
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.get_collection(rag_add_document.collection_id);
  largest constant bigint := (rag.org_tier(home.org_id)).file_bytes;
  sent bytea;
  -- Unknown for an object or an address until the worker has read it (rag_store_content).
  hash text;
  input record;
  stored rag.documents;
begin
  perform rag.check_json('document', rag_add_document.document - 'bytes', 100000);
  sent := case jsonb_typeof(document -> 'bytes') when 'string' then decode(document ->> 'bytes', 'base64') end;
  hash := encode(sha256(sent), 'hex');
  select * into input from jsonb_to_record(rag_add_document.document) as fields (
    external_id text, private boolean, source_type text, title text, uri text, lang text,
    occurred_at timestamptz, origin text, author text, state text, labels text[], metadata jsonb,
    filename text, content_type text, size_bytes bigint, url text, path text);
  if home.deleted_at is not null then
    raise exception 'the collection was deleted; it takes no more documents'
      using errcode = 'PT409', detail = 'collection_deleted';
  elsif coalesce(length(sent), case when input.path is not null then input.size_bytes end) > largest then
    raise exception 'this org''s tier takes files of at most % bytes', largest
      using errcode = 'PT413', detail = 'file_too_large';
  end if;
  if input.path is not null then
    -- Whoever says it a second time waits for the first.
    perform pg_advisory_xact_lock(hashtextextended('rag.uploads ' || input.path, 0));
    select documents.* into stored
    from rag.originals
    join rag.documents on documents.org_id = originals.org_id and documents.id = originals.document_id
    where originals.org_id = home.org_id and originals.collection_id = home.id and originals.path = input.path
      and split_part(originals.path, '/', 3) = auth.uid()::text;
    if found then
      return next rag.render(stored);
      return;
    end if;
    perform rag.take_upload(home, input.path);
  end if;

  insert into rag.documents as present (org_id, collection_id, owner_id, external_id, source_type, title,
    uri, lang, occurred_at, origin, author, state, labels, metadata, filename, content_type, size_bytes,
    content, content_hash, status)
  values (home.org_id, home.id, case when input.private then auth.uid() else home.owner_id end,
    input.external_id, coalesce(input.source_type, 'doc'), input.title, input.uri, input.lang,
    input.occurred_at, input.origin, input.author, input.state, coalesce(input.labels, '{}'),
    coalesce(input.metadata, '{}'), input.filename, input.content_type, input.size_bytes, '',
    coalesce(hash, repeat('0', 64)), 'processing')
  -- Only that it is being worked on: what is found of it stays as it was until the job is done.
  on conflict (org_id, collection_id, owner_id, external_id) where external_id is not null
  do update set status = 'processing', error_code = null, error_message = null, updated_at = now()
  returning present.* into stored;

  perform rag.delete_failed_duplicate(stored, hash);
  perform rag.check_document_quota(home);
  perform rag.check_not_duplicate(stored, hash);

  begin
    insert into rag.originals as present (org_id, document_id, collection_id, owner_id, bytes, url, path,
      content_hash)
    values (stored.org_id, stored.id, stored.collection_id, stored.owner_id, sent,
      input.url, input.path, hash)
    on conflict (org_id, document_id)
    -- Until an address is fetched anew, what it gave before is kept.
    do update set bytes = case when excluded.url is null then excluded.bytes else present.bytes end,
      url = excluded.url, path = excluded.path, created_at = now(),
      content_hash = case when excluded.url is null then excluded.content_hash else present.content_hash end;
  exception when unique_violation then
    raise exception 'somebody brings a document of the same content just now'
      using errcode = 'PT409', detail = 'duplicate_document';
  end;

  delete from rag.jobs
  where jobs.org_id = stored.org_id and jobs.document_id = stored.id and jobs.state in ('waiting', 'running');
  insert into rag.jobs (org_id, document_id, collection_id, owner_id, user_id, document)
  values (stored.org_id, stored.id, stored.collection_id, stored.owner_id, auth.uid(),
    rag_add_document.document - array['bytes', 'url', 'path', 'private', 'external_id']);
  return next rag.render(stored);
exception when lock_not_available then
  perform rag.raise_locked();
end;
$$;

comment on function public.rag_add_document is
  'Add a document: its row, its original and its job, all or none. document: title; optionally private, '
  'external_id, source_type, uri, lang, occurred_at, origin, author, state, labels, metadata, filename, '
  'content_type, size_bytes; and bytes in base64, url, or the path of an object that the caller has uploaded '
  '(rag_begin_upload). A repeated path is the same document. A document of the same external_id replaces the older, '
  'which searches find until the job is done. PT409 for bytes that the collection has already, with the id of the '
  'document in hint, and for a deleted collection; PT429 for more documents and PT413 for larger files than the '
  'org''s tier allows; PT404 for an unknown upload.';

create function rag.delete_failed_duplicate(stored rag.documents, content_hash text)
returns void
language sql volatile security invoker set search_path = ''
as $$
  delete from rag.documents as failed
  using rag.originals
  where originals.org_id = stored.org_id and originals.collection_id = stored.collection_id
    and originals.owner_id is not distinct from stored.owner_id
    and originals.content_hash = delete_failed_duplicate.content_hash and originals.document_id <> stored.id
    and failed.org_id = originals.org_id and failed.id = originals.document_id and failed.status = 'failed'
    and not exists (
      select from rag.chunks where chunks.org_id = failed.org_id and chunks.document_id = failed.id);
$$;

comment on function rag.delete_failed_duplicate is 'Delete a failed document of the same content that has no chunks.';

create function rag.check_not_duplicate(stored rag.documents, content_hash text)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
declare
  twin uuid;
begin
  select originals.document_id into twin
  from rag.originals
  where originals.org_id = stored.org_id and originals.collection_id = stored.collection_id
    and originals.owner_id is not distinct from stored.owner_id
    and originals.content_hash = check_not_duplicate.content_hash and originals.document_id <> stored.id;
  if found then
    raise exception 'the collection has a document of the same content'
      using errcode = 'PT409', detail = 'duplicate_document', hint = twin::text;
  end if;
end;
$$;

comment on function rag.check_not_duplicate is
  'Raises PT409 if the collection has a document of the same content and owner; its id is in hint.';

create function rag.check_document_quota(home rag.collections)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  allowed constant integer := (rag.org_tier(home.org_id)).documents_per_collection;
begin
  if allowed is null then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.documents ' || home.id::text, 0));
  if allowed < (rag.render(home)).document_count then
    raise exception 'this org''s tier has room for % documents in a collection', allowed
      using errcode = 'PT429', detail = 'document_limit_reached';
  end if;
end;
$$;

comment on function rag.check_document_quota is
  'Raises PT429 if a document that was just inserted exceeds the tier''s number. It locks, so that two concurrent '
  'calls do not both count the last place as free.';

create function public.rag_list_documents(
  collection_id uuid, "limit" integer default 20, "offset" integer default 0, status text default null,
  sort_by text default 'created_at', "order" text default 'desc'
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
  end if;
  return (
    with placed as (
      select listed.id, row_number() over (
        order by case sort_by when 'title' then listed.title end, case sort_by
          when 'created_at' then listed.created_at end, case sort_by
          when 'size_bytes' then coalesce(listed.size_bytes, 0) end, listed.id) as place
      from rag.documents as listed
      where listed.org_id = home.org_id and listed.collection_id = home.id
        and (rag_list_documents.status is null or listed.status = rag_list_documents.status)
    ), page as (
      select placed.id, case "order" when 'desc' then -placed.place else placed.place end as turn
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
  '{"total", "documents": [...]}: a page of a collection''s documents, and how many there are.';

create function public.rag_get_document(document_id uuid)
returns setof rag.document
language sql stable security invoker set search_path = ''
as $$
  select rag.begin_call();

  select shown.* from rag.render(rag.get_document(rag_get_document.document_id)) as shown;
$$;

comment on function public.rag_get_document is 'A document; PT404 for one that the caller does not see.';

create function public.rag_update_document(document_id uuid, changes jsonb)
returns setof rag.document
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  present rag.documents := rag.get_document(document_id);
  wanted rag.documents;
begin
  perform rag.check_json('changes', changes, 100000);
  wanted := jsonb_populate_record(present, (
    select coalesce(jsonb_object_agg(change.key, change.value), '{}')
    from jsonb_each(changes) as change
    where change.value <> 'null' or (changes ? 'metadata' and change.key <> 'title')));
  update rag.documents as renewed
  set title = wanted.title, metadata = wanted.metadata, source_type = coalesce(wanted.source_type, 'doc'), uri = wanted.uri,
    lang = wanted.lang, occurred_at = wanted.occurred_at, origin = wanted.origin, author = wanted.author,
    state = wanted.state, labels = wanted.labels, updated_at = clock_timestamp()
  where renewed.org_id = present.org_id and renewed.id = present.id
  returning renewed.* into wanted;
  if wanted.id is null then
    raise exception 'this key may not change documents' using errcode = 'PT403', detail = 'missing_scope';
  end if;
  update rag.chunks
  set source_type = wanted.source_type, lang = wanted.lang, occurred_at = wanted.occurred_at
  where chunks.org_id = wanted.org_id and chunks.document_id = wanted.id
    and (chunks.source_type, chunks.lang, chunks.occurred_at)
      is distinct from (wanted.source_type, wanted.lang, wanted.occurred_at);
  return next rag.render(wanted);
end;
$$;

comment on function public.rag_update_document is
  'Change a document''s title and metadata. changes: title, metadata and the fields that metadata fill; what is not '
  'there, or null, stays. New metadata take the place of the old, and so do the fields that they fill, null ones '
  'too.';

create function public.rag_get_original(document_id uuid)
returns table (filename text, content_type text, bytes text, url text, path text)
language sql stable security invoker set search_path = ''
as $$
  select rag.begin_call();

  select document.filename, document.content_type, encode(originals.bytes, 'base64'), originals.url,
    originals.path
  from rag.get_document(rag_get_original.document_id) as document
  join rag.originals on originals.org_id = document.org_id and originals.document_id = document.id;
$$;

comment on function public.rag_get_original is
  'The original of a document: bytes in base64, the address, or the path of the object.';
