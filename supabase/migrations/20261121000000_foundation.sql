-- Two schemas share the work. `rag` holds tables and internals and is never exposed by PostgREST;
-- the whole exposed surface is a handful of functions in `public`, named rag_* so that they stay polite
-- inside somebody's existing project. They run as their caller, so row security decides everywhere.
--
-- pgvector lives in `extensions`, where hosted Supabase keeps it. Functions here set an empty search_path
-- and therefore spell its operators out: operator(extensions.<=>).

create schema if not exists extensions;
create extension if not exists vector with schema extensions;

create schema rag;
revoke all on schema rag from public;
grant usage on schema rag to authenticated;

-- Whether a text holds only what its reader sees, besides tab and line feed: no control characters, no
-- zero-width or bidirectional controls, no tags. The functions clean texts before they store them; tables
-- check, because a member may also call the exposed functions directly.
create function rag.shows_only(content text)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select content !~ ('[\u0001-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e'
    || '\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]');
$$;

revoke all on function rag.shows_only(text) from public, anon, service_role;
grant execute on function rag.shows_only(text) to authenticated;

-- What one deployment decides once, as data: which embedding model its vectors come from, and up to how
-- many rows a match is computed exactly. Written by the deployer in SQL, read by every signed-in caller
-- inside rag_match. One row, the same for all orgs: the one table that has no org.

create table rag.settings (
  singleton boolean primary key default true check (singleton),
  -- The model that rag_match assumes when filters.model does not say.
  embedding_model text not null default 'text-embedding-3-small'
    check (length(embedding_model) between 1 and 100),
  -- Below this many candidate rows a match scans them all; above, it asks the HNSW index.
  exact_rows integer not null default 10000 check (exact_rows >= 0)
);

alter table rag.settings enable row level security;
alter table rag.settings force row level security;

create policy "signed-in callers read the settings" on rag.settings
  for select to authenticated using (true);

grant select on rag.settings to authenticated;

insert into rag.settings default values;

-- Who belongs where. An org is a tenant; a member belongs to it as admin or member. Orgs and members are
-- written by the deployer (SQL editor, seed, own back office); signed-in callers read their own rows.
--
-- rag.memberships() is the one function that an adopter replaces to plug in a membership table of their
-- own. Everything else asks rag.current_org_ids() and rag.admin_org_ids(), which stay as they are: they
-- narrow the memberships by the claims that a token carries, so no replacement can widen a token.

create table rag.orgs (
  id uuid primary key default gen_random_uuid(),
  name text not null check (length(name) between 1 and 200),
  created_at timestamptz not null default now()
);

create table rag.members (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  user_id uuid not null references auth.users (id) on delete cascade,
  role text not null default 'member' check (role in ('admin', 'member')),
  created_at timestamptz not null default now(),
  primary key (org_id, user_id)
);

-- memberships(): where user_id = auth.uid()
create index members_by_user on rag.members (user_id) include (org_id, role);

alter table rag.orgs enable row level security;
alter table rag.orgs force row level security;
alter table rag.members enable row level security;
alter table rag.members force row level security;

create function rag.memberships()
returns table (org_id uuid, role text)
language sql stable security invoker set search_path = ''
begin atomic
  select members.org_id, members.role
  from rag.members
  where members.user_id = (select auth.uid());
end;

-- A token may carry {"rag": {"org": "<uuid>"}}: it then counts for that one org only. A claim that cannot
-- be read counts for none.
create function rag.current_org_ids()
returns setof uuid
language sql stable security invoker set search_path = ''
as $$
  select memberships.org_id
  from rag.memberships(), lateral (select auth.jwt() -> 'rag') as token (claim)
  where memberships.org_id is not null
    and (coalesce(jsonb_typeof(token.claim), 'null') = 'null'
      or (jsonb_typeof(token.claim) = 'object'
        and coalesce(lower(token.claim ->> 'org'), memberships.org_id::text) = memberships.org_id::text));
$$;

create function rag.admin_org_ids()
returns setof uuid
language sql stable security invoker set search_path = ''
as $$
  select memberships.org_id
  from rag.memberships()
  where memberships.role = 'admin'
    and memberships.org_id in (select rag.current_org_ids());
$$;

create policy "members read their orgs" on rag.orgs
  for select to authenticated
  using (id = any (array(select rag.current_org_ids())));

-- Not by current_org_ids(): that would read this table again, for ever.
create policy "users read their own memberships" on rag.members
  for select to authenticated
  using (user_id = (select auth.uid()));

grant select on rag.orgs, rag.members to authenticated;

