-- Functions to create, list, rotate, revoke and look up API keys. They run as their caller.

create type rag.api_key as (
  id uuid, org_id uuid, owner_id uuid, name text, prefix text, scopes text[], collection text,
  created_at timestamptz, expires_at timestamptz, last_used_at timestamptz, revoked_at timestamptz
);

comment on type rag.api_key is 'An API key as a list returns it.';

create function rag.render(key rag.api_keys)
returns rag.api_key
language sql stable security invoker set search_path = ''
as $$
  select key.id, key.org_id, key.owner_id, key.name, key.prefix, key.scopes,
    (select collections.name from rag.collections
      where collections.org_id = key.org_id and collections.id = key.collection_id),
    key.created_at, key.expires_at, key.last_used_at, key.revoked_at;
$$;

comment on function rag.render(rag.api_keys) is 'An API key as a list returns it, without its hash.';

create function public.rag_list_keys(key_id uuid default null)
returns setof rag.api_key
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  -- Joined, not expanded: (f(row)).* would call it once for each column.
  return query
    select shown.*
    from rag.api_keys
    cross join lateral rag.render(api_keys) as shown
    where api_keys.org_id = any (array(select rag.current_org_ids()))
      and (rag_list_keys.key_id is null or api_keys.id = rag_list_keys.key_id)
    order by api_keys.revoked_at is not null or coalesce(api_keys.expires_at < now(), false),
      api_keys.created_at desc, api_keys.id
    limit 1000;
end;
$$;

comment on function public.rag_list_keys is
  'The keys that the caller may manage, or the one with the given id: valid keys first, then the newest.';

create function rag.check_key_quota(org_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if rag.caller_id() <> rag.current_user_id() then
    raise exception 'An API key cannot create or rotate keys. Use your own token.'
      using errcode = 'PT403', detail = 'user_required';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.api_keys ' || rag.current_user_id()::text, 0));
  if 100 <= (
    select count(*)
    from rag.api_keys
    where api_keys.org_id = check_key_quota.org_id and owner_id = rag.current_user_id()
      and revoked_at is null and (expires_at is null or expires_at > now())
  ) then
    raise exception 'You already have 100 valid API keys in this org. Revoke one first.'
      using errcode = 'PT400', detail = 'too_many_keys';
  end if;
end;
$$;

comment on function rag.check_key_quota is
  'Raises PT403 for a token of an API key, and PT400 for a user with 100 valid keys in the org. It locks, so that two '
  'concurrent calls do not both count the last place as free.';

create function public.rag_create_key(
  name text, prefix text, hash text, scopes text[],
  org_id uuid default null, collection text default null, expires_at timestamptz default null
)
returns setof rag.api_key
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  bound uuid;
  made rag.api_keys;
begin
  perform rag.begin_call();
  org_id := rag.resolve_org(org_id);
  if 'admin' = any (scopes) and org_id not in (select rag.admin_org_ids()) then
    raise exception 'Only admins of the org may give a key the scope admin. Choose other scopes.'
      using errcode = 'PT403', detail = 'admin_required';
  elsif expires_at <= now() then
    raise exception 'expires_at must be in the future' using errcode = 'PT400', detail = 'invalid_expiry';
  end if;
  perform rag.check_key_quota(org_id);

  if collection is not null then
    select named.id into bound
    from rag.collections as named
    where named.org_id = rag_create_key.org_id and named.name = collection and named.deleted_at is null
      and (named.owner_id is null or named.owner_id = rag.current_user_id())
    order by named.owner_id nulls last
    limit 1;
    if bound is null then
      raise exception 'There is no such collection. Check its id or name.'
        using errcode = 'PT404', detail = 'collection_not_found';
    end if;
  end if;

  insert into rag.api_keys (org_id, owner_id, name, prefix, hash, scopes, collection_id, expires_at)
  values (org_id, rag.current_user_id(), name, prefix, hash, scopes, bound, expires_at)
  returning * into made;
  return next rag.render(made);
end;
$$;

comment on function public.rag_create_key is
  'Create a key of the caller, in the caller''s only org unless one is given. collection: a collection''s name, or '
  'null for all.';

create function public.rag_rotate_key(
  key_id uuid, prefix text, hash text, overlap_seconds integer default 0
)
returns setof rag.api_key
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  old rag.api_keys;
  made rag.api_keys;
begin
  perform rag.begin_call();
  if overlap_seconds is null or overlap_seconds not between 0 and 604800 then
    raise exception 'overlap_seconds must be between 0 and 604800'
      using errcode = 'PT400', detail = 'invalid_overlap';
  end if;

  -- Taken for update: of two rotations at once the second finds it replaced.
  select * into old
  from rag.api_keys as present
  where present.org_id = any (array(select rag.current_org_ids())) and present.id = key_id
    and present.owner_id = rag.current_user_id() and present.revoked_at is null and present.replaced_at is null
    and (present.expires_at is null or present.expires_at > now())
  for update;
  if not found then
    raise exception 'There is no such key. Check its id.' using errcode = 'PT404', detail = 'key_not_found';
  end if;

  update rag.api_keys as ending
  set replaced_at = now(), revoked_at = case when overlap_seconds = 0 then now() end,
    expires_at = case when overlap_seconds = 0 then old.expires_at
      else least(old.expires_at, now() + make_interval(secs => overlap_seconds)) end
  where ending.org_id = old.org_id and ending.id = old.id;
  -- Checked after the old key has ended; a key that stays valid for a while counts.
  perform rag.check_key_quota(old.org_id);

  insert into rag.api_keys (org_id, owner_id, name, prefix, hash, scopes, collection_id, expires_at,
    requests_per_minute)
  values (old.org_id, old.owner_id, old.name, prefix, hash, old.scopes, old.collection_id,
    now() + (old.expires_at - old.created_at), old.requests_per_minute)
  returning * into made;
  return next rag.render(made);
end;
$$;

comment on function public.rag_rotate_key is
  'Replace a key of the caller''s by a new one of the same name, scopes, collection and lifetime. The old one works '
  'for `overlap_seconds` more, so that its users can change over; at most a week.';

create function public.rag_revoke_key(key_id uuid)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  update rag.api_keys set revoked_at = coalesce(revoked_at, now())
  where org_id = any (array(select rag.current_org_ids())) and id = rag_revoke_key.key_id;
  return found;
end;
$$;

comment on function public.rag_revoke_key is
  'Revoke a key; true if the caller has a key of that id, also if it was revoked before.';

create function public.rag_open_key()
returns table (key_id uuid, org_id uuid, owner_id uuid, collection_id uuid, scopes text[],
  requests_per_minute integer, expires_at timestamptz)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call();
  return query
    update rag.api_keys set last_used_at = now()
    where hash = (select rag.lookup_hash()) and revoked_at is null
      and (expires_at is null or expires_at > now())
    returning id, org_id, owner_id, collection_id, scopes, requests_per_minute, expires_at;
end;
$$;

comment on function public.rag_open_key is
  'The claims of the key whose hash the token names; nothing for a key that is unknown, revoked or expired. Each '
  'case takes one index look-up.';
