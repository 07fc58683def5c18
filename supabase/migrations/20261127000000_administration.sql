-- Facets of the documents that are there may take minutes.
set local statement_timeout = 0;

-- What is found says what its document's file was called, and whose it is (sql/59).
alter type rag.found add attribute filename text, add attribute owner_id uuid;

-- The hits as rows, in their order.
create or replace function rag.show(hits rag.hit[], exact boolean, considered integer, vector_ms real, lexical_ms real)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return query
  select hit.chunk_id, hit.document_id, hit.org_id, hit.ordinal, hit.content, hit.span_start, hit.span_end,
    hit.similarity, hit.word_score, hit.score, documents.collection_id, documents.source_type,
    documents.title, documents.uri, documents.lang, documents.occurred_at, documents.origin,
    documents.author, documents.state, documents.labels, documents.metadata, show.exact, show.considered,
    documents.external_id, stood.place, show.vector_ms, show.lexical_ms, documents.filename,
    documents.owner_id
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

-- Documents are filtered by their type too (sql/26, sql/58).
alter type rag.filters add attribute document_type text;

-- Raises PT400 for filters that are no object, PT403 for a key without a scope that reads, and for a collection by name
-- what rag.require_collection raises.
create or replace function rag.scope_of(filters jsonb)
returns rag.scope
language plpgsql stable security invoker set search_path = ''
as $$
declare
  wanted rag.filters;
  scope rag.scope;
  groups integer[];
  facets uuid[];
begin
  if not rag.has_scope('retrievals:read', 'chat:read') then
    raise exception 'the key lacks the scope retrievals:read' using errcode = 'PT403', detail = 'missing_scope';
  elsif jsonb_typeof(coalesce(filters, '{}')) <> 'object'
    or jsonb_typeof(coalesce(nullif(filters -> 'metadata', 'null'), '{}')) <> 'object' then
    raise exception 'filters must be an object' using errcode = 'PT400', detail = 'invalid_filters';
  end if;
  wanted := jsonb_populate_record(null::rag.filters, coalesce(filters, '{}'));

  scope.org_ids := array(
    select ids.id from rag.current_org_ids() as ids (id)
    where wanted.org_id is null or ids.id = wanted.org_id);
  scope.model := coalesce(wanted.model, (select settings.embedding_model from rag.settings));
  scope.collection_ids := nullif(wanted.collection_ids, '{}');
  if wanted.collection_id is not null then
    scope.collection_ids := array[wanted.collection_id];
  end if;
  if wanted.collection is not null then
    scope.collection_ids := array[(rag.require_collection(wanted.collection)).id];
  end if;
  -- Row security would keep a bound key in its collection, but not find that by an index.
  if rag.bound_collection() is not null then
    scope.collection_ids := array(
      select rag.bound_collection()
      where scope.collection_ids is null or rag.bound_collection() = any (scope.collection_ids));
  end if;
  scope.source_types := nullif(wanted.source_types, '{}');
  if wanted.source_type is not null then
    scope.source_types := array[wanted.source_type];
  end if;
  scope.lang := lower(wanted.lang);
  scope.date_from := wanted.date_from;
  scope.date_to := wanted.date_to;

  if num_nonnulls(wanted.origins, wanted.authors, wanted.states, wanted.labels, wanted.metadata,
    wanted.document_type) = 0 then
    return scope;
  end if;

  -- One facet of each group must be there.
  -- A null in a list is no document's.
  select array_agg(found.number), array_agg(rag.facet(found.kind, coalesce(found.value, 'null')))
    into groups, facets
  from (
    select 1, 'origin', to_jsonb(value) from unnest(wanted.origins) as value
    union all select 2, 'author', to_jsonb(value) from unnest(wanted.authors) as value
    union all select 3, 'state', to_jsonb(value) from unnest(wanted.states) as value
    union all select 4, 'label', to_jsonb(value) from unnest(wanted.labels) as value
    union all select 5, 'document_type', to_jsonb(wanted.document_type) where wanted.document_type is not null
    union all select 5 + entry.number, 'metadata.' || entry.key, entry.value
      from jsonb_each(nullif(wanted.metadata, 'null')) with ordinality as entry (key, value, number)
  ) as found (number, kind, value);
  if facets is not null then
    scope.document_ids := array(
      select found.document_id
      from unnest(groups, facets) as asked (number, facet)
      cross join unnest(scope.org_ids) as org (id)
      -- One look-up each, which the planner cannot turn into a walk through the org.
      cross join lateral (
        select facets_of.document_id
        from rag.facets as facets_of
        where facets_of.org_id = org.id and facets_of.facet = asked.facet
        offset 0
      ) as found
      group by org.id, found.document_id
      having count(distinct asked.number) = (select count(distinct number) from unnest(groups) as number));
  end if;
  return scope;
end;
$$;

