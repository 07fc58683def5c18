-- Idempotency keys: stored responses, so that a repeated request costs nothing twice, creates nothing twice and returns
-- the same. A response is claimed before the work, stored after it and replayed for 24 hours. The key and the body are
-- stored as hashes. The functions write and read as the caller: no other user, admin or API key sees a response, nor
-- does the caller after leaving the org.

create table rag.stored_responses (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  owner_id uuid not null,
  caller_id uuid not null,
  key_hash text not null check (key_hash ~ '^[0-9a-f]{64}$'),
  body_hash text not null check (body_hash ~ '^[0-9a-f]{64}$'),
  collection_id uuid,
  claim uuid,
  due_at timestamptz,
  status integer check (status between 200 and 599),
  body json check (octet_length(body::text) <= 250000),
  request_id text check (length(request_id) between 1 and 200),
  chunk_ids uuid[] not null default '{}',
  created_at timestamptz not null,
  scope text not null default 'chat:read' check (scope in ('chat:read', 'documents:write', 'collections:manage')),
  primary key (org_id, owner_id, caller_id, key_hash),
  constraint stored_responses_state check (
    num_nonnulls(claim, due_at) = 2 and num_nonnulls(status, body, request_id) = 0
    or num_nonnulls(claim, due_at) = 0 and num_nonnulls(status, body, request_id) = 3)
);

comment on table rag.stored_responses is 'Stored responses of requests with an Idempotency-Key.';
comment on column rag.stored_responses.caller_id is
  'The API key that sent the request, else the user: rag.caller_id().';
comment on column rag.stored_responses.key_hash is 'SHA-256 of the key and the request.';
comment on column rag.stored_responses.collection_id is 'The collection that the API key of the request is bound to.';
comment on column rag.stored_responses.claim is
  'The claim of the request that computes the response, until due_at. Both are null in a finished response.';
comment on column rag.stored_responses.body is 'The body as it was sent, with the order of its keys.';
comment on column rag.stored_responses.chunk_ids is
  'The chunks that the response shows. It is replayed only if the caller still sees all of them.';
comment on column rag.stored_responses.scope is
  'The scope that an API key needs for the request, and for the stored response.';

-- rag_claim_response: the caller's expired responses.
create index stored_responses_by_age on rag.stored_responses (org_id, owner_id, caller_id, created_at);

call rag.admit_members('stored_responses');
call rag.bind_keys('stored_responses');

create policy "a response belongs to its caller" on rag.stored_responses
  as restrictive for all to authenticated
  using (owner_id = (select rag.current_user_id()) and caller_id = (select rag.caller_id()))
  with check (owner_id = (select rag.current_user_id()) and caller_id = (select rag.caller_id()));

create policy "a key has replies of its scopes" on rag.stored_responses
  as restrictive for all to authenticated
  using (scope = 'chat:read' and (select rag.has_scope('chat:read'))
    or scope = 'documents:write' and (select rag.has_scope('documents:write'))
    or scope = 'collections:manage' and (select rag.has_scope('collections:manage')))
  with check (scope = 'chat:read' and (select rag.has_scope('chat:read'))
    or scope = 'documents:write' and (select rag.has_scope('documents:write'))
    or scope = 'collections:manage' and (select rag.has_scope('collections:manage')));

create type rag.response_claim as (
  outcome text, claim uuid, status integer, body json, request_id text, retry_after integer, org_id uuid
);

comment on type rag.response_claim is
  'The decision on a request: go (with a claim that ends it), replay (the stored response), busy (an equal request '
  'is running; retry after so many seconds), or differs (the key was used for another request). org_id: the org '
  'that stores the response.';

create function rag.has_too_many_responses(org_id uuid)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.stored_responses as present
    where present.org_id = has_too_many_responses.org_id and present.owner_id = (select rag.current_user_id())
      and present.caller_id = (select rag.caller_id()) and present.created_at > now() - interval '24 hours'
    order by present.created_at
    offset 9999 limit 1);
