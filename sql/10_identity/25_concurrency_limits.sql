-- Checks at the start of exposed functions: an org, the size of a direct call, concurrent calls; plans of a
-- session. rag.begin_call is in 20_functions_secret.sql.

create function rag.require_org()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if current_user = 'authenticated' and not exists (select from rag.current_org_ids())
    and rag.current_user_id() is not null and auth.jwt() -> 'rag' -> 'lease' is null
  then
    raise exception 'You belong to no org. Ask an admin to invite you to one.' using errcode = 'PT403', detail = 'no_org';
  end if;
end;
$$;

comment on function rag.require_org is
  'Raises PT403 for a user who belongs to no org, and for a token that counts for none. Tokens that our functions sign '
  'for one task are not checked: those without a user (a key''s look-up, metrics), and that of a job''s lease.';

create function rag.try_slot(holder text, most integer)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  for slot in 1..most loop
    if pg_try_advisory_xact_lock(hashtextextended(format('rag.%s %s', holder, slot), 0)) then
      return true;
    end if;
  end loop;
  return false;
end;
$$;

comment on function rag.try_slot is
  'Take one of the holder''s `most` slots for the rest of the transaction; false when none is free. A slot is an advisory '
  'lock, because a read-only transaction cannot count in a table.';

create function rag.take_slot(kind text)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  link constant text := rag.token_claim() ->> 'document';
  -- Downloads by a link take no slot of the user who created it, nor of the org's searches.
  holders constant text := concat_ws(' ', kind, case when link is not null then 'by link' end);
  orgs uuid[];
  per_user integer;
  per_org integer;
begin
  -- The worker bounds its jobs itself.
  if rag.lease_of_token() is not null then
    return;
  end if;
  orgs := array(select rag.current_org_ids() order by 1);
  select case kind when 'read' then reads_per_user else writes_per_user end,
    case kind when 'read' then reads_per_org else writes_per_org end
  into per_user, per_org
  from rag.settings;
  -- A member of several orgs takes a slot of any of them.
  if rag.try_slot(concat_ws(' ', holders, rag.current_user_id(), link), per_user)
    and (orgs = '{}' or exists (
      select from unnest(orgs) as org where rag.try_slot(format('%s of org %s', holders, org), per_org)))
  then
    return;
  end if;
  -- With the hint, our functions bound how many calls of an org wait for a slot. Status 503 would make PostgREST connect again
  -- and load its schema cache.
  if kind = 'read' then
    raise exception 'Too many searches of you or your org are running at the same time. Please wait until one of them ends.'
      using errcode = 'PT429', detail = 'too_many_reads', hint = coalesce(orgs[1]::text, '');
  end if;
  raise exception 'Too many changes of you or your org are running at the same time. Please wait until one of them ends.'
    using errcode = 'PT429', detail = 'too_many_writes', hint = coalesce(orgs[1]::text, '');
end;
$$;

comment on function rag.take_slot is
  'Take a slot of that kind (read, write) of the user, and one of the org, for the rest of the transaction. So an org, '
  'however many of its members call, cannot occupy PostgREST''s pool of connections. Raises PT429 when no slot is free; '
  'its hint is an org of the caller.';

create function rag.limit_reads()
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- PostgREST calls stable functions in a read-only transaction. Database sessions and the worker's role are not limited.
  if current_setting('transaction_read_only') = 'on' and current_user = 'authenticated'
    and coalesce(current_setting('request.headers', true), '') <> ''
  then
    perform rag.take_slot('read');
  end if;
end;
$$;

comment on function rag.limit_reads is
  'Limit of concurrency for the calls by our functions that only read (PT429).';

create function rag.limit_direct_call()
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if not rag.is_direct_call() then
    perform rag.require_org(), rag.limit_reads();
    return true;
  end if;
  perform rag.check_direct_size();
  perform rag.require_org();
  -- PostgREST calls stable functions in a read-only transaction.
  if current_setting('transaction_read_only') = 'on' then
    perform rag.take_slot('read');
  else
    perform rag.take_slot('write');
  end if;
  return true;
end;
$$;

comment on function rag.limit_direct_call is
  'First statement of the readers that browsers may call directly. Raises PT403 for a caller without an org. Limits of a '
  'direct call: its size, and the number of reads or writes that run at the same time (PT429). '
  'A call by our functions has the limit of rag.limit_reads. It returns true, as rag.begin_call does.';

create function rag.renew_plans()
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  size constant bigint := pg_relation_size('rag.chunks');
  planned_size constant bigint := coalesce(nullif(current_setting('rag.planned_size', true), ''), '0');
begin
  if size > 2 * planned_size then
    discard plans;
    perform set_config('rag.planned_size', size::text, false);
  end if;
end;
$$;

comment on function rag.renew_plans is
  'Discard the session''s cached plans when rag.chunks has become twice as large as it was when they were made. '
  'Postgres does so itself only after an ANALYZE: until then, plans from nearly empty tables would read all rows of an '
  'org for each row that a call writes.';

create function rag.begin_write()
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  perform rag.renew_plans();
  -- A direct call has its slot by now. A database session is not limited.
  if coalesce(current_setting('request.headers', true), '') <> '' and not rag.is_direct_call() then
    perform rag.take_slot('write');
  end if;
  return true;
end;
$$;

comment on function rag.begin_write is
  'First statement of guarded functions that may take a minute (their time-out), wait for one that does, or store up '
  'to a megabyte: rag.begin_call, and a limit of concurrency (PT429).';
