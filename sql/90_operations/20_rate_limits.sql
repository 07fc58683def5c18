-- Rate limits, counted in the database for all instances. A row is one caller's current window in one bucket; the
-- window starts with the first request, and an expired row is reused, so the table has at most callers x buckets x
-- windows rows. The caller is taken from the token, never from an argument. A caller cannot decrease a count. (The few
-- rows of a deleted user remain.) A download link has buckets of its own, by its document and the user who created it:
-- every holder of the link spends them, and no limit of that user.

create table rag.rate_limits (
  caller_id uuid not null,
  bucket text not null check (bucket ~ '^(rag|api|day|ingest|upload|(day )?link [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$'),
  window_seconds integer not null check (window_seconds in (1, 60, 3600, 86400)),
  started_at timestamptz not null,
  hits bigint not null check (hits >= 0),
  primary key (caller_id, bucket, window_seconds)
);

comment on table rag.rate_limits is 'Windows of rate limits, by caller and bucket.';
comment on column rag.rate_limits.caller_id is 'A user, or an API key: rag.caller_id().';
comment on column rag.rate_limits.bucket is
  'rag: rag-search and rag-answer; api: all other functions; day: all functions, for a user and all keys of the user, '
  'by the tier. ingest: kilobytes of text that a user and the user''s keys sent to functions that store it before '
  'they respond. upload: kilobytes of files and texts for the worker, by the tier. link and day link, each with the id of a document: its downloads by links that the user created.';

alter table rag.rate_limits enable row level security;
alter table rag.rate_limits force row level security;

create policy "callers spend their own budget" on rag.rate_limits
  for all to authenticated
  using (caller_id = any (array[(select rag.current_user_id()), (select rag.caller_id())]))
  with check (caller_id = any (array[(select rag.current_user_id()), (select rag.caller_id())]));

-- A link has windows for each document. Those of users are reused.
create policy "the worker sees ended windows of links" on rag.rate_limits
  for select to rag_worker using (bucket like '%link %' and started_at < now() - interval '1 day');

create policy "the worker removes ended windows of links" on rag.rate_limits
  for delete to rag_worker using (bucket like '%link %' and started_at < now() - interval '1 day');

create table rag.request_counts (
  user_id uuid not null,
  function text not null check (function ~ '^[a-z][a-z0-9-]{0,39}$'),
  outcome text not null check (outcome in ('admitted', 'limited')),
  total bigint not null check (total > 0),
  primary key (user_id, function, outcome)
);

comment on table rag.request_counts is
  'All requests by user, function and outcome. /metrics sums them over all users, so its counters cover all instances. '
  'Each user has separate rows, so that no request waits for another user.';
comment on column rag.request_counts.function is
  'The function''s name. A user has at most 64 names, because a direct caller may send any name (rag.count_request).';

alter table rag.request_counts enable row level security;
alter table rag.request_counts force row level security;

create policy "callers count their own requests, metrics read all" on rag.request_counts
  for all to authenticated
  using (user_id = (select rag.current_user_id()) or (select rag.reads_metrics()))
  with check (user_id = (select rag.current_user_id()));

create function rag.caller_limits(org_ids uuid[], bucket text, requests integer, window_seconds integer)
returns table (caller_id uuid, bucket text, requests integer, window_seconds integer)
language sql stable security invoker set search_path = ''
as $$
  with tiers_of_caller as (
    select tiers.requests_per_day, case caller_limits.bucket
      when 'rag' then tiers.rag_requests_per_minute else tiers.api_requests_per_minute end as per_minute
    from rag.orgs
    join rag.tiers on tiers.name = orgs.tier
    where orgs.id = any (caller_limits.org_ids)
  ), own as (
    select (rag.token_claim() ->> 'requests_per_minute')::integer as per_minute
  ), rates (requests, window_seconds, precedence) as (
    select coalesce(per_minute, caller_limits.requests),
      case when per_minute is null then caller_limits.window_seconds else 60 end, 1
    from tiers_of_caller
    union all
    select caller_limits.requests, caller_limits.window_seconds, 2
  ), shared as (
    select rates.requests, rates.window_seconds
    from rates
    order by rates.precedence, rates.requests::numeric / rates.window_seconds desc
    limit 1
  )
  select rag.caller_id(), caller_limits.bucket, own.per_minute, 60 from own where own.per_minute is not null
  union all
  (
    select rag.current_user_id(), caller_limits.bucket, higher.requests, higher.window_seconds
    from (
      select shared.requests, shared.window_seconds from shared
      union all
      select own.per_minute, 60 from own where own.per_minute is not null
    ) as higher
    order by higher.requests::numeric / higher.window_seconds desc
    limit 1
  )
  union all
  select rag.current_user_id(), case when caller_limits.bucket like 'link %' then 'day ' || caller_limits.bucket else 'day' end,
    max(requests_per_day), 86400
  from tiers_of_caller
  having bool_and(requests_per_day is not null);
$$;

