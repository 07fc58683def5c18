-- Functions of an org's admins to list the ingestion jobs that wait, run or have failed, and to run them again. A failed
-- job counts until a later job of its document exists. They run as their caller.

create function public.rag_list_jobs(state text default null, "limit" integer default 20, "offset" integer default 0)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  own constant uuid[] := rag.require_admin_org();
begin
  perform rag.check_page("limit", "offset", 'desc', 'created_at', array['created_at']);
  if rag_list_jobs.state not in ('waiting', 'running', 'failed') then
    raise exception 'state must be waiting, running or failed' using errcode = 'PT400', detail = 'invalid_state';
  end if;
  return (
    with listed as (
      select jobs.org_id, jobs.id, jobs.created_at
      from rag.jobs
      where jobs.org_id = any (own) and jobs.kind = 'ingestion' and jobs.state in ('waiting', 'running')
        and (rag_list_jobs.state is null or jobs.state = rag_list_jobs.state)
      union all
      select jobs.org_id, jobs.id, jobs.created_at
      from rag.jobs
      where jobs.org_id = any (own) and jobs.kind = 'ingestion' and jobs.state = 'failed'
        and coalesce(rag_list_jobs.state, 'failed') = 'failed' and not exists (
          select from rag.jobs as later
          where later.org_id = jobs.org_id and later.document_id = jobs.document_id and later.kind = 'ingestion'
            and later.created_at > jobs.created_at)
    ), listed_page as (
      select listed.* from listed order by listed.created_at desc, listed.id limit "limit" offset "offset"
    ), page as (
      select jobs.id, jobs.org_id, jobs.document_id, jobs.collection_id, jobs.user_id, jobs.state, jobs.step,
        jobs.attempts, jobs.error_code, jobs.error_message, jobs.created_at, jobs.started_at, jobs.finished_at,
        case when jobs.state = 'waiting' then jobs.due_at end as due_at, documents.title,
        collections.name as collection
      from listed_page
      join rag.jobs on jobs.org_id = listed_page.org_id and jobs.id = listed_page.id
      join rag.documents on documents.org_id = jobs.org_id and documents.id = jobs.document_id
      left join rag.collections on collections.org_id = jobs.org_id and collections.id = jobs.collection_id
    )
    select jsonb_build_object(
      'total', (select count(*) from listed),
      'jobs', coalesce(jsonb_agg(to_jsonb(page) order by page.created_at desc, page.id), '[]'))
    from page);
end;
$$;

comment on function public.rag_list_jobs is
  '{"total", "jobs": [...]}: a page of the ingestion jobs of the orgs that the caller administers, the newest first: '
  'those that wait, run or have failed, or only those of one state. due_at: the next attempt of a waiting job. PT403 '
  'for a caller who administers no org.';

create function rag.fields_for_retry(job rag.jobs, document rag.documents)
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  -- Before the first completed job, the document's own fields are those of the job, or changes to them. Later they may
  -- be those of the version that the job replaces.
  select case
    when octet_length(document.content) > 0
      and document.updated_at <= coalesce(job.finished_at, job.created_at) then job.document
    else job.document
      || case when document.title = job.document ->> 'title' then '{}' else '{"has_title": true}'::jsonb end
      || jsonb_build_object(
        'title', document.title, 'source_type', document.source_type, 'uri', document.uri, 'lang', document.lang,
        'occurred_at', document.occurred_at, 'origin', document.origin, 'author', document.author,
        'state', document.state, 'labels', document.labels, 'metadata', document.metadata)
  end;
$$;

comment on function rag.fields_for_retry is
  'The fields of the document for another job: those of the job, with the changes of title and metadata since.';

create function public.rag_retry_jobs(job_ids uuid[])
returns setof uuid
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  own constant uuid[] := rag.require_admin_org();
  document rag.documents;
  job rag.jobs;
begin
  perform rag.check_ids('job_ids', job_ids);
  for document in
    -- Documents are locked before their jobs, in every transaction.
    select documents.*
    from rag.documents
    where documents.org_id = any (own) and documents.id in (
      select jobs.document_id from rag.jobs
      where jobs.org_id = any (own) and jobs.id = any (job_ids) and jobs.kind = 'ingestion')
      and not exists (
        select from rag.originals
        where originals.org_id = documents.org_id and originals.document_id = documents.id
          and num_nonnulls(originals.bytes, originals.path, originals.url) = 0)
    order by documents.org_id, documents.id
    for no key update
  loop
    select jobs.* into job
    from rag.jobs
    where jobs.org_id = document.org_id and jobs.document_id = document.id and jobs.kind = 'ingestion'
      and jobs.id = any (job_ids) and jobs.state in ('waiting', 'failed') and not exists (
        select from rag.jobs as later
        where later.org_id = jobs.org_id and later.document_id = jobs.document_id and later.kind = 'ingestion'
          and later.created_at > jobs.created_at);
    continue when not found;
    if job.state = 'waiting' then
      -- A worker may claim the job meanwhile: it locks no document.
      delete from rag.jobs where jobs.org_id = job.org_id and jobs.id = job.id and jobs.state = 'waiting';
      continue when not found;
    end if;
    update rag.documents
    set status = 'processing', error_code = null, error_message = null, updated_at = now()
    where documents.org_id = document.org_id and documents.id = document.id;
    perform rag.enqueue_job(document, rag.fields_for_retry(job, document));
    return next job.id;
  end loop;
end;
$$;

comment on function public.rag_retry_jobs is
  'Run up to 100 jobs again, now and with all attempts: those of the given jobs that wait or have failed. Each gets a new '
  'job in the name of the caller. Returns the ids of the jobs that were replaced. Jobs that run, are done or have a '
  'later job, and those of deleted files, are ignored, as are those of other orgs. PT403 for a caller who administers no org.';