$$;

comment on function rag.has_too_many_responses is 'Whether the caller has the maximum number of stored responses.';

create function rag.can_see_chunks(org_id uuid, ids uuid[])
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select not exists (
    select from unnest(ids) as chunk (id)
    where not exists (
      select from rag.chunks where chunks.org_id = can_see_chunks.org_id and chunks.id = chunk.id));
$$;

comment on function rag.can_see_chunks is 'Whether the caller sees all of these chunks.';

create function rag.check_response_claim(home uuid, key_hash text, scope text, lease_seconds integer)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if scope is null or scope not in ('chat:read', 'documents:write', 'collections:manage') then
    raise exception 'scope must be chat:read, documents:write or collections:manage'
      using errcode = 'PT400', detail = 'invalid_scope';
  elsif not rag.has_scope(scope) then
    raise exception 'The API key lacks the scope %. Use a key that has it.', scope
      using errcode = 'PT403', detail = 'missing_scope';
  elsif lease_seconds is null or lease_seconds not between 1 and 3600 then
    raise exception 'lease_seconds must be between 1 and 3600' using errcode = 'PT400', detail = 'invalid_lease';
  elsif rag.has_too_many_responses(home) and not exists (
    select from rag.stored_responses as present
    where present.org_id = home and present.owner_id = rag.current_user_id() and present.caller_id = rag.caller_id()
      and present.key_hash = check_response_claim.key_hash
  ) then
    -- Stored responses are still replayed: none is deleted before its time.
    raise exception 'Too many responses are stored. Send fewer requests with an Idempotency-Key.'
      using errcode = 'PT429', detail = 'too_many_replies';
  end if;
end;
$$;

comment on function rag.check_response_claim is
  'Raises PT400 for invalid arguments of rag_claim_response, PT403 for a key without the scope, and PT429 for a new '
  'key of a caller with too many stored responses.';

create function rag.try_claim_response(home uuid, key_hash text, body_hash text, scope text, lease_seconds integer)
returns uuid
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  -- The clock, not the transaction's time: one may have waited for another.
  moment constant timestamptz := clock_timestamp();
  claim uuid;
begin
  insert into rag.stored_responses as present (
    org_id, owner_id, caller_id, key_hash, body_hash, collection_id, claim, due_at, created_at, scope)
  values (home, rag.current_user_id(), rag.caller_id(), key_hash, body_hash, rag.bound_collection(), gen_random_uuid(),
    moment + make_interval(secs => lease_seconds), moment, scope)
  on conflict on constraint stored_responses_pkey do update
  set body_hash = excluded.body_hash, claim = excluded.claim, due_at = excluded.due_at, status = null, body = null,
    request_id = null, chunk_ids = '{}', created_at = excluded.created_at, scope = excluded.scope
  where present.created_at <= clock_timestamp() - interval '24 hours'
    or present.due_at <= clock_timestamp() and present.body_hash = excluded.body_hash
    or present.status is not null and present.body_hash = excluded.body_hash
      and not rag.can_see_chunks(home, present.chunk_ids)
  returning present.claim into claim;
  return claim;
end;
$$;

comment on function rag.try_claim_response is
  'Claim a key that is new or expired, whose earlier claim ended without a response, or whose response shows chunks '
  'that the caller no longer sees: the claim; null if the key is in use.';

create function public.rag_claim_response(
  org_id uuid, key_hash text, body_hash text, lease_seconds integer, collection_id uuid default null,
  scope text default 'chat:read'
)
returns setof rag.response_claim
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  home constant uuid := case
    when collection_id is null then rag.resolve_org(org_id) else (rag.get_collection(collection_id)).org_id end;
  known rag.stored_responses;
  answer rag.response_claim;
