-- Texts of chunks extended by their neighbours: in a search (expand_context of rag_search), or for a caller that
-- reorders its results before it extends them (rag_widen).

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
        span_end, similarity, word_score, score, position)
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
    select array_agg(rag.candidate(org_id => wide.org_id, document_id => wide.document_id, ordinal => wide.ordinal,
      chunk_id => wide.chunk_id,
      content => substr(documents.content, wide.wide_start + 1, wide.wide_end - wide.wide_start),
      span_start => wide.wide_start, span_end => wide.wide_end, similarity => wide.similarity,
      word_score => wide.word_score, score => wide.score) order by wide.position)
    from wide
    join rag.documents on documents.org_id = wide.org_id and documents.id = wide.document_id);
end;
$$;

comment on function rag.expand_neighbours is
  'The hits, each text extended by so many chunks on both sides, within its document and at most half-way to the '
  'document''s next hit. Where chunks overlap, a text begins after the previous hit, so that no text is repeated.';

create function public.rag_widen(chunk_ids uuid[], neighbours integer)
returns table (chunk_id uuid, content text, span_start integer, span_end integer)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.limit_direct_call();
  org_ids constant uuid[] := array(select rag.current_org_ids());
begin
  if chunk_ids is null or cardinality(chunk_ids) > 100 then
    raise exception 'chunk_ids must have at most 100 ids' using errcode = 'PT400', detail = 'too_many_chunks';
  elsif neighbours is null or neighbours not between 0 and 10 then
    raise exception 'neighbours must be between 0 and 10' using errcode = 'PT400', detail = 'invalid_neighbours';
  end if;
  return query
  select candidate.chunk_id, candidate.content, candidate.span_start, candidate.span_end
  from unnest(rag.expand_neighbours(array(
    select rag.candidate(org_id => chunks.org_id, document_id => chunks.document_id, ordinal => chunks.ordinal,
      chunk_id => chunks.id, content => chunks.content, span_start => chunks.span_start, span_end => chunks.span_end)
    from rag.chunks
    where chunks.org_id = any (org_ids) and chunks.id = any (chunk_ids)
  ), neighbours)) as candidate;
end;
$$;

comment on function public.rag_widen is
  'The texts of chunks with their neighbours, for a search that reorders its candidates before it returns them '
  '(expand_context of rag_search extends texts at once). At most 100 chunks.';
