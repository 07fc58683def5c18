-- Who may call an exposed function. Browsers call a short list of readers with the user's token alone. Every
-- other exposed function also requires a secret header, which only our own functions send: the secret shows where
-- a call comes from, and opens nothing that the token does not. Row security decides as without it.
--
-- rag.settings holds the SHA-256 of the secret, and of the next one while it is rotated. The header reaches SQL
-- in request.headers, which PostgREST sets. A direct database session has none and is not checked. A role other
-- than anon and authenticated is not checked either: its token was signed by our own functions.

-- ok, unset (rag.settings has no hash) or wrong (the header is absent, or has another secret).
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

-- Whether the call came from a client of PostgREST that did not send the secret.
create function rag.is_direct_call()
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select coalesce(current_setting('request.headers', true), '') <> ''
    and current_user in ('anon', 'authenticated')
    and rag.functions_secret_status() <> 'ok';
$$;

-- First statement of the readers that browsers may call directly.
create function rag.begin_direct_read()
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  return true;
end;
$$;

-- First statement of all other exposed functions. Raises PT403 for a direct call, unless rag.settings opens
-- these functions to direct callers. It returns true, so that it can be the first variable of a function.
create function rag.begin_call()
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if rag.is_direct_call() and not (select open_to_direct_callers from rag.settings) then
    if rag.functions_secret_status() = 'unset' then
      raise exception 'The functions secret is not set in this database. See README.md, Functions secret.'
        using errcode = 'PT403', detail = 'functions_secret_unset';
    end if;
    raise exception 'Only this project''s functions may call this. Call the HTTP API instead.'
      using errcode = 'PT403', detail = 'functions_secret_required';
  end if;
  return true;
end;
$$;

-- The same for functions that write for as long as their time-out allows.
create function rag.begin_write()
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  return rag.begin_call();
end;
$$;

revoke all on function rag.functions_secret_status(), rag.is_direct_call(), rag.begin_direct_read(),
  rag.begin_call(), rag.begin_write() from public, anon, service_role;
grant execute on function rag.functions_secret_status(), rag.is_direct_call(), rag.begin_direct_read(),
  rag.begin_call(), rag.begin_write() to authenticated;
