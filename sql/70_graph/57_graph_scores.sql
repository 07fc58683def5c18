-- The graph's share in the score of a candidate. Candidates that only the graph reached get the score that the legs
-- would have given to them.

create function rag.fuse_graph_scores(candidates rag.candidate[], graph_candidates rag.graph_candidate[],
  first_hit uuid, share double precision, row_limit integer)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    with weighed as (
      select candidate.*, (1 - share) * coalesce(candidate.score, 0)
        -- An S-curve: a chunk that one good path reached counts nearly as much as one that many paths reached.
        + share * graph.weight ^ 2 / (graph.weight ^ 2 + 0.06) as joined_score
      from unnest(candidates) as candidate
      cross join (select max(reached.weight) from unnest(graph_candidates) as reached) as highest (weight)
      left join unnest(graph_candidates) as reached on reached.org_id = candidate.org_id
        and reached.document_id = candidate.document_id and reached.ordinal = candidate.ordinal
      cross join lateral (
        select coalesce(case when candidate.chunk_id = first_hit then highest.weight end, reached.weight, 0)
      ) as graph (weight)
    ), best as (
      select *, row_number() over (order by joined_score desc, chunk_id is not distinct from first_hit desc, chunk_id)
        as rank
      from weighed
      order by rank
      limit row_limit
    )
    select array_agg(rag.candidate(org_id => best.org_id, document_id => best.document_id, ordinal => best.ordinal,
      chunk_id => best.chunk_id, content => best.content, span_start => best.span_start, span_end => best.span_end,
      similarity => best.similarity, word_score => best.word_score, score => least(1, best.joined_score))
      order by best.rank)
    from best);
end;
$$;

comment on function rag.fuse_graph_scores is
  'At most `row_limit` candidates of the search and of the graph, by the fused score: the score of the '
  'search, and an S-curve of the probability with which the graph reached the chunk, both 0 to 1. The first hit of '
  'the search counts as reached with the highest probability, so that no hit of the search takes its place.';

create function rag.score_graph_candidates(graph_candidates rag.graph_candidate[], known rag.candidate[],
  query_text text, query_embedding extensions.halfvec, scope rag.search_scope, mode text)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  candidates rag.candidate[];
  scored rag.candidate[];
begin
  candidates := array(
    select rag.candidate(org_id => found.org_id, document_id => found.document_id, ordinal => found.ordinal,
      chunk_id => found.id, content => found.content, span_start => found.span_start, span_end => found.span_end,
      similarity => case when query_embedding is not null
        then greatest(0, least(1, 1 - (found.embedding operator(extensions.<=>) query_embedding))) end)
    from unnest(graph_candidates) as reached
    cross join lateral (
      select chunks.*
      from rag.chunks
      where chunks.org_id = reached.org_id and chunks.document_id = reached.document_id
        and chunks.ordinal = reached.ordinal and chunks.embedding_model = scope.model
      offset 0
    ) as found
    where not exists (select from unnest(known) as candidate where candidate.chunk_id = found.id));
  if cardinality(candidates) = 0 then
    return candidates;
  elsif mode = 'semantic' then
    -- The keyword score is not part of this score.
    return array(
      select rag.candidate(org_id => candidate.org_id, document_id => candidate.document_id,
        ordinal => candidate.ordinal, chunk_id => candidate.chunk_id, content => candidate.content,
        span_start => candidate.span_start, span_end => candidate.span_end, similarity => candidate.similarity,
        score => candidate.similarity)
      from unnest(candidates) as candidate);
  end if;
  scored := rag.score_candidates(rag.parse_keyword_query(query_text, scope),
    array(
      select distinct (candidate.org_id, candidate.document_id)::rag.document_key
      from unnest(candidates) as candidate),
    candidates, query_embedding, scope, mode, 0, 0, false);
  return scored || array(
    select candidate from unnest(candidates) as candidate
    where not exists (select from unnest(scored) as other where other.chunk_id = candidate.chunk_id));
end;
$$;

comment on function rag.score_graph_candidates is
  'The chunks that only the graph reached, with the score that the search would have given to them without phrase '
  'proximity. In a keyword search, a chunk without a word of the query has the score null.';

create function rag.share_of_names(query_text text, seeds rag.seed_entity[])
returns double precision
language sql stable security invoker set search_path = ''
as $$
  with word as (
    select position
    from rag.settings
    cross join unnest(rag.query_words(rag.fold_text(query_text))) with ordinality as words (word, position)
    where rag.words(rag.text_config(settings.language), word) <> ''
  )
  select least(1, 3 * coalesce(sum(named.weight), 0) / greatest(1, count(*)))
  from word
  left join lateral (
    select max(seed.weight) as weight from unnest(seeds) as seed where word.position between seed.start and seed.finish
  ) as named on true;
$$;

comment on function rag.share_of_names is
  'How much a question is about names: 0 without names, 1 if at least a third of its words, without stop words, are '
  'names. A word of a name counts by the weight of the name.';

create function rag.lead_of_best_hit(candidates rag.candidate[])
returns double precision
language sql immutable security invoker set search_path = ''
as $$
  select case when max(document.score) > 0 then least(1, 2 - 2 / max(document.score)
    * coalesce((array_agg(document.score order by document.score desc))[5], 0)) else 0 end
  from (
    select max(candidate.score) as score
    from unnest(candidates) as candidate
    where candidate.score is not null
    group by candidate.org_id, candidate.document_id
  ) as document;
$$;

comment on function rag.lead_of_best_hit is
  'How much better the best hit is than the fifth document, 0 to 1: 1 if its score is at least twice as high. If many '
  'documents match a question equally well, the names in the best one are rarely relevant to the question.';

create function rag.add_graph_candidates(candidates rag.candidate[], graph_candidates rag.graph_candidate[],
  query_text text, query_embedding extensions.halfvec, scope rag.search_scope, legs text,
  certainty double precision, row_limit integer)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  share constant double precision := (select settings.graph_share from rag.settings) * certainty;
begin
  if cardinality(graph_candidates) = 0 then
    return candidates;
  end if;
  return rag.fuse_graph_scores(
    candidates || rag.score_graph_candidates(graph_candidates, candidates, query_text, query_embedding, scope, legs),
    graph_candidates, (candidates[1]).chunk_id, share, row_limit);
end;
$$;

comment on function rag.add_graph_candidates is
  'The candidates of the legs together with those of the graph, up to row_limit, by the fused score. certainty: '
  'rag.share_of_names or rag.lead_of_best_hit, which multiplies the graph''s share of the score.';
