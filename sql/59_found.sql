-- What every way of searching gives back: chunks with their documents' fields, best first.

-- A chunk on its way through a search. Scores are 0 to 1; null where nobody has computed them.
create type rag.hit as (
  org_id uuid, document_id uuid, ordinal integer, chunk_id uuid,
  similarity double precision, word_score double precision, score double precision
);

-- exact: whether the nearest were found by comparing all that the filters leave; considered: how many
-- vectors were compared.
create type rag.found as (
  chunk_id uuid, document_id uuid, org_id uuid, ordinal integer, content text,
  span_start integer, span_end integer, similarity double precision, word_score double precision,
  score double precision, collection_id uuid, source_type text, title text, uri text, lang text,
  occurred_at timestamptz, origin text, author text, state text, labels text[], metadata jsonb,
  exact boolean, considered integer
);

-- The query's vector as it is compared. Raises PT400 for one that cannot be.
create function rag.needle(query_vector extensions.vector)
returns extensions.halfvec
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  dimensions constant integer := extensions.vector_dims(query_vector);
  needle extensions.halfvec(1536);
begin
  if dimensions is distinct from 1536 then
    raise exception 'query_vector has % dimensions, not 1536', dimensions
      using errcode = 'PT400', detail = 'wrong_dimensions', hint = 'pad shorter embeddings with zeros';
  end if;
  needle := query_vector::extensions.halfvec(1536);
  -- Asked of the half-precision vector: a tiny one may have become zero.
  if extensions.l2_norm(needle) = 0 then
    raise exception 'query_vector has no direction' using errcode = 'PT400', detail = 'zero_vector';
  end if;
  return needle;
end;
$$;

-- The hits as rows, in their order. With neighbours, each text is that many chunks longer to both sides, as
-- far as its document goes and no further than half-way to the document's next hit; where chunks overlap, it
-- begins behind the hit before: no text comes twice.
create function rag.show(hits rag.hit[], neighbours integer, exact boolean, considered integer)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return query
  with hit as (
    select hits.*
    from unnest(hits) with ordinality as hits (org_id, document_id, ordinal, chunk_id, similarity,
      word_score, score, place)
  ), fenced as (
    select hit.*,
      lag(hit.ordinal) over of_document as before,
      lead(hit.ordinal) over of_document as after
    from hit
    window of_document as (partition by hit.org_id, hit.document_id order by hit.ordinal)
  ), widened as (
    select fenced.*, wider.span_end as wide_end, case when wider.span_end is not null then greatest(
      wider.span_start, least(lag(wider.span_end, 1, 0) over of_document, wider.span_end - 1)) end as wide_start
    from fenced
    left join lateral (
      select min(near.span_start) as span_start, max(near.span_end) as span_end
      from rag.chunks as near
      where neighbours > 0 and near.org_id = fenced.org_id and near.document_id = fenced.document_id
        and near.ordinal between
          greatest(fenced.ordinal - neighbours, (fenced.before + fenced.ordinal) / 2 + 1)
          and least(fenced.ordinal + neighbours, (fenced.ordinal + fenced.after) / 2)
    ) as wider on true
    window of_document as (partition by fenced.org_id, fenced.document_id order by fenced.ordinal)
  )
  select chunks.id, chunks.document_id, chunks.org_id, chunks.ordinal,
    case when widened.wide_end is null then chunks.content
      else substr(documents.content, widened.wide_start + 1, widened.wide_end - widened.wide_start) end,
    coalesce(widened.wide_start, chunks.span_start), coalesce(widened.wide_end, chunks.span_end),
    widened.similarity, widened.word_score, widened.score, documents.collection_id, documents.source_type,
    documents.title, documents.uri, documents.lang, documents.occurred_at, documents.origin,
    documents.author, documents.state, documents.labels, documents.metadata, show.exact, show.considered
  from widened
  join rag.chunks on chunks.org_id = widened.org_id and chunks.id = widened.chunk_id
  join rag.documents on documents.org_id = widened.org_id and documents.id = widened.document_id
  order by widened.place;
end;
$$;

revoke all on function rag.needle(extensions.vector), rag.show(rag.hit[], integer, boolean, integer)
  from public, anon, service_role;
grant execute on function rag.needle(extensions.vector), rag.show(rag.hit[], integer, boolean, integer)
  to authenticated;
