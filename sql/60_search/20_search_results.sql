-- Candidates and result rows that all searches share: chunks with their documents' fields, best first.

create type rag.candidate as (
  org_id uuid, document_id uuid, ordinal integer, chunk_id uuid, content text, span_start integer,
  span_end integer, similarity double precision, word_score double precision, score double precision
);

comment on type rag.candidate is
  'A chunk during a search, with its text, so that it is read once. Scores are 0 to 1; null if not computed.';

create function rag.candidate(
  org_id uuid, document_id uuid, ordinal integer, chunk_id uuid default null, content text default null,
  span_start integer default null, span_end integer default null, similarity double precision default null,
  word_score double precision default null, score double precision default null
)
returns rag.candidate
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return (org_id, document_id, ordinal, chunk_id, content, span_start, span_end, similarity, word_score, score);
end;
$$;

comment on function rag.candidate is
  'A candidate from named fields. In PL/pgSQL, because Postgres inlines no SQL function that sets a search_path.';

create type rag.result_row as (
  chunk_id uuid, document_id uuid, org_id uuid, ordinal integer, content text,
  span_start integer, span_end integer, similarity double precision, word_score double precision,
  score double precision, collection_id uuid, source_type text, title text, uri text, lang text,
  occurred_at timestamptz, origin text, author text, state text, labels text[], metadata jsonb,
  exact boolean, considered bigint, external_id text, location jsonb, vector_ms real, lexical_ms real,
  filename text, owner_id uuid, created_by uuid, ignored_filters text[], collection_name text
);

comment on type rag.result_row is
  'A chunk as searches return it. external_id: the caller''s name of the document; filename: the name of its file. '
  'location: the chunk''s location in the document, as far as known (page_number, page_end, section). exact: whether '
  'all vectors of the scope were compared; null if none were, in a search by keywords alone. considered: the number '
  'of compared vectors; with the index, the number that it returned. vector_ms, lexical_ms: the duration of vector '
  'search, and of keyword search with fusion; null if it did not run. ignored_filters: the unknown keys of the '
  'filters, the same in each row; null if there are none.';

create function rag.to_rows(candidates rag.candidate[], exact boolean, considered bigint, vector_ms real,
  lexical_ms real, ignored_filters text[] default null)
returns setof rag.result_row
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return query
  select candidate.chunk_id, candidate.document_id, candidate.org_id, candidate.ordinal, candidate.content,
    candidate.span_start, candidate.span_end, candidate.similarity, candidate.word_score, candidate.score,
    documents.collection_id, documents.source_type, documents.title, documents.uri, documents.lang,
    documents.occurred_at, documents.origin, documents.author, documents.state, documents.labels, documents.metadata, to_rows.exact, to_rows.considered,
    documents.external_id, located.location, to_rows.vector_ms, to_rows.lexical_ms, documents.filename,
    documents.owner_id, documents.created_by, to_rows.ignored_filters, (
      select collections.name from rag.collections
      where collections.org_id = documents.org_id and collections.id = documents.collection_id)
  from unnest(candidates) with ordinality as candidate (org_id, document_id, ordinal, chunk_id, content, span_start,
    span_end, similarity, word_score, score, position)
  join rag.documents on documents.org_id = candidate.org_id and documents.id = candidate.document_id
  -- With offset 0 the planner reads each chunk by its key.
  cross join lateral (
    select chunks.metadata as location
    from rag.chunks
    where chunks.org_id = candidate.org_id and chunks.id = candidate.chunk_id
    offset 0
  ) as located
  order by candidate.position;
end;
$$;

comment on function rag.to_rows is 'Candidates as result rows, in their order.';

create function rag.milliseconds_since(started timestamptz)
returns real
language sql volatile security invoker set search_path = ''
as $$
  select (1000 * extract(epoch from clock_timestamp() - started))::real;
$$;

comment on function rag.milliseconds_since is 'Milliseconds since a time, for the durations in results.';
