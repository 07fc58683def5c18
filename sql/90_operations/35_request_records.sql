-- Records of answered requests: question, passages, judgement, prompt and answer, for explanation, replay and
-- evaluation. Off by default; an org turns them on with the days after which they expire (rag.orgs.record_days). The
-- functions write one record for each answered request, as its caller. Its user and the org's admins read it.
--
-- A record contains no text of a passage: it names chunks, whose texts are read under the reader's row security. The
-- answer, the reasons, the queries and the prompt may repeat such texts, so they are shown only to a reader who sees
-- all of the record's chunks (rag_get_record). They may also repeat texts that no chunk of the record has: earlier
-- answers of a conversation, descriptions in the graph, and passages beyond 100. Of the prompt, passages and earlier
-- messages are not stored.

create table rag.request_records (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid not null,
  key_id uuid,
  collection_id uuid,
  request_id text not null check (length(request_id) between 1 and 200),
  function text not null check (function ~ '^[a-z][a-z0-9-]{0,39}$'),
  question text not null check (length(question) between 1 and 10000),
  queries jsonb not null check (jsonb_typeof(queries) = 'array' and jsonb_array_length(queries) between 1 and 20
    and not jsonb_path_exists(queries, '$[*] ? (!(@.text.type() == "string"))')),
  passages jsonb not null check (jsonb_typeof(passages) = 'array' and jsonb_array_length(passages) <= 100),
  confidence text not null check (confidence in ('high', 'medium', 'low')),
  score double precision not null check (score between 0 and 1),
  because text[] not null check (cardinality(because) <= 20),
  answer text check (length(answer) between 1 and 100000),
  model text check (length(model) <= 200),
  prompt jsonb check (jsonb_typeof(prompt) = 'array'),
  prompt_tokens integer not null check (prompt_tokens >= 0),
  completion_tokens integer not null check (completion_tokens >= 0),
  milliseconds integer not null check (milliseconds >= 0),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  rating text check (rating in ('up', 'down')),
  reason text check (length(reason) <= 2000),
  verdict text check (verdict in ('right', 'wrong')),
  document_ids uuid[] not null default '{}' check (cardinality(document_ids) <= 20),
  auth_user_id uuid generated always as (rag.auth_user_id(owner_id)) stored references auth.users (id) on delete cascade,
  primary key (org_id, id)
);

comment on table rag.request_records is 'Answered requests of orgs that record them.';
comment on column rag.request_records.owner_id is 'The user who asked.';
comment on column rag.request_records.key_id is 'The API key of the request; null for the user''s own token.';
comment on column rag.request_records.collection_id is
  'The one collection whose id was searched; null for several, and for one that was searched by its name with a key '
  'that is not bound. A key that is bound to a collection sees its records alone.';
comment on column rag.request_records.request_id is 'X-Request-Id of the response. Clients choose it, so several records may have the same.';
comment on column rag.request_records.queries is
  'The searches: the interpreted question with its mode, filters and number of passages.';
comment on column rag.request_records.passages is
  'The chunks that could answer, best first, with the score of each leg that found them.';
comment on column rag.request_records.answer is 'Null for a question that was not answered.';
comment on column rag.request_records.prompt is
  'The messages to the model, with a mark in the place of each passage and earlier message; null without a model.';
comment on column rag.request_records.expires_at is 'The end of the retention, from which on no caller sees the row.';
comment on column rag.request_records.rating is 'By the user who asked: up or down, and optionally a reason.';
comment on column rag.request_records.verdict is
  'By an admin: whether the answer, or the refusal, was right; the next column: the documents that answer.';

-- rag_list_records.
create index request_records_by_time on rag.request_records (org_id, created_at desc, id);
-- rag.get_record.
create index request_records_by_request on rag.request_records (org_id, request_id);
-- Deleting a user.
create index request_records_by_auth_user on rag.request_records (auth_user_id);
-- rag_remove_expired_records.
create index request_records_by_expiry on rag.request_records (expires_at);

call rag.admit_members('request_records');
call rag.bind_keys('request_records');

create policy "records are of oneself" on rag.request_records
  as restrictive for insert to authenticated
  with check (owner_id = (select rag.current_user_id())
    and key_id is not distinct from (select nullif(rag.caller_id(), rag.current_user_id())));

create policy "expired records are invisible" on rag.request_records
  as restrictive for select to authenticated
  using (expires_at > now());

create policy "a key records and reads answers with a scope that asks" on rag.request_records
  as restrictive for all to authenticated
  using ((select rag.has_scope('chat:read', 'retrievals:read')))
  with check ((select rag.has_scope('chat:read', 'retrievals:read')));

create policy "the worker sees expired records" on rag.request_records
  for select to rag_worker using (expires_at <= now());

