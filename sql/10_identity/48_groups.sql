-- Groups of an org and their members. A grant on a collection names a group (../20_documents/12_collection_grants.sql). A
-- group is a name: rows, a claim of the token or the adopter's own tables say which groups a user belongs to.
--
-- rag.group_memberships() is the one function that an adopter replaces to plug in groups of their own.

create table rag.groups (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  name text not null check (length(name) between 1 and 200 and rag.is_visible_text(name)),
  owner_id uuid check (owner_id is null),
  description text check (length(description) <= 500 and rag.is_visible_text(description)),
  created_at timestamptz not null default now(),
  primary key (org_id, name)
);

comment on table rag.groups is 'Groups of orgs whose members are rows, written by admins.';
comment on column rag.groups.owner_id is 'Always null: groups belong to the org.';

create table rag.group_members (
  org_id uuid not null,
  group_name text not null,
  owner_id uuid not null,
  created_at timestamptz not null default now(),
  auth_user_id uuid generated always as (rag.auth_user_id(owner_id)) stored references auth.users (id) on delete cascade,
  primary key (org_id, group_name, owner_id),
  foreign key (org_id, group_name) references rag.groups (org_id, name) on delete cascade
);

comment on table rag.group_members is 'Members of groups, written by admins. A member reads their own rows.';
comment on column rag.group_members.owner_id is 'The user who belongs to the group. Without a membership of the org, the row gives no right.';

-- rag.group_memberships().
create index group_members_by_user on rag.group_members (owner_id);
-- Deleting a user.
create index group_members_by_auth_user on rag.group_members (auth_user_id);

create function rag.claimed_groups()
returns table (org_id uuid, group_name text)
language sql stable security invoker set search_path = ''
as $$
  select ids.id, named.name
  from rag.settings
  cross join lateral (select auth.jwt() #> settings.groups_claim as names offset 0) as claim
  cross join rag.current_org_ids() as ids (id)
  cross join lateral jsonb_array_elements_text(case
    when jsonb_typeof(claim.names) = 'array' then claim.names
    when jsonb_typeof(claim.names -> ids.id::text) = 'array' then claim.names -> ids.id::text
    else '[]' end) as named (name)
  where claim.names is not null;
$$;

comment on function rag.claimed_groups is
  'The groups that the claim of rag.settings.groups_claim names: a list for all the caller''s orgs, or a list for each.';

create function rag.group_memberships()
returns table (org_id uuid, group_name text)
language sql stable security invoker set search_path = ''
begin atomic
  select group_members.org_id, group_members.group_name
  from rag.group_members
  where group_members.owner_id = (select rag.current_user_id())
  union all
  select claimed.org_id, claimed.group_name from rag.claimed_groups() as claimed;
end;

comment on function rag.group_memberships is
  'The caller''s groups. An adopter with groups in tables of their own replaces this function.';

create function rag.closed_collections(access text)
returns setof uuid
language plpgsql stable security invoker set search_path = '' rows 10
as $$
declare
  rights constant text[] := case closed_collections.access when 'manage' then array['manage']
    when 'edit' then array['edit', 'manage'] else array['view', 'edit', 'manage'] end;
  -- The result for the further calls of this transaction, a dozen in a search, after a hash of the claims. A caller who could
  -- set it could set the claims.
  setting constant text := 'rag.closed_to_' || closed_collections.access;
  caller constant text := md5(coalesce(current_setting('request.jwt.claims', true), ''));
  closed text := current_setting(setting, true);
begin
  if left(closed, 32) = caller then
    closed := substr(closed, 33);
  else
    -- Otherwise the policies of the two tables would call this function again. This setting opens no documents.
    perform set_config('rag.reads_grants', 'true', true);
    closed := array(
      select collections.id
      from rag.collections
      where collections.restricted_by is not null and collections.owner_id is null and collections.deleted_at is null
        and collections.org_id <> all (array(select rag.admin_org_ids()))
        and (collections.org_id, collections.id) not in (
          select given.org_id, given.collection_id
          from rag.collection_grants as given
          where given.access = any (rights)
            and (closed_collections.access <> 'original' or given.original or given.access <> 'view')
            and (given.user_id = (select rag.current_user_id()) or (given.org_id, given.group_name) in (
              select own.org_id, own.group_name from rag.group_memberships() as own))));
    perform set_config('rag.reads_grants', '', true), set_config(setting, caller || closed, true);
  end if;
  if closed <> '{}' then
    return query select unnest(closed::uuid[]);
  end if;
end;
$$;

comment on function rag.closed_collections is
  'The restricted collections of the caller''s orgs in which the caller lacks a right: view, edit, manage, or original (to read '
  'the original files). None of an org that the caller administers. Policies call it once a statement; it reads the grants once '
  'a transaction.';

create function rag.forget_closed_collections()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform set_config('rag.closed_to_' || access, '', true)
  from unnest(array['view', 'edit', 'manage', 'original']) as access;
  return null;
end;
$$;

comment on function rag.forget_closed_collections is
  'Trigger after which rag.closed_collections reads the grants again in this transaction.';

create trigger forget_closed_collections after insert or update or delete on rag.group_members
  for each statement execute function rag.forget_closed_collections();
