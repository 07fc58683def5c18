-- What a POST of the platform API makes is made once for each Idempotency-Key: claimed and kept as answers are, by keys
-- that need not have chat:read, and in the org of the collection that it is about.

alter table rag.replies add column scope text not null default 'chat:read'
  check (scope in ('chat:read', 'documents:write', 'collections:manage'));

drop policy "a key has replies with chat:read" on rag.replies;

create policy "a key has replies of its scopes" on rag.replies
  as restrictive for all to authenticated
  using (scope = 'chat:read' and (select rag.has_scope('chat:read'))
    or scope = 'documents:write' and (select rag.has_scope('documents:write'))
    or scope = 'collections:manage' and (select rag.has_scope('collections:manage')))
  with check (scope = 'chat:read' and (select rag.has_scope('chat:read'))
    or scope = 'documents:write' and (select rag.has_scope('documents:write'))
    or scope = 'collections:manage' and (select rag.has_scope('collections:manage')));

alter type rag.claimed_reply add attribute org_id uuid;

drop function public.rag_claim_reply(uuid, text, text, integer);

-- Claim a request for so many seconds, in which nobody else does the same. Of any number at once one goes. A claim
-- that has run out goes to the next who asks the same; what is older than 24 hours was never asked. It is kept in the
-- org of the collection that it is about, where there is one (PT404 for one that the caller does not see), else in the
-- one that is meant. scope: what a key needs for what is asked.
create function public.rag_claim_reply(
  org_id uuid, key_hash text, body_hash text, lease_seconds integer, collection_id uuid default null,
  scope text default 'chat:read'
)
returns setof rag.claimed_reply
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  home constant uuid := case
    when collection_id is null then rag.org_meant(org_id) else (rag.collection_of(collection_id)).org_id end;
  known rag.replies;
  answer rag.claimed_reply;
  -- The clock, not the transaction's time: one may have waited for another.
  moment timestamptz;
begin
  if scope is null or scope not in ('chat:read', 'documents:write', 'collections:manage') then
    raise exception 'scope must be chat:read, documents:write or collections:manage'
      using errcode = 'PT400', detail = 'invalid_scope';
  elsif not rag.has_scope(scope) then
    raise exception 'the key lacks the scope %', scope using errcode = 'PT403', detail = 'missing_scope';
  elsif lease_seconds is null or lease_seconds not between 1 and 3600 then
    raise exception 'lease_seconds must be between 1 and 3600' using errcode = 'PT400', detail = 'invalid_lease';
  elsif rag.has_too_many_replies(home) and not exists (
    select from rag.replies as present
    where present.org_id = home and present.owner_id = auth.uid() and present.caller_id = rag.caller_id()
      and present.key_hash = rag_claim_reply.key_hash
  ) then
    -- Rather than forget what was promised. (What was is replayed.)
    raise exception 'too many answers are kept: send fewer requests with an Idempotency-Key'
      using errcode = 'PT429', detail = 'too_many_replies';
  end if;
  answer.org_id := home;
  -- Again, should what stood in the way be released before it was read.
  for attempt in 1..5 loop
    moment := clock_timestamp();
    insert into rag.replies as present (
      org_id, owner_id, caller_id, key_hash, body_hash, collection_id, claim, due_at, created_at, scope)
    values (home, auth.uid(), rag.caller_id(), key_hash, body_hash, rag.bound_collection(), gen_random_uuid(),
      moment + make_interval(secs => lease_seconds), moment, scope)
    on conflict on constraint replies_pkey do update
    set body_hash = excluded.body_hash, claim = excluded.claim, due_at = excluded.due_at, status = null, body = null,
      request_id = null, chunk_ids = '{}', created_at = excluded.created_at, scope = excluded.scope
    where present.created_at <= clock_timestamp() - interval '24 hours'
      or present.due_at <= clock_timestamp() and present.body_hash = excluded.body_hash
      or present.status is not null and present.body_hash = excluded.body_hash
        and not rag.sees_chunks(home, present.chunk_ids)
    returning present.claim into answer.claim;
    if found then
      answer.outcome := 'go';
      perform rag.forget_replies(home);
      return next answer;
      return;
    end if;

    select * into known
    from rag.replies as present
    where present.org_id = home and present.owner_id = auth.uid() and present.caller_id = rag.caller_id()
      and present.key_hash = rag_claim_reply.key_hash;
    exit when found;
  end loop;
  if known.body_hash <> body_hash then
    answer.outcome := 'differs';
  elsif known.status is not null then
    answer := ('replay', null, known.status, known.body, known.request_id, null, home);
  else
    -- As long again as it has been worked on, but no longer than the claim lasts.
    answer.outcome := 'busy';
    answer.retry_after := greatest(1, ceil(extract(epoch from
      least(known.due_at - clock_timestamp(), clock_timestamp() - known.created_at))));
  end if;
  return next answer;
end;
$$;

revoke all on function public.rag_claim_reply(uuid, text, text, integer, uuid, text) from public, anon, service_role;
grant execute on function public.rag_claim_reply(uuid, text, text, integer, uuid, text) to authenticated;

-- The newest migration that this database has: the functions' code says which one it was written for.
create or replace function rag.version()
returns text
language sql immutable security invoker set search_path = ''
as $$
  select '20261129000000';
$$;
