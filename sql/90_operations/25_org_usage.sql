-- Calls of each user in an org today, for the org's admins. A row is reused the next day, so there is one for each user
-- who ever called. rag_check_rate_limit writes it, rag_stats reads it.

create table rag.org_calls (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  owner_id uuid not null,
  day date not null,
  total bigint not null check (total > 0),
  primary key (org_id, owner_id)
);

comment on table rag.org_calls is 'Calls of each user in an org today.';
comment on column rag.org_calls.owner_id is 'The user who calls.';
comment on column rag.org_calls.day is 'In UTC, as is the midnight that starts it.';

alter table rag.org_calls enable row level security;
alter table rag.org_calls force row level security;

create policy "callers see their own calls, admins their org's" on rag.org_calls
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "calls are of oneself" on rag.org_calls
  as restrictive for insert to authenticated
  with check (owner_id = (select auth.uid()));

create policy "users count their own calls" on rag.org_calls
  as restrictive for update to authenticated
  using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));

create function rag.count_org_call()
returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.org_calls as present (org_id, owner_id, day, total)
  select own.ids[1], auth.uid(), (clock_timestamp() at time zone 'UTC')::date, 1
  from (select array(select rag.current_org_ids()) as ids) as own
  where cardinality(own.ids) = 1
  on conflict on constraint org_calls_pkey do update set
    day = greatest(present.day, excluded.day),
    total = case when present.day < excluded.day then 0 else present.total end + 1;
$$;

comment on function rag.count_org_call is
  'Count a call of a token that is for one org alone. For several orgs it is unknown which one the call concerns, '
  'and no other may learn of it.';
