-- API keys with scopes and a binding to one collection, tiers of limits, counted requests.
-- The files of sql/ that are new stand here as they are; of the others, what changed.

-- How much each org may ask, as data: a tier's requests a day for each of its people, and, where it says
-- so, other limits a minute than the deployment's own. Written by the deployer, read by every signed-in
-- caller inside rag_hit. The tiers are the same for all orgs: a table without an org.

create table rag.tiers (
  name text primary key check (name ~ '^[a-z][a-z0-9-]{0,39}$'),
  -- A user's requests a day, those of all their API keys included; null is no limit by day.
  requests_per_day integer check (requests_per_day > 0),
  -- A user's over the rag pair, and a user's or a key's over all other functions; null leaves it to the
  -- deployment (RAG_RATE_LIMIT, RAG_API_RATE_LIMIT).
  rag_requests_per_minute integer check (rag_requests_per_minute > 0),
  api_requests_per_minute integer check (api_requests_per_minute > 0)
);

alter table rag.tiers enable row level security;
alter table rag.tiers force row level security;

create policy "signed-in callers read the tiers" on rag.tiers
  for select to authenticated using (true);

grant select on rag.tiers to authenticated;

insert into rag.tiers (name, requests_per_day) values
  ('standard', null), ('free', 100), ('developer', 10000), ('professional', 100000);

alter table rag.orgs add column tier text not null default 'standard' references rag.tiers (name) on update cascade;
create index orgs_by_tier on rag.orgs (tier);

-- What a token says about itself beyond its user. A user's own token says nothing here and is not narrowed.
-- The short-lived token that stands for an API key carries {"rag": {"org", "collection", "scopes", "key",
-- "requests_per_minute"}}, and every policy asks these functions. They only ever narrow, and a claim that
-- cannot be read allows nothing. (The org is rag.current_org_ids()'s to read.)

-- Whether the token carries one of the scopes, or admin, which implies them all.
create function rag.has_scope(variadic wanted text[])
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select case
    when coalesce(jsonb_typeof(token.claim), 'null') = 'null' then true
    when jsonb_typeof(token.claim) <> 'object' then false
    when coalesce(jsonb_typeof(token.claim -> 'scopes'), 'null') = 'null' then true
    when jsonb_typeof(token.claim -> 'scopes') = 'array'
      then token.claim -> 'scopes' ?| (wanted || array['admin'])
    else false
  end
  from (select auth.jwt() -> 'rag') as token (claim);
$$;

-- The one collection that the token is bound to; null when it is not, no collection's id when it is to
-- something that is no id.
create function rag.bound_collection()
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select case
    when coalesce(jsonb_typeof(token.claim), 'null') = 'null' then null
    when jsonb_typeof(token.claim) = 'object'
      and coalesce(jsonb_typeof(token.claim -> 'collection'), 'null') = 'null' then null
    when token.claim ->> 'collection' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
      then (token.claim ->> 'collection')::uuid
    else '00000000-0000-0000-0000-000000000000'
  end
  from (select auth.jwt() -> 'rag') as token (claim);
$$;

-- Whose budget a request spends: the API key's own, or the user's.
create function rag.caller_id()
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select coalesce((auth.jwt() -> 'rag' ->> 'key')::uuid, auth.uid());
$$;

-- Two claims of tokens without a user, which widen nothing but these: the hash of the API key that is
-- looked up, and the leave to read the sums of /metrics.
create function rag.sought_hash()
returns text
language sql stable security invoker set search_path = ''
as $$
  select auth.jwt() -> 'rag' ->> 'key_hash';
$$;

create function rag.reads_metrics()
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select coalesce(auth.jwt() -> 'rag' -> 'metrics' = 'true', false);
$$;

revoke all on function rag.has_scope(text[]), rag.bound_collection(), rag.caller_id(), rag.sought_hash(),
  rag.reads_metrics() from public, anon, service_role;
grant execute on function rag.has_scope(text[]), rag.bound_collection(), rag.caller_id(), rag.sought_hash(),
  rag.reads_metrics() to authenticated;

create or replace function rag.admin_org_ids()
returns setof uuid
language sql stable security invoker set search_path = ''
as $$
  select memberships.org_id
  from rag.memberships()
  where memberships.role = 'admin'
    and memberships.org_id in (select rag.current_org_ids())
    and rag.has_scope('admin');
$$;

-- What an API key may do to collections, documents and chunks.
-- A collection comes into being with its first document: writing documents is enough for that.
create policy "a key makes collections with a scope that writes" on rag.collections
  as restrictive for insert to authenticated
  with check ((select rag.has_scope('collections:manage', 'documents:write')));

create policy "a key changes collections with collections:manage" on rag.collections
  as restrictive for update to authenticated
  using ((select rag.has_scope('collections:manage')))
  with check ((select rag.has_scope('collections:manage')));

-- Its documents go with it, whether or not the key may write documents.
create policy "a key deletes collections with collections:manage" on rag.collections
  as restrictive for delete to authenticated
  using ((select rag.has_scope('collections:manage')));

create policy "a bound key stays in its collection" on rag.collections
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or id = (select rag.bound_collection()));

