-- Changes of rag.members by an org's admins, where the deployment keeps its memberships in that table. The caller's own
-- rights decide: auth.users is not readable, so a user is named by id. No admin changes or removes their own membership,
-- so that every org keeps an admin; other members may leave. Admins invite: a user whom another org could add without
-- consent would find its documents in every search (46_invitations.sql).

create policy "admins invite users to their orgs" on rag.members
  for insert to authenticated
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null
    and accepted_at is null);

create policy "admins change the other members of their orgs, and users accept their invitations" on rag.members
  for update to authenticated
  using (case when user_id = (select rag.current_user_id()) then accepted_at is null and (select auth.jwt()) -> 'rag' is null
      and (select rag.has_scope('admin'))
    else org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null end)
  with check (case when user_id = (select rag.current_user_id()) then accepted_at is not null
    else org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null end);

create policy "admins remove other members, and members leave" on rag.members
  for delete to authenticated
  using (case when user_id = (select rag.current_user_id())
    then (role <> 'admin' or accepted_at is null) and (select rag.caller_id()) = user_id
      and (select rag.has_scope('admin'))
    else org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null end);

create function rag.manage_members(org_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- First, so that of two admins who remove each other at once the second is no admin any more.
  perform pg_advisory_xact_lock(hashtextextended('rag.members ' || org_id, 0));
  perform rag.require_admin(org_id);
  if rag.caller_id() <> rag.current_user_id() then
    raise exception 'An API key cannot change members. Use your own token.'
      using errcode = 'PT403', detail = 'user_required';
  elsif not exists (
    select from rag.members
    where members.org_id = manage_members.org_id and members.user_id = rag.current_user_id() and members.accepted_at is not null)
  then
    raise exception 'This deployment keeps its members in a table of its own. Change them there.'
      using errcode = 'PT409', detail = 'members_elsewhere';
  end if;
  -- For the policy of rag.members (rag.listed_org_ids), in this transaction.
  perform set_config('rag.lists_members', 'true', true);
end;
$$;

comment on function rag.manage_members is
  'Begins a change of the org''s members: PT403 for a caller who is no admin, or an API key, whose '
  'changes would last longer than the key; PT409 if the memberships are not in rag.members.';

create function rag.record_member_event(org_id uuid, event text, user_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
begin
  insert into rag.audit_events (org_id, user_id, event, namespace, document_count, chunk_count)
  values (org_id, rag.current_user_id(), event, user_id::text, 0, 0);
end;
$$;

comment on function rag.record_member_event is 'Write an audit event about a membership. user_id: whose it is.';

create function public.rag_put_member(
  user_id uuid, org_id uuid default null, role text default 'member', name text default null
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(org_id);
begin
  perform rag.manage_members(org);
  if role is null or role not in ('admin', 'member') then
    raise exception 'role must be admin or member' using errcode = 'PT400', detail = 'invalid_role';
  elsif length(name) not between 1 and 200 or not rag.is_visible_text(name) then
    raise exception 'name must have 1 to 200 characters, none of them invisible'
      using errcode = 'PT400', detail = 'invalid_name';
  elsif user_id = rag.current_user_id() then
    raise exception 'Admins cannot change or remove their own membership. Ask another admin of the org.'
      using errcode = 'PT409', detail = 'own_membership';
  elsif (
    select count(*) filter (where members.accepted_at is null) >= 100 and not bool_or(members.user_id = user_id)
    from rag.members where members.org_id = org)
  then
    raise exception 'The org has 100 open invitations. Remove some of them first.'
      using errcode = 'PT409', detail = 'too_many_invitations';
  end if;
  insert into rag.members as present (org_id, user_id, role, name, accepted_at)
  values (org, user_id, role, name, null)
  on conflict on constraint members_pkey do update set role = excluded.role, name = excluded.name;
  perform rag.record_member_event(org, 'member.put', user_id);
exception
  when foreign_key_violation or not_null_violation then
    raise exception 'There is no user with this id. Check the id.' using errcode = 'PT404', detail = 'user_not_found';
end;
$$;

comment on function public.rag_put_member is
  'Invite a user to an org that the caller administers, or replace the role and name of a member or an invitation. PT403 '
  'for a caller who is no admin; PT404 for an unknown user of Supabase Auth (third-party users are not checked); PT409 for the caller''s own membership, with 100 open invitations, and '
  'where the memberships are not in rag.members.';

create function public.rag_remove_member(user_id uuid, org_id uuid default null)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  org constant uuid := rag.resolve_org(org_id);
begin
  if user_id <> rag.caller_id() or org in (select rag.admin_org_ids()) then
    perform rag.manage_members(org);
    if user_id = rag.current_user_id() then
      raise exception 'Admins cannot change or remove their own membership. Ask another admin of the org.'
        using errcode = 'PT409', detail = 'own_membership';
    end if;
  end if;
  update rag.api_keys set revoked_at = now()
  where api_keys.org_id = org and api_keys.owner_id = rag_remove_member.user_id and api_keys.revoked_at is null;
  delete from rag.group_members
  where group_members.org_id = org and group_members.owner_id = rag_remove_member.user_id;
  delete from rag.collection_grants as given where given.org_id = org and given.user_id = rag_remove_member.user_id;
  perform rag.record_member_event(org, 'member.remove', user_id);
  delete from rag.members where members.org_id = org and members.user_id = rag_remove_member.user_id;
  if not found then
    raise exception 'The org has no such member. Check the id of the user.'
      using errcode = 'PT404', detail = 'member_not_found';
  end if;
end;
$$;

comment on function public.rag_remove_member is
  'Remove a member or an invitation of an org that the caller administers, or leave an org. The member''s keys of the org are '
  'revoked, and the member''s groups and grants are deleted; private documents stay, for the admins. PT403 for a caller who is no admin; PT404 for a user who is no member; PT409 '
  'for an admin''s own membership, and where the memberships are not in rag.members.';