-- For an adopter's own policies and for clients that want to ask.
create function public.is_org_member(org_id uuid)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select coalesce(is_org_member.org_id in (select rag.current_org_ids()), false);
$$;

revoke all on function rag.memberships(), rag.current_org_ids(), rag.admin_org_ids(),
  public.is_org_member(uuid) from public, anon, service_role;
grant execute on function rag.memberships(), rag.current_org_ids(), rag.admin_org_ids(),
  public.is_org_member(uuid) to authenticated;

-- A collection is a named set of documents: an index, a namespace or a workspace on the wire. It belongs
-- to an org and, when owner_id is set, inside the org to one user. Members write and read through
-- functions; a collection comes into being with the first document that names it.

create table rag.collections (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid,
  name text not null check (length(name) between 1 and 200),
  created_at timestamptz not null default now(),
  primary key (org_id, id),
  -- Two users may each have a private "notes"; the org has its own.
  constraint collections_name unique nulls not distinct (org_id, owner_id, name)
);

alter table rag.collections enable row level security;
alter table rag.collections force row level security;

-- The one membership expression; every tenant table repeats it word for word (a test compares them).
create policy "members use their org's collections" on rag.collections
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

grant select, insert, update, delete on rag.collections to authenticated;

-- The id of the named collection, made when it is new. A user's own collection comes before the org's.
create function rag.ensure_collection(org_id uuid, owner_id uuid, name text)
returns rag.collections
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  found_collection rag.collections;
begin
  for attempt in 1..2 loop
    select * into found_collection
    from rag.collections
    where org_id = ensure_collection.org_id
      and name = ensure_collection.name
      and (owner_id is null or owner_id = ensure_collection.owner_id)
    order by owner_id nulls last
    limit 1;
    exit when found;
    -- Two writers may meet here: the second inserts nothing and reads what the first made.
    insert into rag.collections (org_id, name)
    values (ensure_collection.org_id, ensure_collection.name)
    on conflict do nothing;
  end loop;
  return found_collection;
end;
$$;

revoke all on function rag.ensure_collection(uuid, uuid, text) from public, anon, service_role;
grant execute on function rag.ensure_collection(uuid, uuid, text) to authenticated;

-- A document is what a person brought: a call, a mail, a page. It keeps its converted text, so that every
-- chunk's span can be checked against it, and the fields that searches filter by. Written and replaced by
-- rag_put_document, read when a match is rendered. owner_id null: the whole org sees it.

create table rag.documents (
  org_id uuid not null,
  id uuid not null default gen_random_uuid(),
  collection_id uuid not null,
  owner_id uuid,
  -- The caller's own name for it, when there is one: putting the same name again replaces the document.
  external_id text check (length(external_id) between 1 and 500),
  source_type text not null default 'doc' check (source_type ~ '^[A-Za-z0-9_-]{1,64}$'),
  title text not null check (length(title) between 1 and 1000 and title !~ '[\n\t]' and rag.shows_only(title)),
  -- A link that a page may show: no javascript: or data: address.
  uri text check (length(uri) <= 2000 and uri ~ '^https?://[^[:space:]]+$' and rag.shows_only(uri)),
  lang text check (lang ~ '^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$' and length(lang) <= 35),
  -- The document's own date (of the call, of the mail), not the date of its ingestion. Within what
  -- readers in other languages can represent: one document must not break a whole search.
  occurred_at timestamptz check (occurred_at >= '0001-01-02Z' and occurred_at < '9999-12-31Z'),
  metadata jsonb not null default '{}' check (
    jsonb_typeof(metadata) = 'object'
    and pg_column_size(metadata) <= 65536
    and not jsonb_path_exists(metadata, '$.**{32}')
    and metadata::text !~ '[0-9]{250}'
  ),
  content text not null check (length(content) <= 20000000 and rag.shows_only(content)),
  content_hash text not null check (content_hash ~ '^[0-9a-f]{64}$'),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  foreign key (org_id, collection_id) references rag.collections (org_id, id) on delete cascade
);

-- rag_put_document: replace by name. The owner is part of the key, so that one user's private name
-- neither blocks nor betrays another's.
create unique index documents_external_id
  on rag.documents (org_id, collection_id, owner_id, external_id) nulls not distinct
  where external_id is not null;

alter table rag.documents enable row level security;
alter table rag.documents force row level security;

create policy "members use their org's documents" on rag.documents
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

grant select, insert, update, delete on rag.documents to authenticated;

