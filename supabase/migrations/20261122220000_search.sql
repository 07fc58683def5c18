-- What the search API asks: what comes first, how long each leg takes, what is like a text: sql/59, sql/60, sql/63, sql/64
-- and sql/66.

alter type rag.found add attribute vector_ms real, add attribute lexical_ms real;

drop function rag.show(rag.hit[], boolean, integer);
drop function public.rag_similar(uuid, uuid, text, integer, jsonb);
drop function public.rag_search(text, extensions.vector, text, integer, jsonb, integer, double precision, text);

-- As what each leg took is told.
create function rag.milliseconds_since(started timestamptz)
returns real
language sql volatile security invoker set search_path = ''
as $$
  select (1000 * extract(epoch from clock_timestamp() - started))::real;
$$;

-- The hits as rows, in their order.
create function rag.show(hits rag.hit[], exact boolean, considered integer, vector_ms real, lexical_ms real)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return query
  select hit.chunk_id, hit.document_id, hit.org_id, hit.ordinal, hit.content, hit.span_start, hit.span_end,
    hit.similarity, hit.word_score, hit.score, documents.collection_id, documents.source_type,
    documents.title, documents.uri, documents.lang, documents.occurred_at, documents.origin,
    documents.author, documents.state, documents.labels, documents.metadata, show.exact, show.considered,
    documents.external_id, stood.place, show.vector_ms, show.lexical_ms
  from unnest(hits) with ordinality as hit (org_id, document_id, ordinal, chunk_id, content, span_start,
    span_end, similarity, word_score, score, place)
  join rag.documents on documents.org_id = hit.org_id and documents.id = hit.document_id
  -- Offset 0 keeps this a look-up of each.
  cross join lateral (
    select chunks.metadata as place
    from rag.chunks
    where chunks.org_id = hit.org_id and chunks.id = hit.chunk_id
    offset 0
  ) as stood
  order by hit.place;
end;
$$;

-- filters: the fields of rag.filters; other keys are ignored.
create or replace function public.rag_match(
  query_vector extensions.vector,
  top_k integer default 8,
  filters jsonb default '{}'
)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  scope rag.scope;
  near record;
  started timestamptz;
  vector_ms real;
begin
  perform rag.check_top_k(top_k);
  scope := rag.scope_of(filters);
  started := clock_timestamp();
  near := rag.nearest(rag.needle(query_vector), scope, top_k);
  vector_ms := rag.milliseconds_since(started);
  return query select * from rag.show(near.hits, near.exact, near.considered, vector_ms, null);
end;
$$;

-- The hits, those of other source types held back: where all else is equal, the preferred come first.
create function rag.prefer(hits rag.hit[], source_types text[])
returns rag.hit[]
language sql stable security invoker set search_path = ''
as $$
  with weighed as (
    select hit.*, hit.score * case when documents.source_type = any (source_types) then 1 else 0.85 end
      as weighed_score
    from unnest(hits) as hit
    join rag.documents on documents.org_id = hit.org_id and documents.id = hit.document_id
  )
  select array_agg((weighed.org_id, weighed.document_id, weighed.ordinal, weighed.chunk_id, weighed.content,
    weighed.span_start, weighed.span_end, weighed.similarity, weighed.word_score, weighed.weighed_score)::rag.hit
    order by weighed.weighed_score desc, weighed.chunk_id)
  from weighed;
$$;

-- The hits of both legs, best first: of the nearest, and of those with most of the words, `wanted` each. mode and
-- fusion: as rag_search takes them. shown: how many somebody will see, whose order matters most. complete: whether
-- asking for more would bring no more. vector_ms, lexical_ms: how long each leg took; the words' one orders both.
create function rag.find(needle extensions.halfvec, query_text text, scope rag.scope, mode text, fusion text,
  wanted integer, shown integer, out hits rag.hit[], out exact boolean, out considered integer,
  out complete boolean, out vector_ms real, out lexical_ms real)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  started timestamptz := clock_timestamp();
  -- The words find a subject too, which then takes the place of something else.
  spare constant integer := num_nonnulls(scope.without_document, scope.without_chunk);
  by_words rag.scope := scope;
  near rag.hit[];
  asked rag.question;
  documents rag.reference[];
