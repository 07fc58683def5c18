-- Invitations: rows of rag.members without accepted_at. Admins write them, and only the invited user accepts, with a token
-- of their own: neither a key nor a narrowed token does.

-- A policy sees the old row in one expression and the new row in another. This compares them.
create function rag.check_consent()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if row_security_active(tg_relid) and (case when new.user_id = rag.current_user_id()
    then (new.role, new.name) is distinct from (old.role, old.name)
    else new.accepted_at is distinct from old.accepted_at end)
  then
    raise exception 'Only the invited user accepts an invitation, and only admins change the role and the name.'
      using errcode = 'PT403', detail = 'consent_required';
  end if;
  return new;
end;
$$;

comment on function rag.check_consent is
  'Raises PT403 for an admin who accepts for another user, and for a user who changes their own role or name. Roles that row '
  'security does not restrict change all.';

create trigger check_consent before update on rag.members for each row execute function rag.check_consent();

create function public.rag_list_invitations()
returns table (org_id uuid, org_name text, role text, created_at timestamptz)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call(needs_org => false);
  return query
    select members.org_id, orgs.name, members.role, members.created_at
    from rag.members join rag.orgs on orgs.id = members.org_id
    where members.user_id = rag.current_user_id() and members.accepted_at is null and auth.jwt() -> 'rag' is null
    order by members.created_at, members.org_id
    limit 100;
end;
$$;

comment on function public.rag_list_invitations is
  'The caller''s open invitations, the oldest first, at most 100, with the role that the user gets. A user without an org may '
  'call it. Empty for a key.';

create function public.rag_answer_invitation(org_id uuid, accept boolean)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call(needs_org => false);
begin
  if accept then
    update rag.members set accepted_at = now()
    where members.org_id = rag_answer_invitation.org_id and members.user_id = rag.current_user_id() and members.accepted_at is null;
  elsif auth.jwt() -> 'rag' is null then
    delete from rag.members
    where members.org_id = rag_answer_invitation.org_id and members.user_id = rag.current_user_id() and members.accepted_at is null
      and not accept;
  end if;
  if not found then
    raise exception 'You have no open invitation to this org. Check its id.'
      using errcode = 'PT404', detail = 'invitation_not_found';
  end if;
end;
$$;

comment on function public.rag_answer_invitation is
  'Accept or decline the caller''s own invitation to an org. A user without an org may call it. PT404 without an open '
  'invitation, and for a key.';
