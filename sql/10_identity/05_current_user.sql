-- The caller of a request, for all policies and functions. The subject of a Supabase token is the user's id. The subject of a
-- third-party token (Clerk, Auth0, Firebase) is any text: the id is computed from issuer and subject. PostgREST verifies signatures, and knows no issuer: a token of an issuer that rag.settings does not name is
-- refused here. A third-party token has no claim `rag`: that claim restricts API keys, and serves the functions' own tokens.

create function rag.third_party_user_id(issuer text, subject text)
returns uuid
language sql immutable security invoker set search_path = ''
as $$
  -- A UUID of version 8 (RFC 9562): Supabase's users have version 4, unless an admin chose an id. shared/access/jwt_verifier.py computes the same.
  select encode(set_byte(set_byte(digest, 6, get_byte(digest, 6) & 15 | 128), 8, get_byte(digest, 8) & 63 | 128), 'hex')::uuid
  from (values (substr(sha256(convert_to(issuer || ' ' || subject, 'UTF8')), 1, 16))) as hashed (digest);
$$;

comment on function rag.third_party_user_id is
  'The id of a user of a third-party issuer: of the claims iss and sub. For rows that name the user, such as rag.members.';

create function rag.auth_user_id(user_id uuid)
returns uuid
language sql immutable security invoker set search_path = ''
as $$
  select case when substr(user_id::text, 15, 1) <> '8' then user_id end;
$$;

comment on function rag.auth_user_id is
  'The id of a user of Supabase Auth, null for an id of rag.third_party_user_id. Columns with it reference auth.users.';

create function rag.current_user_id()
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- Not auth.jwt(): the worker's role may not use the schema auth.
  claims constant jsonb := nullif(current_setting('request.jwt.claims', true), '');
  issuer constant text := claims ->> 'iss';
  own text;
  others jsonb;
begin
  -- Also of Supabase's legacy keys anon and service_role, in functions that run as their owner.
  if claims is null or not claims ?| array['sub', 'rag'] and current_user not in ('authenticated', 'rag_worker') then
    return null;
  elsif issuer <> '' and issuer = current_setting('rag.own_issuer', true) then
    return nullif(claims ->> 'sub', '')::uuid;
  end if;
  select settings.issuer, settings.third_party_issuers into own, others from rag.settings;
  if (issuer = own or own is null and (issuer is null or issuer like '%/auth/v1'))
    -- As PostgREST's jwt-aud, which a project with third-party issuers cannot set: a token without aud is accepted. The functions
    -- refuse it.
    and coalesce(claims -> 'aud' @> '"authenticated"', true)
  then
    -- For the further calls of this transaction, a dozen in a search. A caller who could set it could set the claims.
    perform set_config('rag.own_issuer', issuer, true);
    return nullif(claims ->> 'sub', '')::uuid;
  elsif others ? issuer and not claims ? 'rag'
    and (others -> issuer = 'null' or claims -> 'aud' @> (others -> issuer))
  then
    -- auth.uid() in an adopter's memberships(), or in the policies of its tables, would take this subject for the user of
    -- Supabase Auth with that id.
    if translate(claims ->> 'sub', '{-}', '') ~* '^[0-9a-f]{32}$' and exists (
      select
      from (
        select coalesce(pg_get_function_sqlbody(oid), prosrc) as body
        from pg_proc
        where oid = to_regprocedure('rag.memberships()')
        offset 0
      ) as memberships
      where body !~* '\mrag"?\s*\.\s*"?current_user_id\M' or body ~* '\mauth"?\s*\.\s*"?uid\M')
    then
      raise exception 'This project is not set up for users whose id is a UUID. Ask its operator.'
        using errcode = 'PT401', detail = 'untrusted_issuer',
          hint = 'rag.memberships() must contain rag.current_user_id() and no auth.uid().';
    end if;
    return rag.third_party_user_id(issuer, nullif(claims ->> 'sub', ''));
  end if;
  raise exception 'The token is of an issuer or for an audience that is not trusted here. Sign in to this project.'
    using errcode = 'PT401', detail = 'untrusted_issuer';
end;
$$;

comment on function rag.current_user_id is
  'The id of the caller: of a user of Supabase Auth the claim sub, of a third-party issuer''s rag.third_party_user_id. Null '
  'without a user. Raises PT401 for an issuer that is neither Supabase Auth''s nor one of rag.settings, for another audience, '
  'for a third-party token with the claim rag, and for one whose subject is a UUID if rag.memberships() contains auth.uid() or '
  'lacks rag.current_user_id().';

create function rag.token_claim()
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  claim constant jsonb := auth.jwt() -> 'rag';
begin
  if claim is not null then
    -- Raises PT401 for a token of another issuer.
    perform rag.current_user_id();
  end if;
  return claim;
end;
$$;

comment on function rag.token_claim is 'The claim `rag` of the token, which only tokens that our functions sign have.';