begin
  considered := 0;
  if mode <> 'keyword' then
    select nearest.hits, nearest.exact, nearest.considered into near, exact, considered
    from rag.nearest(needle, scope, wanted) as nearest;
    vector_ms := rag.milliseconds_since(started);
    hits := near;
  end if;
  if mode <> 'semantic' then
    started := clock_timestamp();
    asked := rag.question(query_text, scope);
    -- Left out afterwards: as a condition it would have every document of the org looked at.
    by_words.without_document := null;
    documents := array(
      select (document.org_id, document.document_id)::rag.reference
      from unnest(rag.documents_with(asked, by_words, 4 * wanted + spare)) as document
      where document.document_id is distinct from scope.without_document);
    hits := rag.score(asked,
      documents || array(select (hit.org_id, hit.document_id)::rag.reference from unnest(near) as hit),
      near, needle, scope, mode, fusion, wanted + spare, shown, false);
    if mode = 'hierarchical' then
      hits := rag.score(asked, rag.best_documents(hits, shown), null, needle, scope, mode, fusion, wanted, shown,
        true);
    end if;
    lexical_ms := rag.milliseconds_since(started);
  end if;
  complete := coalesce(cardinality(case when mode = 'keyword' then hits else near end), 0) < wanted;
end;
$$;

-- mode: semantic (needs query_vector), keyword (query_text), hybrid (both) or hierarchical (both: the best
-- documents first, then their best chunks). filters: the fields of rag.filters. expand_context: so many
-- neighbouring chunks join each text, on both sides. half_life_days: older documents are held back; null: not.
-- fusion: mean or rrf. prefer: source types that come first where all else is equal.
create function public.rag_search(
  query_text text default null,
  query_vector extensions.vector default null,
  mode text default 'hybrid',
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  fusion text default 'mean',
  prefer text[] default null
)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  -- What each leg brings, where the order in which it does is not the last.
  pool constant integer := greatest(20, 2 * top_k);
  needle extensions.halfvec(1536);
  scope rag.scope;
  found record;
  hits rag.hit[];
begin
  perform rag.check_search(query_text, query_vector, mode, expand_context, half_life_days, fusion);
  perform rag.check_top_k(top_k);
  scope := rag.scope_of(filters);
  prefer := nullif(prefer, '{}');
  if mode in ('hybrid', 'hierarchical') and not rag.are_words_wanted(scope) then
    mode := 'semantic';
  end if;
  if query_vector is not null then
    needle := rag.needle(query_vector);
  end if;

  found := rag.find(needle, query_text, scope, mode, fusion,
    case when mode = 'semantic' and half_life_days is null and prefer is null then top_k else pool end, top_k);
  hits := found.hits;
  if half_life_days is not null then
    hits := rag.fade(hits, half_life_days);
  end if;
  if prefer is not null then
    hits := rag.prefer(hits, prefer);
  end if;
  hits := hits[:top_k];
  if expand_context > 0 then
    hits := rag.widen(hits, expand_context);
  end if;
  return query
  select * from rag.show(hits, found.exact, found.considered, found.vector_ms, found.lexical_ms);
end;
$$;

-- A subject as it is compared: where it stands, and in which words it says so.
create type rag.subject as (average extensions.vector, words text, model text);

-- What a chunk or a document is compared by: the mean of its vectors, and the beginning of its text. It may stand
-- outside every filter. One that the caller cannot see is not there: PT404.
create function rag.subject_of(chunk_id uuid, document_id uuid)
returns rag.subject
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  org_ids constant uuid[] := array(select rag.current_org_ids());
  subject rag.subject;
begin
  select extensions.avg(chunks.embedding::extensions.vector), min(chunks.embedding_model)
    into subject.average, subject.model
  from rag.chunks
  where chunks.org_id = any (org_ids) and (chunks.id = chunk_id or chunks.document_id = document_id);
  if subject.average is null then
    raise exception 'no such subject' using errcode = 'PT404', detail = 'subject_not_found';
  end if;
  subject.words := left(case when chunk_id is not null
    then (select chunks.content from rag.chunks where chunks.org_id = any (org_ids) and chunks.id = chunk_id)
    else (
      select documents.content from rag.documents where documents.org_id = any (org_ids) and documents.id = document_id)
  end, 10000);
  return subject;