create policy "the worker removes expired records" on rag.request_records
  for delete to rag_worker using (expires_at <= now());

create function rag.shorten_retention()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- rag_record_request has the lock until the end of its transaction, so that this deletes its record, too.
  perform pg_advisory_xact_lock(hashtextextended('rag.record_days ' || new.id, 0));
  delete from rag.request_records
  where org_id = new.id
    and (new.record_days is null or created_at + make_interval(days => new.record_days) <= now());
  update rag.request_records set expires_at = created_at + make_interval(days => new.record_days)
  where org_id = new.id and expires_at > created_at + make_interval(days => new.record_days);
  return null;
end;
$$;

comment on function rag.shorten_retention is 'Applies a shorter retention, or none, to the org''s earlier records.';

create trigger shorten_retention after update of record_days on rag.orgs
  for each row
  when (old.record_days is distinct from new.record_days)
  execute function rag.shorten_retention();

create function rag.org_of_record(orgs jsonb)
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select candidate.ids[1]
  from (
    select case when coalesce(orgs, '[]') = '[]' then array(select rag.current_org_ids())
      else array(select distinct named.id::uuid from jsonb_array_elements_text(orgs) as named (id)) end as ids
  ) as candidate
  where cardinality(candidate.ids) = 1 and candidate.ids[1] in (select rag.current_org_ids());
$$;

comment on function rag.org_of_record is
  'The org that a request concerned: the one of its filters and passages, else the caller''s only org. Null for a '
  'request over several orgs: no admin may learn of another org''s passages.';

create function public.rag_record_request(record jsonb)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call() and rag.require_scope('chat:read', 'retrievals:read');
  org uuid;
  days integer;
begin
  perform rag.check_json('record', record, 1000000);
  if coalesce(jsonb_typeof(record -> 'org_ids'), 'null') not in ('null', 'array') then
    raise exception 'org_ids must be a list of ids' using errcode = 'PT400', detail = 'invalid_record';
  end if;
  org := rag.org_of_record(nullif(record -> 'org_ids', 'null'));
  -- While the retention changes, nothing is recorded.
  if org is null or not pg_try_advisory_xact_lock_shared(hashtextextended('rag.record_days ' || org, 0)) then
    return null;
  end if;
  select orgs.record_days into days from rag.orgs where orgs.id = org;
  if days is null then
    return false;
  end if;
  -- The anonymous caller of the index API has the token of a member, who did not ask.
  if rag.creator_id() <> rag.current_user_id() then
    return null;
  end if;
  insert into rag.request_records (org_id, owner_id, key_id, collection_id, request_id, function, question, queries,
    passages, confidence, score, because, answer, model, prompt, prompt_tokens, completion_tokens, milliseconds, expires_at)
  select org, rag.current_user_id(), nullif(rag.caller_id(), rag.current_user_id()),
    -- Not of a collection that the caller may not view, whose records others read.
    coalesce(rag.bound_collection(), case
      when request.collection_id not in (select rag.closed_collections('view')) then request.collection_id end),
    request.request_id, request.function,
    request.question, request.queries, (
      select coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(passage)) order by item.position), '[]')
      from jsonb_array_elements(request.passages) with ordinality as item (body, position)
      cross join lateral jsonb_to_record(item.body) as passage (chunk_id uuid, document_id uuid,
        score double precision, similarity double precision, word_score double precision,
        relevance double precision, graph_sourced boolean)),
    request.confidence, request.score, request.because, request.answer, request.model, nullif(request.prompt, 'null'),
    request.prompt_tokens, request.completion_tokens, request.milliseconds, now() + make_interval(days => days)
  from jsonb_to_record(record) as request (collection_id uuid, request_id text, function text, question text,
    queries jsonb, passages jsonb, confidence text, score double precision, because text[], answer text, model text,
    prompt jsonb, prompt_tokens integer, completion_tokens integer, milliseconds integer);
  return true;
end;
$$;

comment on function public.rag_record_request is
  'Store a record of the caller''s answered request: true; false if the org records no requests. Null if this request '
  'is not recorded: over several orgs, of the anonymous caller of the index API, or while the retention changes. '
  'record: the columns of rag.request_records, and org_ids: the orgs of the request''s filters and passages.';

create function public.rag_remove_expired_records()
returns integer
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  removed integer;
begin
  -- Raises PT401 for a token of another issuer.
  perform rag.current_user_id();
  delete from rag.request_records
  where (org_id, id) in (
    select expired.org_id, expired.id from rag.request_records as expired where expired.expires_at <= now() limit 10000);
  get diagnostics removed = row_count;
  return removed;
end;
$$;

comment on function public.rag_remove_expired_records is
  'Delete up to 10,000 expired records of all orgs; their number. For the worker.';
