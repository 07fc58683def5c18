-- Quotas of tokens by org and day (UTC). The functions add the tokens of their calls of models; rag_check_rate_limit
-- returns which quotas are exceeded, and rag_open_job refuses a document. A tier sets two numbers for each quota: at
-- the first the org's admins get a webhook event and an audit event, at the second calls of the model stop until
-- midnight. Requests that run when the limit is reached end normally.
--
-- There are two quotas. model: prompts and replies of chat models, and texts of rerankers. embedding: embedded texts.
-- Local models cost no tokens.

create table rag.token_usage (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  owner_id uuid check (owner_id is null),
  day date not null,
  quota text not null check (quota in ('model', 'embedding')),
  tokens bigint not null check (tokens >= 0),
  calls bigint not null check (calls > 0),
  alerted_at timestamptz,
  exceeded_at timestamptz,
  primary key (org_id, day, quota)
) with (fillfactor = 50);

comment on table rag.token_usage is 'Tokens of models and embeddings, by org and day.';
comment on column rag.token_usage.owner_id is 'Always null: the quotas belong to the org.';
comment on column rag.token_usage.day is 'In UTC, as is the midnight that starts it.';
comment on column rag.token_usage.calls is 'Calls of models.';
comment on column rag.token_usage.alerted_at is
  'When the tokens reached the alert of the tier; null again after the alert was raised above them.';
comment on column rag.token_usage.exceeded_at is
  'When the tokens reached the limit of the tier; null again after the limit was raised above them.';

-- rag_metrics: today's rows of all orgs
create index token_usage_by_day on rag.token_usage (day);

alter table rag.token_usage enable row level security;
alter table rag.token_usage force row level security;

create policy "members use their org's token_usage, metrics read all" on rag.token_usage
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select rag.current_user_id())
      or org_id = any (array(select rag.admin_org_ids())))
    or (select rag.reads_metrics()))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select rag.current_user_id())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "calls of the functions add tokens" on rag.token_usage
  as restrictive for insert to authenticated
  with check ((select not rag.is_direct_call()));

create policy "calls of the functions add more tokens" on rag.token_usage
  as restrictive for update to authenticated
  using ((select not rag.is_direct_call())) with check ((select not rag.is_direct_call()));

create function rag.org_quotas()
returns table (org_id uuid, quota text, tokens bigint, alert bigint, per_day bigint)
language sql stable security invoker set search_path = ''
as $$
  select orgs.id, limits.quota, coalesce(token_usage.tokens, 0), limits.alert, limits.per_day
  from rag.orgs
  join rag.tiers on tiers.name = orgs.tier
  cross join lateral (values
    ('model', tiers.model_tokens_alert, tiers.model_tokens_per_day),
    ('embedding', tiers.embedding_tokens_alert, tiers.embedding_tokens_per_day)) as limits (quota, alert, per_day)
  left join rag.token_usage on token_usage.org_id = orgs.id and token_usage.quota = limits.quota
    and token_usage.day = (clock_timestamp() at time zone 'UTC')::date
  where orgs.id = any (array(select rag.current_org_ids()));
$$;

comment on function rag.org_quotas is
  'The quotas of the caller''s orgs: the tokens of today, and the tier''s alert and limit (null: none).';