end;
$$;

-- The best hit of each document, best first.
create function rag.best_of_documents(hits rag.hit[])
returns rag.hit[]
language sql stable security invoker set search_path = ''
as $$
  select array_agg(best.hit order by (best.hit).score desc, (best.hit).chunk_id)
  from (
    select distinct on (hit.org_id, hit.document_id) hit
    from unnest(hits) as hit
    order by hit.org_id, hit.document_id, hit.score desc, hit.chunk_id
  ) as best;
$$;

-- The subject: chunk_id, document_id, or a text by query_text, query_vector or both, as the mode needs. It is never
-- among what is found, nor is any chunk of a document that is the subject. mode: semantic, keyword or hybrid. result:
-- chunks, or documents, each by its best chunk. prefer: as rag_search takes it.
create function public.rag_similar(
  chunk_id uuid default null,
  document_id uuid default null,
  result text default 'chunks',
  top_k integer default 10,
  filters jsonb default '{}',
  query_text text default null,
  query_vector extensions.vector default null,
  mode text default 'semantic',
  prefer text[] default null
)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  -- What each leg brings, where the order in which it does is not the last.
  wanted integer := case when mode = 'semantic' and coalesce(prefer, '{}') = '{}' then top_k
    else greatest(20, 2 * top_k) end;
  scope rag.scope;
  subject rag.subject;
  needle extensions.halfvec(1536);
  found record;
  hits rag.hit[];
  vector_ms real;
  lexical_ms real;
begin
  perform rag.check_subject(chunk_id, document_id, query_text, query_vector, result, mode), rag.check_top_k(top_k);
  scope := rag.scope_of(filters);
  if num_nonnulls(chunk_id, document_id) = 1 then
    subject := rag.subject_of(chunk_id, document_id);
    scope.model := subject.model;
    scope.without_chunk := chunk_id;
    scope.without_document := document_id;
  else
    subject := (query_vector, query_text, null);
  end if;
  if mode = 'hybrid' and not rag.are_words_wanted(scope) then
    mode := 'semantic';
  end if;
  if mode <> 'keyword' or query_vector is not null then
    needle := rag.needle(subject.average);
  end if;

  loop
    found := rag.find(needle, subject.words, scope, mode, 'mean', wanted, top_k);
    hits := found.hits;
    -- All rounds took their time; where there was no such leg, nothing plus null is null.
    vector_ms := coalesce(vector_ms, 0) + found.vector_ms;
    lexical_ms := coalesce(lexical_ms, 0) + found.lexical_ms;
    if prefer <> '{}' then
      hits := rag.prefer(hits, prefer);
    end if;
    exit when result = 'chunks';
    hits := rag.best_of_documents(hits);
    -- Enough documents, or all there are.
    exit when cardinality(hits) >= top_k or found.complete;
    wanted := wanted * 4;
  end loop;
  return query select * from rag.show(hits[:top_k], found.exact, found.considered, vector_ms, lexical_ms);
end;
$$;

-- Raises PT400, with the name of what is wrong in detail.
create function rag.check_subject(chunk_id uuid, document_id uuid, query_text text, query_vector extensions.vector,
  result text, mode text)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if num_nonnulls(chunk_id, document_id, coalesce(query_text, query_vector::text)) <> 1 then
    raise exception 'one of chunk_id, document_id and a text is needed'
      using errcode = 'PT400', detail = 'invalid_subject';
  elsif result is null or result not in ('chunks', 'documents') then
    raise exception 'result must be chunks or documents' using errcode = 'PT400', detail = 'invalid_result';
  elsif mode is null or mode not in ('semantic', 'keyword', 'hybrid') then
    raise exception 'mode must be semantic, keyword or hybrid' using errcode = 'PT400', detail = 'invalid_mode';
  elsif num_nonnulls(chunk_id, document_id) = 0 then
    perform rag.check_search(query_text, query_vector, mode, 0, null, 'mean');
  end if;
end;
$$;

