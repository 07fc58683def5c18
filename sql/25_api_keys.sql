-- An API key is a name for a token. The functions that accept keys look its hash up, then mint a token of
-- a minute that acts as the key's owner in the key's org, narrowed to its scopes and its collection; row
-- security does the rest. Only the hash is stored, and no function hands it out. Owners make, list, rotate
-- and revoke their own keys; an org's admins list and revoke all of the org's.

create table rag.api_keys (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  -- Whom the key acts as: it can never do what its owner cannot, and ends with their membership.
  owner_id uuid not null references auth.users (id) on delete cascade,
  name text not null check (length(name) between 1 and 100 and rag.shows_only(name)),
  -- How the key begins, to tell keys apart in a list.
  prefix text not null check (prefix ~ '^(mn_live|mn_test|mn_admin|sk)_[A-Za-z0-9_-]{4}$'),
  -- SHA-256 of the whole key, whose 256 random bits need no slower hash.
  hash text not null check (hash ~ '^[0-9a-f]{64}$'),
  scopes text[] not null check (array_ndims(scopes) = 1 and cardinality(scopes) between 1 and 6
    and scopes <@ array['documents:read', 'documents:write', 'retrievals:read', 'chat:read',
      'collections:manage', 'admin']),
  -- Null is every collection that the owner may use.
  collection_id uuid,
  -- Set by the deployer: this key's own limit a minute over the functions that take keys.
  requests_per_minute integer check (requests_per_minute > 0),
  created_at timestamptz not null default now(),
  expires_at timestamptz check (expires_at < '9999-12-31Z'),
  -- As exact as the functions' caches of a minute.
  last_used_at timestamptz,
  revoked_at timestamptz,
  -- When a new key took its place; it may still go on for a while.
  replaced_at timestamptz,
  primary key (org_id, id),
  -- rag_open_key: a key is found by its hash, before anybody knows its org.
  constraint api_keys_hash unique (hash),
  foreign key (org_id, collection_id) references rag.collections (org_id, id) on delete cascade
);

-- Deleting a user, or a collection, with the keys that go with it.
create index api_keys_by_owner on rag.api_keys (owner_id);
create index api_keys_by_collection on rag.api_keys (org_id, collection_id);

alter table rag.api_keys enable row level security;
alter table rag.api_keys force row level security;

