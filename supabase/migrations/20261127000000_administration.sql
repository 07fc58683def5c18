-- What is found says what its document's file was called (sql/59).
alter type rag.found add attribute filename text;

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
    documents.external_id, stood.place, show.vector_ms, show.lexical_ms, documents.filename
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