revoke all on function rag.subject_of(uuid, uuid), rag.best_of_documents(rag.hit[]),
  rag.check_subject(uuid, uuid, text, extensions.vector, text, text),
  public.rag_similar(uuid, uuid, text, integer, jsonb, text, extensions.vector, text, text[])
  from public, anon, service_role;
grant execute on function rag.subject_of(uuid, uuid), rag.best_of_documents(rag.hit[]),
  rag.check_subject(uuid, uuid, text, extensions.vector, text, text),
  public.rag_similar(uuid, uuid, text, integer, jsonb, text, extensions.vector, text, text[])
  to authenticated;

revoke all on function
  rag.milliseconds_since(timestamptz),
  rag.show(rag.hit[], boolean, integer, real, real),
  rag.prefer(rag.hit[], text[]),
  rag.find(extensions.halfvec, text, rag.scope, text, text, integer, integer),
  public.rag_search(text, extensions.vector, text, integer, jsonb, integer, double precision, text, text[])
  from public, anon, service_role;
grant execute on function
  rag.milliseconds_since(timestamptz),
  rag.show(rag.hit[], boolean, integer, real, real),
  rag.prefer(rag.hit[], text[]),
  rag.find(extensions.halfvec, text, rag.scope, text, text, integer, integer),
  public.rag_search(text, extensions.vector, text, integer, jsonb, integer, double precision, text, text[])
  to authenticated;

-- Where requests look: sql/70, which is new.

create type rag.place as (org_id uuid, collection_id uuid);

-- The place that the ids mean to the caller; without a workspace, the org. PT404 for a workspace that the caller does
-- not see, that is of another org than the one given, or that is only being loaded; and for an org that is not theirs.
create function public.rag_locate(workspace_id uuid default null, org_id uuid default null)
returns setof rag.place
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  org_ids constant uuid[] := case when rag_locate.org_id is null then array(select rag.current_org_ids())
    else array[rag.org_meant(rag_locate.org_id)] end;
begin
  if workspace_id is null and rag_locate.org_id is null then
    raise exception 'a workspace or an org must be named' using errcode = 'PT400', detail = 'workspace_required';
  elsif workspace_id is null then
    return query select org_ids[1], null::uuid;
    return;
  end if;
  return query
  select collections.org_id, collections.id
  from rag.collections
  where collections.org_id = any (org_ids) and collections.id = workspace_id and collections.loads is null;
  if not found then
    raise exception 'There is no such workspace.' using errcode = 'PT404', detail = 'workspace_not_found';
  end if;
end;
$$;

revoke all on function public.rag_locate(uuid, uuid) from public, anon, service_role;
grant execute on function public.rag_locate(uuid, uuid) to authenticated;

-- Replies to requests with an Idempotency-Key: sql/41, which is new.

create table rag.replies (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  owner_id uuid not null,
  -- The API key that asked, else the user: rag.caller_id().
  caller_id uuid not null,
  -- SHA-256 of the key, and of what was asked.
  key_hash text not null check (key_hash ~ '^[0-9a-f]{64}$'),
  body_hash text not null check (body_hash ~ '^[0-9a-f]{64}$'),
  -- The one that the asking key is bound to.
  collection_id uuid,
  -- Whose work it is until it is done, and when whoever has it is taken for dead. A reply has neither.
  claim uuid,
  due_at timestamptz,
  status integer check (status between 200 and 599),
  -- As it was sent, the order of its keys too.
  body json check (octet_length(body::text) <= 250000),
  request_id text check (length(request_id) between 1 and 200),
  -- What it shows: when the caller no longer sees all of that, it was never answered.
  chunk_ids uuid[] not null default '{}',
  created_at timestamptz not null,
  primary key (org_id, owner_id, caller_id, key_hash),
  constraint replies_state check (
    num_nonnulls(claim, due_at) = 2 and num_nonnulls(status, body, request_id) = 0
    or num_nonnulls(claim, due_at) = 0 and num_nonnulls(status, body, request_id) = 3)
);

-- rag_claim_reply: what of the caller's is too old.
create index replies_by_age on rag.replies (org_id, owner_id, caller_id, created_at);

