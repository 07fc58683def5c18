-- Deletion of collections, with or without their documents. Private documents of other users stay, and keep the deleted
-- collection until the last of them is gone.

create function public.rag_delete_collection(collection_id uuid, "cascade" boolean default false)
returns void
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  gone rag.collections := rag.get_collection(collection_id);
begin
  perform rag.require_access(gone.id, 'manage');
  -- For the trigger that deletes the documents.
  perform set_config('rag.cascade', coalesce("cascade", false)::text, true);
  delete from rag.collections where org_id = gone.org_id and id = gone.id;
  if not found then
    raise exception 'The API key may not delete this collection. Check its scopes and its collection.'
      using errcode = 'PT403', detail = 'missing_scope';
  end if;
  perform set_config('rag.cascade', '', true);
end;
$$;

comment on function public.rag_delete_collection is
  'Delete a collection. cascade: its documents are deleted too; without cascade, PT409 if the collection has '
  'documents. Unless the caller is an admin, private documents of others are neither deleted nor counted: their '
  'owners keep the collection (22_delete_collections.sql).';

-- For collections that a member deleted. Row security applies to the documents in this condition.
create policy "a deleted collection is seen by those who see documents in it" on rag.collections
  as restrictive for select to authenticated
  using (deleted_at is null or (select current_setting('rag.reads_grants', true)) = 'true' or exists (
    select from rag.documents
    where documents.org_id = collections.org_id and documents.collection_id = collections.id));

-- Private documents of others stay, and so must the collection. A member does not see whether there are any, and must
-- not learn it. So the row of every collection that a member deletes comes back as deleted, with its id: whether
-- documents are left in it makes no difference to the statement, its errors, or its duration. Keys, webhooks and
-- sessions refer to the row that was deleted, and go or change with it. An admin sees all documents and leaves none;
-- a database session without a user leaves none either. The worker removes deleted collections without documents.
create function rag.delete_documents_of_collection()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  deleted rag.collections := old;
begin
  if current_user = 'rag_worker' then
    return null;
  end if;
  perform set_config('rag.deleted_collection', old.id::text, true);
  delete from rag.documents where documents.org_id = old.org_id and documents.collection_id = old.id;
  if found and current_setting('rag.cascade', true) = 'false' then
    raise exception 'The collection has documents. Delete them first, or set cascade to delete them too.'
      using errcode = 'PT409', detail = 'collection_not_empty';
  end if;
  perform set_config('rag.deleted_collection', '', true);
  if rag.current_user_id() is not null and old.org_id not in (select rag.admin_org_ids()) then
    deleted.deleted_at := coalesce(old.deleted_at, now());
    insert into rag.collections values (deleted.*);
  end if;
  return null;
end;
$$;

comment on function rag.delete_documents_of_collection is
  'Deletes the collection''s documents that the caller may delete. It runs for every statement that deletes a '
  'collection. PT409 if there are such documents and rag_delete_collection was called without cascade (rag.cascade '
  'is false).';

-- Triggers fire in the order of their names: this trigger before the check of the foreign key (RI_ConstraintTrigger).
create trigger "Documents are deleted with their collection" after delete on rag.collections
  for each row execute function rag.delete_documents_of_collection();

create function rag.require_undeleted_collection()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if exists (
    select from added
    where not exists (
      select from rag.collections
      where collections.org_id = added.org_id and collections.id = added.collection_id
        and collections.deleted_at is null)
  ) then
    raise exception 'The collection was deleted. Choose another collection.' using errcode = '23503';
  end if;
  return null;
end;
$$;

comment on function rag.require_undeleted_collection is
  'Trigger that raises a foreign key violation if another transaction has deleted the collection of an inserted '
  'document.';

create trigger require_undeleted_collection after insert on rag.documents
  referencing new table as added
  for each statement execute function rag.require_undeleted_collection();

create policy "the worker sees deleted collections" on rag.collections
  for select to rag_worker using (deleted_at is not null);

create policy "the worker removes deleted collections" on rag.collections
  for delete to rag_worker using (deleted_at is not null);

create function public.rag_remove_deleted_collections()
returns bigint
language sql volatile security invoker set search_path = ''
as $$
  -- Raises PT401 for a token of another issuer.
  select rag.current_user_id();
  with removed as (
    delete from rag.collections
    where collections.deleted_at is not null and collections.org_id <> all (array(select rag.paused_org_ids()))
      and not exists (
      select from rag.documents
        where documents.org_id = collections.org_id and documents.collection_id = collections.id)
    returning 1
  )
  select count(*) from removed;
$$;

comment on function public.rag_remove_deleted_collections is
  'For the worker: remove the deleted collections that have no document, and return their number. Those of paused orgs '
  'stay.';
