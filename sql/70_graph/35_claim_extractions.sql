-- The claim of extractions, under the worker's role: fair among orgs, with a lease.

create function public.rag_claim_extractions(
  wanted integer default 1, lease_seconds integer default 60, with_model boolean default false
)
returns table (org_id uuid, document_id uuid, user_id uuid, as_admin boolean, lease uuid, attempts integer)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  below constant smallint := case when with_model then 2 else 1 end;
begin
  if wanted is null or wanted not between 1 and 100
    or lease_seconds is null or lease_seconds not between 5 and 3600
  then
    raise exception 'so many documents, or so long, nobody may have' using errcode = 'PT400', detail = 'invalid_claim';
  end if;
  return query
  with recursive busy (level, org_id) as (
    -- The next org with some, by the index: there may be many documents and few orgs.
    (select extractions.level, extractions.org_id
    from rag.extractions
    where extractions.level < 2 and extractions.user_id is not null and extractions.due_at is not null
      and extractions.level < below
    order by extractions.level, extractions.org_id
    limit 1)
    union all
    select found.level, found.org_id
    from busy
    cross join lateral (
      select extractions.level, extractions.org_id
      from rag.extractions
      where extractions.level < 2 and extractions.user_id is not null and extractions.due_at is not null
        and extractions.level < below and (extractions.level, extractions.org_id) > (busy.level, busy.org_id)
      order by extractions.level, extractions.org_id
      limit 1
    ) as found
  ), due as materialized (
    select found.*, row_number() over (
      partition by found.org_id order by found.level, found.due_at, found.document_id) as turn
    from busy
    cross join lateral (
      select extractions.org_id, extractions.document_id, extractions.level, extractions.due_at,
        extractions.lease is not null as is_left_behind
      from rag.extractions
      where extractions.level < 2 and extractions.user_id is not null and extractions.level = busy.level
        and extractions.org_id = busy.org_id and extractions.due_at <= clock_timestamp()
      order by extractions.due_at
      limit wanted
    ) as found
  ), locked as materialized (
    select extractions.org_id, extractions.document_id
    from (
      select due.*
      from due
      where due.is_left_behind or not exists (select from due as dead where dead.is_left_behind)
      order by due.turn, due.due_at, due.document_id
      limit 4 * wanted
    ) as due
    cross join lateral (
      select extractions.org_id, extractions.document_id
      from rag.extractions
      where extractions.org_id = due.org_id and extractions.document_id = due.document_id
        and extractions.due_at <= clock_timestamp()
      for update skip locked
    ) as extractions
    limit case when exists (select from due where due.is_left_behind) then 1 else wanted end
  ), claimed as (
    update rag.extractions
    set attempts = case when ended.is_given_up then extractions.attempts else extractions.attempts + 1 end,
      lease = case when not ended.is_given_up then gen_random_uuid() end,
      due_at = case when not ended.is_given_up then clock_timestamp() + make_interval(secs => lease_seconds) end,
      error_code = case when ended.is_given_up then 'reading_failed' else extractions.error_code end,
      error_message = case when ended.is_given_up then 'Nobody could finish reading this document.'
        else extractions.error_message end,
      updated_at = clock_timestamp()
    from locked
    join rag.extractions as present on present.org_id = locked.org_id and present.document_id = locked.document_id
    cross join lateral (select present.lease is not null and present.attempts >= 16) as ended (is_given_up)
    where extractions.org_id = locked.org_id and extractions.document_id = locked.document_id
    returning extractions.org_id, extractions.document_id, extractions.owner_id, extractions.user_id,
      extractions.lease, extractions.attempts
  )
  select claimed.org_id, claimed.document_id, claimed.user_id, coalesce(claimed.owner_id <> claimed.user_id, false),
    claimed.lease, claimed.attempts
  from claimed
  join due on due.org_id = claimed.org_id and due.document_id = claimed.document_id
  where claimed.lease is not null
  order by due.turn, due.due_at, due.document_id;
end;
$$;

comment on function public.rag_claim_extractions is
  'Documents that are to be read, leased: by the rules, and with_model those too that only the rules have read. Of '
  'every org as many as of any other, those first that wait longest. A lease that has run out is nobody''s: its '
  'document is claimed again, alone, since it may be what its worker died of. One that nobody ever got on with, '
  'sixteen times, is given up. as_admin: it is read for somebody else, as only an admin may.';
