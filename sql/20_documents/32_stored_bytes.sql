-- Bytes that an org stores: the texts of its documents and their original files. Triggers on both tables write a row for
-- each change, so that writers never wait for each other, and the sum of an org's rows is what its tier limits. A
-- write from time to time folds the rows of its org into one.

create table rag.stored_bytes (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id bigint generated always as identity,
  owner_id uuid check (owner_id is null),
  bytes bigint not null,
  primary key (org_id, id)
);

comment on table rag.stored_bytes is
  'Bytes of an org''s documents and original files, objects of Storage included: a log of differences, whose sum the tier '
  'limits.';
comment on column rag.stored_bytes.owner_id is 'Always null: the sum is that of the org.';

call rag.admit_members('stored_bytes');

create policy "a key counts with a scope that writes" on rag.stored_bytes
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:write', 'collections:manage')))
  with check ((select rag.has_scope('documents:write', 'collections:manage')));

create function rag.check_storage(org_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  allowed constant bigint := (rag.org_tier(org_id)).storage_bytes;
begin
  if allowed < (select sum(stored.bytes) from rag.stored_bytes as stored where stored.org_id = check_storage.org_id) then
    raise exception 'The tier of your org allows % MB of documents and files. Delete some, or ask for a larger tier.',
      allowed >> 20
      using errcode = 'PT429', detail = 'storage_limit_reached';
  end if;
end;
$$;

comment on function rag.check_storage is
  'Raises PT429 if the org stores more bytes than its tier allows. Calls that run at the same time do not see each '
  'other''s bytes, and may exceed the limit by them.';

create function rag.add_stored_bytes(org_id uuid, bytes bigint)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if bytes = 0 or not exists (select from rag.orgs where orgs.id = add_stored_bytes.org_id) then
    return;
  end if;
  insert into rag.stored_bytes (org_id, bytes) values (add_stored_bytes.org_id, add_stored_bytes.bytes);
  -- A session of the deployer is not limited.
  if bytes > 0 and rag.current_user_id() is not null then
    perform rag.check_storage(org_id);
  end if;
  if random() < 0.0625 then
    with locked_rows as (
      select stored.ctid from rag.stored_bytes as stored
      where stored.org_id = add_stored_bytes.org_id for update skip locked
    ), removed_rows as (
      delete from rag.stored_bytes as stored using locked_rows where stored.ctid = locked_rows.ctid returning stored.bytes
    )
    insert into rag.stored_bytes (org_id, bytes)
    select add_stored_bytes.org_id, sum(removed_rows.bytes) from removed_rows having count(*) > 0;
  end if;
end;
$$;

comment on function rag.add_stored_bytes is
  'Add a change to the bytes of an org, and check the limit of the tier. One call in sixteen folds the rows of the org. '
  'Nothing is counted for a deleted org.';

create function rag.count_bytes_of_documents()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  changes constant text := concat_ws(' union all ',
    case when tg_op <> 'DELETE' then 'select org_id, octet_length(content) from added' end,
    case when tg_op <> 'INSERT' then 'select org_id, -octet_length(content) from removed' end);
begin
  execute format(
    'select rag.add_stored_bytes(org_id, sum(bytes)) from (%s) as change (org_id, bytes) group by org_id', changes);
  return null;
end;
$$;

comment on function rag.count_bytes_of_documents is
  'Trigger that adds the changed bytes of a statement''s texts to rag.stored_bytes.';

create trigger count_bytes_of_new_documents after insert on rag.documents
  referencing new table as added
  for each statement execute function rag.count_bytes_of_documents();

create trigger count_bytes_of_changed_documents after update on rag.documents
  referencing old table as removed new table as added
  for each statement execute function rag.count_bytes_of_documents();

create trigger count_bytes_of_deleted_documents after delete on rag.documents
  referencing old table as removed
  for each statement execute function rag.count_bytes_of_documents();

create function rag.count_bytes_of_original()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.add_stored_bytes(
    case when tg_op = 'DELETE' then old.org_id else new.org_id end,
    coalesce(length(new.bytes), 0) + coalesce(new.object_bytes, 0)
      - coalesce(length(old.bytes), 0) - coalesce(old.object_bytes, 0));
  return null;
end;
$$;

comment on function rag.count_bytes_of_original is
  'Trigger of each row, since a transition table would write a file once more to disk.';

create trigger count_bytes_of_original after insert or update or delete on rag.originals
  for each row execute function rag.count_bytes_of_original();
