-- Addition of a document for ingestion: its row, its original file and its job in one transaction. The content must be
-- new to the collection, and within the tier's limits. The functions run as their caller.

create function public.rag_add_document(collection_id uuid, document jsonb)
returns setof rag.document
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.get_collection(rag_add_document.collection_id);
  bytes bytea;
  -- Null for an object or a URL until the worker has read the content (rag_store_content).
  hash text;
  size bigint;
  input record;
  stored rag.documents;
begin
  perform rag.check_json('document', rag_add_document.document - 'bytes', 100000);
  bytes := case jsonb_typeof(document -> 'bytes') when 'string' then decode(document ->> 'bytes', 'base64') end;
  hash := encode(sha256(bytes), 'hex');
  select * into input from jsonb_to_record(rag_add_document.document) as fields (
    external_id text, private boolean, source_type text, title text, uri text, lang text,
    occurred_at timestamptz, origin text, author text, state text, labels text[], metadata jsonb,
    filename text, content_type text, size_bytes bigint, url text, path text);
  size := coalesce(length(bytes), case when input.path is not null then input.size_bytes end);
  -- Before the work, which a refusal at the end would throw away.
  perform rag.check_upload(home, size, bytes is not null);
  stored := rag.take_upload_once(home, input.path);
  if stored.id is not null then
    return next rag.render(stored);
    return;
  end if;

  insert into rag.documents as present (org_id, collection_id, owner_id, external_id, source_type, title,
    uri, lang, occurred_at, origin, author, state, labels, metadata, filename, content_type, size_bytes,
    content, content_hash, status)
  values (home.org_id, home.id, case when input.private then rag.current_user_id() else home.owner_id end,
    input.external_id, coalesce(input.source_type, 'doc'), input.title, input.uri, input.lang,
    input.occurred_at, input.origin, input.author, input.state, coalesce(input.labels, '{}'),
    coalesce(input.metadata, '{}'), input.filename, input.content_type, input.size_bytes, '',
    coalesce(hash, repeat('0', 64)), 'processing')
  -- Until the job is done, searches return the earlier version.
  on conflict (org_id, collection_id, owner_id, external_id) where external_id is not null
  do update set status = 'processing', error_code = null, error_message = null, updated_at = now()
  returning present.* into stored;

  perform rag.delete_failed_duplicate(stored, hash);
  perform rag.check_document_quota(home);
  perform rag.check_not_duplicate(stored, hash);

  perform rag.store_original(
    stored, bytes, input.url, input.path, case when input.path is not null then size end, hash);
  perform rag.enqueue_job(
    stored, rag_add_document.document - array['bytes', 'url', 'path', 'private', 'external_id']);
  -- Last, because it locks the user's count until the end of the transaction. An object was counted when it was announced.
  perform rag.count_upload(home.org_id, length(bytes));
  return next rag.render(stored);
end;
$$;

comment on function public.rag_add_document is
  'Add a document: its row, its original and its job, in one transaction. document: title; optionally private, '
  'external_id, source_type, uri, lang, occurred_at, origin, author, state, labels, metadata, filename, '
  'content_type, size_bytes; and bytes in base64, url, or the path of an object that the caller has uploaded '
  '(rag_begin_upload). A second call with the same path returns the same document. A document replaces the earlier one '
  'with the same external_id, which searches return until the job is done. PT409 for a deleted collection, and for '
  'bytes that a document of the collection already has; hint has the id of that document. PT429 for more documents '
  'or bytes and PT413 for larger files than the org''s tier allows; PT404 for an unknown upload.';

create function rag.check_upload(home rag.collections, size_bytes bigint, has_bytes boolean)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.require_access(home.id, 'edit');
  if home.deleted_at is not null then
    raise exception 'The collection was deleted. Choose another collection.'
      using errcode = 'PT409', detail = 'collection_deleted';
  end if;
  perform rag.check_file_size(home.org_id, check_upload.size_bytes);
  if has_bytes then
    perform rag.count_upload(home.org_id, check_upload.size_bytes, is_counted => false);
  end if;
