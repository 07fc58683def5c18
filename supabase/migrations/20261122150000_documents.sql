-- Collections and documents as people bring and keep them, and the jobs that work on what was brought: sql/28, 50,
-- 53, 54 and 57, which are new, and what they add to 00 to 21, 40, 55 and 56.

-- Whether this may be somebody's metadata: an object that readers in other languages can represent, neither
-- larger nor deeper than they like, nor with numbers longer than they know.
create function rag.is_metadata(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select jsonb_typeof(value) = 'object'
    and pg_column_size(value) <= 65536
    and not jsonb_path_exists(value, '$.**{32}')
    and value::text !~ '[0-9]{250}';
$$;

-- The lease of the job that the token was made for; null for every other token.
create function rag.held_lease()
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select (auth.jwt() -> 'rag' ->> 'lease')::uuid;
$$;

-- The org that is meant: the one named, or the caller's only one.
create function rag.org_meant(org_id uuid)
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
declare
  own constant uuid[] := array(select rag.current_org_ids());
begin
  if org_id is null and cardinality(own) > 1 then
    raise exception 'org_id must say which of your orgs' using errcode = 'PT400', detail = 'org_required';
  elsif coalesce(org_id, own[1]) = any (own) then
    return coalesce(org_id, own[1]);
  end if;
  raise exception 'no such org' using errcode = 'PT404', detail = 'org_not_found';
end;
$$;

revoke all on function rag.is_metadata(jsonb), rag.held_lease(), rag.org_meant(uuid)
  from public, anon, service_role;
grant execute on function rag.is_metadata(jsonb), rag.held_lease(), rag.org_meant(uuid) to authenticated;

alter table rag.tiers
  add column collections integer check (collections > 0),
  add column documents_per_collection integer check (documents_per_collection > 0),
  add column file_bytes bigint check (file_bytes > 0);
-- As the contract has them, where the deployer has left the names.
update rag.tiers set collections = 5, documents_per_collection = 10, file_bytes = 10 << 20 where name = 'free';
update rag.tiers set collections = 50, documents_per_collection = 1000, file_bytes = 100 << 20
where name = 'developer';
update rag.tiers set file_bytes = 500 << 20 where name = 'professional';

-- How much the org may have; the nulls of a tier without limits for one that is not the caller's.
create function rag.tier_of(org_id uuid)
returns rag.tiers
language sql stable security invoker set search_path = ''
as $$
  select tiers.*
  from rag.orgs join rag.tiers on tiers.name = orgs.tier
  where orgs.id = tier_of.org_id;
$$;

revoke all on function rag.tier_of(uuid) from public, anon, service_role;
grant execute on function rag.tier_of(uuid) to authenticated;

alter table rag.chunks
  add column metadata jsonb not null default '{}'
    check (jsonb_typeof(metadata) = 'object' and pg_column_size(metadata) <= 4000);

alter table rag.collections
  drop constraint collections_name_check,
  add constraint collections_name_check check (length(name) between 1 and 255),
  add column description text check (length(description) <= 2000 and rag.shows_only(description)),
  add column metadata jsonb not null default '{}' check (rag.is_metadata(metadata)),
  add column config jsonb not null default '{}'
    check (jsonb_typeof(config) = 'object' and pg_column_size(config) <= 2000),
  add column updated_at timestamptz not null default now();

alter table rag.documents
  drop constraint documents_metadata_check,
  add constraint documents_metadata_check check (rag.is_metadata(metadata)),
  add column status text not null default 'completed' check (status in ('processing', 'completed', 'failed')),
  add column error_code text check (error_code ~ '^[a-z_]{1,40}$'),
  add column error_message text check (length(error_message) <= 500 and rag.shows_only(error_message)),
  add column filename text
    check (length(filename) between 1 and 512 and filename !~ '[\n\t]' and rag.shows_only(filename)),
  add column content_type text check (length(content_type) between 1 and 255 and rag.shows_only(content_type)),
  add column size_bytes bigint check (size_bytes >= 0),
  add column processing_info jsonb not null default '{}'
    check (jsonb_typeof(processing_info) = 'object' and pg_column_size(processing_info) <= 4000);

-- A collection's documents go with it, past row security: a cascade runs as the tables' owner, and so do its
-- triggers since Postgres 18. Not when nobody said so (rag.cascade is false, from rag_delete_collection), and not
-- those that the caller could not have deleted one by one. (The deployer, in SQL, is nobody's user.)
create function rag.keep_documents()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if current_setting('rag.cascade', true) = 'false' and exists (select from gone) then
    raise exception 'the collection has documents; cascade deletes them with it'
      using errcode = 'PT409', detail = 'collection_not_empty';
  elsif auth.uid() is not null and exists (
    select from gone
    where not coalesce(gone.owner_id is null or gone.owner_id = auth.uid()
      or gone.org_id = any (array(select rag.admin_org_ids())), false)
  ) then
    raise exception 'there are private documents of others in it; an admin may delete those'
      using errcode = 'PT403', detail = 'private_documents';
  end if;
  return null;
end;
$$;

create trigger keep_documents after delete on rag.documents
  referencing old table as gone
  for each statement execute function rag.keep_documents();

revoke all on function rag.keep_documents() from public, anon, service_role;
grant execute on function rag.keep_documents() to authenticated;

-- What a document was made of, as it was brought: a file's bytes, a text's, an address, or an object of Supabase
-- Storage. Kept, so that it can be converted once more and handed back. Written with the document and its job in one
-- transaction, read by the worker and by whoever may read the document.

create table rag.originals (
  org_id uuid not null,
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  -- Null for an address that nobody has fetched yet.
  bytes bytea check (length(bytes) <= 50000000),
  url text check (length(url) <= 2000 and url ~ '^https?://[^[:space:]]+$' and rag.shows_only(url)),
  -- Of the object that a large file is: org/collection/user/anything new/name.
  path text check (path ~ '^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/){4}[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$'),
  -- Of an object or an address it is known once the worker has read it.
  content_hash text check (content_hash ~ '^[0-9a-f]{64}$'),
  created_at timestamptz not null default now(),
  primary key (org_id, document_id),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade,
  check (num_nonnulls(bytes, url, path) > 0),
  check (split_part(path, '/', 1) = org_id::text)
);

-- Files are packed already: compressing them once more costs time and saves nothing.
alter table rag.originals alter column bytes set storage external;

-- The same bytes twice are one document. The owner is part of it, so that nobody learns what another keeps.
create unique index originals_content
  on rag.originals (org_id, collection_id, owner_id, content_hash) nulls not distinct
  where content_hash is not null;

-- An object is one document's; and whether it is anybody's, Storage's policies ask.
create unique index originals_path on rag.originals (org_id, path) where path is not null;

alter table rag.originals enable row level security;
alter table rag.originals force row level security;

create policy "members use their org's originals" on rag.originals
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "a key reads and writes with the scopes for it" on rag.originals
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write')))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.originals
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.originals
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

-- Whoever may read a document may read its object: nobody makes theirs of an object that another uploaded.
create policy "an object is brought by who uploaded it" on rag.originals
  as restrictive for insert to authenticated
  with check (path is null or split_part(path, '/', 3) = (select auth.uid())::text);

create policy "an object takes a place by who uploaded it" on rag.originals
  as restrictive for update to authenticated
  using (true) with check (path is null or split_part(path, '/', 3) = (select auth.uid())::text);

grant select, insert, update, delete on rag.originals to authenticated;

alter table rag.request_counts
  drop constraint request_counts_function_check,
  add constraint request_counts_function_check
    check (function in ('rag-search', 'rag-answer', 'api-keys', 'collections', 'documents'));

-- Work that is still to be done: a document that was brought and has to be converted, cut, embedded and stored. A
-- job is written in the transaction that brings the document, so neither is there without the other. The
-- worker claims it under a role of its own, which sees jobs and nothing else; what the job writes, it writes as
-- the user who brought the document, with a token that names the job and its lease. A finished job stays as a
-- log of what was done.

-- A role without a login, which PostgREST takes on for a token that says so. Roles are cluster-wide.
do $$
begin
  create role rag_worker nologin noinherit;
exception when duplicate_object then null;
end;
$$;
grant rag_worker to authenticator;
grant usage on schema rag to rag_worker;

create table rag.jobs (
  org_id uuid not null,
  id uuid not null default gen_random_uuid(),
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  -- In whose name it is done: who brought the document.
  user_id uuid not null,
  -- What was said of the document when it was brought, and becomes true of it with the job's end.
  document jsonb not null check (jsonb_typeof(document) = 'object' and pg_column_size(document) <= 100000),
  state text not null default 'waiting' check (state in ('waiting', 'running', 'done', 'failed')),
  attempts integer not null default 0,
  -- Not before this. While it runs: when its lease ends, and anybody may claim it again.
  due_at timestamptz not null default now(),
  -- Who holds this may finish it, and nobody else.
  lease uuid,
  -- What it is at: fetching, converting, embedding, storing.
  step text check (step ~ '^[a-z]{1,40}$'),
  error_code text check (error_code ~ '^[a-z_]{1,40}$'),
  error_message text check (length(error_message) <= 500 and rag.shows_only(error_message)),
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  primary key (org_id, id),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade,
  check ((state = 'running') = (lease is not null))
);

-- Deleting a document, and showing what becomes of it.
create index jobs_by_document on rag.jobs (org_id, document_id, created_at);

-- rag_claim_jobs: of each org the jobs that are due.
create index jobs_due on rag.jobs (org_id, due_at) where state in ('waiting', 'running');

-- One at a time: a document that is brought anew has its older job taken away.
create unique index jobs_one_of_a_document on rag.jobs (org_id, document_id)
  where state in ('waiting', 'running');

alter table rag.jobs enable row level security;
alter table rag.jobs force row level security;

create policy "members use their org's jobs" on rag.jobs
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

-- Work is done in the name of who asks for it, and of nobody else.
create policy "jobs are for oneself" on rag.jobs
  as restrictive for insert to authenticated
  with check (user_id = (select auth.uid()) and state = 'waiting' and attempts = 0);

-- No user's own token names a lease: only the worker's for one job does.
create policy "whoever holds the lease goes on with a job" on rag.jobs
  as restrictive for update to authenticated
  using (lease = (select rag.held_lease())) with check (true);

create policy "a key reads and writes with the scopes for it" on rag.jobs
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write')))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.jobs
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.jobs
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

create policy "the worker claims jobs" on rag.jobs
  for select to rag_worker using (true);

create policy "the worker leases jobs" on rag.jobs
  for update to rag_worker using (true) with check (state in ('running', 'failed'));

create policy "the worker sees which documents are not done" on rag.documents
  for select to rag_worker using (status in ('processing', 'failed'));

create policy "the worker gives documents up" on rag.documents
  for update to rag_worker using (status = 'processing') with check (status = 'failed');

grant select, insert, delete on rag.jobs to authenticated;
grant update (state, due_at, lease, step, error_code, error_message, finished_at) on rag.jobs to authenticated;
grant select on rag.jobs to rag_worker;
grant update (state, attempts, due_at, lease, started_at, finished_at, step, error_code, error_message)
  on rag.jobs to rag_worker;
grant select (org_id, id, status), update (status, error_code, error_message) on rag.documents to rag_worker;

-- Jobs that are due, leased: of every org as many as of any other, those first that wait longest. A lease that has
-- run out is nobody's: its job is claimed again, alone, since it may be what its worker died of; and whoever held
-- it can finish nothing. One that nobody ever finished, sixteen times, ends here: its document says so. as_admin: it is
-- done for somebody else, as only an admin may.
create function public.rag_claim_jobs(wanted integer default 1, lease_seconds integer default 60)
returns table (
  job_id uuid, org_id uuid, document_id uuid, collection_id uuid, user_id uuid, as_admin boolean, lease uuid,
  attempts integer
)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  if wanted is null or wanted not between 1 and 100
    or lease_seconds is null or lease_seconds not between 5 and 3600
  then
    raise exception 'so many jobs, or so long, nobody may have' using errcode = 'PT400', detail = 'invalid_claim';
  end if;
  -- Documents are locked before their jobs, by everybody: who deletes one goes that way too.
  with dying as (
    select documents.org_id, documents.id
    from rag.documents
    join rag.jobs on jobs.org_id = documents.org_id and jobs.document_id = documents.id
    where jobs.state = 'running' and jobs.due_at <= clock_timestamp() and jobs.attempts >= 16
    for update of documents skip locked
  ), given_up as (
    update rag.jobs
    set state = 'failed', lease = null, step = null, finished_at = clock_timestamp(),
      error_code = 'processing_failed', error_message = 'Nobody could finish this document.'
    from dying
    where jobs.org_id = dying.org_id and jobs.document_id = dying.id
      and jobs.state = 'running' and jobs.due_at <= clock_timestamp()
    returning jobs.org_id, jobs.document_id, jobs.error_code, jobs.error_message
  )
  update rag.documents
  set status = 'failed', error_code = given_up.error_code, error_message = given_up.error_message
  from given_up
  where documents.org_id = given_up.org_id and documents.id = given_up.document_id
    and documents.status = 'processing';

  return query
  with recursive busy (org_id) as (
    -- The next org with a job, by the index: there may be many jobs and few orgs.
    (select jobs.org_id from rag.jobs where jobs.state in ('waiting', 'running') order by jobs.org_id limit 1)
    union all
    select (
      select jobs.org_id from rag.jobs
      where jobs.state in ('waiting', 'running') and jobs.org_id > busy.org_id
      order by jobs.org_id limit 1)
    from busy
    where busy.org_id is not null
  ), due as materialized (
    select found.org_id, found.id, found.due_at, found.state, row_number() over (
      partition by found.org_id order by found.due_at, found.id) as turn
    from busy
    cross join lateral (
      select jobs.org_id, jobs.id, jobs.due_at, jobs.state
      from rag.jobs
      where jobs.org_id = busy.org_id and jobs.state in ('waiting', 'running')
        and jobs.due_at <= clock_timestamp()
      order by jobs.due_at, jobs.id
      limit wanted
    ) as found
    where busy.org_id is not null
  ), locked as materialized (
    select jobs.org_id, jobs.id
    from (
      select due.*
      from due
      where due.state = 'running' or not exists (select from due as dead where dead.state = 'running')
      order by due.turn, due.due_at, due.id
      limit 4 * wanted
    ) as due
    cross join lateral (
      select jobs.org_id, jobs.id
      from rag.jobs
      where jobs.org_id = due.org_id and jobs.id = due.id and jobs.state in ('waiting', 'running')
        and jobs.due_at <= clock_timestamp()
      for update skip locked
    ) as jobs
    limit case when exists (select from due where due.state = 'running') then 1 else wanted end
  )
  update rag.jobs as claimed
  set state = 'running', attempts = claimed.attempts + 1, lease = gen_random_uuid(), step = null,
    started_at = clock_timestamp(), due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  from locked
  where claimed.org_id = locked.org_id and claimed.id = locked.id
  returning claimed.id, claimed.org_id, claimed.document_id, claimed.collection_id, claimed.user_id,
    coalesce(claimed.owner_id <> claimed.user_id, false), claimed.lease, claimed.attempts;
end;
$$;

revoke all on function public.rag_claim_jobs(integer, integer) from public, anon, authenticated, service_role;
-- The last two for the checks of the rows that it changes.
grant execute on function public.rag_claim_jobs(integer, integer), rag.shows_only(text), rag.is_metadata(jsonb)
  to rag_worker;

-- What people do with collections. All of it runs as its caller; row security decides whose are whose, and which
-- documents count: a private one is counted for those who see it.

-- What a list shows of a collection.
create type rag.collection as (
  id uuid, org_id uuid, owner_id uuid, name text, description text, metadata jsonb, config jsonb,
  document_count bigint, created_at timestamptz, updated_at timestamptz
);

create function rag.shown(collection rag.collections)
returns rag.collection
language sql stable security invoker set search_path = ''
as $$
  select collection.id, collection.org_id, collection.owner_id, collection.name, collection.description,
    collection.metadata, collection.config,
    (select count(*) from rag.documents
      where documents.org_id = collection.org_id and documents.collection_id = collection.id),
    collection.created_at, collection.updated_at;
$$;

-- The collection of that id; PT404 for one that the caller does not see.
create function rag.collection_of(collection_id uuid)
returns rag.collections
language plpgsql stable security invoker set search_path = ''
as $$
declare
  found_collection rag.collections;
begin
  select * into found_collection
  from rag.collections
  where org_id = any (array(select rag.current_org_ids())) and id = collection_of.collection_id;
  if not found then
    raise exception 'there is no such collection' using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return found_collection;
end;
$$;

-- A new collection, in the caller's only org unless it is named. private: seen by its maker and the org's admins.
-- PT409 for a name that is taken, PT429 for one collection more than the org's tier allows.
create function public.rag_create_collection(
  name text, description text default null, metadata jsonb default '{}', config jsonb default '{}',
  org_id uuid default null, private boolean default false
)
returns setof rag.collection
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  made rag.collections;
begin
  org_id := rag.org_meant(org_id);
  perform rag.check_name(name);
  perform rag.require_room_for_a_collection(org_id);
  insert into rag.collections (org_id, owner_id, name, description, metadata, config)
  values (org_id, case when private then auth.uid() end, name, description, coalesce(metadata, '{}'),
    coalesce(config, '{}'))
  on conflict on constraint collections_name do nothing
  returning * into made;
  if made.id is null then
    raise exception 'there is a collection of that name already'
      using errcode = 'PT409', detail = 'duplicate_collection';
  end if;
  return next rag.shown(made);
end;
$$;

-- Raises PT400 for a name that hides something from its reader. (Not the table's check: a collection that came into
-- being with a document may have one.)
create function rag.check_name(name text)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if not rag.shows_only(name) then
    raise exception 'a name has no invisible characters' using errcode = 'PT400', detail = 'invalid_name';
  end if;
end;
$$;

-- Locks, so that two at once do not both see room for the last.
create function rag.require_room_for_a_collection(org_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  allowed constant integer := (rag.tier_of(org_id)).collections;
begin
  if allowed is null then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.collections ' || org_id::text, 0));
  if allowed <= (
    select count(*) from rag.collections where collections.org_id = require_room_for_a_collection.org_id
  ) then
    raise exception 'this org''s tier has room for % collections', allowed
      using errcode = 'PT429', detail = 'collection_limit_reached';
  end if;
end;
$$;

-- {"total", "collections": [...]}: a page of those that the caller sees, and how many there are.
create function public.rag_list_collections(
  "limit" integer default 20, "offset" integer default 0, sort_by text default 'created_at',
  "order" text default 'desc'
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.check_page("limit", "offset", "order", sort_by, array['created_at', 'name', 'document_count']);
  return (
    with placed as (
      select shown.*, count(*) over () as total, row_number() over (
        order by case sort_by when 'name' then shown.name end, case sort_by
          when 'created_at' then shown.created_at end, case sort_by
          when 'document_count' then shown.document_count end, shown.id) as place
      from rag.collections
      cross join lateral rag.shown(collections) as shown
      where collections.org_id = any (array(select rag.current_org_ids()))
    ), page as (
      select placed.*, case "order" when 'desc' then -place else place end as turn
      from placed
      order by turn
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from placed),
      'collections', coalesce(jsonb_agg(to_jsonb(page) - array['total', 'place', 'turn'] order by page.turn), '[]'))
    from page);
end;
$$;

-- Raises PT400 for a page that nobody gets.
create function rag.check_page("limit" integer, "offset" integer, "order" text, sort_by text, sortable text[])
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if "limit" is null or "limit" not between 1 and 100 then
    raise exception 'limit must be between 1 and 100' using errcode = 'PT400', detail = 'invalid_limit';
  elsif "offset" is null or "offset" < 0 then
    raise exception 'offset must be at least 0' using errcode = 'PT400', detail = 'invalid_offset';
  elsif "order" is null or "order" not in ('asc', 'desc') then
    raise exception 'order must be asc or desc' using errcode = 'PT400', detail = 'invalid_order';
  elsif sort_by is null or not sort_by = any (sortable) then
    raise exception 'sort_by must be one of %', array_to_string(sortable, ', ')
      using errcode = 'PT400', detail = 'invalid_sort_by';
  end if;
end;
$$;

create function public.rag_get_collection(collection_id uuid)
returns setof rag.collection
language sql stable security invoker set search_path = ''
as $$
  select shown.* from rag.shown(rag.collection_of(rag_get_collection.collection_id)) as shown;
$$;

-- Null leaves a field as it is. metadata takes the place of what was there; of config each key its own, and a null
-- in it takes one out. PT409 for a name that is taken, and for another embedding model once there are documents.
create function public.rag_update_collection(
  collection_id uuid, name text default null, description text default null, metadata jsonb default null,
  config jsonb default null
)
returns setof rag.collection
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  present rag.collections := rag.collection_of(collection_id);
  changed rag.collections;
begin
  perform rag.check_name(name);
  if config ? 'embedding_model'
    and config -> 'embedding_model' is distinct from present.config -> 'embedding_model'
    and (rag.shown(present)).document_count > 0
  then
    raise exception 'its documents are embedded by another model'
      using errcode = 'PT409', detail = 'collection_not_empty';
  end if;
  begin
    update rag.collections as renewed
    set name = coalesce(rag_update_collection.name, renewed.name),
      description = coalesce(rag_update_collection.description, renewed.description),
      metadata = coalesce(rag_update_collection.metadata, renewed.metadata),
      config = jsonb_strip_nulls(renewed.config || coalesce(rag_update_collection.config, '{}')),
      updated_at = clock_timestamp()
    where renewed.org_id = present.org_id and renewed.id = present.id
    returning renewed.* into changed;
  exception when unique_violation then
    raise exception 'there is a collection of that name already'
      using errcode = 'PT409', detail = 'duplicate_collection';
  end;
  if changed.id is null then
    raise exception 'this key may not change collections' using errcode = 'PT403', detail = 'missing_scope';
  end if;
  return next rag.shown(changed);
end;
$$;

-- cascade: with all its documents; without it one that has some stays, PT409. PT403 where there are documents
-- that the caller may not delete: other people's private ones, which only an admin may.
create function public.rag_delete_collection(collection_id uuid, "cascade" boolean default false)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  gone rag.collections := rag.collection_of(collection_id);
begin
  -- Told to the trigger that sees them go (rag.keep_documents): the caller may not see them all.
  perform set_config('rag.cascade', coalesce("cascade", false)::text, true);
  delete from rag.collections where org_id = gone.org_id and id = gone.id;
  if not found then
    raise exception 'this key may not delete collections' using errcode = 'PT403', detail = 'missing_scope';
  end if;
  perform set_config('rag.cascade', '', true);
end;
$$;

revoke all on function rag.shown(rag.collections), rag.collection_of(uuid), rag.check_name(text),
  rag.require_room_for_a_collection(uuid), rag.check_page(integer, integer, text, text, text[]),
  public.rag_create_collection(text, text, jsonb, jsonb, uuid, boolean),
  public.rag_list_collections(integer, integer, text, text), public.rag_get_collection(uuid),
  public.rag_update_collection(uuid, text, text, jsonb, jsonb), public.rag_delete_collection(uuid, boolean)
  from public, anon, service_role;
grant execute on function rag.shown(rag.collections), rag.collection_of(uuid), rag.check_name(text),
  rag.require_room_for_a_collection(uuid), rag.check_page(integer, integer, text, text, text[]),
  public.rag_create_collection(text, text, jsonb, jsonb, uuid, boolean),
  public.rag_list_collections(integer, integer, text, text), public.rag_get_collection(uuid),
  public.rag_update_collection(uuid, text, text, jsonb, jsonb), public.rag_delete_collection(uuid, boolean)
  to authenticated;

-- What people do with documents besides searching them: bring one to be worked on, look how far it is, list them,
-- change what is said of them, have the original back. All of it runs as its caller.

-- What a list shows of a document.
create type rag.document as (
  id uuid, org_id uuid, collection_id uuid, owner_id uuid, external_id text, title text, source_type text,
  uri text, lang text, metadata jsonb, filename text, content_type text, size_bytes bigint, content_hash text,
  status text, error_code text, error_message text, processing_info jsonb, chunk_count bigint,
  step text, attempts integer, created_at timestamptz, updated_at timestamptz
);

create function rag.shown(document rag.documents)
returns rag.document
language sql stable security invoker set search_path = ''
as $$
  select document.id, document.org_id, document.collection_id, document.owner_id, document.external_id,
    document.title, document.source_type, document.uri, document.lang, document.metadata, document.filename,
    document.content_type, document.size_bytes, document.content_hash, document.status,
    -- While it is worked on: why it did not work at once.
    coalesce(document.error_code, job.error_code), coalesce(document.error_message, job.error_message),
    document.processing_info,
    (select count(*) from rag.chunks
      where chunks.org_id = document.org_id and chunks.document_id = document.id),
    job.step, job.attempts, document.created_at, document.updated_at
  from (select document.id) as one
  left join lateral (
    select jobs.step, jobs.attempts, jobs.error_code, jobs.error_message
    from rag.jobs
    where jobs.org_id = document.org_id and jobs.document_id = document.id
    order by jobs.created_at desc
    limit 1
  ) as job on true;
$$;

-- The document of that id; PT404 for one that the caller does not see.
create function rag.document_of(document_id uuid)
returns rag.documents
language plpgsql stable security invoker set search_path = ''
as $$
declare
  found_document rag.documents;
begin
  select * into found_document
  from rag.documents
  where org_id = any (array(select rag.current_org_ids())) and id = document_of.document_id;
  if not found then
    raise exception 'there is no such document' using errcode = 'PT404', detail = 'document_not_found';
  end if;
  return found_document;
end;
$$;

-- Bring a document: its row, its original and its job, all or none. document: title, content_hash (of the bytes; not
-- of an address); optionally private, external_id, source_type, uri, lang, occurred_at, origin, author, state,
-- labels, metadata, filename, content_type, size_bytes, and bytes in base64, url, or the path of an object that the
-- caller has uploaded (rag_begin_upload), which again is the same document. One of the same external_id takes
-- the place of the older, which is found until it is done. PT409 for bytes that the collection has already, with
-- the id of the document in hint; PT429 for one more than the org's tier allows, PT413 for a larger file, PT404 for
-- an upload that nobody expects.
create function public.rag_add_document(collection_id uuid, document jsonb)
returns setof rag.document
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  home constant rag.collections := rag.collection_of(rag_add_document.collection_id);
  largest constant bigint := (rag.tier_of(home.org_id)).file_bytes;
  sent constant bytea := decode(document ->> 'bytes', 'base64');
  input record;
  stored rag.documents;
begin
  select * into input from jsonb_to_record(rag_add_document.document) as fields (
    external_id text, private boolean, source_type text, title text, uri text, lang text,
    occurred_at timestamptz, origin text, author text, state text, labels text[], metadata jsonb,
    filename text, content_type text, size_bytes bigint, content_hash text, url text, path text);
  if coalesce(length(sent), case when input.path is not null then input.size_bytes end) > largest then
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
      return next rag.shown(stored);
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
    coalesce(input.content_hash, repeat('0', 64)), 'processing')
  -- Only that it is being worked on: what is found of it stays as it was until the job is done.
  on conflict (org_id, collection_id, owner_id, external_id) where external_id is not null
  do update set status = 'processing', error_code = null, error_message = null, updated_at = now()
  returning present.* into stored;

  perform rag.remove_failed_twin(stored, input.content_hash);
  perform rag.require_room_for_a_document(home);
  perform rag.require_no_twin(stored, input.content_hash);

  begin
    insert into rag.originals as present (org_id, document_id, collection_id, owner_id, bytes, url, path,
      content_hash)
    values (stored.org_id, stored.id, stored.collection_id, stored.owner_id, sent,
      input.url, input.path, input.content_hash)
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
  return next rag.shown(stored);
end;
$$;

-- A document of the same content that failed, and of which nothing is found, gives way.
create function rag.remove_failed_twin(stored rag.documents, content_hash text)
returns void
language sql volatile security invoker set search_path = ''
as $$
  delete from rag.documents as failed
  using rag.originals
  where originals.org_id = stored.org_id and originals.collection_id = stored.collection_id
    and originals.owner_id is not distinct from stored.owner_id
    and originals.content_hash = remove_failed_twin.content_hash and originals.document_id <> stored.id
    and failed.org_id = originals.org_id and failed.id = originals.document_id and failed.status = 'failed'
    and not exists (
      select from rag.chunks where chunks.org_id = failed.org_id and chunks.document_id = failed.id);
$$;

-- PT409, with the id of the other in hint, where the collection has a document of the same content and owner.
create function rag.require_no_twin(stored rag.documents, content_hash text)
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
    and originals.content_hash = require_no_twin.content_hash and originals.document_id <> stored.id;
  if found then
    raise exception 'the collection has a document of the same content'
      using errcode = 'PT409', detail = 'duplicate_document', hint = twin::text;
  end if;
end;
$$;

-- For a document that has just been inserted. Locks, so that two at once do not both see room for the last.
create function rag.require_room_for_a_document(home rag.collections)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  allowed constant integer := (rag.tier_of(home.org_id)).documents_per_collection;
begin
  if allowed is null then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.documents ' || home.id::text, 0));
  if allowed < (rag.shown(home)).document_count then
    raise exception 'this org''s tier has room for % documents in a collection', allowed
      using errcode = 'PT429', detail = 'document_limit_reached';
  end if;
end;
$$;

-- {"total", "documents": [...]}: a page of a collection's documents, and how many there are.
create function public.rag_list_documents(
  collection_id uuid, "limit" integer default 20, "offset" integer default 0, status text default null,
  sort_by text default 'created_at', "order" text default 'desc'
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  home constant rag.collections := rag.collection_of(collection_id);
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
    cross join lateral rag.shown(documents) as shown);
end;
$$;

create function public.rag_get_document(document_id uuid)
returns setof rag.document
language sql stable security invoker set search_path = ''
as $$
  select shown.* from rag.shown(rag.document_of(rag_get_document.document_id)) as shown;
$$;

-- changes: title, metadata and the fields that metadata fill; what is not there, or null, stays. New metadata take the
-- place of the old, and so do the fields that they fill, null ones too.
create function public.rag_update_document(document_id uuid, changes jsonb)
returns setof rag.document
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  present rag.documents := rag.document_of(document_id);
  wanted rag.documents := jsonb_populate_record(present, (
    select coalesce(jsonb_object_agg(change.key, change.value), '{}')
    from jsonb_each(changes) as change
    where change.value <> 'null' or (changes ? 'metadata' and change.key <> 'title')));
begin
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
  return next rag.shown(wanted);
end;
$$;

-- The original as it was brought: bytes in base64, the address, or the object's path.
create function public.rag_get_original(document_id uuid)
returns table (filename text, content_type text, bytes text, url text, path text)
language sql stable security invoker set search_path = ''
as $$
  select document.filename, document.content_type, encode(originals.bytes, 'base64'), originals.url,
    originals.path
  from rag.document_of(rag_get_original.document_id) as document
  join rag.originals on originals.org_id = document.org_id and originals.document_id = document.id;
$$;

revoke all on function rag.shown(rag.documents), rag.document_of(uuid),
  rag.require_room_for_a_document(rag.collections), rag.remove_failed_twin(rag.documents, text),
  rag.require_no_twin(rag.documents, text), public.rag_add_document(uuid, jsonb),
  public.rag_list_documents(uuid, integer, integer, text, text, text), public.rag_get_document(uuid),
  public.rag_update_document(uuid, jsonb), public.rag_get_original(uuid)
  from public, anon, service_role;
grant execute on function rag.shown(rag.documents), rag.document_of(uuid),
  rag.require_room_for_a_document(rag.collections), rag.remove_failed_twin(rag.documents, text),
  rag.require_no_twin(rag.documents, text), public.rag_add_document(uuid, jsonb),
  public.rag_list_documents(uuid, integer, integer, text, text, text), public.rag_get_document(uuid),
  public.rag_update_document(uuid, jsonb), public.rag_get_original(uuid)
  to authenticated;

-- What the worker does with a job that it has claimed. It comes with a token of the user who brought the document,
-- which names the lease (rag.held_lease): row security lets it write what that user may, and change the one job.
-- The job ends in the transaction that stores its outcome, so whatever dies, and wherever, a document is stored
-- once, or its job is claimed again.

-- The job of the token's lease, locked; PT409 when the lease is lost: the job was claimed again, or its document
-- was brought anew or deleted.
create function rag.held_job()
returns rag.jobs
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  held rag.jobs;
begin
  -- The document first, as everybody who deletes or replaces one locks it.
  perform from rag.documents
  join rag.jobs on jobs.org_id = documents.org_id and jobs.document_id = documents.id
  where jobs.org_id = any (array(select rag.current_org_ids())) and jobs.lease = rag.held_lease()
  for update of documents;
  select * into held
  from rag.jobs
  where org_id = any (array(select rag.current_org_ids())) and lease = rag.held_lease() and state = 'running'
  for update;
  if not found then
    raise exception 'the lease of this job is lost' using errcode = 'PT409', detail = 'lease_lost';
  end if;
  return held;
end;
$$;

-- What there is to do: what was said of the document, its original, its collection's config, and how large a file may
-- be that an address gives, or that was uploaded.
create function public.rag_open_job()
returns table (
  document_id uuid, document jsonb, bytes text, url text, path text, config jsonb, file_bytes bigint
)
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  held constant rag.jobs := rag.held_job();
begin
  return query
  select held.document_id, held.document, encode(originals.bytes, 'base64'), originals.url, originals.path,
    collections.config, (rag.tier_of(held.org_id)).file_bytes
  from rag.originals
  join rag.collections on collections.org_id = originals.org_id and collections.id = originals.collection_id
  where originals.org_id = held.org_id and originals.document_id = held.document_id;
end;
$$;

-- What the document's object or address holds, as soon as the worker has read it: a second document of the same
-- content ends here, with PT409 and the id of the first in hint, before anything is made of it.
create function public.rag_keep_content(content_hash text)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  held constant rag.jobs := rag.held_job();
  stored rag.documents;
begin
  select documents.* into stored
  from rag.documents
  where documents.org_id = held.org_id and documents.id = held.document_id;
  perform rag.remove_failed_twin(stored, rag_keep_content.content_hash);
  perform rag.require_no_twin(stored, rag_keep_content.content_hash);
  update rag.originals
  set content_hash = rag_keep_content.content_hash
  where originals.org_id = held.org_id and originals.document_id = held.document_id
    and num_nonnulls(originals.url, originals.path) > 0;
exception when unique_violation then
  raise exception 'somebody brings a document of the same content just now'
    using errcode = 'PT409', detail = 'duplicate_document';
end;
$$;

-- What the job is at; and its lease lasts so much longer.
create function public.rag_report_job(step text, lease_seconds integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  held constant rag.jobs := rag.held_job();
begin
  update rag.jobs
  set step = rag_report_job.step, due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  where jobs.org_id = held.org_id and jobs.id = held.id;
end;
$$;

-- The document as it was read, in place of what was there before: found from now on. document: title, content,
-- content_hash, embedding_model, processing_info; filename, content_type, size_bytes and the fields that a search
-- filters by, where they are known; bytes, in base64, that an address gave. chunks: as rag_put_document takes them.
create function public.rag_complete_job(document jsonb, chunks jsonb)
returns integer
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  held constant rag.jobs := rag.held_job();
  input record;
  chunk_count integer;
  -- What was changed since the document was brought is not changed back.
  changed constant boolean := (
    select documents.updated_at > held.created_at
    from rag.documents
    where documents.org_id = held.org_id and documents.id = held.document_id);
begin
  select * into input from jsonb_to_record(rag_complete_job.document) as fields (
    source_type text, title text, uri text, lang text, occurred_at timestamptz, origin text, author text,
    state text, labels text[], metadata jsonb, filename text, content_type text, size_bytes bigint,
    content text, content_hash text, embedding_model text, processing_info jsonb, bytes text);

  if not changed then
    update rag.documents as renewed
    set source_type = coalesce(input.source_type, 'doc'), title = input.title, uri = input.uri,
      lang = input.lang, occurred_at = input.occurred_at, origin = input.origin, author = input.author,
      state = input.state, labels = coalesce(input.labels, '{}'), metadata = coalesce(input.metadata, '{}')
    where renewed.org_id = held.org_id and renewed.id = held.document_id;
  end if;
  update rag.documents as renewed
  set filename = input.filename, content_type = input.content_type, size_bytes = input.size_bytes,
    content = input.content, content_hash = input.content_hash, status = 'completed', error_code = null,
    error_message = null, processing_info = coalesce(input.processing_info, '{}'),
    updated_at = clock_timestamp()
  where renewed.org_id = held.org_id and renewed.id = held.document_id;

  if input.bytes is not null then
    update rag.originals
    set bytes = decode(input.bytes, 'base64')
    where originals.org_id = held.org_id and originals.document_id = held.document_id
      and originals.url is not null;
  end if;
  chunk_count := rag.replace_chunks(held.org_id, held.document_id, chunks, input.embedding_model);
  update rag.jobs
  set state = 'done', lease = null, step = null, error_code = null, error_message = null,
    finished_at = clock_timestamp()
  where jobs.org_id = held.org_id and jobs.id = held.id;
  return chunk_count;
end;
$$;

-- It did not work, and why. retry_seconds: after which to try again; null: never, and the document says so.
create function public.rag_fail_job(code text, message text, retry_seconds integer default null)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  held constant rag.jobs := rag.held_job();
begin
  if retry_seconds is null then
    update rag.documents
    set status = 'failed', error_code = code, error_message = message, updated_at = clock_timestamp()
    where documents.org_id = held.org_id and documents.id = held.document_id;
  end if;
  update rag.jobs
  set state = case when retry_seconds is null then 'failed' else 'waiting' end, lease = null, step = null,
    due_at = clock_timestamp() + make_interval(secs => coalesce(retry_seconds, 0)),
    error_code = code, error_message = message,
    finished_at = case when retry_seconds is null then clock_timestamp() end
  where jobs.org_id = held.org_id and jobs.id = held.id;
end;
$$;

revoke all on function rag.held_job(), public.rag_open_job(), public.rag_keep_content(text),
  public.rag_report_job(text, integer), public.rag_complete_job(jsonb, jsonb),
  public.rag_fail_job(text, text, integer)
  from public, anon, service_role;
grant execute on function rag.held_job(), public.rag_open_job(), public.rag_keep_content(text),
  public.rag_report_job(text, integer), public.rag_complete_job(jsonb, jsonb),
  public.rag_fail_job(text, text, integer)
  to authenticated;

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

create or replace function rag.ensure_collection(org_id uuid, owner_id uuid, name text)
returns rag.collections
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  found_collection rag.collections;
begin
  for attempt in 1..2 loop
    select * into found_collection
    from rag.collections
    where org_id = ensure_collection.org_id
      and name = ensure_collection.name
      and (owner_id is null or owner_id = ensure_collection.owner_id)
    order by owner_id nulls last
    limit 1;
    exit when found;
    perform rag.require_room_for_a_collection(ensure_collection.org_id);
    -- Two writers may meet here: the second inserts nothing and reads what the first made.
    insert into rag.collections (org_id, name)
    values (ensure_collection.org_id, ensure_collection.name)
    on conflict do nothing;
  end loop;
  return found_collection;
end;
$$;

-- document: org_id, title, content, content_hash and embedding_model; optionally external_id, collection
-- (a name, "default" unless given), private (true: only the caller and the org's admins see it),
-- source_type, uri, lang, occurred_at, origin, author, state, labels, metadata. A private and a shared document
-- of one external_id are two documents: to make one private, put it as private and delete the shared one.
-- chunks: an array of {content, span_start, span_end, token_count, embedding, metadata} in reading order.
create or replace function public.rag_put_document(document jsonb, chunks jsonb)
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

revoke all on function rag.replace_chunks(uuid, uuid, jsonb, text) from public, anon, service_role;
grant execute on function rag.replace_chunks(uuid, uuid, jsonb, text) to authenticated;

-- A new key of the caller's, in their only org unless it is named. collection is the name of one, or null
-- for all.
create or replace function public.rag_create_key(
  name text, prefix text, hash text, scopes text[],
  org_id uuid default null, collection text default null, expires_at timestamptz default null
)
returns setof rag.api_key
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  bound uuid;
  made rag.api_keys;
begin
  org_id := rag.org_meant(org_id);
  if 'admin' = any (scopes) and org_id not in (select rag.admin_org_ids()) then
    raise exception 'the scope admin is for the org''s admins'
      using errcode = 'PT403', detail = 'admin_required';
  elsif expires_at <= now() then
    raise exception 'expires_at is in the past' using errcode = 'PT400', detail = 'invalid_expiry';
  end if;
  perform rag.require_room_for_a_key(org_id);

  if collection is not null then
    select named.id into bound
    from rag.collections as named
    where named.org_id = rag_create_key.org_id and named.name = collection
      and (named.owner_id is null or named.owner_id = auth.uid())
    order by named.owner_id nulls last
    limit 1;
    if bound is null then
      raise exception 'no such collection' using errcode = 'PT404', detail = 'collection_not_found';
    end if;
  end if;

  insert into rag.api_keys (org_id, owner_id, name, prefix, hash, scopes, collection_id, expires_at)
  values (org_id, auth.uid(), name, prefix, hash, scopes, bound, expires_at)
  returning * into made;
  return next rag.shown(made);
end;
$$;
