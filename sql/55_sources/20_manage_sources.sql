-- Functions of an org's admins to create, list, change, run and delete sources. They run as their caller.

create type rag.source as (
  id uuid, org_id uuid, collection_id uuid, kind text, address text, endpoint text, region text,
  interval_seconds integer, max_items integer, include_noindex boolean, enabled boolean,
  has_credentials boolean, state text,
  started_at timestamptz, finished_at timestamptz, due_at timestamptz, listed integer, stored integer,
  deleted integer, failed integer, left_out jsonb, error_code text, error_message text, created_at timestamptz,
  updated_at timestamptz
);

comment on type rag.source is
  'A source as a list returns it, without credentials. state: running from the first to the last time slice of a '
  'listing.';

create function public.rag_list_sources(source_id uuid default null)
returns setof rag.source
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  return query
    select sources.id, sources.org_id, sources.collection_id, sources.kind, sources.address, sources.endpoint,
      sources.region, sources.interval_seconds, sources.max_items, sources.include_noindex, sources.enabled,
      exists (
        select from rag.source_credentials
        where source_credentials.org_id = sources.org_id and source_credentials.source_id = sources.id),
      -- No worker claims a disabled source: if its worker died, its run is over.
      case when sources.enabled and sources.resume_after is not null
          or sources.state = 'running' and sources.due_at > clock_timestamp() then 'running'
        else 'waiting' end,
      sources.started_at, sources.finished_at, sources.due_at, sources.listed, sources.stored, sources.deleted,
      sources.failed, sources.left_out, sources.error_code, sources.error_message, sources.created_at,
      sources.updated_at
    from rag.sources
    where sources.org_id = any (array(select rag.current_org_ids()))
      and (rag_list_sources.source_id is null or sources.id = rag_list_sources.source_id)
    order by sources.created_at, sources.id;
  if not found and source_id is not null then
    raise exception 'There is no such source. Check its id.' using errcode = 'PT404', detail = 'source_not_found';
  end if;
end;
$$;

comment on function public.rag_list_sources is
  'The sources that the caller administers, or the one with the given id; PT404 for another id.';

create function rag.get_source(source_id uuid)
returns rag.source
language sql stable security invoker set search_path = ''
as $$
  -- Without an id: the nil UUID, which none has.
  select * from public.rag_list_sources(coalesce(get_source.source_id, '00000000-0000-0000-0000-000000000000'));
$$;

comment on function rag.get_source is 'The source of that id; PT404 for one that the caller does not administer.';

create function rag.check_source_credentials(kind text, credentials jsonb)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  perform rag.check_json('credentials', credentials, 16384);
  if not rag.is_source_credentials(credentials) then
    raise exception 'The credentials need an access_key_id and a secret_access_key, and may have a session_token. '
      'Send these alone.' using errcode = 'PT400', detail = 'invalid_credentials';
  elsif credentials is not null and kind <> 'bucket' then
    raise exception 'Only buckets have credentials. Create the source without them.'
      using errcode = 'PT400', detail = 'invalid_credentials';
  end if;
end;
$$;

comment on function rag.check_source_credentials is
  'Raises PT400 for credentials of a website, and for those that rag.is_source_credentials refuses.';

create function public.rag_create_source(
  collection_id uuid, kind text, address text, interval_seconds integer default 86400, max_items integer default 1000,
  endpoint text default null, region text default null, credentials jsonb default null,
  include_noindex boolean default false
)
returns setof rag.source
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.collections := rag.get_collection(collection_id);
  made uuid;
begin
  perform rag.check_source_credentials(kind, credentials), rag.require_admin(home.org_id);
  if home.deleted_at is not null then
    raise exception 'The collection was deleted. Choose another collection.'
      using errcode = 'PT409', detail = 'collection_deleted';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.sources ' || home.org_id::text, 0));
  if 50 <= (select count(*) from rag.sources where sources.org_id = home.org_id) then
    raise exception 'The org already has 50 sources. Delete one first.'
      using errcode = 'PT400', detail = 'too_many_sources';
  end if;
  insert into rag.sources (org_id, collection_id, owner_id, kind, address, interval_seconds, max_items, endpoint,
    region, include_noindex)
  values (home.org_id, home.id, home.owner_id, kind, address, interval_seconds, max_items, endpoint, region,
    include_noindex)
  returning id into made;
  if credentials is not null then
    insert into rag.source_credentials (org_id, source_id, owner_id, credentials)
    values (home.org_id, made, home.owner_id, credentials);
  end if;
  return query select * from public.rag_list_sources(made);
