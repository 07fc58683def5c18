-- The claim of extractions, under the worker's role: fair among orgs, with a lease.

create function rag.due_extractions(max_items integer)
returns table (org_id uuid, document_id uuid, is_expired boolean, place bigint)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  with recursive busy (org_id) as (
    -- The next org with extractions, by the index: there may be many documents and few orgs.
    (select extractions.org_id
    from rag.extractions
    where not extractions.is_extracted and extractions.user_id is not null and extractions.due_at is not null
    order by extractions.org_id
    limit 1)
    union all
    select next.org_id
    from busy
    cross join lateral (
      select extractions.org_id
      from rag.extractions
      where not extractions.is_extracted and extractions.user_id is not null and extractions.due_at is not null
        and extractions.org_id > busy.org_id
      order by extractions.org_id
      limit 1
    ) as next
  ), due as (
    select extraction.*, row_number() over (
      partition by extraction.org_id order by extraction.due_at, extraction.document_id) as turn
    from busy
    cross join lateral (
      select extractions.org_id, extractions.document_id, extractions.due_at,
        extractions.lease is not null as is_expired
      from rag.extractions
      where not extractions.is_extracted and extractions.user_id is not null
        and extractions.org_id = busy.org_id and extractions.due_at <= clock_timestamp()
      order by extractions.due_at
      limit max_items
    ) as extraction
    where busy.org_id <> all (array(select rag.paused_org_ids()))
  )
  select due.org_id, due.document_id, due.is_expired,
    row_number() over (order by due.turn, due.due_at, due.document_id)
  from due;
end;
$$;

comment on function rag.due_extractions is
  'Due extractions in the order of their claim: the same number of every org that is not paused, earliest due first. '
  'is_expired: whether the lease of a claimed extraction has expired.';

create function public.rag_claim_extractions(max_items integer default 1, lease_seconds integer default 60)
returns table (org_id uuid, document_id uuid, user_id uuid, as_admin boolean, lease uuid, attempts integer)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.check_claim(max_items, lease_seconds);
  return query
  with due as materialized (
    select * from rag.due_extractions(max_items)
  ), locked as materialized (
    select extractions.org_id, extractions.document_id
    from (
      select due.*
      from due
      where due.is_expired or not exists (select from due as expired where expired.is_expired)
      order by due.place
      limit 4 * max_items
    ) as due
    cross join lateral (
      select extractions.org_id, extractions.document_id
      from rag.extractions
      where extractions.org_id = due.org_id and extractions.document_id = due.document_id
        and extractions.due_at <= clock_timestamp()
      for update skip locked
    ) as extractions
    limit case when exists (select from due where due.is_expired) then 1 else max_items end
  ), claimed as (
    update rag.extractions
    set attempts = case when ended.is_given_up then extractions.attempts else extractions.attempts + 1 end,
      lease = case when not ended.is_given_up then gen_random_uuid() end,
      due_at = case when not ended.is_given_up then clock_timestamp() + make_interval(secs => lease_seconds) end,
      error_code = case when ended.is_given_up then 'reading_failed' else extractions.error_code end,
      error_message = case when ended.is_given_up then 'Reading this document failed too often.'
        else extractions.error_message end,
      updated_at = clock_timestamp()
    from locked
    join rag.extractions as present on present.org_id = locked.org_id and present.document_id = locked.document_id
    cross join lateral (
      select present.lease is not null and present.attempts >= rag.max_attempts()) as ended (is_given_up)
    where extractions.org_id = locked.org_id and extractions.document_id = locked.document_id
    returning extractions.org_id, extractions.document_id, extractions.owner_id, extractions.user_id,
      extractions.lease, extractions.attempts
  )
  select claimed.org_id, claimed.document_id, claimed.user_id, coalesce(claimed.owner_id <> claimed.user_id, false),
    claimed.lease, claimed.attempts
  from claimed
  join due on due.org_id = claimed.org_id and due.document_id = claimed.document_id
  where claimed.lease is not null
  order by due.place;
end;
$$;

comment on function public.rag_claim_extractions is
  'Lease due extractions, for the worker, in the order of rag.due_extractions. An extraction whose lease has expired '
  'is claimed again, alone, because it may have crashed its worker. After rag.max_attempts() attempts without '
  'progress it is given up. as_admin: the user is an admin who works on another user''s document.';