alter table rag.replies enable row level security;
alter table rag.replies force row level security;

create policy "members use their org's replies" on rag.replies
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "a reply is for whoever asked" on rag.replies
  as restrictive for all to authenticated
  using (owner_id = (select auth.uid()) and caller_id = (select rag.caller_id()))
  with check (owner_id = (select auth.uid()) and caller_id = (select rag.caller_id()));

create policy "a key has replies with chat:read" on rag.replies
  as restrictive for all to authenticated
  using ((select rag.has_scope('chat:read')))
  with check ((select rag.has_scope('chat:read')));

create policy "a bound key stays in its collection" on rag.replies
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

grant select, insert, update, delete on rag.replies to authenticated;

-- What to do with a request: go (with a claim to end it by), replay what was answered, busy (it is being worked on;
-- ask again so many seconds later), or differs (the key has been used for something else).
create type rag.claimed_reply as (
  outcome text, claim uuid, status integer, body json, request_id text, retry_after integer
);

-- Whether the caller has as many replies as anybody may.
create function rag.has_too_many_replies(org_id uuid)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.replies as present
    where present.org_id = has_too_many_replies.org_id and present.owner_id = (select auth.uid())
      and present.caller_id = (select rag.caller_id()) and present.created_at > now() - interval '24 hours'
    order by present.created_at
    offset 9999 limit 1);
$$;

-- Whether the caller sees all of these.
create function rag.sees_chunks(org_id uuid, ids uuid[])
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select not exists (
    select from unnest(ids) as wanted (id)
    where not exists (
      select from rag.chunks where chunks.org_id = sees_chunks.org_id and chunks.id = wanted.id));
$$;

-- Claim a request for so many seconds, in which nobody else does the same. Of any number at once one goes. A claim
-- that has run out goes to the next who asks the same; what is older than 24 hours was never asked.
create function public.rag_claim_reply(org_id uuid, key_hash text, body_hash text, lease_seconds integer)
returns setof rag.claimed_reply
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  home constant uuid := rag.org_meant(org_id);
  known rag.replies;
  answer rag.claimed_reply;
  -- The clock, not the transaction's time: one may have waited for another.
  moment timestamptz;
begin
  if not rag.has_scope('chat:read') then
    raise exception 'the key lacks the scope chat:read' using errcode = 'PT403', detail = 'missing_scope';
  elsif lease_seconds is null or lease_seconds not between 1 and 3600 then
    raise exception 'lease_seconds must be between 1 and 3600' using errcode = 'PT400', detail = 'invalid_lease';
  elsif rag.has_too_many_replies(home) then
    -- Rather than forget what was promised.
    raise exception 'too many answers are kept: send fewer requests with an Idempotency-Key'
      using errcode = 'PT429', detail = 'too_many_replies';
  end if;
  -- Again, should what stood in the way be released before it was read.
  for attempt in 1..5 loop
    moment := clock_timestamp();
    insert into rag.replies as present (
      org_id, owner_id, caller_id, key_hash, body_hash, collection_id, claim, due_at, created_at)
    values (home, auth.uid(), rag.caller_id(), key_hash, body_hash, rag.bound_collection(), gen_random_uuid(),
      moment + make_interval(secs => lease_seconds), moment)
    on conflict on constraint replies_pkey do update
    set body_hash = excluded.body_hash, claim = excluded.claim, due_at = excluded.due_at, status = null, body = null,
      request_id = null, chunk_ids = '{}', created_at = excluded.created_at
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
    answer := ('replay', null, known.status, known.body, known.request_id, null);
  else
    -- As long again as it has been worked on, but no longer than the claim lasts.
    answer.outcome := 'busy';
    answer.retry_after := greatest(1, ceil(extract(epoch from
      least(known.due_at - clock_timestamp(), clock_timestamp() - known.created_at))));
  end if;
  return next answer;
end;
$$;

