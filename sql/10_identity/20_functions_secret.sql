-- Admission of calls to exposed functions. Browsers call a short list of readers with the user's token alone. Every
-- other exposed function also requires a secret header, which only our own functions send. The secret shows that a
-- call comes from them. It gives no access to data: row security depends on the token alone.
--
-- rag.settings holds the SHA-256 of the secret, and during a rotation that of the next secret. The header reaches SQL
-- in request.headers, which PostgREST sets. A direct database session has none and is not checked. A role other
-- than anon and authenticated is not checked either: its token was signed by our own functions.

create function rag.functions_secret_status()
returns text
language sql stable security invoker set search_path = ''
as $$
  select case
    when settings.functions_secret_hashes = '{}' then 'unset'
    when encode(sha256(convert_to(
      nullif(current_setting('request.headers', true), '')::json ->> 'x-rag-functions-secret', 'UTF8')), 'hex')
      = any (settings.functions_secret_hashes) then 'ok'
    else 'wrong'
  end
  from rag.settings;
$$;

comment on function rag.functions_secret_status is
  'ok, unset (rag.settings has no hash) or wrong (the header is absent, or has another secret).';

create function rag.is_direct_call()
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select coalesce(current_setting('request.headers', true), '') <> ''
    and current_user in ('anon', 'authenticated')
    and rag.functions_secret_status() <> 'ok';
$$;

comment on function rag.is_direct_call is
  'Whether the call came from a client of PostgREST that did not send the secret.';

create function rag.begin_call(needs_org boolean default true)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if rag.is_direct_call() then
    if not (select open_to_direct_callers from rag.settings) then
      if rag.functions_secret_status() = 'unset' then
        raise exception 'The functions secret is not set in this database. See docs/install.md, Functions secret.'
          using errcode = 'PT403', detail = 'functions_secret_unset';
      end if;
      raise exception 'Only this project''s functions may call this. Call the HTTP API instead.'
        using errcode = 'PT403', detail = 'functions_secret_required';
    end if;
    perform rag.limit_direct_call();
  else
    if needs_org then
      perform rag.require_org();
    end if;
    perform rag.limit_reads();
  end if;
  perform set_config('lock_timeout', '3s', true);
  return true;
end;
$$;

comment on function rag.begin_call is
  'First statement of all other exposed functions. Raises PT403 for a direct call, unless rag.settings opens these '
  'functions to direct callers, and with needs_org for a caller without an org (rag.require_org). A direct call of an '
  'opened function has the limits of rag.limit_direct_call, which always needs an org, a call by our functions that of '
  'rag.limit_reads. It returns '
  'true, so that it can initialize the first variable of a function. It sets a lock time-out of three seconds for the '
  'transaction, including its deferred triggers: PostgREST has few connections, and a waiting call occupies one.';
