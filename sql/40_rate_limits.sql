-- Requests counted where every instance can see them. A row is one user's current window in one bucket;
-- it starts with the first request and is reused when it has run out, so the table never grows past
-- users x buckets x windows. Callers spend only their own: the user comes from the token, never from an
-- argument, and no exposed function counts backwards. (A deleted user's few rows stay.)

create table rag.rate_limits (
  user_id uuid not null,
  bucket text not null check (bucket in ('rag', 'api')),
  window_seconds integer not null check (window_seconds in (1, 60, 3600, 86400)),
  started_at timestamptz not null,
  hits bigint not null check (hits > 0),
  primary key (user_id, bucket, window_seconds)
);

alter table rag.rate_limits enable row level security;
alter table rag.rate_limits force row level security;

create policy "users spend their own budget" on rag.rate_limits
  for all to authenticated
  using (user_id = (select auth.uid()))
  with check (user_id = (select auth.uid()));

grant select, insert, update on rag.rate_limits to authenticated;

-- Count `amount` requests and say where the window stands: one statement, one round trip, atomic under
-- any number of callers. Whether that is too many is the caller's decision: raising here would roll the
-- count back.
create function public.rag_hit(bucket text, window_seconds integer, amount integer default 1)
returns table (hits bigint, resets_at timestamptz)
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.rate_limits as spent (user_id, bucket, window_seconds, started_at, hits)
  select auth.uid(), rag_hit.bucket, rag_hit.window_seconds, clock_timestamp(), rag_hit.amount
  where rag_hit.amount between 1 and 1000 and auth.uid() is not null
  on conflict (user_id, bucket, window_seconds) do update set
    hits = case when spent.started_at + make_interval(secs => spent.window_seconds) > excluded.started_at
      then spent.hits + excluded.hits else excluded.hits end,
    started_at = case when spent.started_at + make_interval(secs => spent.window_seconds) > excluded.started_at
      then spent.started_at else excluded.started_at end
  returning spent.hits, spent.started_at + make_interval(secs => spent.window_seconds);
$$;

revoke all on function public.rag_hit(text, integer, integer) from public, anon, service_role;
grant execute on function public.rag_hit(text, integer, integer) to authenticated;