-- Delete of the caller's replies those that are too old, a hundred at a time. Skipping what is locked, it waits for
-- nobody.
create function rag.forget_replies(org_id uuid)
returns void
language sql volatile security invoker set search_path = ''
as $$
  with old as (
    select present.org_id, present.owner_id, present.caller_id, present.key_hash
    from rag.replies as present
    where present.org_id = forget_replies.org_id and present.owner_id = (select auth.uid())
      and present.caller_id = (select rag.caller_id()) and present.created_at <= now() - interval '24 hours'
    order by present.created_at
    limit 100
    for update skip locked
  )
  delete from rag.replies as present
  using old
  where present.org_id = old.org_id and present.owner_id = old.owner_id and present.caller_id = old.caller_id
    and present.key_hash = old.key_hash;
$$;

-- Keep what was answered, by the claim alone that it was worked under; whether it is kept. A body above 250 kB is
-- not, and releases the claim. chunk_ids: what it shows, without which it is not replayed. body: as JSON, in a text: an
-- argument that is JSON itself is refused for a null character.
create function public.rag_keep_reply(
  org_id uuid, key_hash text, claim uuid, status integer, body text, request_id text,
  chunk_ids uuid[] default '{}'
)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
begin
  if octet_length(body) > 250000 then
    perform public.rag_release_reply(org_id, key_hash, claim);
    return false;
  end if;
  update rag.replies as present
  set claim = null, due_at = null, status = rag_keep_reply.status, body = rag_keep_reply.body::json,
    request_id = rag_keep_reply.request_id, chunk_ids = coalesce(rag_keep_reply.chunk_ids, '{}')
  where present.org_id = rag.org_meant(rag_keep_reply.org_id) and present.owner_id = auth.uid()
    and present.caller_id = rag.caller_id() and present.key_hash = rag_keep_reply.key_hash
    and present.claim = rag_keep_reply.claim;
  return found;
end;
$$;

-- Give a claim back, so that the next who asks goes; whether it was still held.
create function public.rag_release_reply(org_id uuid, key_hash text, claim uuid)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
begin
  delete from rag.replies as present
  where present.org_id = rag.org_meant(rag_release_reply.org_id) and present.owner_id = auth.uid()
    and present.caller_id = rag.caller_id() and present.key_hash = rag_release_reply.key_hash
    and present.claim = rag_release_reply.claim;
  return found;
end;
$$;

revoke all on function public.rag_claim_reply(uuid, text, text, integer), rag.has_too_many_replies(uuid),
  rag.sees_chunks(uuid, uuid[]), rag.forget_replies(uuid),
  public.rag_keep_reply(uuid, text, uuid, integer, text, text, uuid[]), public.rag_release_reply(uuid, text, uuid)
  from public, anon, service_role;
grant execute on function public.rag_claim_reply(uuid, text, text, integer), rag.has_too_many_replies(uuid),
  rag.sees_chunks(uuid, uuid[]), rag.forget_replies(uuid),
  public.rag_keep_reply(uuid, text, uuid, integer, text, text, uuid[]), public.rag_release_reply(uuid, text, uuid)
  to authenticated;

-- Functions that are counted: sql/40.

alter table rag.request_counts
  drop constraint request_counts_function_check,
  add constraint request_counts_function_check check (
    function in ('rag-search', 'rag-answer', 'api-keys', 'collections', 'documents', 'webhooks', 'indexes',
      'index-query', 'index-snapshots', 'chat-completions', 'knowledge', 'v1-search',
      'v1-contents', 'v1-similar', 'v1-answer'));

-- Contents by their ids: sql/71, which is new.

-- How many bytes a text takes in an answer, which is JSON.
create function rag.size_of(content text)
returns bigint
language sql immutable security invoker set search_path = ''
as $$
  select octet_length(to_json(content)::text);
$$;

-- The first chunks of a document that take no more than `room` bytes together; complete: whether these are all.
create function rag.first_chunks(org_id uuid, document_id uuid, room bigint, out chunks jsonb,
  out taken bigint, out complete boolean)
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  parts jsonb[] := '{}';
  part record;
  size bigint;
begin
  taken := 0;
  complete := true;
  -- A loop reads no more texts than there is room for, however many there are.
  for part in
    select present.id, present.document_id, present.ordinal, present.content as text, present.span_start,
      present.span_end
    from rag.chunks as present
    where present.org_id = first_chunks.org_id and present.document_id = first_chunks.document_id
    order by present.ordinal
  loop
    size := rag.size_of(part.text);
    complete := taken + size <= room;
    exit when not complete;
    taken := taken + size;
    parts := parts || to_jsonb(part);
  end loop;
  chunks := to_jsonb(parts);
