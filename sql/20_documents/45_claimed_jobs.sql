-- Functions that the worker calls for an ingestion that it has claimed; rag_fail_job ends an extraction too. The token is
-- of the user who requested the job and names the lease (rag.lease_of_token): row security lets it write what that user
-- may, and change the one job. The job ends in the transaction that stores its result, so after a crash the document is
-- stored once, or the job is claimed again.

create function public.rag_open_job(lease_seconds integer default 300)
returns table (
  document_id uuid, document jsonb, bytes text, url text, path text, config jsonb, file_bytes bigint,
  passages_hash text, embeddings text[]
)
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  job constant rag.jobs := rag.lock_job('ingestion');
begin
  perform rag.require_embedding_quota();
  update rag.jobs
  set step = case when num_nonnulls(originals.url, originals.path) > 0 then 'fetching' else 'converting' end,
    due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  from rag.originals
  where jobs.org_id = job.org_id and jobs.id = job.id
    and originals.org_id = job.org_id and originals.document_id = job.document_id;

  return query
  select job.document_id, job.document, encode(originals.bytes, 'base64'), originals.url, originals.path,
    collections.config, (rag.org_tier(job.org_id)).file_bytes, job.passages_hash, job.embeddings::text[]
  from rag.originals
  join rag.collections on collections.org_id = originals.org_id and collections.id = originals.collection_id
  where originals.org_id = job.org_id and originals.document_id = job.document_id;
end;
$$;

comment on function public.rag_open_job is
  'The job''s work: the document''s fields, its original, its collection''s config, and the most bytes that an '
  'address or an uploaded object may have; passages_hash and embeddings as rag_extend_job stored them. It extends the '
  'lease and sets the step: fetching, or converting if the '
  'database has the original. PT429 if the org has used up its tokens for embeddings today.';

create function public.rag_store_content(content_hash text, size_bytes bigint, lease_seconds integer default 300)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  job constant rag.jobs := rag.lock_job('ingestion');
  stored rag.documents;
begin
  select documents.* into stored
  from rag.documents
  where documents.org_id = job.org_id and documents.id = job.document_id;
  perform rag.delete_failed_duplicate(stored, rag_store_content.content_hash);
  perform rag.check_not_duplicate(stored, rag_store_content.content_hash);
  update rag.originals
  set content_hash = rag_store_content.content_hash,
    object_bytes = case when originals.path is not null then rag_store_content.size_bytes end
  where originals.org_id = job.org_id and originals.document_id = job.document_id
    and num_nonnulls(originals.url, originals.path) > 0;
  update rag.jobs
  set step = 'converting', due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  where jobs.org_id = job.org_id and jobs.id = job.id;
exception when unique_violation then
  raise exception 'Another call is adding a document of the same content. Wait for its result.'
    using errcode = 'PT409', detail = 'duplicate_document';
end;
$$;

comment on function public.rag_store_content is
  'Store the hash and, of an object, the size of the content that the worker has read from the document''s object or address, set the step to '
  'converting and extend the lease. PT409 for content that another document of the collection has; the id of that '
  'document is in hint.';

create function public.rag_extend_job(
  step text, lease_seconds integer, passages_hash text default null, embeddings extensions.halfvec[] default null
)
returns integer
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  job constant rag.jobs := rag.lock_job('ingestion');
  -- A page that differs at each attempt is no progress.
  is_further constant boolean := job.passages_hash is null or job.passages_hash = rag_extend_job.passages_hash
    and cardinality(job.embeddings) < cardinality(rag_extend_job.embeddings);
  new_attempts constant integer := case when rag_extend_job.embeddings is not null and is_further then 0 else job.attempts end;
begin
  update rag.jobs
  set step = rag_extend_job.step, due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  where jobs.org_id = job.org_id and jobs.id = job.id;
  if rag_extend_job.embeddings is not null then
    update rag.jobs
    set passages_hash = rag_extend_job.passages_hash, embeddings = rag_extend_job.embeddings,
      attempts = new_attempts
    where jobs.org_id = job.org_id and jobs.id = job.id;
  end if;
  return new_attempts;
end;
$$;

comment on function public.rag_extend_job is
  'Set the step of a job and extend its lease. embeddings: after a failure of the embedder, the vectors of the first '
  'passages, for the next attempt; passages_hash: SHA-256 of the model and of all passages. With more vectors than '
  'before, the count of attempts begins anew. Returns this count.';

create function public.rag_complete_job(document jsonb, chunks jsonb)
returns integer
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  job constant rag.jobs := rag.lock_job('ingestion');
  input record;
  -- Changes of title and metadata since the upload stay.
  changed constant boolean := (
    select documents.updated_at > job.created_at
    from rag.documents
    where documents.org_id = job.org_id and documents.id = job.document_id);
