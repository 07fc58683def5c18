-- The members of the orgs that an admin administers, with their calls, and the open invitations.

create function public.rag_list_members(
  "limit" integer default 20, "offset" integer default 0, invited boolean default false
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  own constant uuid[] := rag.require_admin_org();
begin
  perform rag.require_whole_org();
  perform rag.check_page("limit", "offset", 'desc', 'created_at', array['created_at']);
  -- For the policy of rag.members (rag.listed_org_ids), in this transaction.
  perform set_config('rag.lists_members', 'true', true);
  return (
    with listed as materialized (
      -- An adopter's replacement may return more.
      select members.* from rag.org_members(own) as members where members.org_id = any (own) and invited is not true
      union all
      select members.org_id, members.user_id, members.role, members.name, members.created_at
      from rag.members
      where members.org_id = any (own) and members.accepted_at is null and invited
    ), page as (
      select listed.*, row_number() over (order by listed.name, listed.user_id, listed.org_id) as position
      from listed
      order by position
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from listed),
      'members', coalesce(jsonb_agg(to_jsonb(page) - 'position' || to_jsonb(called) order by page.position), '[]'))
    from page
    cross join lateral (
      select coalesce(sum(org_calls.total), 0) as calls, max(org_calls.day) as last_called_on
      from rag.org_calls
      where org_calls.org_id = page.org_id and org_calls.owner_id = page.user_id
    ) as called);
end;
$$;

comment on function public.rag_list_members is
  '{"total", "members": [...]}: a page of the members of the orgs that the caller administers, by name, each with the '
  'calls of the last 90 days and the day of the last one; with `invited` the open invitations instead. PT403 for a caller who administers no org, and for a key that '
  'is bound to a collection.';
