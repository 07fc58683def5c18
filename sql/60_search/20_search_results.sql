-- Candidates and result rows that all searches share: chunks with their documents' fields, best first.

-- A chunk on its way through a search, with what is shown of it, so that nobody reads it twice. Scores are 0 to
-- 1; null where nobody has computed them.
create type rag.candidate as (
  org_id uuid, document_id uuid, ordinal integer, chunk_id uuid, content text, span_start integer,
  span_end integer, similarity double precision, word_score double precision, score double precision
);

-- external_id: the caller's name for the document; filename: what its file was called. place: where in the document
-- the chunk stands, as far as that is known (page_number, page_end, section).
-- exact: whether the nearest were found by comparing all vectors that the filters leave; null where none were
-- compared, by word alone. considered: how many; by the index, those that it handed out. vector_ms, lexical_ms: how
-- long looking for the nearest took, and how long looking for the words and ordering both; null where nobody did.
-- ignored_filters: the unknown keys of the filters, the same in each row; null if there are none.
create type rag.result_row as (
  chunk_id uuid, document_id uuid, org_id uuid, ordinal integer, content text,
  span_start integer, span_end integer, similarity double precision, word_score double precision,
  score double precision, collection_id uuid, source_type text, title text, uri text, lang text,
  occurred_at timestamptz, origin text, author text, state text, labels text[], metadata jsonb,
  exact boolean, considered integer, external_id text, place jsonb, vector_ms real, lexical_ms real,
  filename text, owner_id uuid, created_by uuid, ignored_filters text[]
);

-- Raises PT400 for a page that nobody gets.
create function rag.check_top_k(top_k integer)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if top_k is null or top_k not between 1 and 300 then
    raise exception 'top_k must be between 1 and 300' using errcode = 'PT400', detail = 'invalid_top_k';
  end if;
end;
$$;

-- The query's vector as it is compared. Raises PT400 for one that cannot be.
create function rag.to_halfvec(query_vector extensions.vector)
returns extensions.halfvec
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  dimensions constant integer := extensions.vector_dims(query_vector);
  query_embedding extensions.halfvec(1536);
begin
  if dimensions is distinct from 1536 then
    raise exception 'query_vector has % dimensions, not 1536', dimensions
      using errcode = 'PT400', detail = 'wrong_dimensions', hint = 'pad shorter embeddings with zeros';
  end if;
  query_embedding := query_vector::extensions.halfvec(1536);
  -- Asked of the half-precision vector: a tiny one may have become zero.
  if extensions.l2_norm(query_embedding) = 0 then
    raise exception 'query_vector has no direction' using errcode = 'PT400', detail = 'zero_vector';
  end if;
  return query_embedding;
end;
$$;

-- The hits as rows, in their order.
create function rag.to_rows(candidates rag.candidate[], exact boolean, considered integer, vector_ms real,
  lexical_ms real, ignored_filters text[] default null)
returns setof rag.result_row
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return query
  select candidate.chunk_id, candidate.document_id, candidate.org_id, candidate.ordinal, candidate.content,
    candidate.span_start, candidate.span_end, candidate.similarity, candidate.word_score, candidate.score, documents.collection_id, documents.source_type,
    documents.title, documents.uri, documents.lang, documents.occurred_at, documents.origin,
    documents.author, documents.state, documents.labels, documents.metadata, to_rows.exact, to_rows.considered,
    documents.external_id, stood.place, to_rows.vector_ms, to_rows.lexical_ms, documents.filename,
    documents.owner_id, documents.created_by, to_rows.ignored_filters
  from unnest(candidates) with ordinality as candidate (org_id, document_id, ordinal, chunk_id, content, span_start,
    span_end, similarity, word_score, score, place)
  join rag.documents on documents.org_id = candidate.org_id and documents.id = candidate.document_id
  -- Offset 0 keeps this a look-up of each.
  cross join lateral (
    select chunks.metadata as place
    from rag.chunks
    where chunks.org_id = candidate.org_id and chunks.id = candidate.chunk_id
    offset 0
  ) as stood
  order by candidate.place;
end;
$$;

-- The hits, each text so many chunks longer to both sides, as far as its document goes and no further than
-- half-way to the document's next hit; where chunks overlap, it begins behind the hit before: no text comes
-- twice.
create function rag.expand_neighbours(candidates rag.candidate[], neighbours integer)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    with candidate as (
      select candidate.*,
        lag(candidate.ordinal) over of_document as before,
        lead(candidate.ordinal) over of_document as after
      from unnest(candidates) with ordinality as candidate (org_id, document_id, ordinal, chunk_id, content, span_start,
        span_end, similarity, word_score, score, place)
      window of_document as (partition by candidate.org_id, candidate.document_id order by candidate.ordinal)
    ), wide as (
      select candidate.*, around.span_end as wide_end, greatest(around.span_start,
        least(coalesce(lag(around.span_end) over of_document, 0), around.span_end - 1)) as wide_start
      from candidate
      cross join lateral (
        select min(chunks.span_start), max(chunks.span_end)
        from rag.chunks
        where chunks.org_id = candidate.org_id and chunks.document_id = candidate.document_id
          and chunks.ordinal
            between greatest(candidate.ordinal - neighbours, (candidate.before + candidate.ordinal) / 2 + 1)
            and least(candidate.ordinal + neighbours, (candidate.ordinal + candidate.after) / 2)
      ) as around (span_start, span_end)
      window of_document as (partition by candidate.org_id, candidate.document_id order by candidate.ordinal)
    )
    select array_agg((wide.org_id, wide.document_id, wide.ordinal, wide.chunk_id,
        substr(documents.content, wide.wide_start + 1, wide.wide_end - wide.wide_start), wide.wide_start,
        wide.wide_end, wide.similarity, wide.word_score, wide.score)::rag.candidate order by wide.place)
    from wide
    join rag.documents on documents.org_id = wide.org_id and documents.id = wide.document_id);
end;
$$;

-- As what each leg took is told.
create function rag.milliseconds_since(started timestamptz)
returns real
language sql volatile security invoker set search_path = ''
as $$
  select (1000 * extract(epoch from clock_timestamp() - started))::real;
$$;