create function rag.exceeded_quotas()
returns text[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if not exists (
    select from rag.tiers where num_nonnulls(tiers.model_tokens_per_day, tiers.embedding_tokens_per_day) > 0)
  then
    return '{}';
  end if;
  return array(
    select quotas.quota
    from rag.org_quotas() as quotas
    group by quotas.quota
    having bool_and(coalesce(quotas.tokens >= quotas.per_day, false))
    order by quotas.quota);
end;
$$;

comment on function rag.exceeded_quotas is
  'The quotas that the caller''s org has used up today; of a caller in several orgs, those that all of them have.';

create function rag.enqueue_quota_events(usage rag.token_usage, event text, tokens_allowed bigint)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  insert into rag.audit_events (org_id, user_id, event, namespace, document_count, chunk_count)
  values (usage.org_id, rag.current_user_id(), enqueue_quota_events.event, usage.quota, 0, 0);
  if rag.has_subscriber(usage.org_id, null, enqueue_quota_events.event) then
    perform rag.enqueue_event(usage.org_id, null, null, enqueue_quota_events.event, jsonb_build_object(
      'quota', usage.quota, 'day', usage.day, 'tokens', usage.tokens, 'limit', tokens_allowed));
  end if;
end;
$$;

comment on function rag.enqueue_quota_events is 'The audit event and the webhook event of a quota.';

create function rag.add_tokens(quota text, tokens bigint, calls integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  today constant date := (clock_timestamp() at time zone 'UTC')::date;
  counted record;
  used rag.token_usage;
  is_alerted boolean;
  is_exceeded boolean;
begin
  select * into counted
  from rag.org_quotas() as own
  where own.quota = add_tokens.quota
  order by own.per_day is not null, own.per_day - own.tokens desc, own.org_id
  limit 1;
  if not found then
    return;
  end if;
  -- The row is locked from here on, until the caller commits.
  update rag.token_usage as present
  set tokens = present.tokens + add_tokens.tokens, calls = present.calls + add_tokens.calls
  where present.org_id = counted.org_id and present.day = today and present.quota = add_tokens.quota
  returning present.* into used;
  if not found then
    insert into rag.token_usage as present (org_id, day, quota, tokens, calls)
    values (counted.org_id, today, quota, tokens, calls)
    on conflict on constraint token_usage_pkey do update
    set tokens = present.tokens + excluded.tokens, calls = present.calls + excluded.calls
    returning present.* into used;
  end if;
  is_alerted := coalesce(used.tokens >= counted.alert, false);
  is_exceeded := coalesce(used.tokens >= counted.per_day, false);
  if (is_alerted, is_exceeded) is distinct from (used.alerted_at is not null, used.exceeded_at is not null) then
    -- A number that the deployer raised meanwhile may be reached again.
    update rag.token_usage as present
    set alerted_at = case when is_alerted then coalesce(used.alerted_at, clock_timestamp()) end,
      exceeded_at = case when is_exceeded then coalesce(used.exceeded_at, clock_timestamp()) end
    where present.org_id = used.org_id and present.day = used.day and present.quota = used.quota;
  end if;
  if is_alerted and used.alerted_at is null then
    perform rag.enqueue_quota_events(used, 'quota.alert', counted.alert);
  end if;
  if is_exceeded and used.exceeded_at is null then
    perform rag.enqueue_quota_events(used, 'quota.exceeded', counted.per_day);
  end if;
end;
$$;

comment on function rag.add_tokens is
  'Add tokens to the usage of the caller''s org, with the events of an alert and of a limit that they reach. Of several '
  'orgs, they count for the one with the most tokens left, an org without a limit first.';

create function public.rag_record_tokens(
  model_tokens bigint default 0, model_calls integer default 0, embedding_tokens bigint default 0,
  embedding_calls integer default 0
)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  if rag.is_direct_call() then
    raise exception 'Only this project''s functions may call this. Call the HTTP API instead.'
      using errcode = 'PT403', detail = 'functions_secret_required';
  elsif coalesce(least(model_tokens, model_calls, embedding_tokens, embedding_calls), -1) < 0
    or num_nulls(model_tokens, model_calls, embedding_tokens, embedding_calls) > 0
    or greatest(model_tokens, model_calls, embedding_tokens, embedding_calls) > 1000000000
  then
    raise exception 'Tokens and calls must be between 0 and 1,000,000,000.'
      using errcode = 'PT400', detail = 'invalid_tokens';
  end if;
  -- As in rag_check_rate_limit, the commit does not wait for the disk.
  perform set_config('synchronous_commit', 'off', true);
  -- In one order, in which concurrent calls lock the rows.
  if embedding_calls > 0 then
    perform rag.add_tokens('embedding', embedding_tokens, embedding_calls);
  end if;
  if model_calls > 0 then
    perform rag.add_tokens('model', model_tokens, model_calls);
  end if;
end;
$$;

comment on function public.rag_record_tokens is
  'Add the tokens of a request''s calls of models to the usage of the caller''s org.';

create function rag.require_embedding_quota()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if 'embedding' = any (rag.exceeded_quotas()) then
    raise exception 'The org has used up its tokens for embeddings today. The document is processed after midnight UTC.'
      using errcode = 'PT429', detail = 'embedding_quota_exceeded';
  end if;
end;
$$;

comment on function rag.require_embedding_quota is
  'Raises PT429 if the caller''s org has used up its tokens for embeddings today.';

create function rag.quota_metrics()
returns table (
  name text, labels jsonb, value double precision, total bigint, bounds double precision[], buckets bigint[]
)
language sql stable security invoker set search_path = ''
as $$
  select counted.name, jsonb_build_object('label', quotas.quota), counted.value, 1::bigint, '{}'::double precision[],
    '{}'::bigint[]
  from (values ('model'), ('embedding')) as quotas (quota)
  cross join lateral (
    select coalesce(sum(token_usage.tokens), 0)::double precision as tokens, count(token_usage.alerted_at) as alerted,
      count(token_usage.exceeded_at) as exceeded
    from rag.token_usage
    where token_usage.day = (clock_timestamp() at time zone 'UTC')::date and token_usage.quota = quotas.quota
  ) as today
  cross join lateral (values
    ('rag_quota_tokens_today', today.tokens), ('rag_quota_orgs_alerted', today.alerted::double precision),
    ('rag_quota_orgs_exceeded', today.exceeded::double precision)) as counted (name, value)
  where (select rag.reads_metrics());
$$;

comment on function rag.quota_metrics is
  'The rows of rag_metrics about quotas: the tokens of today, and the orgs that reached their alert or limit today.';