end;
$$;

-- ids of documents and chunks, as their kinds say, of an org, or of one of its collections. text, chunks: whether
-- documents come with these. In the order of the ids 4,500,000 bytes are given out: a text is whole or null, of chunks
-- there are the first; where something did not fit, truncated is true. What is not found is not there. PT403
-- for a key without a scope that reads.
create function public.rag_contents(
  org_id uuid, kinds text[], ids uuid[], collection_id uuid default null, text boolean default true,
  chunks boolean default false
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than these statements run.
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  -- Lambda gives back six megabytes at most.
  room bigint := 4500000;
  documents jsonb[] := '{}';
  passages jsonb[] := '{}';
  own record;
  size bigint;
  fits boolean;
  parts jsonb;
  taken bigint;
  complete boolean;
begin
  if not rag.has_scope('documents:read', 'retrievals:read', 'chat:read') then
    raise exception 'the key lacks the scope documents:read' using errcode = 'PT403', detail = 'missing_scope';
  elsif ids is null or kinds is null or cardinality(ids) > 100 or cardinality(ids) <> cardinality(kinds) then
    raise exception 'ids must be at most 100, each of a kind' using errcode = 'PT400', detail = 'invalid_ids';
  end if;
  for own in
    select wanted.kind, coalesce(document.content, passage.content) as content, document.shown as document,
      passage.shown as passage, wanted.id
    from unnest(kinds, ids) with ordinality as wanted (kind, id, place)
    left join lateral (
      select present.content, jsonb_build_object('id', present.id, 'collection_id', present.collection_id,
        'title', present.title, 'source_type', present.source_type, 'origin', present.origin, 'uri', present.uri,
        'author', present.author, 'state', present.state, 'labels', present.labels,
        'occurred_at', present.occurred_at, 'metadata', present.metadata) as shown
      from rag.documents as present
      where wanted.kind = 'document' and present.org_id = rag_contents.org_id and present.id = wanted.id
        and (collection_id is null or present.collection_id = rag_contents.collection_id)
      offset 0
    ) as document on true
    left join lateral (
      select present.content, jsonb_build_object('id', present.id, 'document_id', present.document_id,
        'ordinal', present.ordinal, 'span_start', present.span_start, 'span_end', present.span_end) as shown
      from rag.chunks as present
      where wanted.kind = 'chunk' and present.org_id = rag_contents.org_id and present.id = wanted.id
        and (collection_id is null or present.collection_id = rag_contents.collection_id)
      offset 0
    ) as passage on true
    where document.shown is not null or passage.shown is not null
    order by wanted.place
  loop
    room := room - octet_length(coalesce(own.document, own.passage)::text);
    -- A text far too long is not even read.
    size := case when (text or own.document is null) and octet_length(own.content) <= room
      then rag.size_of(own.content) end;
    fits := coalesce(size <= room, false);
    if fits then
      room := room - size;
    end if;
    if own.passage is not null then
      passages := passages || (own.passage || jsonb_build_object('text', case when fits then own.content end));
      continue;
    end if;
    if chunks then
      select first.chunks, first.taken, first.complete into parts, taken, complete
      from rag.first_chunks(org_id, own.id, room) as first;
      room := room - taken;
    end if;
    documents := documents || (own.document || jsonb_build_object(
      'text', case when fits then own.content end, 'chunks', parts,
      'truncated', text and not fits or chunks and not complete));
  end loop;
  return jsonb_build_object('documents', to_jsonb(documents), 'chunks', to_jsonb(passages));
end;
$$;

revoke all on function rag.size_of(text), rag.first_chunks(uuid, uuid, bigint),
  public.rag_contents(uuid, text[], uuid[], uuid, boolean, boolean) from public, anon, service_role;
grant execute on function rag.size_of(text), rag.first_chunks(uuid, uuid, bigint),
  public.rag_contents(uuid, text[], uuid[], uuid, boolean, boolean) to authenticated;
