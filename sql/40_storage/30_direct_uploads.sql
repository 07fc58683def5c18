-- Direct uploads to Supabase Storage, for files that are too large for a request. The caller announces an upload and
-- then makes a document of it. rag.object_removals holds uploads without a document, so that the worker deletes them.

create function public.rag_begin_upload(collection_id uuid, name text, size_bytes bigint)
returns table (path text, expires_at timestamptz)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.collections := rag.get_collection(rag_begin_upload.collection_id);
begin
  perform rag.check_file_size(home.org_id, rag_begin_upload.size_bytes), rag.check_storage(home.org_id);
  if 50 <= (
    select count(*) from rag.object_removals
    where object_removals.org_id = home.org_id and object_removals.owner_id = rag.current_user_id()
      and object_removals.expected_until > now())
  then
    raise exception 'You have begun 50 uploads. Complete them first, or wait until they expire.'
      using errcode = 'PT429', detail = 'too_many_uploads';
  end if;
  path := concat_ws('/', home.org_id, home.id, rag.current_user_id(), gen_random_uuid(), rag_begin_upload.name);
  -- As long as Storage's own links for uploads last; an upload that is running then has an hour more.
  expires_at := now() + interval '2 hours';
  insert into rag.object_removals (org_id, path, collection_id, owner_id, expected_until, due_at)
  values (home.org_id, rag_begin_upload.path, home.id, rag.current_user_id(), rag_begin_upload.expires_at,
    rag_begin_upload.expires_at + interval '1 hour');
  perform rag.count_upload(home.org_id, rag_begin_upload.size_bytes);
  return next;
end;
$$;

comment on function public.rag_begin_upload is
  'Announce an upload into the collection: its path, and until when the caller may create a document. name: ASCII '
  'letters, digits, dots, dashes and underscores. PT413 for a larger file than the org''s tier takes; PT429 beyond the bytes that '
  'the tier allows, and above 50 uploads of the user that are not completed.';

create function rag.take_upload(home rag.collections, path text)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  delete from rag.object_removals
  where object_removals.org_id = home.org_id and object_removals.collection_id = home.id
    and object_removals.path = take_upload.path
    and object_removals.expected_until > now() and split_part(object_removals.path, '/', 3) = rag.current_user_id()::text;
  if not found then
    raise exception 'There is no such upload. Check its id, or begin another.'
      using errcode = 'PT404', detail = 'upload_not_found';
  end if;
end;
$$;

comment on function rag.take_upload is
  'Take an announced upload for a document: once, by the user who announced it, and before it expires. PT404 '
  'otherwise.';
