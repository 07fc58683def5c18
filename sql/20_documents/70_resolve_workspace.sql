-- Resolution of the workspace (a collection) or org that a request of the search API names. Each request resolves it
-- once, before it costs anything; its later calls pass the resolved ids.

create type rag.workspace as (org_id uuid, collection_id uuid);

comment on type rag.workspace is 'The org, and the collection if one is named, that a request searches.';

create function public.rag_resolve_workspace(workspace_id uuid default null, org_id uuid default null)
returns setof rag.workspace
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_call();
  org_ids constant uuid[] := case when rag_resolve_workspace.org_id is null then array(select rag.current_org_ids())
    else array[rag.resolve_org(rag_resolve_workspace.org_id)] end;
begin
  if workspace_id is null and rag_resolve_workspace.org_id is null then
    raise exception 'The request must name a workspace or an org.'
      using errcode = 'PT400', detail = 'workspace_required';
  elsif workspace_id is null then
    return query select org_ids[1], null::uuid;
    return;
  end if;
  return query
  select collections.org_id, collections.id
  from rag.collections
  where collections.org_id = any (org_ids) and collections.id = workspace_id and collections.loading_name is null;
  if not found then
    raise exception 'There is no such workspace. Check its id.' using errcode = 'PT404', detail = 'workspace_not_found';
  end if;
end;
$$;

comment on function public.rag_resolve_workspace is
  'The org and collection that the ids denote for the caller; without a workspace, the org. PT404 for a workspace '
  'that the caller does not see, that is in another org than the given one, or that is being loaded; and for an org '
  'of others.';