-- A chunk is a passage of a document with its embedding: what a search finds. It repeats its document's
-- owner and filter fields, because under row security only columns of the scanned table, compared by
-- leakproof operators (= on uuid and text, < on timestamptz), reach an index. Only rag_put_document writes
-- chunks, from the document row itself, so the copies cannot disagree.

create table rag.chunks (
  org_id uuid not null,
  id uuid not null default gen_random_uuid(),
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  ordinal integer not null check (ordinal >= 0),
  content text not null check (length(content) <= 100000 and rag.shows_only(content)),
  -- Characters [span_start, span_end) of the document's content.
  span_start integer not null check (span_start >= 0),
  span_end integer not null,
  token_count integer not null check (token_count >= 0),
  source_type text not null,
  lang text,
  occurred_at timestamptz,
  embedding_model text not null check (length(embedding_model) between 1 and 100),
  -- Shorter embeddings are padded with zeros, which leaves every cosine as it was.
  embedding extensions.halfvec(1536) not null check (extensions.l2_norm(embedding) > 0),
  primary key (org_id, id),
  unique (org_id, document_id, ordinal),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade,
  check (span_end > span_start)
);

-- In the row, not behind it: an exact scan reads every vector, and fetching each from TOAST costs 2 to 5
-- times the scan. (The text moves out instead.)
alter table rag.chunks alter column embedding set storage plain;

-- rag_match, counting and scanning what the caller and the filters leave.
create index chunks_by_scope on rag.chunks (org_id, embedding_model, source_type, occurred_at)
  include (owner_id, lang, collection_id);

-- rag_match, for orgs too large to scan.
create index chunks_by_embedding on rag.chunks using hnsw (embedding extensions.halfvec_cosine_ops);

alter table rag.chunks enable row level security;
alter table rag.chunks force row level security;

create policy "members use their org's chunks" on rag.chunks
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

grant select, insert, update, delete on rag.chunks to authenticated;

