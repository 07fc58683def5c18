-- How a file that is too large for a request comes, and how objects go (rag.removals): announced by whoever uploads
-- it, taken for a document or not at all; claimed by the worker when it is to be deleted.

-- Expect an upload into the collection: where it goes, and until when a document may be made of it. name: of ASCII
-- letters, digits, dots, dashes and underscores. PT413 for a larger file than the org's tier takes.
create function public.rag_begin_upload(collection_id uuid, name text, size_bytes bigint)
returns table (path text, expires_at timestamptz)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.collections := rag.collection_of(rag_begin_upload.collection_id);
  largest constant bigint := (rag.tier_of(home.org_id)).file_bytes;
begin
  if rag_begin_upload.size_bytes > largest then
    raise exception 'this org''s tier takes files of at most % bytes', largest
      using errcode = 'PT413', detail = 'file_too_large';
  end if;
  path := concat_ws('/', home.org_id, home.id, auth.uid(), gen_random_uuid(), rag_begin_upload.name);
  -- As long as Storage's own links for uploads last; what is on its way then has an hour more.
  expires_at := now() + interval '2 hours';
  insert into rag.removals (org_id, path, collection_id, owner_id, expected_until, due_at)
  values (home.org_id, rag_begin_upload.path, home.id, auth.uid(), rag_begin_upload.expires_at,
    rag_begin_upload.expires_at + interval '1 hour');
  return next;
end;
$$;

-- The upload becomes a document's: once, by who was told to upload it, and in time.
create function rag.take_upload(home rag.collections, path text)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  delete from rag.removals
  where removals.org_id = home.org_id and removals.collection_id = home.id and removals.path = take_upload.path
    and removals.expected_until > now() and split_part(removals.path, '/', 3) = auth.uid()::text;
  if not found then
    raise exception 'there is no such upload' using errcode = 'PT404', detail = 'upload_not_found';
  end if;
end;
$$;

-- For the worker: objects to delete now, of each org as many as of any other. Each comes again, later and later,
-- until rag_end_removal.
create function public.rag_claim_removals(wanted integer default 20)
returns table (org_id uuid, path text)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  delete from rag.removals
  using rag.originals
  where removals.due_at <= clock_timestamp()
    and originals.org_id = removals.org_id and originals.path = removals.path;
  return query
  with placed as (
    select removals.org_id, removals.path, removals.due_at, row_number() over (
      partition by removals.org_id order by removals.due_at) as turn
    from rag.removals
    where removals.due_at <= clock_timestamp()
  ), due as materialized (
    select locked.org_id, locked.path
    from (select placed.* from placed order by placed.turn, placed.due_at limit 4 * wanted) as placed
    cross join lateral (
      select removals.org_id, removals.path
      from rag.removals
      where removals.org_id = placed.org_id and removals.path = placed.path
        and removals.due_at <= clock_timestamp()
      for update skip locked
    ) as locked
    limit wanted
  )
  update rag.removals as claimed
  set attempts = claimed.attempts + 1,
    due_at = clock_timestamp() + least(interval '1 day', interval '1 minute' * 2 ^ least(claimed.attempts, 12))
  from due
  where claimed.org_id = due.org_id and claimed.path = due.path
  returning claimed.org_id, claimed.path;
end;
$$;

-- The object is gone, and for good once nobody can store it any more.
create function public.rag_end_removal(org_id uuid, path text)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  update rag.removals
  set due_at = storable_until, attempts = 0
  where removals.org_id = rag_end_removal.org_id and removals.path = rag_end_removal.path
    and storable_until > clock_timestamp();
  if not found then
    delete from rag.removals
    where removals.org_id = rag_end_removal.org_id and removals.path = rag_end_removal.path;
  end if;
end;
$$;

revoke all on function rag.take_upload(rag.collections, text) from public, anon, authenticated, service_role;
grant execute on function rag.take_upload(rag.collections, text) to authenticated;
