-- Collections: named sets of documents (an index, a namespace or a workspace in the APIs). A collection belongs to an
-- org and, when owner_id is set, to one user in the org. Members write and read through functions
-- (20_manage_collections.sql); a collection is also created with the first document that names it.

create function rag.is_config(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select case
    when pg_column_size(value) > 2000 or not rag.is_metadata(value)
      or not rag.is_whole(value -> 'chunk_size', 32, 8000) or not rag.is_whole(value -> 'chunk_overlap', 0, 4000)
      then false
    else coalesce((value -> 'chunk_overlap')::integer < coalesce((value -> 'chunk_size')::integer, 512), true)
      and coalesce(jsonb_typeof(value -> 'embedding_model') = 'string', true)
      and coalesce(length(value ->> 'embedding_model') between 1 and 100, true)
      and coalesce(jsonb_typeof(value -> 'enable_hybrid_search') in ('boolean', 'null'), true)
      and coalesce(jsonb_typeof(value -> 'enable_knowledge_graph') in ('boolean', 'null'), true)
  end;
$$;

comment on function rag.is_config is
  'Whether the value may be a collection''s config: the known keys have the types and bounds that the functions '
  'rely on. Without chunk_size, chunk_overlap must be below 512, the functions'' default.';

create table rag.collections (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid,
  created_by uuid not null default rag.creator_id(),
  name text not null check (length(name) between 1 and 255),
  description text check (length(description) <= 2000 and rag.is_visible_text(description)),
  metadata jsonb not null default '{}' check (rag.is_metadata(metadata)),
  config jsonb not null default '{}' check (rag.is_config(config)),
  loading_name text check (length(loading_name) between 1 and 255),
  restricted_by uuid,
  deleted_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id)
);

comment on table rag.collections is 'Named sets of documents: an index, a namespace or a workspace in the APIs.';
comment on column rag.collections.created_by is 'The user who created it. No permission depends on this.';
comment on column rag.collections.config is
  'Settings for chunking, embedding and search: chunk_size, chunk_overlap, embedding_model, enable_hybrid_search, '
  'enable_knowledge_graph. A missing key takes the deployment''s default.';
comment on column rag.collections.loading_name is
  'While it is loaded from a snapshot: the name that it will have. Until then no name finds it.';
comment on column rag.collections.restricted_by is
  'The user who restricted it to those with a grant (rag.collection_grants); null: every member of the org may view, edit and '
  'manage it. Without meaning for a private collection.';
comment on column rag.collections.deleted_at is
  'When a member deleted it. It then exists only for the owners of private documents in it and for the org''s '
  'admins, until the last of these documents goes (22_delete_collections.sql).';

-- Two users may each have a private "notes"; the org has its own. The name of a deleted collection is free. So is that of a
-- restricted one, or a member would learn of it.
create unique index collections_name on rag.collections (org_id, owner_id, name, restricted_by) nulls not distinct
  where deleted_at is null;

-- rag.closed_collections
create index collections_restricted on rag.collections (org_id, id)
  where restricted_by is not null and owner_id is null and deleted_at is null;

-- rag_remove_deleted_collections: collections that members deleted.
create index collections_deleted on rag.collections (deleted_at) where deleted_at is not null;

call rag.admit_members('collections');

-- A collection comes into being with its first document: writing documents is enough for that.
create policy "a key makes collections with a scope that writes" on rag.collections
  as restrictive for insert to authenticated
  with check ((select rag.has_scope('collections:manage', 'documents:write')));

create policy "a key changes collections with collections:manage" on rag.collections
  as restrictive for update to authenticated
  using ((select rag.has_scope('collections:manage')))
  with check ((select rag.has_scope('collections:manage')));

-- Its documents go with it, whether or not the key may write documents.
create policy "a key deletes collections with collections:manage" on rag.collections
  as restrictive for delete to authenticated
  using ((select rag.has_scope('collections:manage')));

create policy "managers change collections" on rag.collections
  as restrictive for update to authenticated
  using (id not in (select rag.closed_collections('manage')))
  with check (id not in (select rag.closed_collections('manage')));

create policy "managers delete collections" on rag.collections
  as restrictive for delete to authenticated
  using (id not in (select rag.closed_collections('manage')));

create policy "a bound key stays in its collection" on rag.collections
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or id = (select rag.bound_collection()));

-- Except the row that comes back as deleted (22_delete_collections.sql).
create policy "a collection keeps the name of its creator" on rag.collections
  as restrictive for insert to authenticated
  with check (created_by = (select rag.creator_id()) or deleted_at is not null);

create function rag.collection_by_name(org_id uuid, name text, or_deleted boolean default false)
returns setof rag.collections
language sql stable security invoker set search_path = ''
as $$
  select collections.*
  from rag.collections
  where collections.org_id = collection_by_name.org_id and collections.name = collection_by_name.name
    and collections.loading_name is null and (collections.deleted_at is null or or_deleted)
    and case when rag.owner_in_name(collection_by_name.name) is null
      then collections.owner_id is null or collections.owner_id = rag.current_user_id()
      else collections.owner_id = rag.owner_in_name(collection_by_name.name) end
  order by collections.deleted_at desc nulls first, collections.owner_id nulls last, collections.restricted_by nulls last,
    collections.created_at
  limit 1;
$$;

comment on function rag.collection_by_name is
  'The collection of that name, or no row: that of the user in the name, else the caller''s own before the org''s, '
  'and of the org''s a restricted one first. '
  'A collection that is being loaded has no name yet. or_deleted: a deleted collection that the caller still sees '
  'has its name as long as no other collection has it.';

create function rag.ensure_collection(org_id uuid, name text)
returns rag.collections
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  home rag.collections;
begin
  perform rag.check_owner_in_name(ensure_collection.org_id, ensure_collection.name);
  for attempt in 1..2 loop
    select * into home from rag.collection_by_name(ensure_collection.org_id, ensure_collection.name);
    if found then
      perform rag.require_access(home.id, 'edit');
      return home;
    end if;
    perform rag.check_collection_quota(ensure_collection.org_id);
    -- Two writers may meet here: the second inserts nothing and reads what the first made.
    insert into rag.collections (org_id, owner_id, name)
    values (ensure_collection.org_id, rag.new_collection_owner(ensure_collection.org_id, ensure_collection.name),
      ensure_collection.name)
    on conflict do nothing;
  end loop;
  return home;
end;
$$;

comment on function rag.ensure_collection is 'The collection of that name, created if there is none.';
