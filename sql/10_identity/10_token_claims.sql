-- Claims of the JWT beyond its user. A user's own token has none and is not restricted. The short-lived token of an API
-- key carries {"rag": {"org", "collection", "scopes", "key", "requests_per_minute"}}, which every policy reads through
-- these functions. These claims only restrict, and a malformed claim permits nothing. (rag.current_org_ids reads the
-- org.) Claims that permit something without a user are read by rag.token_claim().
-- Every statement calls the first two: PL/pgSQL keeps their plans, which saves a search a twentieth of its time.

create function rag.has_scope(variadic scopes text[])
returns boolean
language plpgsql stable security invoker set search_path = ''
as $$
declare
  claims constant jsonb := auth.jwt();
  claim constant jsonb := claims -> 'rag';
begin
  return case
    when claims ? 'client_id' and not coalesce(rag.client_scopes() && (scopes || array['admin']), true) then false
    when coalesce(jsonb_typeof(claim), 'null') = 'null' then true
    when jsonb_typeof(claim) <> 'object' then false
    when coalesce(jsonb_typeof(claim -> 'scopes'), 'null') = 'null' then true
    when jsonb_typeof(claim -> 'scopes') = 'array' then claim -> 'scopes' ?| (scopes || array['admin'])
    else false
  end;
end;
$$;

comment on function rag.has_scope is 'Whether the token carries one of the scopes, or admin, which implies them all; also those of its OAuth client.';

create function rag.require_scope(variadic scopes text[])
returns boolean
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if not rag.has_scope(variadic scopes) then
    raise exception 'The API key lacks the scope %. Use a key that has it.', array_to_string(scopes, ' or ')
      using errcode = 'PT403', detail = 'missing_scope';
  end if;
  return true;
end;
$$;

comment on function rag.require_scope is
  'Raises PT403 for a key without any of the scopes. It returns true, as rag.begin_call does.';

create function rag.bound_collection()
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
declare
  claim constant jsonb := auth.jwt() -> 'rag';
begin
  return case
    when coalesce(jsonb_typeof(claim), 'null') = 'null' then null
    when jsonb_typeof(claim) = 'object'
      and coalesce(jsonb_typeof(claim -> 'collection'), 'null') = 'null' then null
    when claim ->> 'collection' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
      then (claim ->> 'collection')::uuid
    else '00000000-0000-0000-0000-000000000000'
  end;
end;
$$;

comment on function rag.bound_collection is
  'The collection that the token is bound to; null for an unbound token; for a malformed claim, an id that no '
  'collection has.';

create function rag.require_whole_org()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if rag.bound_collection() is not null then
    raise exception 'The API key is bound to a collection. Use a key for the whole org.'
      using errcode = 'PT403', detail = 'key_bound';
  end if;
end;
$$;

comment on function rag.require_whole_org is 'Raises PT403 for a token that is bound to a collection.';

create function rag.caller_id()
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select coalesce((rag.token_claim() ->> 'key')::uuid, rag.current_user_id());
$$;

comment on function rag.caller_id is 'The id under which a request is counted: that of the API key, or of the user.';

create function rag.creator_id()
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select coalesce(case when rag.token_claim() -> 'anonymous' is distinct from 'true' then rag.current_user_id() end,
    '00000000-0000-0000-0000-000000000000');
$$;

comment on function rag.creator_id is
  'The user who creates the rows of this request (created_by). It is the nil UUID for the anonymous caller of the '
  'index API, whose token is that of a member (shared/access/token_signer.py), and for a database session without a '
  'token.';

create function rag.lookup_hash()
returns text
language sql stable security invoker set search_path = ''
as $$
  select rag.token_claim() ->> 'key_hash';
$$;

comment on function rag.lookup_hash is
  'The hash of the API key that the token may look up. Such a token has no user and permits nothing else.';

create function rag.lease_of_token()
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select (rag.token_claim() ->> 'lease')::uuid;
$$;

comment on function rag.lease_of_token is
  'The lease of the job that the token was made for; null for every other token.';

create function rag.reads_metrics()
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select coalesce(rag.token_claim() -> 'metrics' = 'true', false);
$$;

comment on function rag.reads_metrics is 'Whether the token may read the sums of /metrics. Such a token has no user.';