create policy "a key reads and writes with the scopes for it" on rag.documents
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read')))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.documents
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.documents
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

create policy "a key reads and writes with the scopes for it" on rag.chunks
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read')))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.chunks
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.chunks
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

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
  -- As exact as the functions' caches, which keep a key for less than a minute.
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

-- An admin's key for somebody else would act in that person's name; and a key that could make keys would
-- outlive its own end in them. (The caller of a key's token is the key.)
create policy "keys are made for oneself, by oneself" on rag.api_keys
  as restrictive for insert to authenticated
  with check (owner_id = (select rag.caller_id()));

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

revoke all on function rag.key_only_ends() from public, anon, service_role;
grant execute on function rag.key_only_ends() to authenticated;

-- What owners and admins do with API keys, and what the functions do with one that arrives. All run as their
-- caller; row security decides whose keys are whose.

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
  -- Joined, not expanded: (f(row)).* would call it once for each column.
  select shown.*
  from rag.api_keys
  cross join lateral rag.shown(api_keys) as shown
  where api_keys.org_id = any (array(select rag.current_org_ids()))
    and (rag_list_keys.key_id is null or api_keys.id = rag_list_keys.key_id)
  order by api_keys.revoked_at is not null or coalesce(api_keys.expires_at < now(), false),
    api_keys.created_at desc, api_keys.id
  limit 1000;
$$;

-- Refuses, with a reason, a key that would be one too many or not made by its owner. Locks, so that two at
-- once do not both see room for the last.
create function rag.require_room_for_a_key(org_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if rag.caller_id() <> auth.uid() then
    raise exception 'API keys are made with a user''s own token'
      using errcode = 'PT403', detail = 'user_required';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.api_keys ' || auth.uid()::text, 0));
  if 100 <= (
    select count(*)
    from rag.api_keys
    where api_keys.org_id = require_room_for_a_key.org_id and owner_id = auth.uid()
      and revoked_at is null and (expires_at is null or expires_at > now())
  ) then
    raise exception 'there are 100 working keys already; revoke one first'
      using errcode = 'PT400', detail = 'too_many_keys';
  end if;
end;
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
    raise exception 'the scope admin is for the org''s admins'
      using errcode = 'PT403', detail = 'admin_required';
  elsif expires_at <= now() then
    raise exception 'expires_at is in the past' using errcode = 'PT400', detail = 'invalid_expiry';
  end if;
  perform rag.require_room_for_a_key(org_id);

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
    raise exception 'overlap_seconds must be between 0 and 604800'
      using errcode = 'PT400', detail = 'invalid_overlap';
  end if;

  -- Taken for update: of two rotations at once the second finds it replaced.
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
  -- After the old one has ended; one that goes on for a while counts.
  perform rag.require_room_for_a_key(old.org_id);

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

revoke all on function rag.shown(rag.api_keys), rag.require_room_for_a_key(uuid), public.rag_list_keys(uuid), public.rag_revoke_key(uuid),
  public.rag_create_key(text, text, text, text[], uuid, text, timestamptz),
  public.rag_rotate_key(uuid, text, text, integer), public.rag_open_key()
  from public, anon, service_role;
grant execute on function rag.shown(rag.api_keys), rag.require_room_for_a_key(uuid), public.rag_list_keys(uuid), public.rag_revoke_key(uuid),
  public.rag_create_key(text, text, text, text[], uuid, text, timestamptz),
  public.rag_rotate_key(uuid, text, text, integer), public.rag_open_key()
  to authenticated;

-- Counts of the current windows are all that this forgets.
drop function public.rag_hit(text, integer, integer);
drop table rag.rate_limits;

-- Requests counted where every instance can see them. A row is one caller's current window in one bucket;
-- it starts with the first request and is reused when it has run out, so the table never grows past
-- callers x buckets x windows. Callers spend only their own: who they are comes from the token, never from
-- an argument, and no exposed function counts backwards. (A deleted user's few rows stay.)

create table rag.rate_limits (
  -- A user, or an API key: rag.caller_id().
  caller_id uuid not null,
  -- rag: the rag pair; api: all other functions; day: both, with all keys of a user, by their tier.
  bucket text not null check (bucket in ('rag', 'api', 'day')),
  window_seconds integer not null check (window_seconds in (1, 60, 3600, 86400)),
  started_at timestamptz not null,
  hits bigint not null check (hits >= 0),
  primary key (caller_id, bucket, window_seconds)
);

alter table rag.rate_limits enable row level security;
alter table rag.rate_limits force row level security;

create policy "callers spend their own budget" on rag.rate_limits
  for all to authenticated
  using (caller_id = any (array[(select auth.uid()), (select rag.caller_id())]))
  with check (caller_id = any (array[(select auth.uid()), (select rag.caller_id())]));

grant select, insert, update on rag.rate_limits to authenticated;

-- Requests by user, function and outcome, since ever: what /metrics sums over all users, so that its
-- counters are true over all instances. Each user has rows of their own, so that nobody waits for others.
create table rag.request_counts (
  user_id uuid not null,
  -- The deployed functions; whoever adds one says so here.
  function text not null check (function in ('rag-search', 'rag-answer', 'api-keys')),
  outcome text not null check (outcome in ('admitted', 'limited')),
  total bigint not null check (total > 0),
  primary key (user_id, function, outcome)
);

alter table rag.request_counts enable row level security;
alter table rag.request_counts force row level security;

create policy "callers count their own requests, metrics read all" on rag.request_counts
  for all to authenticated
  using (user_id = (select auth.uid()) or (select rag.reads_metrics()))
  with check (user_id = (select auth.uid()));

grant select, insert, update on rag.request_counts to authenticated;

-- Under which limits the caller stands: the deployment's own for the bucket (`requests` in
-- `window_seconds`), unless a tier or, before all others, the API key sets one a minute; and the tier's by
-- day. Of several orgs' tiers the most generous counts. (A user has one day for all orgs: a key of an org
-- with a smaller tier finds it spent by what the user asked elsewhere.)
create function rag.limits_of_caller(bucket text, requests integer, window_seconds integer)
returns table (caller_id uuid, bucket text, requests integer, window_seconds integer)
language sql stable security invoker set search_path = ''
as $$
  with tiers_of_caller as (
    select tiers.requests_per_day, case limits_of_caller.bucket
      when 'rag' then tiers.rag_requests_per_minute else tiers.api_requests_per_minute end as per_minute
    from rag.orgs
    join rag.tiers on tiers.name = orgs.tier
    where orgs.id = any (array(select rag.current_org_ids()))
  ), rates (requests, window_seconds, precedence) as (
    select own.per_minute, 60, 1
    from (select (auth.jwt() -> 'rag' ->> 'requests_per_minute')::integer) as own (per_minute)
    where own.per_minute is not null
    union all
    select coalesce(per_minute, limits_of_caller.requests),
      case when per_minute is null then limits_of_caller.window_seconds else 60 end, 2
    from tiers_of_caller
    union all
    select limits_of_caller.requests, limits_of_caller.window_seconds, 3
  )
  (
    select rag.caller_id(), limits_of_caller.bucket, rates.requests, rates.window_seconds
    from rates
    order by rates.precedence, rates.requests::numeric / rates.window_seconds desc
    limit 1
  )
  union all
  select auth.uid(), 'day', max(requests_per_day), 86400
  from tiers_of_caller
  having bool_and(requests_per_day is not null);
$$;

-- Count `amount` requests in one window, if there is room for them; where the window stands then. Atomic
-- under any number of callers: the row is locked before it is judged, and kept until the caller commits.
create function rag.count_hits(
  caller_id uuid, bucket text, requests integer, window_seconds integer, amount integer
)
returns table (hits bigint, resets_at timestamptz, admitted boolean)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  length constant interval := make_interval(secs => window_seconds);
begin
  insert into rag.rate_limits as spent (caller_id, bucket, window_seconds, started_at, hits)
  select caller_id, bucket, window_seconds, clock_timestamp(), amount
  where amount <= requests
  on conflict on constraint rate_limits_pkey do update set
    hits = case when spent.started_at + length > excluded.started_at
      then spent.hits + excluded.hits else excluded.hits end,
    started_at = case when spent.started_at + length > excluded.started_at
      then spent.started_at else excluded.started_at end
  where spent.hits + excluded.hits <= requests or spent.started_at + length <= excluded.started_at
  returning spent.hits, spent.started_at + length, true into hits, resets_at, admitted;
  if not found then
    select spent.hits, spent.started_at + length into hits, resets_at
    from rag.rate_limits as spent
    where spent.caller_id = count_hits.caller_id and spent.bucket = count_hits.bucket
      and spent.window_seconds = count_hits.window_seconds and spent.started_at + length > clock_timestamp();
    hits := coalesce(hits, 0);
    resets_at := coalesce(resets_at, clock_timestamp() + length);
    admitted := false;
  end if;
  return next;
end;
$$;

-- One request, or `amount` of them, of a function: a row for each limit that the caller stands under, with
-- where its window stands now. Admitted only if all windows have room, and then counted in all, else in
-- none: a caller is let through exactly as often as each limit says. One round trip. It returns rows and
-- never raises for a limit, since raising would roll the count back.
create function public.rag_hit(
  function text, bucket text, requests integer, window_seconds integer, amount integer default 1
)
returns table (allowed integer, seconds integer, hits bigint, resets_at timestamptz, admitted boolean)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  per record;
  paid record;
begin
  if auth.uid() is null or coalesce(requests, 0) < 1 or coalesce(amount, 0) not between 1 and 1000 then
    return;
  elsif bucket not in ('rag', 'api') or window_seconds not in (1, 60, 3600, 86400) then
    raise exception 'unknown bucket or window' using errcode = 'PT400', detail = 'invalid_limit';
  end if;

  -- The minute before the day, always: two requests lock their rows in the same order.
  for per in
    select named.* from rag.limits_of_caller(bucket, requests, window_seconds) as named
    order by named.bucket = 'day'
  loop
    select per.requests, per.window_seconds, counted.*
    into allowed, seconds, hits, resets_at, admitted
    from rag.count_hits(per.caller_id, per.bucket, per.requests, per.window_seconds, amount) as counted;
    return next;
    exit when not admitted;
    paid := per;
  end loop;

  if not admitted and paid is not null then
    -- The day is spent: the minute gets back what it was charged for this request.
    update rag.rate_limits as spent set hits = spent.hits - amount
    where spent.caller_id = paid.caller_id and spent.bucket = paid.bucket
      and spent.window_seconds = paid.window_seconds;
  end if;

  insert into rag.request_counts as present (user_id, function, outcome, total)
  values (auth.uid(), function, case when admitted then 'admitted' else 'limited' end, 1)
  on conflict on constraint request_counts_pkey do update set total = present.total + excluded.total;
end;
$$;

-- What /metrics shows, summed over all users. For the functions' own token alone, which has no user and
-- says what it is for; everybody else gets nothing.
create function public.rag_metrics()
returns table (name text, labels jsonb, value double precision)
language sql stable security invoker set search_path = ''
as $$
  select 'rag_requests_total', jsonb_build_object('function', function, 'outcome', outcome), sum(total)
  from rag.request_counts
  where (select rag.reads_metrics())
  group by function, outcome;
$$;

revoke all on function rag.limits_of_caller(text, integer, integer),
  rag.count_hits(uuid, text, integer, integer, integer), public.rag_metrics(),
  public.rag_hit(text, text, integer, integer, integer) from public, anon, service_role;
grant execute on function rag.limits_of_caller(text, integer, integer),
  rag.count_hits(uuid, text, integer, integer, integer), public.rag_metrics(),
  public.rag_hit(text, text, integer, integer, integer) to authenticated;

-- filters: the fields of rag.filters; other keys are ignored.
create or replace function public.rag_match(
  query_vector extensions.vector,
  top_k integer default 8,
  filters jsonb default '{}'
)
returns table (
  chunk_id uuid, document_id uuid, org_id uuid, ordinal integer, content text,
  span_start integer, span_end integer, similarity double precision,
  source_type text, title text, uri text, lang text, occurred_at timestamptz, metadata jsonb,
  exact boolean, candidates integer
)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  dimensions constant integer := extensions.vector_dims(query_vector);
  needle extensions.halfvec(1536);
  wanted rag.filters;
  org_ids uuid[];
  settings rag.settings;
  nearest uuid[];
  -- Said once, used three times, planned each time for the values at hand ($1 org ids, $2 filters).
  visible constant text := $scope$
    rag.chunks
    where org_id = any ($1) and embedding_model = ($2).model
      and (($2).source_type is null or source_type = ($2).source_type)
      and (($2).lang is null or lang = ($2).lang)
      and (($2).date_from is null or occurred_at >= ($2).date_from)
      and (($2).date_to is null or occurred_at <= ($2).date_to)
  $scope$;
begin
  if dimensions is distinct from 1536 then
    raise exception 'query_vector has % dimensions, not 1536', dimensions
      using errcode = 'PT400', detail = 'wrong_dimensions', hint = 'pad shorter embeddings with zeros';
  elsif top_k is null or top_k not between 1 and 100 then
    raise exception 'top_k must be between 1 and 100' using errcode = 'PT400', detail = 'invalid_top_k';
  elsif jsonb_typeof(coalesce(filters, '{}')) <> 'object' then
    raise exception 'filters must be an object' using errcode = 'PT400', detail = 'invalid_filters';
  elsif not rag.has_scope('retrievals:read', 'chat:read') then
    raise exception 'the key lacks the scope retrievals:read' using errcode = 'PT403', detail = 'missing_scope';
  end if;

  needle := query_vector::extensions.halfvec(1536);
  -- Asked of the half-precision vector: a tiny one may have become zero.
  if extensions.l2_norm(needle) = 0 then
    raise exception 'query_vector has no direction' using errcode = 'PT400', detail = 'zero_vector';
  end if;
  select * into settings from rag.settings;
  wanted := jsonb_populate_record(null::rag.filters, coalesce(filters, '{}'));
  wanted.model := coalesce(wanted.model, settings.embedding_model);
  org_ids := array(
    select ids.id from rag.current_org_ids() as ids (id)
    where wanted.org_id is null or ids.id = wanted.org_id);

  execute format('select count(*) from (select from %s limit $3) as bounded', visible)
    into candidates using org_ids, wanted, settings.exact_rows + 1;
  exact := candidates <= settings.exact_rows;

  if not exact then
    perform set_config('hnsw.iterative_scan', 'relaxed_order', true),
      set_config('hnsw.ef_search', greatest(100, 2 * top_k)::text, true);
    execute format('select array(select id from %s order by embedding operator(extensions.<=>) $3 limit $4)', visible)
      into nearest using org_ids, wanted, needle, 2 * top_k;
    exact := cardinality(nearest) < 2 * top_k;
  end if;
  if exact then
    -- "+ 0" keeps the HNSW index out of the scan.
    execute format('select array(select id from %s order by (embedding operator(extensions.<=>) $3) + 0, id limit $4)',
      visible) into nearest using org_ids, wanted, needle, top_k;
  end if;

  return query
  select chunks.id, chunks.document_id, chunks.org_id, chunks.ordinal, chunks.content,
    chunks.span_start, chunks.span_end, greatest(0, least(1, 1 - found.distance)),
    documents.source_type, documents.title, documents.uri, documents.lang, documents.occurred_at,
    documents.metadata, rag_match.exact, rag_match.candidates
  from rag.chunks
  join rag.documents on documents.org_id = chunks.org_id and documents.id = chunks.document_id
  cross join lateral (select chunks.embedding operator(extensions.<=>) needle) as found (distance)
  where chunks.org_id = any (org_ids) and chunks.id = any (nearest)
  order by found.distance, chunks.id
  limit rag_match.top_k;
end;
$$;
