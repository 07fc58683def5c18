-- A collection is a named set of documents: an index, a namespace or a workspace on the wire. It belongs
-- to an org and, when owner_id is set, inside the org to one user. Members write and read through
-- functions (57_manage_collections.sql); a collection also comes into being with the first document that names
-- it.

create table rag.collections (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid,
  name text not null check (length(name) between 1 and 255),
  description text check (length(description) <= 2000 and rag.shows_only(description)),
  metadata jsonb not null default '{}' check (rag.is_metadata(metadata)),
  -- How its documents are cut and embedded, and how they are searched where a request does not say: chunk_size,
  -- chunk_overlap, embedding_model, enable_hybrid_search, enable_knowledge_graph. What is not there is the
  -- deployment's to choose.
  config jsonb not null default '{}' check (jsonb_typeof(config) = 'object' and pg_column_size(config) <= 2000),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  -- Two users may each have a private "notes"; the org has its own.
  constraint collections_name unique nulls not distinct (org_id, owner_id, name)
);

alter table rag.collections enable row level security;
alter table rag.collections force row level security;

-- The one membership expression; every tenant table repeats it word for word (a test compares them).
create policy "members use their org's collections" on rag.collections
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

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

create policy "a bound key stays in its collection" on rag.collections
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or id = (select rag.bound_collection()));

grant select, insert, update, delete on rag.collections to authenticated;

-- The id of the named collection, made when it is new. A user's own collection comes before the org's.
create function rag.ensure_collection(org_id uuid, owner_id uuid, name text)
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

revoke all on function rag.ensure_collection(uuid, uuid, text) from public, anon, service_role;
grant execute on function rag.ensure_collection(uuid, uuid, text) to authenticated;
