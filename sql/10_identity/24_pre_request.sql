-- PostgREST's pre-request function, which runs before an exposed function: the size of a direct call; the trace id and
-- the state of the replica for other calls.

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
      using errcode = 'PT425', detail = 'replica_behind';
  elsif headers ->> 'x-rag-return-transaction' is not null and current_setting('transaction_read_only') = 'off' then
    perform set_config('response.headers',
      jsonb_build_array(jsonb_build_object('X-Rag-Transaction', pg_current_xact_id()::text))::text, true);
  end if;
end;
$$;

comment on function rag.check_replication is
  'Of a deployment with a read replica: the response of a write has its transaction id; a read with the header '
  'X-Rag-Read-After gets PT425 on a replica that has not replayed that transaction. (shared/clients/read_replica.py)';

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
    -- As in hosted projects. Elsewhere a JIT compiler may take seconds for a call of milliseconds.
    perform set_config('jit', 'off', true);
    if current_user = 'rag_worker' then
      -- Raises PT401 for a token of another issuer.
      perform rag.current_user_id();
    end if;
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
