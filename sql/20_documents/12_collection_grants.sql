-- Grants on restricted collections: a group or a user may view, edit or manage a collection. `view` reads, `edit` adds, changes
-- and deletes documents, `manage` also changes the grants and the collection. Managers write them, those who may view the
-- collection read them. rag.closed_collections (../10_identity/48_groups.sql) decides by them, for all policies.

create table rag.collection_grants (
  org_id uuid not null,
  id uuid not null default gen_random_uuid(),
  collection_id uuid not null,
  owner_id uuid check (owner_id is null),
  group_name text check (length(group_name) between 1 and 200 and rag.is_visible_text(group_name)),
  user_id uuid,
  access text not null check (access in ('view', 'edit', 'manage')),
  original boolean not null default true,
  created_at timestamptz not null default now(),
  primary key (org_id, id),
  check (num_nonnulls(group_name, user_id) = 1),
  constraint collection_grants_grantee unique nulls not distinct (org_id, collection_id, group_name, user_id),
  foreign key (org_id, collection_id) references rag.collections (org_id, id) on delete cascade
);

comment on table rag.collection_grants is 'Who may view, edit or manage a restricted collection.';
comment on column rag.collection_grants.owner_id is 'Always null: a grant belongs to its collection.';
comment on column rag.collection_grants.group_name is
  'The name of a group (rag.group_memberships), which may have no row in rag.groups.';
comment on column rag.collection_grants.original is
  'Whether the original files may be read too. Those who edit or manage read them in any case.';

call rag.admit_members('groups');
call rag.admit_members('group_members', 'members of groups');
call rag.admit_members('collection_grants', 'grants');
call rag.bind_keys('collection_grants');

create policy "admins manage groups" on rag.groups
  as restrictive for all to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins add members of groups" on rag.group_members
  as restrictive for insert to authenticated
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins remove members of groups, and members leave" on rag.group_members
  as restrictive for delete to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null
    or owner_id = (select rag.caller_id()));

create policy "managers grant" on rag.collection_grants
  as restrictive for insert to authenticated
  with check ((select rag.has_scope('collections:manage'))
    and collection_id not in (select rag.closed_collections('manage')));

create policy "managers change grants" on rag.collection_grants
  as restrictive for update to authenticated
  using ((select rag.has_scope('collections:manage')) and collection_id not in (select rag.closed_collections('manage')))
  with check ((select rag.has_scope('collections:manage')));

create policy "managers revoke" on rag.collection_grants
  as restrictive for delete to authenticated
  using ((select rag.has_scope('collections:manage')) and collection_id not in (select rag.closed_collections('manage')));

create function rag.require_access(collection_id uuid, access text)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if require_access.collection_id in (select rag.closed_collections(require_access.access)) then
    raise exception 'You may not % this collection. Ask one of its managers for a grant.', require_access.access
      using errcode = 'PT403', detail = 'access_denied';
  end if;
end;
$$;

comment on function rag.require_access is
  'Raises PT403 for a collection that the caller sees without the right: edit or manage. Row security refuses it too.';

create trigger forget_closed_collections after insert or update or delete on rag.collection_grants
  for each statement execute function rag.forget_closed_collections();

create trigger forget_closed_collections after update of restricted_by, owner_id, deleted_at on rag.collections
  for each statement execute function rag.forget_closed_collections();

create function rag.check_restriction()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- A session of the deployer may restrict every collection.
  if old.restricted_by is null and old.created_by <> rag.creator_id() and rag.current_user_id() is not null
    and old.org_id not in (select rag.admin_org_ids())
  then
    raise exception 'Only its creator and the admins of the org may restrict a collection that all members may use.'
      using errcode = 'PT403', detail = 'access_denied';
  end if;
  return new;
end;
$$;

comment on function rag.check_restriction is
  'Trigger that raises PT403 for a member who would take a collection from the others.';

create trigger check_restriction before update of restricted_by on rag.collections
  for each row when (new.restricted_by is distinct from old.restricted_by)
  execute function rag.check_restriction();

create function rag.restrict_new_collection()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if rag.current_user_id() is null or not exists (
    select from rag.orgs where orgs.id = new.org_id and orgs.restricts_collections)
  then
    return null;
  end if;
  -- While the collection is open, its creator may write grants.
  insert into rag.collection_grants (org_id, collection_id, user_id, access)
  values (new.org_id, new.id, new.created_by, 'manage');
  update rag.collections set restricted_by = new.created_by
  where collections.org_id = new.org_id and collections.id = new.id;
  if not found then
    raise exception 'New collections of your org are restricted. Use a key with the scope collections:manage.'
      using errcode = 'PT403', detail = 'missing_scope';
  end if;
  return null;