begin
  perform rag.check_response_claim(home, key_hash, scope, lease_seconds);
  answer.org_id := home;
  -- Retry, in case the conflicting claim was released before this call read it.
  for attempt in 1..5 loop
    answer.claim := rag.try_claim_response(home, key_hash, body_hash, scope, lease_seconds);
    if answer.claim is not null then
      answer.outcome := 'go';
      perform rag.delete_expired_responses(home);
      return next answer;
      return;
    end if;

    select * into known
    from rag.stored_responses as present
    where present.org_id = home and present.owner_id = rag.current_user_id() and present.caller_id = rag.caller_id()
      and present.key_hash = rag_claim_response.key_hash;
    exit when found;
  end loop;
  if known.body_hash <> body_hash then
    answer.outcome := 'differs';
  elsif known.status is not null then
    answer.outcome := 'replay';
    answer.status := known.status;
    answer.body := known.body;
    answer.request_id := known.request_id;
  else
    -- As long again as it has been worked on, but no longer than the claim lasts.
    answer.outcome := 'busy';
    answer.retry_after := greatest(1, ceil(extract(epoch from
      least(known.due_at - clock_timestamp(), clock_timestamp() - known.created_at))));
  end if;
  return next answer;
end;
$$;

comment on function public.rag_claim_response is
  'Claim a request for so many seconds; meanwhile equal requests are busy. Of concurrent equal requests one gets '
  'the claim. The next equal request gets an expired claim; claims older than 24 hours do not exist. The response '
  'is stored in the org of the request''s collection, if there is one (PT404 for a collection that the caller does '
  'not see), else in the given org. scope: the scope that a key needs for the request.';

create function rag.delete_expired_responses(org_id uuid)
returns void
language sql volatile security invoker set search_path = ''
as $$
  with old as (
    select present.org_id, present.owner_id, present.caller_id, present.key_hash
    from rag.stored_responses as present
    where present.org_id = delete_expired_responses.org_id and present.owner_id = (select rag.current_user_id())
      and present.caller_id = (select rag.caller_id()) and present.created_at <= now() - interval '24 hours'
    order by present.created_at
    limit 100
    for update skip locked
  )
  delete from rag.stored_responses as present
  using old
  where present.org_id = old.org_id and present.owner_id = old.owner_id and present.caller_id = old.caller_id
    and present.key_hash = old.key_hash;
$$;

comment on function rag.delete_expired_responses is
  'Delete the caller''s expired responses, a hundred at a time. It skips locked rows, so it waits for no other '
  'call.';

create function public.rag_store_response(
  org_id uuid, key_hash text, claim uuid, status integer, body text, request_id text,
  chunk_ids uuid[] default '{}'
)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
begin
  perform rag.begin_call();
  if octet_length(body) > 250000 then
    perform public.rag_release_response(org_id, key_hash, claim);
    return false;
  end if;
  update rag.stored_responses as present
  set claim = null, due_at = null, status = rag_store_response.status, body = rag_store_response.body::json,
    request_id = rag_store_response.request_id, chunk_ids = coalesce(rag_store_response.chunk_ids, '{}')
  where present.org_id = rag.resolve_org(rag_store_response.org_id) and present.owner_id = rag.current_user_id()
    and present.caller_id = rag.caller_id() and present.key_hash = rag_store_response.key_hash
    and present.claim = rag_store_response.claim;
  return found;
end;
$$;

comment on function public.rag_store_response is
  'Store the response, under the claim of its request only; returns whether it is stored. A body above 250 kB is '
  'not, and releases the claim. chunk_ids: what it shows, without which it is not replayed. body: as JSON, in a '
  'text: an argument that is JSON itself is refused for a null character.';

create function public.rag_release_response(org_id uuid, key_hash text, claim uuid)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
begin
  perform rag.begin_call();
  delete from rag.stored_responses as present
  where present.org_id = rag.resolve_org(rag_release_response.org_id) and present.owner_id = rag.current_user_id()
    and present.caller_id = rag.caller_id() and present.key_hash = rag_release_response.key_hash
    and present.claim = rag_release_response.claim;
  return found;
end;
$$;

comment on function public.rag_release_response is
  'Release a claim, so that the next equal request is processed; returns whether the claim was valid.';