comment on function rag.caller_limits is
  'The limits of the caller, a member of these orgs: one for the bucket and, if the tier has one, a daily limit. The limit for the bucket is '
  'the tier''s, else `requests` in `window_seconds`, and counts for the user, whatever API key is used. A user in several '
  'orgs has the highest limit of their tiers. A key with a limit of its own has a window of its own besides, and a higher '
  'limit replaces the user''s for requests of this key. (The daily count of a user covers all orgs, so requests in other orgs may '
  'exhaust the daily limit of a key.) A download link has the same limits as its user, in windows of its own.';

create function rag.count_hits(caller_id uuid, bucket text, requests integer, window_seconds integer, amount integer)
returns table (hits bigint, resets_at timestamptz, admitted boolean)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  length constant interval := make_interval(secs => window_seconds);
begin
  insert into rag.rate_limits as spent (caller_id, bucket, window_seconds, started_at, hits)
  select caller_id, bucket, window_seconds, clock_timestamp(), amount
  where amount <= requests
  on conflict on constraint rate_limits_pkey do update set
    hits = case when spent.started_at + length > excluded.started_at
      then spent.hits + excluded.hits else excluded.hits end,
    started_at = case when spent.started_at + length > excluded.started_at
      then spent.started_at else excluded.started_at end
  where spent.hits + excluded.hits <= requests or spent.started_at + length <= excluded.started_at
  returning spent.hits, spent.started_at + length, true into hits, resets_at, admitted;
  if not found then
    select spent.hits, spent.started_at + length into hits, resets_at
    from rag.rate_limits as spent
    where spent.caller_id = count_hits.caller_id and spent.bucket = count_hits.bucket
      and spent.window_seconds = count_hits.window_seconds and spent.started_at + length > clock_timestamp();
    hits := coalesce(hits, 0);
    resets_at := coalesce(resets_at, clock_timestamp() + length);
    admitted := false;
  end if;
  return next;
end;
$$;

comment on function rag.count_hits is
  'Count `amount` requests in one window, if the limit permits them; returns the state of the window. Atomic for '
  'any number of callers: the row is locked before it is compared, until the caller commits.';

create function rag.count_upload(org_id uuid, size_bytes bigint, is_counted boolean default true)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  kilobytes constant integer := (rag.org_tier(org_id)).upload_bytes_per_minute / 1024;
  amount constant integer := least(ceil(size_bytes / 1024.0), kilobytes);
  counted record;
begin
  -- The worker fetches a source at its own pace, and a database session is not limited.
  if kilobytes is null or coalesce(size_bytes, 0) = 0 or rag.lease_of_token() is not null
    or coalesce(current_setting('request.headers', true), '') = ''
  then
    return;
  end if;
  if is_counted then
    select * into counted from rag.count_hits(rag.current_user_id(), 'upload', kilobytes, 60, amount);
  else
    select spent.hits + amount <= kilobytes as admitted, spent.started_at + interval '60 seconds' as resets_at
    into counted
    from rag.rate_limits as spent
    where spent.caller_id = rag.current_user_id() and spent.bucket = 'upload' and spent.window_seconds = 60
      and spent.started_at + interval '60 seconds' > clock_timestamp();
  end if;
  if not counted.admitted then
    raise exception 'You sent more than % MB of files and texts in a minute. Please wait, or send less at once.',
      round(kilobytes / 1024.0, 1)
      using errcode = 'PT429', detail = 'upload_limit_reached',
        hint = ceil(extract(epoch from counted.resets_at - clock_timestamp()))::text;
  end if;
end;
$$;

comment on function rag.count_upload is
  'Count an upload against the bytes a minute of the user, which the tier of the org limits; PT429 above the limit, with the '
  'seconds until the end of the minute in hint. A larger file than the limit takes a whole minute. Not is_counted: '
  'only refuse what the limit does not permit now.';

create function rag.count_request(function text, outcome text)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
begin
  update rag.request_counts as present set total = present.total + 1
  where present.user_id = rag.current_user_id() and present.function = count_request.function
    and present.outcome = count_request.outcome;
  if not found then
    insert into rag.request_counts as present (user_id, function, outcome, total)
    select rag.current_user_id(), function, outcome, 1
    where (
      select count(distinct named.function) from rag.request_counts as named
      where named.user_id = rag.current_user_id() and named.function <> count_request.function) < 64
    on conflict on constraint request_counts_pkey do update set total = present.total + excluded.total;
  end if;
end;
$$;

comment on function rag.count_request is
  'Count a request of the caller by function and outcome. After 64 names of one user, requests with further names are '
  'not counted, so that a direct caller cannot create an unlimited number of rows.';

create function public.rag_check_rate_limit(
  function text, bucket text, requests integer, window_seconds integer, amount integer default 1
)
returns table (
  allowed integer, seconds integer, hits bigint, resets_at timestamptz, admitted boolean, exceeded_quotas text[],
  has_org boolean
)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  link constant text := 'link ' || (rag.token_claim() ->> 'document');
  org_ids constant uuid[] := array(select rag.current_org_ids());
  per record;
  paid rag.rate_limits[] := '{}';