-- The facets of a document. Metadata is under "metadata.key", so that no key of it can pass for a label or an
-- author. Its type is what somebody calls it, and what it was read as: it is found by either.
create or replace function rag.facets_of(document rag.documents)
returns setof uuid
language sql immutable security invoker set search_path = ''
as $$
  select distinct rag.facet(found.kind, found.value)
  from (
    select field.kind, to_jsonb(field.value)
    from (values ('origin', document.origin), ('author', document.author), ('state', document.state))
      as field (kind, value)
    where field.value is not null
    union all
    select 'label', to_jsonb(label) from unnest(document.labels) as label
    union all
    select 'metadata.' || entry.key, entry.value from jsonb_each(document.metadata) as entry
    union all
    select 'document_type', said.value
    from (values (document.metadata -> 'document_type'), (document.processing_info -> 'document_type'))
      as said (value)
    where jsonb_typeof(said.value) = 'string'
  ) as found (kind, value);
$$;

create or replace trigger index_facets_of_changed_documents
  after update of origin, author, state, labels, metadata, processing_info, collection_id, owner_id on rag.documents
  for each row
  when ((old.origin, old.author, old.state, old.labels, old.metadata, old.processing_info -> 'document_type',
      old.collection_id, old.owner_id)
    is distinct from
    (new.origin, new.author, new.state, new.labels, new.metadata, new.processing_info -> 'document_type',
      new.collection_id, new.owner_id))
  execute function rag.index_facets();

-- Of those that are there already.
insert into rag.facets (org_id, facet, document_id, collection_id, owner_id)
select documents.org_id, rag.facet('document_type', said.value), documents.id, documents.collection_id,
  documents.owner_id
from rag.documents
cross join lateral (values (documents.metadata -> 'document_type'), (documents.processing_info -> 'document_type'))
  as said (value)
where jsonb_typeof(said.value) = 'string'
on conflict do nothing;

-- Who calls an org, and how often today: what the administrators of an org are shown. A row is a user's today in one
-- org, and is used again the next day, so there is one for each who ever called. Written by rag_hit, read by rag_stats.

create table rag.calls (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  -- Who calls.
  owner_id uuid not null,
  -- In UTC, as is the midnight that starts it.
  day date not null,
  total bigint not null check (total > 0),
  primary key (org_id, owner_id)
);

alter table rag.calls enable row level security;
alter table rag.calls force row level security;

create policy "callers see their own calls, admins their org's" on rag.calls
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "calls are of oneself" on rag.calls
  as restrictive for insert to authenticated
  with check (owner_id = (select auth.uid()));

create policy "nobody counts for another" on rag.calls
  as restrictive for update to authenticated
  using (owner_id = (select auth.uid())) with check (owner_id = (select auth.uid()));

grant select, insert, update on rag.calls to authenticated;

-- One call more, of a token that counts for one org alone: which of several orgs a call concerns is not known here, and
-- none of the others may learn of it.
create function rag.count_call()
returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.calls as present (org_id, owner_id, day, total)
  select own.ids[1], auth.uid(), (clock_timestamp() at time zone 'UTC')::date, 1
  from (select array(select rag.current_org_ids()) as ids) as own
  where cardinality(own.ids) = 1
  on conflict on constraint calls_pkey do update set
    day = greatest(present.day, excluded.day),
    total = case when present.day < excluded.day then 0 else present.total end + 1;
$$;

revoke all on function rag.count_call() from public, anon, service_role;
grant execute on function rag.count_call() to authenticated;

-- One request, or `amount` of them, of a function: a row for each limit that the caller stands under, with
-- where its window stands now. Admitted only if all windows have room, and then counted in all, else in
-- none: a caller is let through exactly as often as each limit says. One round trip. It returns rows and
-- never raises for a limit, since raising would roll the count back.
create or replace function public.rag_hit(
  function text, bucket text, requests integer, window_seconds integer, amount integer default 1
)
returns table (allowed integer, seconds integer, hits bigint, resets_at timestamptz, admitted boolean)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  per record;
  paid record;
begin
  if auth.uid() is null or coalesce(requests, 0) < 1 or coalesce(amount, 0) not between 1 and 1000 then
    return;
  elsif bucket not in ('rag', 'api') or window_seconds not in (1, 60, 3600, 86400) then
    raise exception 'unknown bucket or window' using errcode = 'PT400', detail = 'invalid_limit';
  end if;

  -- The minute before the day, always: two requests lock their rows in the same order.
  for per in
    select named.* from rag.limits_of_caller(bucket, requests, window_seconds) as named
    order by named.bucket = 'day'
  loop
    select per.requests, per.window_seconds, counted.*
    into allowed, seconds, hits, resets_at, admitted
    from rag.count_hits(per.caller_id, per.bucket, per.requests, per.window_seconds, amount) as counted;
    return next;
    exit when not admitted;
    paid := per;
  end loop;

  if not admitted and paid is not null then
    -- The day is spent: the minute gets back what it was charged for this request.
    update rag.rate_limits as spent set hits = spent.hits - amount
    where spent.caller_id = paid.caller_id and spent.bucket = paid.bucket
      and spent.window_seconds = paid.window_seconds;
  end if;

  insert into rag.request_counts as present (user_id, function, outcome, total)
  values (auth.uid(), function, case when admitted then 'admitted' else 'limited' end, 1)
  on conflict on constraint request_counts_pkey do update set total = present.total + excluded.total;
  if admitted then
    perform rag.count_call();
  end if;