-- Requests counted where every instance can see them. A row is one user's current window in one bucket;
-- it starts with the first request and is reused when it has run out, so the table never grows past
-- users x buckets x windows. Callers spend only their own: the user comes from the token, never from an
-- argument, and no exposed function counts backwards. (A deleted user's few rows stay.)

create table rag.rate_limits (
  user_id uuid not null,
  bucket text not null check (bucket in ('rag', 'api')),
  window_seconds integer not null check (window_seconds in (1, 60, 3600, 86400)),
  started_at timestamptz not null,
  hits bigint not null check (hits > 0),
  primary key (user_id, bucket, window_seconds)
);

alter table rag.rate_limits enable row level security;
alter table rag.rate_limits force row level security;

create policy "users spend their own budget" on rag.rate_limits
  for all to authenticated
  using (user_id = (select auth.uid()))
  with check (user_id = (select auth.uid()));

grant select, insert, update on rag.rate_limits to authenticated;

-- Count `amount` requests and say where the window stands: one statement, one round trip, atomic under
-- any number of callers. Whether that is too many is the caller's decision: raising here would roll the
-- count back.
create function public.rag_hit(bucket text, window_seconds integer, amount integer default 1)
returns table (hits bigint, resets_at timestamptz)
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.rate_limits as spent (user_id, bucket, window_seconds, started_at, hits)
  select auth.uid(), rag_hit.bucket, rag_hit.window_seconds, clock_timestamp(), rag_hit.amount
  where rag_hit.amount between 1 and 1000 and auth.uid() is not null
  on conflict (user_id, bucket, window_seconds) do update set
    hits = case when spent.started_at + make_interval(secs => spent.window_seconds) > excluded.started_at
      then spent.hits + excluded.hits else excluded.hits end,
    started_at = case when spent.started_at + make_interval(secs => spent.window_seconds) > excluded.started_at
      then spent.started_at else excluded.started_at end
  returning spent.hits, spent.started_at + make_interval(secs => spent.window_seconds);
$$;

revoke all on function public.rag_hit(text, integer, integer) from public, anon, service_role;
grant execute on function public.rag_hit(text, integer, integer) to authenticated;

-- The write path of every API: a document and its chunks go in, are replaced or go away in one
-- transaction, so that no reader ever sees half of one. The callers are the functions of this project,
-- as their user; row security checks every row that is written.

-- document: org_id, title, content, content_hash and embedding_model; optionally external_id, collection
-- (a name, "default" unless given), private (true: only the caller and the org's admins see it),
-- source_type, uri, lang, occurred_at, metadata. A private and a shared document of one external_id are two
-- documents: to make one private, put it as private and delete the shared one. chunks: an array of {content, span_start, span_end, token_count, embedding} in
-- reading order.
create function public.rag_put_document(document jsonb, chunks jsonb)
returns table (document_id uuid, replaced boolean, chunk_count integer)
language plpgsql volatile security invoker set search_path = ''
-- PostgREST applies it before the call. A document of thousands of chunks takes its time: each is entered
-- into the HNSW index.
set statement_timeout = '60s'
as $$
declare
  input record;
  home rag.collections;
  stored record;
begin
  select * into input from jsonb_to_record(document) as fields (
    org_id uuid, external_id text, collection text, private boolean, source_type text, title text,
    uri text, lang text, occurred_at timestamptz, metadata jsonb, content text, content_hash text,
    embedding_model text);

  -- Row security would refuse the rows as well, but with an error that reads like a fault of ours.
  if input.org_id is null or input.org_id not in (select rag.current_org_ids()) then
    raise exception 'no such org' using errcode = 'PT404', detail = 'org_not_found';
  end if;

  home := rag.ensure_collection(input.org_id, auth.uid(), coalesce(input.collection, 'default'));

  insert into rag.documents as present (org_id, collection_id, owner_id, external_id, source_type, title,
    uri, lang, occurred_at, metadata, content, content_hash)
  values (input.org_id, home.id, case when input.private then auth.uid() else home.owner_id end,
    input.external_id, coalesce(input.source_type, 'doc'), input.title, input.uri, input.lang,
    input.occurred_at, coalesce(input.metadata, '{}'), input.content, input.content_hash)
  on conflict (org_id, collection_id, owner_id, external_id) where external_id is not null
  do update set source_type = excluded.source_type, title = excluded.title, uri = excluded.uri,
    lang = excluded.lang, occurred_at = excluded.occurred_at, metadata = excluded.metadata,
    content = excluded.content, content_hash = excluded.content_hash, updated_at = clock_timestamp()
  -- An inserted row has no xmax, one that was there was locked by this transaction.
  returning present.*, present.xmax::text <> '0' as was_there into stored;

  if exists (
    select from jsonb_array_elements(rag_put_document.chunks) as item (body)
    where (item.body ->> 'span_end')::integer > length(input.content)
  ) then
    raise exception 'a chunk ends behind its document' using errcode = 'PT400', detail = 'span_outside';
  end if;

  -- The upsert holds the row: a second writer of the same document waits here, then replaces these.
  delete from rag.chunks where chunks.org_id = stored.org_id and chunks.document_id = stored.id;

  insert into rag.chunks (org_id, document_id, collection_id, owner_id, ordinal, content, span_start,
    span_end, token_count, source_type, lang, occurred_at, embedding_model, embedding)
  select stored.org_id, stored.id, stored.collection_id, stored.owner_id, item.position - 1,
    fields.content, fields.span_start, fields.span_end, fields.token_count, stored.source_type,
    stored.lang, stored.occurred_at, input.embedding_model, fields.embedding
  from jsonb_array_elements(rag_put_document.chunks) with ordinality as item (body, position),
    jsonb_to_record(item.body) as fields (content text, span_start integer, span_end integer,
      token_count integer, embedding extensions.halfvec(1536));
  get diagnostics chunk_count = row_count;

  document_id := stored.id;
  replaced := stored.was_there;
  return next;
end;
$$;

-- True when it was there to delete; another org's document is not there.
create function public.rag_delete_document(document_id uuid)
returns boolean
language sql volatile security invoker set search_path = ''
as $$
  with gone as (
    delete from rag.documents
    where org_id = any (array(select rag.current_org_ids())) and id = rag_delete_document.document_id
    returning 1
  )
  select exists (select from gone);
$$;

revoke all on function public.rag_put_document(jsonb, jsonb), public.rag_delete_document(uuid)
  from public, anon, service_role;
grant execute on function public.rag_put_document(jsonb, jsonb), public.rag_delete_document(uuid)
  to authenticated;

-- The heart: the chunks nearest to a query vector, among those that the caller may see.
--
-- The recipe in every tutorial (an HNSW index and a row-security filter behind it) silently returns too
-- few rows to small tenants: the index hands out its nearest candidates first, and the filter throws
-- other tenants' away. So rag_match first counts, up to a bound, what the caller's orgs and filters
-- leave. Few: it scans them all, exactly. Many: it lets the index iterate, fetches more than asked and
-- orders those exactly, and falls back to the scan should the index come up short. Either way the caller
-- gets min(top_k, visible) rows.
--
-- Row security holds underneath in every branch. The org ids are resolved first and named explicitly, so
-- that partitions prune and a distributed table goes to one shard.

-- What a search may be narrowed by. Dates are inclusive and mean the document's own date; model is the
-- deployment's by default.
create type rag.filters as (
  source_type text, lang text, org_id uuid, date_from timestamptz, date_to timestamptz, model text
);

-- filters: the fields of rag.filters; other keys are ignored.
create function public.rag_match(
  query_vector extensions.vector,
  top_k integer default 8,
  filters jsonb default '{}'
)
returns table (
  chunk_id uuid, document_id uuid, org_id uuid, ordinal integer, content text,
  span_start integer, span_end integer, similarity double precision,
  source_type text, title text, uri text, lang text, occurred_at timestamptz, metadata jsonb,
  exact boolean, candidates integer
)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  dimensions constant integer := extensions.vector_dims(query_vector);
  needle extensions.halfvec(1536);
  wanted rag.filters;
  org_ids uuid[];
  settings rag.settings;
  nearest uuid[];
  -- Said once, used three times, planned each time for the values at hand ($1 org ids, $2 filters).
  visible constant text := $scope$
    rag.chunks
    where org_id = any ($1) and embedding_model = ($2).model
      and (($2).source_type is null or source_type = ($2).source_type)
      and (($2).lang is null or lang = ($2).lang)
      and (($2).date_from is null or occurred_at >= ($2).date_from)
      and (($2).date_to is null or occurred_at <= ($2).date_to)
  $scope$;
begin
  if dimensions is distinct from 1536 then
    raise exception 'query_vector has % dimensions, not 1536', dimensions
      using errcode = 'PT400', detail = 'wrong_dimensions', hint = 'pad shorter embeddings with zeros';
  elsif top_k is null or top_k not between 1 and 100 then
    raise exception 'top_k must be between 1 and 100' using errcode = 'PT400', detail = 'invalid_top_k';
  elsif jsonb_typeof(coalesce(filters, '{}')) <> 'object' then
    raise exception 'filters must be an object' using errcode = 'PT400', detail = 'invalid_filters';
  end if;

  needle := query_vector::extensions.halfvec(1536);
  -- Asked of the half-precision vector: a tiny one may have become zero.
  if extensions.l2_norm(needle) = 0 then
    raise exception 'query_vector has no direction' using errcode = 'PT400', detail = 'zero_vector';
  end if;
  select * into settings from rag.settings;
  wanted := jsonb_populate_record(null::rag.filters, coalesce(filters, '{}'));
  wanted.model := coalesce(wanted.model, settings.embedding_model);
  org_ids := array(
    select ids.id from rag.current_org_ids() as ids (id)
    where wanted.org_id is null or ids.id = wanted.org_id);

  execute format('select count(*) from (select from %s limit $3) as bounded', visible)
    into candidates using org_ids, wanted, settings.exact_rows + 1;
  exact := candidates <= settings.exact_rows;

  if not exact then
    perform set_config('hnsw.iterative_scan', 'relaxed_order', true),
      set_config('hnsw.ef_search', greatest(100, 2 * top_k)::text, true);
    execute format('select array(select id from %s order by embedding operator(extensions.<=>) $3 limit $4)', visible)
      into nearest using org_ids, wanted, needle, 2 * top_k;
    exact := cardinality(nearest) < 2 * top_k;
  end if;
  if exact then
    -- "+ 0" keeps the HNSW index out of the scan.
    execute format('select array(select id from %s order by (embedding operator(extensions.<=>) $3) + 0, id limit $4)',
      visible) into nearest using org_ids, wanted, needle, top_k;
  end if;

  return query
  select chunks.id, chunks.document_id, chunks.org_id, chunks.ordinal, chunks.content,
    chunks.span_start, chunks.span_end, greatest(0, least(1, 1 - found.distance)),
    documents.source_type, documents.title, documents.uri, documents.lang, documents.occurred_at,
    documents.metadata, rag_match.exact, rag_match.candidates
  from rag.chunks
  join rag.documents on documents.org_id = chunks.org_id and documents.id = chunks.document_id
  cross join lateral (select chunks.embedding operator(extensions.<=>) needle) as found (distance)
  where chunks.org_id = any (org_ids) and chunks.id = any (nearest)
  order by found.distance, chunks.id
  limit rag_match.top_k;
end;
$$;

revoke all on function public.rag_match(extensions.vector, integer, jsonb) from public, anon, service_role;
grant execute on function public.rag_match(extensions.vector, integer, jsonb) to authenticated;