end;
$$;

comment on function rag.restrict_new_collection is
  'Trigger that restricts a new collection to its creator, in orgs that ask for it (rag.orgs.restricts_collections).';

create trigger restrict_new_collection after insert on rag.collections
  for each row when (new.owner_id is null and new.deleted_at is null and new.restricted_by is null)
  execute function rag.restrict_new_collection();

create function rag.copy_access(older rag.collections, newer rag.collections)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if older.restricted_by is null then
    update rag.collections set restricted_by = null
    where collections.org_id = newer.org_id and collections.id = newer.id;
    delete from rag.collection_grants as given where given.org_id = newer.org_id and given.collection_id = newer.id;
    return;
  end if;
  insert into rag.collection_grants (org_id, collection_id, group_name, user_id, access, original)
  select given.org_id, newer.id, given.group_name, given.user_id, given.access, given.original
  from rag.collection_grants as given
  where given.org_id = older.org_id and given.collection_id = older.id
  on conflict do nothing;
  update rag.collections set restricted_by = older.restricted_by
  where collections.org_id = newer.org_id and collections.id = newer.id;
end;
$$;

comment on function rag.copy_access is 'Give a collection the restriction and the grants of another, which it replaces.';

create function public.rag_get_access(collection_id uuid)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.collections := rag.get_collection(rag_get_access.collection_id);
begin
  perform rag.require_scope('documents:read', 'collections:manage');
  return jsonb_build_object('collection_id', home.id, 'restricted', home.restricted_by is not null and home.owner_id is null,
    'access', case
      when home.owner_id is not null or home.id not in (select rag.closed_collections('manage')) then 'manage'
      when home.id not in (select rag.closed_collections('edit')) then 'edit'
      else 'view' end,
    'grants', (
      select coalesce(jsonb_agg(jsonb_build_object('group', given.group_name, 'user_id', given.user_id,
        'access', given.access, 'original', given.original) order by given.group_name, given.user_id), '[]')
      from rag.collection_grants as given
      where given.org_id = home.org_id and given.collection_id = home.id));
end;
$$;

comment on function public.rag_get_access is
  'Who may use a collection: {"collection_id", "restricted", "access", "grants": [{"group", "user_id", "access", "original"}]}. '
  'access: the right of the caller. PT404 for a collection that the caller may not view.';

create function public.rag_put_access(collection_id uuid, restricted boolean, grants jsonb default '[]')
returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.collections := rag.get_collection(rag_put_access.collection_id);
begin
  perform rag.require_scope('collections:manage'), rag.require_access(home.id, 'manage');
  perform rag.check_json('grants', grants, 100000);
  if home.owner_id is not null then
    raise exception 'A private collection has no grants. Choose a collection of the org.'
      using errcode = 'PT400', detail = 'private_collection';
  elsif coalesce(jsonb_typeof(grants), 'null') <> 'array' or restricted is null or not restricted and grants <> '[]'
    or jsonb_array_length(grants) > 200
  then
    raise exception 'grants must be a list of at most 200 grants, and empty for a collection that is not restricted'
      using errcode = 'PT400', detail = 'invalid_grants';
  end if;
  -- In this order, the caller has the right to manage for each statement.
  if not restricted then
    update rag.collections set restricted_by = null where collections.org_id = home.org_id and collections.id = home.id;
  end if;
  insert into rag.collection_grants as given (org_id, collection_id, group_name, user_id, access, original)
  select home.org_id, home.id, wanted."group", wanted.user_id, wanted.access, coalesce(wanted.original, true)
  from jsonb_to_recordset(grants) as wanted ("group" text, user_id uuid, access text, original boolean)
  on conflict on constraint collection_grants_grantee
    do update set access = excluded.access, original = excluded.original;
  delete from rag.collection_grants as given
  where given.org_id = home.org_id and given.collection_id = home.id
    and not exists (
      select from jsonb_to_recordset(grants) as wanted ("group" text, user_id uuid)
      where (wanted."group", wanted.user_id) is not distinct from (given.group_name, given.user_id));
  if restricted and home.restricted_by is null then
    update rag.collections set restricted_by = rag.current_user_id()
    where collections.org_id = home.org_id and collections.id = home.id;
  end if;
  if home.id in (select rag.closed_collections('manage')) then
    raise exception 'You would no longer manage the collection. Keep a grant to manage for yourself or one of your groups.'
      using errcode = 'PT400', detail = 'own_grant';
  end if;
  return public.rag_get_access(home.id);
