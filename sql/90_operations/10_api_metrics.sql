-- Metrics of the index and knowledge APIs, counted in the database for all instances; /metrics sums them over all
-- users. Each user has separate rows, so that users neither wait for each other nor write each other's rows.

create function rag.histogram_bounds(measure text)
returns double precision[]
language sql immutable security invoker set search_path = ''
as $$
  select case
    when histogram_bounds.measure ~ '^rag_(query|retrieve|chat|index|indexes|indexes_document|indexes_update_document|indexes_delete_document|persist|load|delete_index)_(requests_total|latency_seconds)$'
      then case when histogram_bounds.measure like '%seconds'
        then '{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60}' else '{}' end
    when histogram_bounds.measure = 'gateway_knowledge_retrieval_score'
      then '{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}'
    when histogram_bounds.measure ~ '^gateway_knowledge_(chunks_retrieved|documents_ingested|documents_deleted|query_tokens)_total$'
      then '{}'
  end::double precision[];
$$;

comment on function rag.histogram_bounds is
  'The upper bounds of a histogram''s buckets; empty for a counter, null for an unknown metric.';

create table rag.api_metrics (
  user_id uuid not null,
  name text not null check (rag.histogram_bounds(name) is not null),
  label text not null default '' check (label in ('', 'success', 'failure', 'prompt', 'completion')),
  sum double precision not null check (sum >= 0 and sum < 1e15),
  total bigint not null check (total > 0),
  buckets bigint[] not null,
  primary key (user_id, name, label)
);

comment on table rag.api_metrics is 'Counters and histograms of the index and knowledge APIs, by user.';
comment on column rag.api_metrics.label is 'For requests: success or failure. For tokens: prompt or completion.';
comment on column rag.api_metrics.sum is 'The value of a counter; the sum of all values of a histogram.';
comment on column rag.api_metrics.total is 'The number of values; in buckets, the number of values up to each bound.';

alter table rag.api_metrics enable row level security;
alter table rag.api_metrics force row level security;

create policy "callers measure their own requests, metrics read all" on rag.api_metrics
  for all to authenticated
  using (user_id = (select rag.current_user_id()) or (select rag.reads_metrics()))
  with check (user_id = (select rag.current_user_id()));

create function public.rag_record_metrics(measures jsonb)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.begin_call();
  perform rag.check_json('measures', rag_record_metrics.measures, 10000);
  with measured as (
    select fields.name, coalesce(fields.label, '') as label,
      case when fields.value between 0 and 1000000 then fields.value end as value
    from (select item from jsonb_array_elements(rag_record_metrics.measures) as item limit 20) as items
    cross join jsonb_to_record(items.item) as fields (name text, label text, value double precision)
  )
  insert into rag.api_metrics as present (user_id, name, label, sum, total, buckets)
  select rag.current_user_id(), measured.name, measured.label, 
    -- An invalid value makes the sum null, which the table refuses.
    case when bool_and(measured.value is not null) then sum(measured.value) end, count(*), array(
      select (select count(*) from unnest(array_agg(measured.value)) as value where value <= bound)
      from unnest(rag.histogram_bounds(measured.name)) as bound)
  from measured
  group by measured.name, measured.label
  order by measured.name, measured.label
  on conflict on constraint api_metrics_pkey do update set
    sum = present.sum + excluded.sum,
    total = present.total + excluded.total,
    buckets = array(
      select had + added
      from unnest(present.buckets, excluded.buckets) with ordinality as counted (had, added, position)
      order by position);
end;
$$;

comment on function public.rag_record_metrics is
  'Add up to twenty values to the caller''s metrics: [{name, label, value}]. A value is at most a million, so that '
  'no user can dominate the sums.';