end;
$$;

comment on function rag.check_upload is
  'Raises PT409 for a deleted collection, PT413 for a larger file than the org''s tier allows; for a file whose bytes the '
  'call has, PT429 beyond the bytes that the tier allows in a minute.';

create function public.rag_check_upload(collection_id uuid, size_bytes bigint)
returns boolean
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.get_collection(rag_check_upload.collection_id);
begin
  perform rag.require_scope('documents:write'), rag.check_storage(home.org_id),
    rag.check_upload(home, rag_check_upload.size_bytes, true);
  return is_admitted;
end;
$$;

comment on function public.rag_check_upload is
  'True, or the errors of rag_add_document for a file of this size that do not depend on its content: the scope, the '
  'collection, the size, the bytes of the org and those of the user in a minute. A call of a few bytes, so that a refused file '
  'is not sent to the database.';

create function rag.check_file_size(org_id uuid, size_bytes bigint)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
declare
  largest constant bigint := (rag.org_tier(org_id)).file_bytes;
begin
  if size_bytes > largest then
    raise exception 'The tier of your org allows files of at most % bytes. Send a smaller file.', largest
      using errcode = 'PT413', detail = 'file_too_large';
  end if;
end;
$$;

comment on function rag.check_file_size is 'Raises PT413 for a larger file than the org''s tier allows.';

create function rag.take_upload_once(home rag.collections, path text)
returns rag.documents
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  present rag.documents;
begin
  if take_upload_once.path is null then
    return null;
  end if;
  -- A second call for the same upload waits for the first.
  perform pg_advisory_xact_lock(hashtextextended('rag.uploads ' || take_upload_once.path, 0));
  select documents.* into present
  from rag.originals
  join rag.documents on documents.org_id = originals.org_id and documents.id = originals.document_id
  where originals.org_id = home.org_id and originals.collection_id = home.id
    and originals.path = take_upload_once.path and split_part(originals.path, '/', 3) = rag.current_user_id()::text;
  if not found then
    perform rag.take_upload(home, take_upload_once.path);
  end if;
  return present;
end;
$$;

comment on function rag.take_upload_once is
  'The document that an earlier call created from the upload. Without such a document, the function takes the upload '
  '(rag.take_upload) and returns null.';

create function rag.store_original(
  stored rag.documents, bytes bytea, url text, path text, object_bytes bigint, content_hash text
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  insert into rag.originals as present (org_id, document_id, collection_id, owner_id, bytes, url, path, object_bytes,
    content_hash)
  values (stored.org_id, stored.id, stored.collection_id, stored.owner_id, store_original.bytes, store_original.url,
    store_original.path, store_original.object_bytes, store_original.content_hash)
  on conflict (org_id, document_id)
  -- For a URL, the bytes of an earlier fetch stay until the URL is fetched again.
  do update set bytes = case when excluded.url is null then excluded.bytes else present.bytes end,
    url = excluded.url, path = excluded.path, object_bytes = excluded.object_bytes, created_at = now(),
    content_hash = case when excluded.url is null then excluded.content_hash else present.content_hash end;
exception when unique_violation then
  raise exception 'Another call is adding a document of the same content. Wait for its result.'
    using errcode = 'PT409', detail = 'duplicate_document';
end;
$$;

comment on function rag.store_original is
  'Store the original of a document; PT409 if another transaction adds the same content at this moment.';

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
    raise exception 'The collection already has a document of the same content. No second one was stored.'
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
    raise exception 'The tier of your org allows % documents in a collection. Delete some, or ask for a larger tier.',
      allowed
      using errcode = 'PT429', detail = 'document_limit_reached';
  end if;
end;
$$;

comment on function rag.check_document_quota is
  'Raises PT429 if the documents of the collection, with the one just inserted, exceed the tier''s limit. A lock per '
  'collection prevents two concurrent calls from both passing the check.';
