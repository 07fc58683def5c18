-- Audit events of the knowledge API, of quotas of tokens (28_token_quotas.sql) and of members
-- (../10_identity/45_manage_members.sql): counts and a score, never a text or
-- a query. The functions write each event as the caller of the request. The org's admins read the events; members do
-- not, because the counts include private documents. No user changes or deletes an event: the deployer prunes them in
-- SQL.

create table rag.audit_events (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid,
  user_id uuid not null,
  event text not null check (event in ('knowledge.ingest', 'knowledge.retrieve', 'knowledge.query', 'knowledge.delete',
    'quota.alert', 'quota.exceeded', 'member.put', 'member.remove')),
  namespace text not null check (length(namespace) between 1 and 255),
  collection_id uuid,
  document_count integer not null check (document_count >= 0),
  chunk_count integer not null check (chunk_count >= 0),
  top_score double precision check (top_score between 0 and 1),
  created_at timestamptz not null default now(),
  primary key (org_id, id)
);

comment on table rag.audit_events is 'Audit events of the knowledge API, of quotas of tokens and of changes of members.';
comment on column rag.audit_events.namespace is 'For events of a quota: the quota; of a member: the id of the user.';
comment on column rag.audit_events.owner_id is 'The owner of a private namespace; null for a shared one.';
comment on column rag.audit_events.user_id is 'The user who sent the request.';
comment on column rag.audit_events.collection_id is
  'Null where there was none of that name. The event remains when the collection is deleted.';
comment on column rag.audit_events.top_score is 'The score of the best chunk; null without a chunk.';

-- rag_list_events; and pruning, org by org.
create index audit_events_by_time on rag.audit_events (org_id, created_at desc, id);

call rag.admit_members('audit_events');

create policy "events are of oneself" on rag.audit_events
  as restrictive for insert to authenticated
  with check (user_id = (select rag.current_user_id()));

create policy "a key notes what its scopes let it do" on rag.audit_events
  as restrictive for insert to authenticated
  with check (case when event in ('knowledge.ingest', 'knowledge.delete')
    then (select rag.has_scope('documents:write'))
    when event in ('quota.alert', 'quota.exceeded') then true
    when event in ('member.put', 'member.remove') then (select rag.caller_id()) = (select rag.current_user_id())
    else (select rag.has_scope('retrievals:read', 'chat:read')) end);

create policy "admins read events" on rag.audit_events
  as restrictive for select to authenticated
  using (org_id = any (array(select rag.admin_org_ids())));

-- A request of a bound key outside its collection has no collection.
create policy "a bound key stays in its collection" on rag.audit_events
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id is null
    or collection_id = (select rag.bound_collection()));

create function public.rag_record_event(
  event text, namespace text, documents integer default 0, chunks integer default 0,
  top_score double precision default null, measures jsonb default '[]'
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  org_id constant uuid := rag.resolve_org(null);
  home rag.collections;
begin
  perform rag.check_owner_in_name(org_id, rag_record_event.namespace);
  select * into home from rag.collection_by_name(org_id, rag_record_event.namespace, or_deleted => true);
  insert into rag.audit_events (
    org_id, owner_id, user_id, event, namespace, collection_id, document_count, chunk_count, top_score)
  values (
    org_id, coalesce(home.owner_id, rag.owner_in_name(rag_record_event.namespace)), rag.current_user_id(), rag_record_event.event,
    rag_record_event.namespace, home.id, rag_record_event.documents, rag_record_event.chunks,
    rag_record_event.top_score);
  perform public.rag_record_metrics(rag_record_event.measures);
end;
$$;

comment on function public.rag_record_event is
  'Record a request of the caller in a namespace, and add its metrics; measures: as rag_record_metrics takes them.';

create function public.rag_list_events(
  "limit" integer default 20, "offset" integer default 0, namespace text default null, event text default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  perform rag.check_page("limit", "offset", 'desc', 'created_at', array['created_at']);
  perform rag.require_admin_org();
  return (
    with listed as (
      select audit_events.*
      from rag.audit_events
      where audit_events.org_id = any (array(select rag.admin_org_ids()))
        and (rag_list_events.namespace is null or audit_events.namespace = rag_list_events.namespace)
        and (rag_list_events.event is null or audit_events.event = rag_list_events.event)
    ), page as (
      select listed.*
      from listed
      order by listed.created_at desc, listed.id
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from listed),
      'events', coalesce(jsonb_agg(to_jsonb(page) order by page.created_at desc, page.id), '[]'))
    from page);
end;
$$;

comment on function public.rag_list_events is
  '{"total", "events": [...]}: a page of the events of the orgs that the caller administers, the latest first, and '
  'their number; namespace and event filter them. PT403 for a caller who administers no org.';