-- The token that looks a key up has no user and no org: it names a hash and sees that one row.
create policy "owners and admins use their keys, and a key finds itself" on rag.api_keys
  for all to authenticated
  using ((org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
    or hash = (select rag.sought_hash()))
  with check ((org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
    or hash = (select rag.sought_hash()));

-- An admin's key for somebody else would act in that person's name.
create policy "keys are made for oneself" on rag.api_keys
  as restrictive for insert to authenticated
  with check (owner_id = (select auth.uid()));

create policy "a key manages keys with the scope for it" on rag.api_keys
  as restrictive for all to authenticated
  using ((select rag.has_scope('admin')))
  with check ((select rag.has_scope('admin')));

create policy "a bound key stays in its collection" on rag.api_keys
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

grant select on rag.api_keys to authenticated;
grant insert (org_id, owner_id, name, prefix, hash, scopes, collection_id, expires_at, requests_per_minute)
  on rag.api_keys to authenticated;
grant update (last_used_at, expires_at, revoked_at, replaced_at) on rag.api_keys to authenticated;

create function rag.key_only_ends()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if new.revoked_at is distinct from coalesce(old.revoked_at, new.revoked_at)
    or new.replaced_at is distinct from coalesce(old.replaced_at, new.replaced_at)
    or coalesce(new.expires_at, 'infinity') > coalesce(old.expires_at, 'infinity')
  then
    raise exception 'a key that has ended stays so' using errcode = 'PT400', detail = 'key_ended';
  end if;
  return new;
end;
$$;

-- Whatever the caller may update: no key comes back, and none lives longer than it was made for.
create trigger key_only_ends before update on rag.api_keys
  for each row execute function rag.key_only_ends();

-- What a list shows of a key.
create type rag.api_key as (
  id uuid, org_id uuid, owner_id uuid, name text, prefix text, scopes text[], collection text,
  created_at timestamptz, expires_at timestamptz, last_used_at timestamptz, revoked_at timestamptz
);

create function rag.shown(key rag.api_keys)
returns rag.api_key
language sql stable security invoker set search_path = ''
as $$
  select key.id, key.org_id, key.owner_id, key.name, key.prefix, key.scopes,
    (select collections.name from rag.collections
      where collections.org_id = key.org_id and collections.id = key.collection_id),
    key.created_at, key.expires_at, key.last_used_at, key.revoked_at;
$$;

-- The keys that the caller may manage, or the one: working ones first, then the newest.
create function public.rag_list_keys(key_id uuid default null)
returns setof rag.api_key
language sql stable security invoker set search_path = ''
as $$
  select (rag.shown(api_keys)).*
  from rag.api_keys
  where org_id = any (array(select rag.current_org_ids()))
    and (rag_list_keys.key_id is null or id = rag_list_keys.key_id)
  order by revoked_at is not null or coalesce(expires_at < now(), false), created_at desc, id
  limit 1000;
$$;

-- A new key of the caller's, in their only org unless it is named. collection is the name of one, or null
-- for all.
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
  if org_id is null then
    if 1 < (select count(*) from rag.current_org_ids()) then
      raise exception 'org_id must say which of your orgs' using errcode = 'PT400', detail = 'org_required';
    end if;
    org_id := (select rag.current_org_ids());
  end if;
  if org_id is null or org_id not in (select rag.current_org_ids()) then
    raise exception 'no such org' using errcode = 'PT404', detail = 'org_not_found';
  elsif 'admin' = any (scopes) and org_id not in (select rag.admin_org_ids()) then
    raise exception 'the scope admin is for the org''s admins' using errcode = 'PT403', detail = 'admin_required';
  elsif expires_at <= now() then
    raise exception 'expires_at is in the past' using errcode = 'PT400', detail = 'invalid_expiry';
  end if;
  -- One at a time for each owner, so that two at once do not both see room for the last.
  perform pg_advisory_xact_lock(hashtextextended('rag.api_keys ' || auth.uid()::text, 0));
  if 100 <= (select count(*) from rag.api_keys as present
    where present.org_id = rag_create_key.org_id and present.owner_id = auth.uid()
      and present.revoked_at is null and present.replaced_at is null
      and (present.expires_at is null or present.expires_at > now())) then
    raise exception 'there are 100 keys already; revoke one first' using errcode = 'PT400', detail = 'too_many_keys';
  end if;

  if collection is not null then
    select named.id into bound
    from rag.collections as named
    where named.org_id = rag_create_key.org_id and named.name = collection
      and (named.owner_id is null or named.owner_id = auth.uid())
    order by named.owner_id nulls last
    limit 1;
    if bound is null then
      raise exception 'no such collection' using errcode = 'PT404', detail = 'collection_not_found';
    end if;
  end if;

  insert into rag.api_keys (org_id, owner_id, name, prefix, hash, scopes, collection_id, expires_at)
  values (org_id, auth.uid(), name, prefix, hash, scopes, bound, expires_at)
  returning * into made;
  return next rag.shown(made);
end;
$$;

-- Replace a key of the caller's by a new one of the same name, scopes, collection and lifetime. The old
-- one works for `overlap_seconds` more, so that its users can change over; at most a week.
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
  if overlap_seconds is null or overlap_seconds not between 0 and 604800 then
    raise exception 'overlap_seconds must be between 0 and 604800' using errcode = 'PT400', detail = 'invalid_overlap';
  end if;

  -- Taken for update: of two rotations at once the second finds it ended.
  select * into old
  from rag.api_keys as present
  where present.org_id = any (array(select rag.current_org_ids())) and present.id = key_id
    and present.owner_id = auth.uid() and present.revoked_at is null and present.replaced_at is null
    and (present.expires_at is null or present.expires_at > now())
  for update;
  if not found then
    raise exception 'no such key' using errcode = 'PT404', detail = 'key_not_found';
  end if;

  update rag.api_keys as ending
  set replaced_at = now(), revoked_at = case when overlap_seconds = 0 then now() end,
    expires_at = case when overlap_seconds = 0 then old.expires_at
      else least(old.expires_at, now() + make_interval(secs => overlap_seconds)) end
  where ending.org_id = old.org_id and ending.id = old.id;

  insert into rag.api_keys (org_id, owner_id, name, prefix, hash, scopes, collection_id, expires_at,
    requests_per_minute)
  values (old.org_id, old.owner_id, old.name, prefix, hash, old.scopes, old.collection_id,
    now() + (old.expires_at - old.created_at), old.requests_per_minute)
  returning * into made;
  return next rag.shown(made);
end;
$$;

-- True when the caller has such a key; it has ended then, now or before.
create function public.rag_revoke_key(key_id uuid)
returns boolean
language sql volatile security invoker set search_path = ''
as $$
  with ended as (
    update rag.api_keys set revoked_at = coalesce(revoked_at, now())
    where org_id = any (array(select rag.current_org_ids())) and id = rag_revoke_key.key_id
    returning 1
  )
  select exists (select from ended);
$$;

-- What the key stands for whose hash the token names; nothing for a key that is unknown, revoked or has
-- expired. One index look-up, whichever it is.
create function public.rag_open_key()
returns table (key_id uuid, org_id uuid, owner_id uuid, collection_id uuid, scopes text[],
  requests_per_minute integer, expires_at timestamptz)
language sql volatile security invoker set search_path = ''
as $$
  update rag.api_keys set last_used_at = now()
  where hash = (select rag.sought_hash()) and revoked_at is null
    and (expires_at is null or expires_at > now())
  returning id, org_id, owner_id, collection_id, scopes, requests_per_minute, expires_at;
$$;

revoke all on function rag.key_only_ends(), rag.shown(rag.api_keys), public.rag_list_keys(uuid), public.rag_revoke_key(uuid),
  public.rag_create_key(text, text, text, text[], uuid, text, timestamptz),
  public.rag_rotate_key(uuid, text, text, integer), public.rag_open_key()
  from public, anon, service_role;
grant execute on function rag.key_only_ends(), rag.shown(rag.api_keys), public.rag_list_keys(uuid), public.rag_revoke_key(uuid),
  public.rag_create_key(text, text, text, text[], uuid, text, timestamptz),
  public.rag_rotate_key(uuid, text, text, integer), public.rag_open_key()
  to authenticated;
