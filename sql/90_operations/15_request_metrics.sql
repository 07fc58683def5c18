-- Histograms of requests, steps, calls and tokens by function, counted in the database for all instances. A process of
-- the functions adds the histograms of the requests that ended since its last call, of all their callers, with the token
-- of one of them (shared/observability/request_metrics.py); /metrics sums the rows. So the rows belong to no user, and
-- the functions secret protects them: a direct call can neither write nor read them.
--
-- A row has one of 16 shards, so that concurrent calls seldom wait for each other. The number of rows is bounded by the
-- code: functions x steps, statuses and SQL functions.

create function rag.request_metric_bounds(metric text)
returns double precision[]
language sql immutable security invoker set search_path = ''
as $$
  select case
    when metric in ('rag_request_duration_seconds', 'rag_step_duration_seconds')
      then '{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}'
    when metric = 'db_client_operation_duration_seconds'
      then '{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}'
    when metric = 'gen_ai_client_operation_duration_seconds'
      then '{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}'
    when metric = 'gen_ai_client_token_usage'
      then '{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}'
  end::double precision[];
$$;

comment on function rag.request_metric_bounds is
  'The upper bounds of the buckets of a metric; null for an unknown metric. Those of db_ and gen_ai_ are the '
  'conventions'' of OpenTelemetry.';

create function rag.are_exemplars(exemplars text[])
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select coalesce(bool_and(exemplar ~ '^[0-9a-f]{32} [0-9]{1,9}(\.[0-9]{1,6})? [0-9]{1,11}(\.[0-9]{1,3})?$'), true)
  from unnest(are_exemplars.exemplars) as exemplar;
$$;

comment on function rag.are_exemplars is 'Whether each is null, or a trace id, a value and a time in seconds since 1970.';

create table rag.request_metrics (
  shard smallint not null check (shard between 0 and 15),
  name text not null check (rag.request_metric_bounds(name) is not null),
  function text not null check (function ~ '^[a-z][a-z0-9-]{0,39}$'),
  label text not null check (label ~ '^[a-z0-9_ ]{0,80}$'),
  sum double precision not null check (sum >= 0 and sum < 1e15),
  total bigint not null check (total > 0),
  buckets bigint[] not null check (total >= all (buckets)),
  exemplars text[] not null check (rag.are_exemplars(exemplars)),
  primary key (name, function, label, shard),
  check (cardinality(buckets) = cardinality(rag.request_metric_bounds(name))),
  check (cardinality(exemplars) = cardinality(buckets) + 1)
) with (fillfactor = 50);

comment on table rag.request_metrics is 'Histograms of requests by function, of all users and instances.';
comment on column rag.request_metrics.label is
  'The values of the metric''s other labels, separated by spaces: a status, a step, a SQL function, an operation of a '
  'model and its outcome or the kind of its tokens.';
comment on column rag.request_metrics.buckets is 'The number of values up to each bound.';
comment on column rag.request_metrics.exemplars is
  'For each bucket, the last included for larger values: trace id, value and time of its latest value.';

alter table rag.request_metrics enable row level security;
alter table rag.request_metrics force row level security;

create policy "calls of the functions count, metrics read" on rag.request_metrics
  for all to authenticated
  using ((select not rag.is_direct_call()) or (select rag.reads_metrics()))
  with check ((select not rag.is_direct_call()));

create function public.rag_record_requests(histograms jsonb)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call();
  if rag.is_direct_call() then
    raise exception 'Only this project''s functions may call this. Call the HTTP API instead.'
      using errcode = 'PT403', detail = 'functions_secret_required';
  end if;
  perform rag.check_json('histograms', rag_record_requests.histograms, 1000000);
  insert into rag.request_metrics as present (shard, name, function, label, sum, total, buckets, exemplars)
  select pg_backend_pid() % 16, added.name, added.function, added.label, added.sum, added.total, added.buckets,
    added.exemplars
  from (select item from jsonb_array_elements(rag_record_requests.histograms) as item limit 2000) as items
  cross join jsonb_to_record(items.item) as added (name text, function text, label text, sum double precision,
    total bigint, buckets bigint[], exemplars text[])
  order by added.name, added.function, added.label
  on conflict on constraint request_metrics_pkey do update set
    sum = present.sum + excluded.sum,
    total = present.total + excluded.total,
    buckets = array(
      select had + more
      from unnest(present.buckets, excluded.buckets) with ordinality as counted (had, more, place)
      order by place),
    exemplars = array(
      select coalesce(latest, former)
      from unnest(present.exemplars, excluded.exemplars) with ordinality as shown (former, latest, place)
      order by place);
end;
$$;

comment on function public.rag_record_requests is
  'Add the histograms of a process''s ended requests: [{name, function, label, sum, total, buckets, exemplars}]. '
  'Counts and exemplars only; an entry has no user and no text.';

create function rag.request_metrics_of_all()
returns table (
  name text, labels jsonb, value double precision, total bigint, bounds double precision[], buckets bigint[],
  exemplars text[]
)
language sql stable security invoker set search_path = ''
as $$
  select summed.name, jsonb_build_object('function', summed.function, 'label', summed.label), sum(summed.sum),
    sum(summed.total)::bigint, rag.request_metric_bounds(summed.name),
    (select array_agg(bucket order by place) from (
      select place, sum(bucket)::bigint as bucket
      from rag.request_metrics as each cross join unnest(each.buckets) with ordinality as counted (bucket, place)
      where each.name = summed.name and each.function = summed.function and each.label = summed.label
      group by place) as added),
    (select array_agg(exemplar order by place) from (
      select place, (array_agg(exemplar order by split_part(exemplar, ' ', 3)::double precision desc)
        filter (where exemplar is not null))[1] as exemplar
      from rag.request_metrics as each cross join unnest(each.exemplars) with ordinality as shown (exemplar, place)
      where each.name = summed.name and each.function = summed.function and each.label = summed.label
      group by place) as latest)
  from rag.request_metrics as summed
  where (select rag.reads_metrics())
  group by summed.name, summed.function, summed.label;
$$;

comment on function rag.request_metrics_of_all is 'The rows of rag_metrics about requests, summed over the shards.';
