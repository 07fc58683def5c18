-- Orgs and their members. An org is a tenant; a member belongs to it as admin or member. The deployer writes orgs and
-- members (SQL editor, seed, own back office), an org's admins invite users (45_manage_members.sql); signed-in callers read
-- their own rows. An invitation is a row without accepted_at: it is no membership, and only the invited user accepts it.
--
-- rag.memberships() is the one function that an adopter replaces to plug in a membership table of their
-- own (and rag.org_members(), if the list of members is to show theirs). Everything else asks
-- rag.current_org_ids() and rag.admin_org_ids(), which stay as they are: they narrow the memberships by the
-- claims that a token carries, so no replacement can widen a token.

create table rag.orgs (
  id uuid primary key default gen_random_uuid(),
  name text not null check (length(name) between 1 and 200),
  tier text not null default 'standard' references rag.tiers (name) on update cascade,
  record_days integer check (record_days between 1 and 3650),
  embedding_model text check (length(embedding_model) between 1 and 100),
  restricts_collections boolean not null default false,
  served jsonb not null default '{}',
  created_at timestamptz not null default now()
);

comment on table rag.orgs is 'Tenants, written by the deployer.';
comment on column rag.orgs.record_days is
  'The days for which answered requests are recorded (rag.request_records); null records none. A shorter '
  'retention also applies to earlier records. The org''s admins change it too.';
comment on column rag.orgs.embedding_model is
  'The model of the org''s embeddings, if the deployment changed it; null: that of rag.settings.';
comment on column rag.orgs.restricts_collections is
  'Whether a new collection that belongs to the whole org is restricted: its creator alone has a grant. The org''s admins '
  'change it.';
comment on column rag.orgs.served is
  'When the worker last claimed work of the org, by kind: ingestion, extraction, source. Orgs take turns by it, and no user '
  'can change it.';

-- Renaming a tier.
create index orgs_by_tier on rag.orgs (tier);

create table rag.members (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  user_id uuid not null,
  role text not null default 'member' check (role in ('admin', 'member')),
  name text check (length(name) between 1 and 200 and rag.is_visible_text(name)),
  created_at timestamptz not null default now(),
  accepted_at timestamptz default now(),
  auth_user_id uuid generated always as (rag.auth_user_id(user_id)) stored references auth.users (id) on delete cascade,
  primary key (org_id, user_id)
);

comment on table rag.members is 'Members of orgs and their roles, and invitations. Written by the deployer and by admins.';
comment on column rag.members.name is
  'The member''s name or address, for the org''s admins. Null: they see the user''s id.';
comment on column rag.members.accepted_at is
  'Null: an invitation, which the user has not accepted, and which gives no right. A row of the deployer''s is accepted.';

-- memberships() and the policy of rag.orgs: where user_id = rag.current_user_id()
create index members_by_user on rag.members (user_id) include (org_id, role, accepted_at);

-- Deleting a user.
create index members_by_auth_user on rag.members (auth_user_id);

alter table rag.orgs enable row level security;
alter table rag.orgs force row level security;
alter table rag.members enable row level security;
alter table rag.members force row level security;

create function rag.memberships()
returns table (org_id uuid, role text)
language sql stable security invoker set search_path = ''
begin atomic
  select members.org_id, members.role
  from rag.members
  where members.user_id = (select rag.current_user_id()) and members.accepted_at is not null;
end;

comment on function rag.memberships is
  'The caller''s orgs and roles. An adopter with a membership table of their own replaces this function.';

create function rag.current_org_ids()
returns setof uuid
language sql stable security invoker set search_path = ''
as $$
  select memberships.org_id
  from rag.memberships(), lateral (select auth.jwt() -> 'rag') as token (claim)
  -- Of an adopter's memberships() too: a token of an issuer that is not trusted raises PT401.
  where (select rag.current_user_id()) is not null and memberships.org_id is not null
    and (coalesce(jsonb_typeof(token.claim), 'null') = 'null'
      or (jsonb_typeof(token.claim) = 'object'
        and coalesce(lower(token.claim ->> 'org'), memberships.org_id::text) = memberships.org_id::text));
$$;

comment on function rag.current_org_ids is
  'The orgs that the caller''s token permits: those of all memberships, or only the org in the claim {"rag": {"org": '
  '"<uuid>"}} of an API key''s token. A malformed claim permits none.';

create function rag.admin_org_ids()
returns setof uuid
language sql stable security invoker set search_path = ''
as $$
  select memberships.org_id
  from rag.memberships()
  where memberships.role = 'admin'
    and memberships.org_id in (select rag.current_org_ids())
    and rag.has_scope('admin');
$$;

comment on function rag.admin_org_ids is 'The orgs that the caller administers, with a token that has the scope admin.';