end;
$$;

-- What an org's administrators are told of it: how much there is, and whether the database is as it should be.

-- How many there are in the orgs that the caller administers. Of each table at most so many rows are counted;
-- is_complete says whether that was enough. total_users: who has ever called. Entities are distinct names, by
-- org, relationships distinct statements. Of a key that is bound to a collection that is all it is told of: neither
-- users nor calls. PT403 for who administers none.
create function public.rag_stats(most integer default 500000)
returns table (
  total_users bigint, total_collections bigint, total_documents bigint, total_chunks bigint, total_entities bigint,
  total_relationships bigint, storage_used_bytes bigint, api_calls_today bigint, is_complete boolean
)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  own constant uuid[] := array(select rag.admin_org_ids());
  counted bigint[];
begin
  if cardinality(own) = 0 then
    raise exception 'only an admin of the org, with a key that has the scope admin, may see this'
      using errcode = 'PT403', detail = 'admin_required';
  elsif coalesce(most, 0) not between 1 and 500000 then
    raise exception 'most must be between 1 and 500000' using errcode = 'PT400', detail = 'invalid_most';
  end if;

  -- A user of several of these orgs is one.
  select count(distinct calls.owner_id),
    coalesce(sum(calls.total) filter (where calls.day = (now() at time zone 'UTC')::date), 0)
  into total_users, api_calls_today
  from rag.calls
  where calls.org_id = any (own) and (select rag.bound_collection()) is null;

  select count(*) into total_collections
  from (select from rag.collections where collections.org_id = any (own) limit most) as found;

  -- Sizes are read from where values begin, and not the values.
  select count(*), coalesce(sum(found.bytes), 0) into total_documents, storage_used_bytes
  from (
    select octet_length(documents.content) + coalesce(octet_length(originals.bytes),
      case when originals.path is not null then documents.size_bytes end, 0)::bigint as bytes
    from rag.documents
    left join rag.originals on originals.org_id = documents.org_id and originals.document_id = documents.id
    where documents.org_id = any (own)
    limit most
  ) as found;

  select count(*) into total_chunks
  from (select from rag.chunks where chunks.org_id = any (own) limit most) as found;

  with named as materialized (
    select mentions.org_id, mentions.entity from rag.mentions where mentions.org_id = any (own) limit most
  ), titled as materialized (
    select subjects.org_id, subjects.entity from rag.subjects where subjects.org_id = any (own) limit most
  )
  select array[(select count(*) from named), (select count(*) from titled)],
    (select count(*) from (select * from named union select * from titled) as either)
  into counted, total_entities;

  with stated as materialized (
    select relations.org_id, relations.subject, relations.type, relations.object
    from rag.relations where relations.org_id = any (own) limit most
  )
  select counted || (select count(*) from stated), (select count(*) from (select distinct * from stated) as one)
  into counted, total_relationships;

  is_complete := most > all (counted || array[total_collections, total_documents, total_chunks]);
  return next;
end;
$$;

-- The newest migration that this database has: the functions' code says which one it was written for.
create function rag.version()
returns text
language sql immutable security invoker set search_path = ''
as $$
  select '20261127000000';
$$;

-- What the database knows of itself, and of the documents that wait for the worker: of the orgs that the caller
-- administers, or, for the worker, of all; nothing for everybody else. oldest_seconds: how long the one has been due that
-- is due longest, which may be running under a lease that has ended.
create function public.rag_health()
returns table (
  version text, pgvector text, postgres text, is_admin boolean, waiting bigint, running bigint,
  oldest_seconds double precision
)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- The worker's role is nobody's, and knows no orgs.
  is_worker constant boolean := current_user = 'rag_worker';
  own uuid[] := '{}';
begin
  if not is_worker then
    own := array(select rag.admin_org_ids());
  end if;
  is_admin := cardinality(own) > 0;
  if is_admin or is_worker then
    version := rag.version();
    pgvector := (select extversion from pg_catalog.pg_extension where extname = 'vector');
    postgres := current_setting('server_version');
    select count(*) filter (where jobs.state = 'waiting'), count(*) filter (where jobs.state = 'running'),
      extract(epoch from now() - min(jobs.due_at) filter (where jobs.due_at <= now()))
    into waiting, running, oldest_seconds
    from rag.jobs
    where jobs.state in ('waiting', 'running') and (is_worker or jobs.org_id = any (own));
  end if;
  return next;
end;
$$;

revoke all on function public.rag_stats(integer), rag.version(), public.rag_health() from public, anon, service_role;
grant execute on function public.rag_stats(integer), rag.version(), public.rag_health() to authenticated;
-- It looks for the open /health of the functions, which know no user.
grant execute on function rag.version(), public.rag_health() to rag_worker;
