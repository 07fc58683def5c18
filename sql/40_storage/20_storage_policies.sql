-- Policies on storage.objects and storage.buckets for the bucket of originals. The Storage server evaluates them as the
-- caller. A caller stores an object at the path that rag_begin_upload returned, reads it if they may read its document, and deletes it
-- with a token that names it; the path itself grants nothing. The restrictive policies apply whatever other policies a
-- project has, and do not affect its other buckets. Without the schema storage this file does nothing.

create function rag.may_upload_object(name text)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.object_removals
    where object_removals.org_id = any (array(select rag.current_org_ids()))
      and object_removals.path = may_upload_object.name
      and object_removals.expected_until > now() and split_part(object_removals.path, '/', 3) = rag.current_user_id()::text);
$$;

comment on function rag.may_upload_object is
  'Whether the caller announced an upload to that path and has made no document of it yet.';

create function rag.deletable_object()
returns text
language sql stable security invoker set search_path = ''
as $$
  select auth.jwt() -> 'rag' ->> 'object';
$$;

comment on function rag.deletable_object is 'The object that the token may delete; null for every other token.';

create function rag.may_read_object(name text)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
      select from rag.originals
      where originals.org_id = any (array(select rag.current_org_ids())) and originals.path = may_read_object.name)
    or rag.may_upload_object(may_read_object.name) or coalesce(may_read_object.name = rag.deletable_object(), false);
$$;

comment on function rag.may_read_object is
  'Whether the caller may read an object: row security on the document''s original decides.';

do $$
begin
  if to_regclass('storage.objects') is null then
    return;
  end if;
  insert into storage.buckets (id, name, public, file_size_limit)
  values ('rag-originals', 'rag-originals', false, 100 << 20)
  -- No policy protects the objects of a public bucket.
  on conflict (id) do update set public = false;

  create policy "rag: signed-in users use the bucket of originals" on storage.objects
    for all to authenticated
    using (bucket_id = 'rag-originals') with check (bucket_id = 'rag-originals');

  create policy "rag: an object is read by who reads its document" on storage.objects
    as restrictive for select to authenticated
    using (bucket_id is distinct from 'rag-originals' or rag.may_read_object(name));

  create policy "rag: an object is stored by who was told to" on storage.objects
    as restrictive for insert to authenticated
    with check (bucket_id is distinct from 'rag-originals' or rag.may_upload_object(name));

  create policy "rag: no object is changed" on storage.objects
    as restrictive for update to authenticated
    using (bucket_id is distinct from 'rag-originals') with check (bucket_id is distinct from 'rag-originals');

  create policy "rag: an object is deleted by a token that names it" on storage.objects
    as restrictive for delete to authenticated
    using (bucket_id is distinct from 'rag-originals' or name = rag.deletable_object());

  create policy "rag: anon does not use the bucket of originals" on storage.objects
    as restrictive for all to anon
    using (bucket_id is distinct from 'rag-originals') with check (bucket_id is distinct from 'rag-originals');

  create policy "rag: no user changes the bucket of originals" on storage.buckets
    as restrictive for update to anon, authenticated
    using (id <> 'rag-originals') with check (id <> 'rag-originals');

  create policy "rag: no user deletes the bucket of originals" on storage.buckets
    as restrictive for delete to anon, authenticated
    using (id <> 'rag-originals');
exception when insufficient_privilege then
  -- One transaction: the bucket never exists without its policies.
  raise warning 'rag: for large files, run the end of sql/40_storage/20_storage_policies.sql as the owner of storage.objects';
end;
$$;