begin
  perform rag.begin_call(needs_org => false);
  if rag.current_user_id() is null or coalesce(requests, 0) < 1
    or coalesce(amount, 0) not between 1 and (case bucket when 'ingest' then 10000 else 1000 end) then
    return;
  elsif (link is null and bucket not in ('rag', 'api', 'ingest')) or bucket is distinct from coalesce(link, bucket)
    or window_seconds not in (1, 60, 3600, 86400) then
    raise exception
      'bucket must be rag, api or ingest, for a download link its own, and window_seconds 1, 60, 3600 or 86400'
      using errcode = 'PT400', detail = 'invalid_limit';
  elsif bucket = 'ingest' then
    -- The request of this call is counted already.
    return query
    select requests, window_seconds, counted.*, '{}'::text[], null::boolean
    from rag.count_hits(rag.current_user_id(), bucket, requests, window_seconds, amount) as counted;
    return;
  end if;

  -- The commit does not wait for the disk, with the rows locked: a crash of the server may lose the last counts.
  perform set_config('synchronous_commit', 'off', true);
  -- The org's quotas are not for the recipient of a link.
  exceeded_quotas := case when link is null then rag.exceeded_quotas() else '{}' end;
  has_org := cardinality(org_ids) > 0;
  -- The key's window is first and the daily window last, so that concurrent requests lock their rows in the same order.
  for per in
    select named.* from rag.caller_limits(org_ids, bucket, requests, window_seconds) as named
    order by named.bucket like 'day%', named.caller_id = rag.current_user_id()
  loop
    select per.requests, per.window_seconds, counted.*
    into allowed, seconds, hits, resets_at, admitted
    from rag.count_hits(per.caller_id, per.bucket, per.requests, per.window_seconds, amount) as counted;
    return next;
    exit when not admitted;
    paid := paid || row(per.caller_id, per.bucket, per.window_seconds, resets_at, hits)::rag.rate_limits;
  end loop;

  if not admitted then
    -- A later limit is reached, so the count of this request in the earlier windows is undone.
    update rag.rate_limits as spent set hits = spent.hits - amount
    from unnest(paid) as earlier
    where spent.caller_id = earlier.caller_id and spent.bucket = earlier.bucket
      and spent.window_seconds = earlier.window_seconds;
  end if;

  perform rag.count_request(function, case when admitted then 'admitted' else 'limited' end);
  if admitted then
    perform rag.count_org_call(org_ids);
  end if;
end;
$$;

comment on function public.rag_check_rate_limit is
  'Count `amount` requests of a function, or `amount` kilobytes of the bucket ingest. Returns a row for each limit of '
  'the caller, with the state of its window. A call is admitted if no limit is exceeded; otherwise it is counted in no '
  'window. The function does not raise for an exceeded limit, because an error would roll the counts back. '
  'exceeded_quotas: the quotas of tokens that the caller''s org has used up today (rag.exceeded_quotas). has_org: false for '
  'a user who belongs to no org, whose requests count too; null in the bucket ingest.';

-- value: the value of a counter, or the sum of a histogram's values; total: the number of values; buckets: the number
-- of values up to each bound.
create function public.rag_metrics()
returns table (
  name text, labels jsonb, value double precision, total bigint, bounds double precision[], buckets bigint[]
)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call();
  return query
    select 'rag_requests_total', jsonb_build_object('function', counted.function, 'outcome', counted.outcome),
      sum(counted.total)::double precision, sum(counted.total)::bigint, '{}'::double precision[], '{}'::bigint[]
    from (
      select case when ranked.position <= 64 then request_counts.function else 'other' end as function,
        request_counts.outcome, request_counts.total
      from rag.request_counts
      join (
        select request_counts.function, row_number() over (order by sum(request_counts.total) desc,
          request_counts.function) as position
        from rag.request_counts
        group by request_counts.function
      ) as ranked on ranked.function = request_counts.function
      where (select rag.reads_metrics())
    ) as counted
    group by counted.function, counted.outcome
    union all
    select api_metrics.name, jsonb_build_object('label', api_metrics.label), sum(api_metrics.sum),
      sum(api_metrics.total)::bigint, rag.histogram_bounds(api_metrics.name), array(
        select sum(all_of.buckets[position])::bigint
        from generate_subscripts(rag.histogram_bounds(api_metrics.name), 1) as position
        cross join rag.api_metrics as all_of
        where all_of.name = api_metrics.name and all_of.label = api_metrics.label
        group by position
        order by position)
    from rag.api_metrics
    where (select rag.reads_metrics())
    group by api_metrics.name, api_metrics.label
    union all
    select quotas.* from rag.quota_metrics() as quotas
    union all
    select 'rag_confidence_calibrated', jsonb_build_object('label', settings.embedding_model),
      (settings.calibrations ? settings.embedding_model)::integer::double precision, 1::bigint, '{}'::double precision[],
      '{}'::bigint[]
    from rag.settings
    where (select rag.reads_metrics());
end;
$$;

comment on function public.rag_metrics is
  'Metrics of /metrics, summed over all users. The 64 functions with the most requests have their names; all others '
  'are summed as "other". Only the functions'' own token, which has no user and a claim for metrics, gets rows.';
