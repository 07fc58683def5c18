-- Limits of calls to exposed functions: the size of a direct call, and the number of calls of one user that run at the
-- same time. Each exposed function begins with one of limit_direct_call, begin_call and begin_write.

create function rag.check_direct_size()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
declare
  headers constant json := current_setting('request.headers');
  size constant text := coalesce(headers ->> 'content-length',
    case when current_setting('request.method', true) in ('GET', 'HEAD') then '0' end, '');
begin
  if headers ->> 'transfer-encoding' is not null or size !~ '^[0-9]{1,15}$' then
    raise exception 'A direct call must have the header Content-Length. Send the body whole, not in chunks.'
      using errcode = 'PT400', detail = 'length_required';
  elsif size::bigint > 1048576 then
    raise exception 'A direct call may have at most 1,048,576 bytes. Send less at once, or call the HTTP API.'
      using errcode = 'PT413', detail = 'body_too_large';
  end if;
end;
$$;

comment on function rag.check_direct_size is
  'Raises PT413 for a direct call of more than a megabyte, and PT400 for a call that does not state its size. A '
  'request with neither header has no body, unless it is a POST of HTTP/2.';

create function rag.name_trace()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
declare
  trace_id constant text := substring(current_setting('request.headers')::json ->> 'traceparent'
    from '^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$');
begin
  if trace_id is not null then
    perform set_config('application_name', 'rag ' || trace_id, true);
  end if;
end;
$$;

comment on function rag.name_trace is
  'Set application_name of a call by the functions to the trace id of its request, for this transaction: '
  'pg_stat_activity and the log of Postgres name it. Any other header than hexadecimal digits is ignored.';

create function rag.check_replication()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
declare
  headers constant json := current_setting('request.headers');
  read_after constant text := substring(headers ->> 'x-rag-read-after' from '^[0-9]{1,19}$');
begin
  if read_after is not null and not pg_visible_in_snapshot(read_after::xid8, pg_current_snapshot()) then
    raise exception 'The replica lacks a transaction that the caller must see.'
      using errcode = 'PT503', detail = 'replica_behind';
  elsif headers ->> 'x-rag-return-transaction' is not null and current_setting('transaction_read_only') = 'off' then
    perform set_config('response.headers',
      jsonb_build_array(jsonb_build_object('X-Rag-Transaction', pg_current_xact_id()::text))::text, true);
  end if;
end;
$$;

comment on function rag.check_replication is
  'Of a deployment with a read replica: the response of a write has its transaction id; a read with the header '
  'X-Rag-Read-After gets PT503 on a replica that has not replayed that transaction. (shared/clients/read_replica.py)';

-- PostgREST's pre-request function (db-pre-request), which runs before PostgREST hands the body to Postgres. A function
-- can check a size only after the conversion of its arguments, and Postgres needs a gigabyte to convert 38 MB. A path
-- with percent-encoding may name any function, so the check covers it. anon and service_role may not execute
-- rag.is_direct_call, so all calls of roles other than authenticated are limited, even with the secret.
create function rag.check_request()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if current_setting('request.path', true) ~ '^/rpc/(rag_|is_org_member)|%.*/|/.*/.*%' then
    -- Nested, because Postgres may check the privileges of both conditions of an "and" first.
    if current_user = 'authenticated' then
      if not rag.is_direct_call() then
        perform rag.name_trace(), rag.check_replication();
        return;
      end if;
    end if;
    perform rag.check_direct_size();
  end if;
end;
$$;

comment on function rag.check_request is
  'Pre-request function of PostgREST: rag.check_direct_size for this project''s exposed functions, before Postgres '
  'converts the body. It ignores calls of authenticated with the functions'' secret, and requests for other tables and '
  'functions, except functions with a percent-encoded name. Calls of all other roles are limited, even with the '
  'secret. A call with the secret gets its trace id (rag.name_trace, rag.check_replication). docs/install.md has the statement that sets it.';

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

create function rag.take_slot(kind text, most integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  -- Downloads by a link take no slot of the user who created it.
  holder constant text := concat_ws(' ', rag.current_user_id(), auth.jwt() -> 'rag' ->> 'document');
begin
  for slot in 1..most loop
    if pg_try_advisory_xact_lock(hashtextextended(format('rag.%s %s %s', kind, holder, slot), 0)) then
      return;
    end if;
  end loop;
  if kind = 'read' then
    raise exception 'You have too many searches running at the same time. Please wait until one of them ends.'
      using errcode = 'PT429', detail = 'too_many_reads';
  end if;
  raise exception 'You have too many changes running at the same time. Please wait until one of them ends.'
    using errcode = 'PT503', detail = 'too_many_writes';
end;
$$;

comment on function rag.take_slot is
  'Take one of the user''s `most` slots of that kind (read, write) for the rest of the transaction. Raises PT429 or '
  'PT503 when no slot is free. A slot is an advisory lock, because a read-only transaction cannot count in a table.';

create function rag.limit_reads()
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- PostgREST calls stable functions in a read-only transaction. Database sessions and the worker are not limited.
  if current_setting('transaction_read_only') = 'on' and current_user = 'authenticated'
    and coalesce(current_setting('request.headers', true), '') <> ''
  then
    perform rag.take_slot('read', (select reads_per_user from rag.settings));
  end if;
end;
$$;

comment on function rag.limit_reads is
  'Limit of concurrency for the calls by our functions that only read (PT429), for each user.';

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
    perform rag.take_slot('read', (select direct_reads_per_user from rag.settings));
  else
    perform rag.take_slot('write', (select direct_writes_per_user from rag.settings));
  end if;
  return true;
end;
$$;

comment on function rag.limit_direct_call is
  'First statement of the readers that browsers may call directly. Raises PT403 for a caller without an org. Limits of a '
  'direct call: its size, and the number of reads (PT429) or writes (PT503) of the user that run at the same time. '
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
    perform rag.take_slot('write', (select writes_per_user from rag.settings));
  end if;
  return true;
end;
$$;

comment on function rag.begin_write is
  'First statement of guarded functions that may take a minute (their time-out), wait for one that does, or store up '
  'to a megabyte: rag.begin_call, and a limit of concurrency for each user (PT503).';