begin
  perform rag.check_json('document', rag_complete_job.document), rag.check_json('chunks', rag_complete_job.chunks);
  select * into input from jsonb_to_record(rag_complete_job.document) as fields (
    source_type text, title text, uri text, lang text, occurred_at timestamptz, origin text, author text,
    state text, labels text[], metadata jsonb, filename text, content_type text, size_bytes bigint,
    content text, embedding_model text, processing_info jsonb, bytes text);

  if not changed then
    -- The words of the former chunks, which are deleted below, are not indexed again for another title.
    perform set_config('rag.words_later', 'true', true);
    update rag.documents as renewed
    set source_type = coalesce(input.source_type, 'doc'), title = input.title, uri = input.uri,
      lang = input.lang, occurred_at = input.occurred_at, origin = input.origin, author = input.author,
      state = input.state, labels = coalesce(input.labels, '{}'), metadata = coalesce(input.metadata, '{}')
    where renewed.org_id = job.org_id and renewed.id = job.document_id;
    perform set_config('rag.words_later', '', true);
  end if;
  update rag.documents as renewed
  set filename = input.filename, content_type = input.content_type, size_bytes = input.size_bytes,
    content = input.content, content_hash = coalesce((
      select originals.content_hash
      from rag.originals
      where originals.org_id = job.org_id and originals.document_id = job.document_id), renewed.content_hash),
    status = 'completed', error_code = null, error_message = null,
    processing_info = coalesce(input.processing_info, '{}'), updated_at = clock_timestamp()
  where renewed.org_id = job.org_id and renewed.id = job.document_id;

  if input.bytes is not null then
    update rag.originals
    set bytes = decode(input.bytes, 'base64')
    where originals.org_id = job.org_id and originals.document_id = job.document_id
      and originals.url is not null;
  end if;
  perform rag.delete_chunks(job.org_id, array[job.document_id]);
  perform rag.insert_chunks(job.org_id, array[rag.document_chunks(
    document_id => job.document_id, chunks => chunks, embedding_model => input.embedding_model)], 0);
  update rag.jobs
  set state = 'done', lease = null, step = null, error_code = null, error_message = null, passages_hash = null,
    embeddings = null, finished_at = clock_timestamp()
  where jobs.org_id = job.org_id and jobs.id = job.id;
  return jsonb_array_length(chunks);
end;
$$;

comment on function public.rag_complete_job is
  'Store the processed document in place of its previous version, for searches from now on. document: title, content, '
  'embedding_model, processing_info; filename, content_type, size_bytes and the fields that a search filters by, '
  'where they are known; bytes, in base64, of a document from an address. chunks: as rag_put_documents takes them.';

create function public.rag_fail_job(
  code text default null, message text default null, retry_seconds integer default null,
  is_attempt boolean default true, discards_original boolean default false
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  job constant rag.jobs := rag.lock_job(with_document => retry_seconds is null);
begin
  if retry_seconds is null then
    update rag.documents
    set status = 'failed', error_code = code, error_message = message, updated_at = clock_timestamp()
    where documents.org_id = job.org_id and documents.id = job.document_id and job.kind = 'ingestion';
    if discards_original then
      update rag.originals
      set bytes = null, path = null, object_bytes = null
      where originals.org_id = job.org_id and originals.document_id = job.document_id and originals.url is null;
    end if;
  end if;
  update rag.jobs
  set state = case when retry_seconds is null then 'failed' else 'waiting' end, lease = null, step = null,
    attempts = greatest(jobs.attempts - case when is_attempt then 0 else 1 end, 0),
    -- A job that was not begun, or goes on, keeps its place.
    due_at = case when retry_seconds = 0 and not is_attempt then jobs.created_at
      else clock_timestamp() + make_interval(secs => coalesce(retry_seconds, 0)) end,
    error_code = coalesce(code, jobs.error_code), error_message = coalesce(message, jobs.error_message),
    passages_hash = case when retry_seconds is not null then jobs.passages_hash end,
    embeddings = case when retry_seconds is not null then jobs.embeddings end,
    finished_at = case when retry_seconds is null then clock_timestamp() end
  where jobs.org_id = job.org_id and jobs.id = job.id;
end;
$$;

comment on function public.rag_fail_job is
  'End the attempt of a job that failed (with an error) or is postponed (without one). The job is due again after '
  'retry_seconds; null: never, and the document of an ingestion gets the error. is_attempt: whether the attempt counts. '
  'discards_original: whether a file that cannot be read at all is deleted; its hash stays, so that a second upload of it '
  'replaces the document. '
  'For a job that is due again, the document is neither changed nor locked: its lock may be the lock that the job could '
  'not get.';