exception
  when check_violation or not_null_violation or invalid_text_representation then
    raise exception 'A grant has either a group or a user_id, and the access view, edit or manage.'
      using errcode = 'PT400', detail = 'invalid_grants';
  when cardinality_violation then
    raise exception 'A group or a user has two grants. Send one for each.' using errcode = 'PT400', detail = 'invalid_grants';
  when unique_violation then
    raise exception 'A collection of this name already exists. Choose another name.'
      using errcode = 'PT409', detail = 'duplicate_collection';
end;
$$;

comment on function public.rag_put_access is
  'Restrict a collection to grants, in place of the earlier ones, or open it to all members of the org. PT403 for a caller who '
  'may not manage it, PT400 for invalid grants, for a private collection, and for grants without one by which the caller '
  'manages it, PT409 for a name that is taken among the collections of all members.';

create function public.rag_list_groups(org_id uuid default null)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(rag_list_groups.org_id);
begin
  perform rag.require_admin(org);
  return jsonb_build_object(
    'restricts_collections', (select orgs.restricts_collections from rag.orgs where orgs.id = org),
    'groups', (
      select coalesce(jsonb_agg(jsonb_build_object('name', groups.name, 'description', groups.description,
        'user_ids', array(
          select group_members.owner_id from rag.group_members
          where group_members.org_id = org and group_members.group_name = groups.name
          order by group_members.owner_id)) order by groups.name), '[]')
      from rag.groups where groups.org_id = org));
end;
$$;

comment on function public.rag_list_groups is
  'For admins: {"restricts_collections", "groups": [{"name", "description", "user_ids"}]}. Groups of claims have no row.';

create function public.rag_put_group(
  name text, user_ids uuid[], description text default null, org_id uuid default null
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(rag_put_group.org_id);
begin
  perform rag.require_admin(org);
  if user_ids is null or cardinality(user_ids) > 10000 then
    raise exception 'user_ids must be a list of at most 10000 ids' using errcode = 'PT400', detail = 'invalid_group';
  end if;
  insert into rag.groups (org_id, name, description) values (org, rag_put_group.name, rag_put_group.description)
  on conflict on constraint groups_pkey do update set description = excluded.description;
  delete from rag.group_members
  where group_members.org_id = org and group_members.group_name = rag_put_group.name
    and group_members.owner_id <> all (user_ids);
  insert into rag.group_members (org_id, group_name, owner_id)
  select distinct org, rag_put_group.name, wanted.id from unnest(user_ids) as wanted (id)
  on conflict do nothing;
exception
  when check_violation or not_null_violation then
    raise exception 'A group has a name of 1 to 200 visible characters, and a description of at most 500.'
      using errcode = 'PT400', detail = 'invalid_group';
  when foreign_key_violation then
    raise exception 'There is no user with this id. Check the id.' using errcode = 'PT404', detail = 'user_not_found';
end;
$$;

comment on function public.rag_put_group is
  'For admins: create a group, or replace its members and description. PT404 for an unknown user of Supabase Auth.';

create function public.rag_delete_group(name text, org_id uuid default null)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(rag_delete_group.org_id);
begin
  perform rag.require_admin(org);
  delete from rag.collection_grants as given where given.org_id = org and given.group_name = rag_delete_group.name;
  delete from rag.groups where groups.org_id = org and groups.name = rag_delete_group.name;
  if not found then
    raise exception 'There is no such group. Check its name.' using errcode = 'PT404', detail = 'group_not_found';
  end if;
end;
$$;

comment on function public.rag_delete_group is
  'For admins: delete a group with its members and grants. Its collections stay restricted. PT404 for an unknown group.';

create function public.rag_restrict_new_collections(restricts boolean, org_id uuid default null)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(rag_restrict_new_collections.org_id);
begin
  perform rag.require_admin(org);
  update rag.orgs set restricts_collections = coalesce(restricts, false) where orgs.id = org;
end;
$$;

comment on function public.rag_restrict_new_collections is
  'For admins: whether new collections of the org are restricted to their creators.';