end;
$$;

comment on function public.rag_create_source is
  'Create a source that fills the collection, for the first time at once. PT403 for a caller who is no admin of the '
  'org, PT400 above fifty sources.';

create function public.rag_update_source(
  source_id uuid, interval_seconds integer default null, max_items integer default null,
  enabled boolean default null, credentials jsonb default null, include_noindex boolean default null
)
returns setof rag.source
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  present constant rag.source := rag.get_source(source_id);
begin
  perform rag.check_source_credentials(present.kind, credentials);
  update rag.sources as renewed
  set interval_seconds = coalesce(rag_update_source.interval_seconds, renewed.interval_seconds),
    max_items = coalesce(rag_update_source.max_items, renewed.max_items),
    enabled = coalesce(rag_update_source.enabled, renewed.enabled),
    include_noindex = coalesce(rag_update_source.include_noindex, renewed.include_noindex), user_id = rag.current_user_id(),
    updated_at = clock_timestamp()
  where renewed.org_id = present.org_id and renewed.id = present.id;
  if present.include_noindex and not include_noindex then
    -- The lease of a running time slice ends, and it stores nothing more. The next run reads unchanged pages too, and
    -- leaves out those that ask not to be indexed.
    update rag.sources as renewed set due_at = clock_timestamp()
    where renewed.org_id = present.org_id and renewed.id = present.id and renewed.state = 'running';
    update rag.source_items as renewed set version = null
    where renewed.org_id = present.org_id and renewed.source_id = present.id;
  end if;
  if credentials is not null then
    if present.has_credentials then
      update rag.source_credentials as renewed set credentials = rag_update_source.credentials
      where renewed.org_id = present.org_id and renewed.source_id = present.id;
    else
      insert into rag.source_credentials (org_id, source_id, owner_id, credentials)
      select sources.org_id, sources.id, sources.owner_id, rag_update_source.credentials
      from rag.sources
      where sources.org_id = present.org_id and sources.id = present.id;
    end if;
  end if;
  return query select * from public.rag_list_sources(source_id);
end;
$$;

comment on function public.rag_update_source is
  'Change a source. Null leaves a field as it is. The address cannot change: another bucket or website is another '
  'source, and credentials never go to another address than the one they were given for.';

create function public.rag_run_source(source_id uuid)
returns setof rag.source
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  present constant rag.source := rag.get_source(source_id);
begin
  if not present.enabled then
    raise exception 'The source is disabled. Enable it first.' using errcode = 'PT409', detail = 'source_disabled';
  end if;
  update rag.sources
  set due_at = least(sources.due_at, clock_timestamp()), user_id = rag.current_user_id()
  where sources.org_id = present.org_id and sources.id = present.id and sources.state = 'waiting';
  return query select * from public.rag_list_sources(source_id);
end;
$$;

comment on function public.rag_run_source is
  'Make a source due now, if it is not running. PT409 for a disabled source.';

create function public.rag_delete_source(source_id uuid, documents boolean default false)
returns void
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_write();
  gone constant rag.source := rag.get_source(source_id);
begin
  if rag_delete_source.documents then
    delete from rag.documents
    using rag.source_items
    where source_items.org_id = gone.org_id and source_items.source_id = gone.id and not source_items.is_duplicate
      and documents.org_id = source_items.org_id and documents.id = source_items.document_id;
  end if;
  delete from rag.sources where sources.org_id = gone.org_id and sources.id = gone.id;
end;
$$;

comment on function public.rag_delete_source is
  'Delete a source, with or without its documents; PT404 for an unknown one.';