create function rag.require_admin_org()
returns uuid[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  own constant uuid[] := array(select rag.admin_org_ids());
begin
  if cardinality(own) = 0 then
    raise exception 'Only admins of the org may see this. An API key also needs the scope admin.'
      using errcode = 'PT403', detail = 'admin_required';
  end if;
  return own;
end;
$$;

comment on function rag.require_admin_org is 'The orgs that the caller administers; PT403 without one.';

create function rag.require_admin(org_id uuid)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if require_admin.org_id not in (select rag.admin_org_ids()) or rag.bound_collection() is not null then
    raise exception 'Only admins of the org may do this. A key needs the scope admin, and no bound collection.'
      using errcode = 'PT403', detail = 'admin_required';
  end if;
end;
$$;

comment on function rag.require_admin is
  'Raises PT403 for a caller who is no admin of the org, and for a key that is bound to a collection.';

create function rag.listed_org_ids()
returns setof uuid
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if current_setting('rag.lists_members', true) = 'true' then
    -- admin_org_ids() reads rag.members, whose policy calls this function again.
    perform set_config('rag.lists_members', 'false', true);
    return query select rag.admin_org_ids();
    perform set_config('rag.lists_members', 'true', true);
  end if;
end;
$$;

comment on function rag.listed_org_ids is
  'The orgs whose members the caller may list: in rag_list_members those that the caller administers, elsewhere none. '
  'The setting rag.lists_members only prevents the recursion of the policy: it grants nothing to a caller who is no '
  'admin.';

create policy "members read their orgs, and invited users the org" on rag.orgs
  for select to authenticated
  using (id = any (array(select rag.current_org_ids())) or id = any (array(
    select members.org_id from rag.members
    where members.user_id = (select rag.current_user_id()) and members.accepted_at is null)));

create policy "the worker sees the tiers of orgs" on rag.orgs
  for select to rag_worker using (true);

create policy "the worker notes when it served an org" on rag.orgs
  for update to rag_worker using (true) with check (true);

create policy "admins change the settings of their orgs" on rag.orgs
  for update to authenticated
  using (id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

-- Not current_org_ids(), which reads this table and would recurse endlessly.
create policy "users read their own memberships, admins list their orgs'" on rag.members
  for select to authenticated
  using (user_id = (select rag.current_user_id()) or org_id = any (array(select rag.listed_org_ids())));

create function rag.org_members(org_ids uuid[])
returns table (org_id uuid, user_id uuid, role text, name text, created_at timestamptz)
language sql stable security invoker set search_path = ''
begin atomic
  select members.org_id, members.user_id, members.role, members.name, members.created_at
  from rag.members
  where members.org_id = any (org_members.org_ids) and members.accepted_at is not null;
end;

comment on function rag.org_members is
  'The members of these orgs, for rag_list_members. An adopter who has replaced rag.memberships() replaces this function '
  'too, or the list of members is empty.';

create function rag.resolve_org(org_id uuid)
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
declare
  own constant uuid[] := array(select rag.current_org_ids());
begin
  if org_id is null and cardinality(own) > 1 then
    raise exception 'You belong to several orgs. Set org_id to one of them.'
      using errcode = 'PT400', detail = 'org_required';
  elsif coalesce(org_id, own[1]) = any (own) then
    return coalesce(org_id, own[1]);
  end if;
  raise exception 'There is no such org. Check its id.' using errcode = 'PT404', detail = 'org_not_found';
end;
$$;

comment on function rag.resolve_org is
  'The given org, or the caller''s only org. Raises PT400 if the caller has several, and PT404 for an org of '
  'others.';

create function rag.org_tier(org_id uuid)
returns rag.tiers
language sql stable security invoker set search_path = ''
as $$
  select tiers.*
  from rag.orgs join rag.tiers on tiers.name = orgs.tier
  where orgs.id = org_tier.org_id;
$$;

comment on function rag.org_tier is 'The tier of an org; null fields if the org is not the caller''s.';

create function rag.paused_org_ids()
returns setof uuid
language sql stable security invoker set search_path = ''
as $$
  select orgs.id
  from rag.tiers join rag.orgs on orgs.tier = tiers.name
  where tiers.is_paused;
$$;

comment on function rag.paused_org_ids is
  'The orgs whose tier is paused, for the worker''s claims; of a user''s orgs those that are.';

create function public.is_org_member(org_id uuid)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select coalesce(is_org_member.org_id in (select rag.current_org_ids()), false);
$$;

comment on function public.is_org_member is
  'Whether the caller is a member of the org, for an adopter''s own policies and for clients.';

create function public.rag_list_orgs()
returns table (id uuid, name text, role text, embedding_model text)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call(), rag.require_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read',
    'collections:manage');
  return query
    select memberships.org_id, orgs.name,
      coalesce(max(memberships.role) filter (where memberships.role = 'admin'), max(memberships.role)),
      coalesce(orgs.embedding_model, settings.embedding_model)
    from rag.memberships()
    left join rag.orgs on orgs.id = memberships.org_id
    cross join rag.settings
    where memberships.org_id in (select rag.current_org_ids())
    group by memberships.org_id, orgs.name, orgs.embedding_model, settings.embedding_model
    order by orgs.name, memberships.org_id
    limit 1000;
end;
$$;

comment on function public.rag_list_orgs is
  'The caller''s orgs by name, at most 1,000. The name is null for an org without a row in rag.orgs, which an '
  'adopter''s memberships may have. Of several roles in an org it is admin. embedding_model: with which new documents '
  'of the org are embedded. A key needs any scope.';
