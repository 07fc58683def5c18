-- Changes of a fused score by the document's age and by preferred source types, before the page is cut.

create function rag.apply_recency(candidates rag.candidate[], half_life_days double precision)
returns rag.candidate[]
language sql stable security invoker set search_path = ''
as $$
  with faded as (
    select candidate.*, candidate.score * (0.5 + 0.5 * 0.5 ^ (least(1000 * half_life_days, greatest(0, extract(epoch
      from now() - coalesce(documents.occurred_at, documents.created_at))::double precision
      / 86400)) / half_life_days)) as faded_score
    from unnest(candidates) as candidate
    join rag.documents on documents.org_id = candidate.org_id and documents.id = candidate.document_id
  )
  select array_agg(rag.candidate(org_id => faded.org_id, document_id => faded.document_id, ordinal => faded.ordinal,
    chunk_id => faded.chunk_id, content => faded.content, span_start => faded.span_start, span_end => faded.span_end,
    similarity => faded.similarity, word_score => faded.word_score, score => faded.faded_score)
    order by faded.faded_score desc, faded.chunk_id)
  from faded;
$$;

comment on function rag.apply_recency is
  'The hits, with lower scores for older documents: at one half-life three quarters of the score remain, at two '
  'five eighths, and never less than half. A document without a date is as old as its row.';

create function rag.boost_source_types(candidates rag.candidate[], source_types text[])
returns rag.candidate[]
language sql stable security invoker set search_path = ''
as $$
  with weighed as (
    select candidate.*, candidate.score * case when documents.source_type = any (source_types) then 1 else 0.85 end
      as weighed_score
    from unnest(candidates) as candidate
    join rag.documents on documents.org_id = candidate.org_id and documents.id = candidate.document_id
  )
  select array_agg(rag.candidate(org_id => weighed.org_id, document_id => weighed.document_id,
    ordinal => weighed.ordinal, chunk_id => weighed.chunk_id, content => weighed.content,
    span_start => weighed.span_start, span_end => weighed.span_end, similarity => weighed.similarity,
    word_score => weighed.word_score, score => weighed.weighed_score)
    order by weighed.weighed_score desc, weighed.chunk_id)
  from weighed;
$$;

comment on function rag.boost_source_types is
  'The hits, with lower scores for other source types: of equal hits the preferred types come first.';

create function rag.to_page(candidates rag.candidate[], half_life_days double precision, source_types text[],
  top_k integer, expand_context integer)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if half_life_days is not null then
    candidates := rag.apply_recency(candidates, half_life_days);
  end if;
  if source_types <> '{}' then
    candidates := rag.boost_source_types(candidates, source_types);
  end if;
  candidates := candidates[:top_k];
  if expand_context > 0 then
    candidates := rag.expand_neighbours(candidates, expand_context);
  end if;
  return candidates;
end;
$$;

comment on function rag.to_page is
  'The best candidates of a search, after recency and preferred source types, with their neighbours. The parameters '
  'are those of rag_search; source_types is its prefer.';
