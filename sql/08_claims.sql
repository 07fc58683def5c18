-- What a token says about itself beyond its user. A user's own token says nothing here and is not narrowed.
-- The short-lived token that stands for an API key carries {"rag": {"org", "collection", "scopes", "key",
-- "requests_per_minute"}}, and every policy asks these functions. They only ever narrow, and a claim that
-- cannot be read allows nothing. (The org is rag.current_org_ids()'s to read.)

-- Whether the token carries one of the scopes, or admin, which implies them all.
create function rag.has_scope(variadic wanted text[])
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select case coalesce(jsonb_typeof(token.scopes), 'null')
    when 'null' then true
    when 'array' then token.scopes ?| (wanted || array['admin'])
    else false
  end
  from (select auth.jwt() -> 'rag' -> 'scopes') as token (scopes);
$$;

-- The one collection that the token is bound to; null when it is not, no collection's id when it is to
-- something that is no id.
create function rag.bound_collection()
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select case
    when coalesce(jsonb_typeof(token.claim), 'null') = 'null' then null
    when token.claim #>> '{}' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then (token.claim #>> '{}')::uuid
    else '00000000-0000-0000-0000-000000000000'
  end
  from (select auth.jwt() -> 'rag' -> 'collection') as token (claim);
$$;

-- Whose budget a request spends: the API key's own, or the user's.
create function rag.caller_id()
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select coalesce((auth.jwt() -> 'rag' ->> 'key')::uuid, auth.uid());
$$;

revoke all on function rag.has_scope(text[]), rag.bound_collection(), rag.caller_id()
  from public, anon, service_role;
grant execute on function rag.has_scope(text[]), rag.bound_collection(), rag.caller_id() to authenticated;
