-- Fusion of vector and keyword scores.
--
-- Each leg returns its best candidates. Every candidate then gets both scores, and their weighted mean sorts the list.
-- Both scores are 0 to 1: the cosine similarity, and BM25 divided by the highest possible score. So their mean is 0 to
-- 1 too, and has the same meaning for every query and page (docs/decisions/search.md).

create function rag.load_candidates(keywords rag.keyword_query, documents rag.document_key[], near rag.candidate[],
  query_embedding extensions.halfvec, scope rag.search_scope, row_limit integer, whole_documents boolean)
returns table (id uuid, org_id uuid, document_id uuid, ordinal integer, content text, span_start integer,
  span_end integer, lang text, similarity double precision, word_score double precision)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  with candidate as (
    -- Group by instead of a join: the planner would compare each candidate with every scored chunk.
    select brought.org_id, brought.document_id, brought.ordinal, max(brought.score) as word_score
    from (
      select scores.*, row_number() over (order by score desc, document_id, ordinal) <= row_limit as is_candidate
      from rag.bm25_scores(keywords, documents) as scores
      union all
      select near.org_id, near.document_id, near.ordinal, null, true from unnest(near) as near
      union all
      select nearest.org_id, nearest.document_id, nearest.ordinal, null, true
      from unnest(documents) as document
      cross join lateral (
        select chunks.org_id, chunks.document_id, chunks.ordinal
        from rag.chunks
        where chunks.org_id = document.org_id and chunks.document_id = document.document_id
        order by (chunks.embedding operator(extensions.<=>) query_embedding) + 0, chunks.ordinal
        limit row_limit
      ) as nearest
      where whole_documents
    ) as brought
    group by 1, 2, 3
    having bool_or(brought.is_candidate)
  )
  select chunk.*, coalesce(candidate.word_score, 0)
  from candidate
  -- With offset 0 the planner looks each row up.
  cross join lateral (
    select chunks.id, chunks.org_id, chunks.document_id, chunks.ordinal, chunks.content, chunks.span_start,
      chunks.span_end, chunks.lang,
      case when query_embedding is not null
        then greatest(0, least(1, 1 - (chunks.embedding operator(extensions.<=>) query_embedding))) end
    from rag.chunks
    where chunks.org_id = candidate.org_id and chunks.document_id = candidate.document_id
      and chunks.ordinal = candidate.ordinal and chunks.embedding_model = scope.model
      and (scope.without_chunk is null or chunks.id <> scope.without_chunk)
    offset 0
  ) as chunk;
end;
$$;

comment on function rag.load_candidates is
  'The candidates of both legs with their text, similarity and keyword score. row_limit: the number of candidates of '
  'the keyword leg. whole_documents: whether the nearest chunks of each document are candidates too.';

create function rag.score_candidates(keywords rag.keyword_query, documents rag.document_key[], near rag.candidate[],
  query_embedding extensions.halfvec, scope rag.search_scope, mode text, row_limit integer,
  phrase_limit integer, whole_documents boolean)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings constant rag.settings := (select deployment from rag.settings as deployment);
  -- If no document has a word of the query, the similarity is the whole score.
  similarity_share constant double precision := case
    when mode = 'keyword' then 0 when keywords.terms is null then 1 else settings.similarity_share end;
  candidates rag.candidate[];
begin
  with candidate as (
    select loaded.*, row_number() over (order by loaded.word_score desc, loaded.id) as word_position
    from rag.load_candidates(
      keywords, documents, near, query_embedding, scope, row_limit, whole_documents) as loaded
  ), close as (
    -- Parsing texts is slow, so only the best candidates are compared.
    select closeness.*
    from (
      select array_agg(candidate.id) as ids, array_agg(candidate.content) as contents,
        array_agg(rag.text_config(coalesce(candidate.lang, settings.language))::oid) as configs
      from candidate
      where keywords.pairs is not null and settings.phrase_share > 0 and candidate.word_score > 0
        and candidate.word_position <= phrase_limit
    ) as best
    cross join rag.phrase_proximity(keywords, best.ids, best.configs, best.contents) as closeness
  ), phrased as (
    select candidate.*, case when keywords.pairs is null then candidate.word_score
      else (1 - settings.phrase_share) * candidate.word_score
        + settings.phrase_share * coalesce(close.closeness, 0) end as words
    from candidate
    left join close on close.id = candidate.id
  ), scored as (
    select phrased.*,
      similarity_share * coalesce(phrased.similarity, 0) + (1 - similarity_share) * phrased.words as score
    from phrased
    where mode <> 'keyword' or phrased.word_score > 0
  )
  select array_agg(rag.candidate(org_id => scored.org_id, document_id => scored.document_id,
    ordinal => scored.ordinal, chunk_id => scored.id, content => scored.content, span_start => scored.span_start,
    span_end => scored.span_end, similarity => scored.similarity, word_score => scored.words, score => scored.score)
    order by scored.score desc, scored.id)
    into candidates
  from scored;
  return candidates;
end;
$$;

comment on function rag.score_candidates is
  'The candidates of both legs with their scores, best first. row_limit, whole_documents: as in rag.load_candidates. '
  'phrase_limit: the number of candidates, by keyword score, whose phrases are compared.';
