-- Sources: websites and buckets whose contents the worker copies into a collection and follows. The org's admins write
-- and read them (20_manage_sources.sql). The worker claims due sources under its own role, and lists and stores as the
-- admin who created, changed or ran the source last (30_run_sources.sql). Documents of a source are ordinary documents.

create function rag.is_source_credentials(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select case when value is null then true
    when jsonb_typeof(value) <> 'object' or pg_column_size(value) > 16384 or not rag.is_readable(value) then false
    else value ?& array['access_key_id', 'secret_access_key']
      and value - array['access_key_id', 'secret_access_key', 'session_token'] = '{}'
      and not exists (
        select from jsonb_each(value) as field (name, content)
        where not (jsonb_typeof(content) = 'string' and length(content #>> '{}') between 1 and 4000)
          and not (name = 'session_token' and content = 'null'))
  end;
$$;

comment on function rag.is_source_credentials is
  'Whether the value may be a bucket''s credentials: access_key_id and secret_access_key, and optionally session_token, '
  'each of 1 to 4,000 characters; or null. With others the worker might use credentials of its own.';

create table rag.sources (
  org_id uuid not null,
  id uuid not null default gen_random_uuid(),
  collection_id uuid not null,
  owner_id uuid,
  user_id uuid not null default rag.current_user_id(),
  kind text not null check (kind in ('website', 'bucket')),
  address text not null check (length(address) <= 2000 and rag.is_visible_text(address) and address !~ '::'
    and address ~ case kind
      when 'website' then '^https?://[^[:space:]]+$' else '^s3://[a-z0-9][a-z0-9.-]{1,62}(/.*)?$' end),
  endpoint text check (length(endpoint) <= 500 and endpoint ~ '^https?://[^[:space:]]+$'),
  region text check (region ~ '^[a-z0-9-]{1,40}$'),
  interval_seconds integer not null check (interval_seconds between 300 and 2592000),
  max_items integer not null check (max_items between 1 and case kind when 'website' then 10000 else 1000000 end),
  include_noindex boolean not null default false,
  enabled boolean not null default true,
  state text not null default 'waiting' check (state in ('waiting', 'running')),
  attempts integer not null default 0,
  due_at timestamptz not null default now(),
  lease uuid,
  run_number integer not null default 0,
  resume_after text check (octet_length(resume_after) <= 2000),
  started_at timestamptz,
  finished_at timestamptz,
  listed integer not null default 0,
  stored integer not null default 0,
  deleted integer not null default 0,
  failed integer not null default 0,
  gone integer not null default 0,
  left_out jsonb not null default '{}' check (jsonb_typeof(left_out) = 'object' and pg_column_size(left_out) <= 2000),
  error_code text check (error_code ~ '^[a-z_]{1,40}$'),
  error_message text check (length(error_message) <= 500 and rag.is_visible_text(error_message)),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  foreign key (org_id, collection_id) references rag.collections (org_id, id) on delete cascade,
  check ((state = 'running') = (lease is not null)),
  check (kind = 'bucket' or num_nonnulls(endpoint, region) = 0),
  check (kind = 'website' or not include_noindex)
);

comment on table rag.sources is 'Websites and buckets whose contents the worker copies into a collection and follows.';
comment on column rag.sources.owner_id is 'The owner of the collection.';
comment on column rag.sources.user_id is
  'The admin who created, changed or ran the source last; the worker acts as this user.';
comment on column rag.sources.endpoint is
  'The S3-compatible service of a bucket; null: AWS. The functions accept those of the operator''s settings.';
comment on column rag.sources.max_items is 'A listing with more items fails, and deletes nothing.';
comment on column rag.sources.include_noindex is
  'Whether the pages of a website that ask not to be indexed are documents too.';
comment on column rag.sources.attempts is
  'Claims since the last time slice that ended, or that got further than an item which asked to wait.';
comment on column rag.sources.left_out is
  'Items of the last listing that are no documents: their number by reason, for example {"noindex": 2}.';
comment on column rag.sources.due_at is
  'Not before this. While it runs: when its lease ends and any worker may claim it again.';
comment on column rag.sources.run_number is 'The number of complete listings that have begun.';
comment on column rag.sources.resume_after is
  'The last item that the running listing has processed; null between listings. The next time slice continues after it.';
comment on column rag.sources.listed is
  'Items of the last listing; the next columns: documents that it added or replaced, documents that it deleted, items '
  'that failed; the last one: items that do not exist.';
comment on column rag.sources.error_code is
  'Why the last listing failed, or the error of an item that failed in it.';

-- rag_claim_sources
create index sources_due on rag.sources (due_at) where enabled;

-- Deletion of a collection.
create index sources_by_collection on rag.sources (org_id, collection_id);

create table rag.source_credentials (
  org_id uuid not null,
  source_id uuid not null,
  owner_id uuid,
  credentials jsonb not null check (rag.is_source_credentials(credentials)),
  primary key (org_id, source_id),
  foreign key (org_id, source_id) references rag.sources (org_id, id) on delete cascade
);

comment on table rag.source_credentials is
  'Credentials of buckets. Admins write them; only the worker reads them.';

create table rag.source_items (
  org_id uuid not null,
  source_id uuid not null,
  owner_id uuid,
  item text not null check (octet_length(item) between 1 and 2000),
  version text check (length(version) <= 500),
  document_id uuid not null,
  is_duplicate boolean not null default false,
  run_number integer not null,
  primary key (org_id, source_id, item),
  foreign key (org_id, source_id) references rag.sources (org_id, id) on delete cascade,
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade
);

comment on table rag.source_items is 'Items of sources that have a document: pages, objects, messages.';
comment on column rag.source_items.item is 'The address of the item.';
comment on column rag.source_items.version is
  'The item''s version, as the source states it: a time stamp or an entity tag. Null: unknown.';
comment on column rag.source_items.is_duplicate is
  'The collection had the content already: the document belongs to another item, or to no source.';
comment on column rag.source_items.run_number is 'The last listing with this item.';

-- Deletion of a document.
create index source_items_by_document on rag.source_items (org_id, document_id);

-- rag_delete_missing_items
create index source_items_by_run on rag.source_items (org_id, source_id, run_number);

call rag.admit_members('sources');
call rag.admit_members('source_credentials', 'credentials of sources');
call rag.admit_members('source_items', 'items of sources');

create policy "admins manage sources" on rag.sources
  as restrictive for all to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins write credentials of sources" on rag.source_credentials
  as restrictive for all to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins see items of sources" on rag.source_items
  as restrictive for all to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

-- The worker acts as this user; during a run it acts as the user with whom the run began.
create policy "a source runs as the user who requests it" on rag.sources
  as restrictive for insert to authenticated
  with check (user_id = (select rag.current_user_id()) and state = 'waiting' and attempts = 0);

create policy "a changed source runs as the user who changes it" on rag.sources
  as restrictive for update to authenticated
  using (true) with check (user_id = (select rag.current_user_id()) or lease = (select rag.lease_of_token()));

create policy "the worker claims sources" on rag.sources
  for select to rag_worker using (true);

create policy "the worker leases sources" on rag.sources
  for update to rag_worker using (true) with check (true);

create policy "the worker reads credentials of sources" on rag.source_credentials
  for select to rag_worker using (true);
