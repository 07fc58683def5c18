-- Calls of each user in an org by day, for the org's admins. rag_check_rate_limit writes a row for each user and day,
-- rag_list_usage, rag_list_members and rag_stats read them. The worker deletes them after 90 days.

create table rag.org_calls (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  owner_id uuid not null,
  day date not null,
  total bigint not null check (total > 0),
  primary key (org_id, owner_id, day)
);

comment on table rag.org_calls is 'Calls of each user in an org, by day.';
comment on column rag.org_calls.owner_id is 'The user who calls.';
comment on column rag.org_calls.day is 'In UTC, as is the midnight that starts it.';
comment on column rag.org_calls.total is
  'Requests that the rate limit admitted, whatever their result. Health checks and direct calls are not counted.';

-- rag_list_usage, rag_stats
create index org_calls_by_day on rag.org_calls (org_id, day);

-- rag_remove_old_calls
create index org_calls_old on rag.org_calls (day);

alter table rag.org_calls enable row level security;
alter table rag.org_calls force row level security;

create policy "callers see their own calls, admins their org's" on rag.org_calls
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select rag.current_user_id())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select rag.current_user_id())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "calls are of oneself" on rag.org_calls
  as restrictive for insert to authenticated
  with check (owner_id = (select rag.current_user_id()));

create policy "users count their own calls" on rag.org_calls
  as restrictive for update to authenticated
  using (owner_id = (select rag.current_user_id())) with check (owner_id = (select rag.current_user_id()));

create function rag.first_counted_day()
returns date
language sql stable security invoker set search_path = ''
as $$
  select (now() at time zone 'UTC')::date - 89;
$$;

comment on function rag.first_counted_day is 'The earliest day whose calls are kept: with today, 90 days.';

create policy "the worker sees old calls" on rag.org_calls
  for select to rag_worker using (day < (select rag.first_counted_day()));

create policy "the worker removes old calls" on rag.org_calls
  for delete to rag_worker using (day < (select rag.first_counted_day()));

create function public.rag_remove_old_calls()
returns bigint
language sql volatile security invoker set search_path = ''
as $$
  -- Raises PT401 for a token of another issuer.
  select rag.current_user_id();
  with removed as (
    delete from rag.org_calls
    where day = (select min(old.day) from rag.org_calls as old where old.day < rag.first_counted_day())
    returning 1
  ), ended as (
    delete from rag.rate_limits
    where bucket like '%link %' and started_at < now() - interval '1 day'
    returning 1
  )
  select (select count(*) from removed) + (select count(*) from ended);
$$;

comment on function public.rag_remove_old_calls is
  'For the worker: remove the counts of the oldest day that is more than 90 days ago, and the windows of download links '
  'that have ended, and return the number of both. More days need more calls.';

create function rag.count_org_call(org_ids uuid[])
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  today constant date := (clock_timestamp() at time zone 'UTC')::date;
begin
  if cardinality(org_ids) <> 1 then
    return;
  end if;
  -- Row security reads the memberships for an update half as often as for an insert.
  update rag.org_calls as present set total = present.total + 1
  where present.org_id = org_ids[1] and present.owner_id = rag.current_user_id() and present.day = today;
  if not found then
    insert into rag.org_calls as present (org_id, owner_id, day, total)
    values (org_ids[1], rag.current_user_id(), today, 1)
    on conflict on constraint org_calls_pkey do update set total = present.total + 1;
  end if;
end;
$$;

comment on function rag.count_org_call is
  'Count a call of a token that is for one of these orgs alone. For several orgs it is unknown which one the call concerns, '
  'and no other may learn of it.';

create function public.rag_list_usage(days integer default 30)
returns table (day date, calls bigint, users bigint, model_tokens bigint, embedding_tokens bigint)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_call();
  own constant uuid[] := rag.require_admin_org();
  today constant date := (now() at time zone 'UTC')::date;
begin
  perform rag.require_whole_org();
  if rag_list_usage.days is null or rag_list_usage.days not between 1 and 90 then
    raise exception 'days must be between 1 and 90' using errcode = 'PT400', detail = 'invalid_days';
  end if;
  return query
    select dates.day, coalesce(sum(org_calls.total), 0)::bigint, count(distinct org_calls.owner_id),
      (select coalesce(sum(spent.tokens), 0)::bigint from rag.token_usage as spent
      where spent.org_id = any (own) and spent.day = dates.day and spent.quota = 'model'),
      (select coalesce(sum(spent.tokens), 0)::bigint from rag.token_usage as spent
      where spent.org_id = any (own) and spent.day = dates.day and spent.quota = 'embedding')
    from (
      select today - ago as day from generate_series(0, rag_list_usage.days - 1) as ago
    ) as dates
    left join rag.org_calls on org_calls.day = dates.day and org_calls.org_id = any (own)
      and org_calls.day > today - rag_list_usage.days
    group by dates.day
    order by dates.day;
end;
$$;

comment on function public.rag_list_usage is
  'The calls of the last days, today included, in the orgs that the caller administers: by day in UTC, their number, '
  'that of the users who called, and the tokens of models. Days without calls are included. PT403 for a caller who '
  'administers no org, and for a key that is bound to a collection.';
