-- API keys. A function that receives a key looks up its hash and signs a token of one minute, which acts as the key's
-- owner in the key's org, restricted to its scopes and its collection; row security applies to that token. Only the
-- hash is stored, and no function returns it. Owners create, list, rotate and revoke their own keys; an org's admins
-- list and revoke all of the org's keys.

create table rag.api_keys (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid not null references auth.users (id) on delete cascade,
  name text not null check (length(name) between 1 and 100 and rag.is_visible_text(name)),
  prefix text not null check (prefix ~ '^(mn_live|mn_test|mn_admin|sk)_[A-Za-z0-9_-]{4}$'),
  hash text not null check (hash ~ '^[0-9a-f]{64}$'),
  scopes text[] not null check (array_ndims(scopes) = 1 and cardinality(scopes) between 1 and 6
    and scopes <@ array['documents:read', 'documents:write', 'retrievals:read', 'chat:read',
      'collections:manage', 'admin']),
  collection_id uuid,
  requests_per_minute integer check (requests_per_minute > 0),
  created_at timestamptz not null default now(),
  expires_at timestamptz check (expires_at < '9999-12-31Z'),
  last_used_at timestamptz,
  revoked_at timestamptz,
  replaced_at timestamptz,
  primary key (org_id, id),
  -- rag_open_key: a key is found by its hash, before its org is known.
  constraint api_keys_hash unique (hash),
  foreign key (org_id, collection_id) references rag.collections (org_id, id) on delete cascade
);

comment on table rag.api_keys is 'API keys: the hash, owner, scopes and validity of each.';
comment on column rag.api_keys.owner_id is
  'The user as whom the key acts. A key never has more rights than its owner, and is invalid without the membership.';
comment on column rag.api_keys.prefix is 'The first characters of the key, which distinguish keys in a list.';
comment on column rag.api_keys.hash is 'SHA-256 of the whole key, whose 256 random bits need no slower hash.';
comment on column rag.api_keys.collection_id is 'Null is every collection that the owner may use.';
comment on column rag.api_keys.requests_per_minute is
  'Set by the deployer: this key''s own limit a minute over the functions that take keys. Its requests also count for '
  'the user. If the key''s limit is higher than the user''s, it replaces the user''s for them (rag.caller_limits).';
comment on column rag.api_keys.last_used_at is
  'As exact as the functions'' caches, which keep a key for less than a minute.';
comment on column rag.api_keys.replaced_at is
  'When a new key replaced this one. The old key may stay valid until expires_at.';

-- Cascades from a deleted user or collection.
create index api_keys_by_owner on rag.api_keys (owner_id);
create index api_keys_by_collection on rag.api_keys (org_id, collection_id);

alter table rag.api_keys enable row level security;
alter table rag.api_keys force row level security;

-- The token that looks a key up has no user and no org: it names a hash and sees that one row.
create policy "owners and admins use their keys, and a key finds itself" on rag.api_keys
  for all to authenticated
  using ((org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select rag.current_user_id())
      or org_id = any (array(select rag.admin_org_ids()))))
    or hash = (select rag.lookup_hash()))
  with check ((org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select rag.current_user_id())
      or org_id = any (array(select rag.admin_org_ids()))))
    or hash = (select rag.lookup_hash()));

-- An admin's key for another user would act in that person's name; and a key that could make keys would
-- create keys that are valid after its own expiry. (The caller of a key's token is the key.)
create policy "keys are made for oneself, by oneself" on rag.api_keys
  as restrictive for insert to authenticated
  with check (owner_id = (select rag.caller_id()));

create policy "a key manages keys with the scope for it" on rag.api_keys
  as restrictive for all to authenticated
  using ((select rag.has_scope('admin')))
  with check ((select rag.has_scope('admin')));

call rag.bind_keys('api_keys');

create function rag.prevent_key_revival()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if new.revoked_at is distinct from coalesce(old.revoked_at, new.revoked_at)
    or new.replaced_at is distinct from coalesce(old.replaced_at, new.replaced_at)
    or coalesce(new.expires_at, 'infinity') > coalesce(old.expires_at, 'infinity')
  then
    raise exception 'A revoked or replaced key cannot be used again, and its expiry cannot be later. Create another key.'
      using errcode = 'PT400', detail = 'key_ended';
  end if;
  return new;
end;
$$;

comment on function rag.prevent_key_revival is
  'Trigger that raises PT400 for an update which would make a revoked, replaced or expired key valid again.';

-- Applies to every update that the policies permit: no key becomes valid again, or valid for longer.
create trigger key_only_ends before update on rag.api_keys
  for each row execute function rag.prevent_key_revival();
