-- Bytes that an org stores: the texts of its documents and their original files. Triggers on both tables write a row for
-- each change, so that writers never wait for each other, and the sum of an org's rows is what its tier limits. As with
-- rag.term_counts, a write from time to time folds the rows of its org into one.

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

create function rag.count_stored_bytes()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  changes constant text := concat_ws(' union all ',
    case when tg_op <> 'DELETE' then format('select org_id, %s from added', tg_argv[0]) end,
    case when tg_op <> 'INSERT' then format('select org_id, -(%s) from removed', tg_argv[0]) end);
  change record;
begin
  for change in execute format(
    'select org_id, sum(bytes) as bytes from (%s) as change (org_id, bytes) group by org_id having sum(bytes) <> 0', changes)
  loop
    continue when not exists (select from rag.orgs where orgs.id = change.org_id);
    insert into rag.stored_bytes (org_id, bytes) values (change.org_id, change.bytes);
    -- A session of the deployer is not limited.
    if change.bytes > 0 and auth.uid() is not null then
      perform rag.check_storage(change.org_id);
    end if;
    if random() < 0.0625 then
      with locked as (
        select stored.ctid from rag.stored_bytes as stored where stored.org_id = change.org_id for update skip locked
      ), gone as (
        delete from rag.stored_bytes as stored using locked where stored.ctid = locked.ctid returning stored.bytes
      )
      insert into rag.stored_bytes (org_id, bytes)
      select change.org_id, sum(gone.bytes) from gone having count(*) > 0;
    end if;
  end loop;
  return null;
end;
$$;

comment on function rag.count_stored_bytes is
  'Trigger that adds the changed bytes of a statement to rag.stored_bytes and checks the limit of the tier. Its argument: the '
  'bytes of a row. One write in sixteen folds the rows of the org. Nothing is counted for a deleted org.';

create trigger count_bytes_of_new_documents after insert on rag.documents
  referencing new table as added
  for each statement execute function rag.count_stored_bytes('octet_length(content)');

create trigger count_bytes_of_changed_documents after update on rag.documents
  referencing old table as removed new table as added
  for each statement execute function rag.count_stored_bytes('octet_length(content)');

create trigger count_bytes_of_deleted_documents after delete on rag.documents
  referencing old table as removed
  for each statement execute function rag.count_stored_bytes('octet_length(content)');

create trigger count_bytes_of_new_originals after insert on rag.originals
  referencing new table as added
  for each statement execute function rag.count_stored_bytes('coalesce(length(bytes), 0) + coalesce(object_bytes, 0)');

create trigger count_bytes_of_changed_originals after update on rag.originals
  referencing old table as removed new table as added
  for each statement execute function rag.count_stored_bytes('coalesce(length(bytes), 0) + coalesce(object_bytes, 0)');

create trigger count_bytes_of_deleted_originals after delete on rag.originals
  referencing old table as removed
  for each statement execute function rag.count_stored_bytes('coalesce(length(bytes), 0) + coalesce(object_bytes, 0)');
