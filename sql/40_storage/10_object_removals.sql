-- Removals: a queue of objects of Supabase Storage to delete, because no document has them: announced uploads without a
-- document, and objects of deleted documents. A removal is written in the transaction that causes it. The worker
-- deletes the object with a token that names it, and then the row. It does not delete an object that a document has. No
-- foreign keys: these rows outlive their collection and their org.

create table rag.object_removals (
  org_id uuid not null,
  path text not null check (
    path ~ '^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/){4}[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$'
  ),
  collection_id uuid not null,
  owner_id uuid,
  expected_until timestamptz,
  storable_until timestamptz,
  due_at timestamptz not null default now(),
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  primary key (org_id, path),
  check (split_part(path, '/', 1) = org_id::text)
);

comment on table rag.object_removals is
  'Objects of Supabase Storage to delete, and announced uploads that no document has.';
comment on column rag.object_removals.expected_until is
  'Until then the user who announced the upload may create a document from it; null afterwards.';
comment on column rag.object_removals.storable_until is
  'Until then the upload link may store the object again. After that time the worker deletes the object once more.';

-- rag_claim_removals: those that are due.
create index object_removals_due on rag.object_removals (due_at);

call rag.admit_members('object_removals');
call rag.bind_keys('object_removals');

create policy "a key sees uploads with documents:write" on rag.object_removals
  as restrictive for select to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "uploads are one's own" on rag.object_removals
  as restrictive for insert to authenticated
  with check (expected_until is null
    or (split_part(path, '/', 3) = (select rag.current_user_id())::text and (select rag.has_scope('documents:write'))));

-- Documents also go with their collection.
create policy "a key removes with a scope that deletes" on rag.object_removals
  as restrictive for insert to authenticated
  with check ((select rag.has_scope('documents:write', 'collections:manage')));

create policy "objects of deleted documents are removed" on rag.object_removals
  as restrictive for delete to authenticated
  using (expected_until is not null and (select rag.has_scope('documents:write')));

create policy "the worker sees objects to remove" on rag.object_removals
  for select to rag_worker using (true);

create policy "the worker puts removals off" on rag.object_removals
  for update to rag_worker using (true) with check (true);

create policy "the worker ends removals" on rag.object_removals
  for delete to rag_worker using (true);

create policy "the worker sees which objects documents have" on rag.originals
  for select to rag_worker using (path is not null);

create function rag.enqueue_object_removal()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  insert into rag.object_removals (org_id, path, collection_id, owner_id, storable_until)
  values (old.org_id, old.path, old.collection_id, old.owner_id, old.created_at + interval '3 hours')
  on conflict do nothing;
  return null;
end;
$$;

comment on function rag.enqueue_object_removal is
  'Trigger that enqueues the removal of an object whose document was deleted or has another object.';

-- For every deletion of a document: by a user, with its collection, or with its org.
create trigger remove_object after delete on rag.originals
  for each row when (old.path is not null) execute function rag.enqueue_object_removal();

create trigger remove_replaced_object after update of path on rag.originals
  for each row when (old.path is not null and old.path is distinct from new.path)
  execute function rag.enqueue_object_removal();

create function public.rag_claim_removals(max_items integer default 20)
returns table (org_id uuid, path text)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  paused constant uuid[] := array(select rag.paused_org_ids());
begin
  perform rag.check_claim(max_items);
  delete from rag.object_removals
  using rag.originals
  where object_removals.due_at <= clock_timestamp() and object_removals.org_id <> all (paused)
    and originals.org_id = object_removals.org_id and originals.path = object_removals.path;
  return query
  with placed as (
    select object_removals.org_id, object_removals.path, object_removals.due_at, row_number() over (
      partition by object_removals.org_id order by object_removals.due_at) as turn
    from rag.object_removals
    where object_removals.due_at <= clock_timestamp() and object_removals.org_id <> all (paused)
  ), due as materialized (
    select locked.org_id, locked.path
    from (select placed.* from placed order by placed.turn, placed.due_at limit 4 * max_items) as placed
    cross join lateral (
      select object_removals.org_id, object_removals.path
      from rag.object_removals
      where object_removals.org_id = placed.org_id and object_removals.path = placed.path
        and object_removals.due_at <= clock_timestamp()
      for update skip locked
    ) as locked
    limit max_items
  )
  update rag.object_removals as claimed
  set attempts = claimed.attempts + 1,
    due_at = clock_timestamp() + least(interval '1 day', interval '1 minute' * 2 ^ least(claimed.attempts, 12))
  from due
  where claimed.org_id = due.org_id and claimed.path = due.path
  returning claimed.org_id, claimed.path;
end;
$$;

comment on function public.rag_claim_removals is
  'For the worker: due objects to delete, the same number of every org that is not paused. A removal is due again, after growing pauses, '
  'until rag_end_removal.';

create function public.rag_end_removal(org_id uuid, path text)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- Raises PT401 for a token of another issuer.
  perform rag.current_user_id();
  update rag.object_removals
  set due_at = storable_until, attempts = 0
  where object_removals.org_id = rag_end_removal.org_id and object_removals.path = rag_end_removal.path
    and storable_until > clock_timestamp();
  if not found then
    delete from rag.object_removals
    where object_removals.org_id = rag_end_removal.org_id and object_removals.path = rag_end_removal.path;
  end if;
end;
$$;

comment on function public.rag_end_removal is
  'Finish a removal. The row stays as long as the upload link of the object is valid.';
