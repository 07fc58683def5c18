-- Vector search, keyword search, or both: the two legs that rag_search, rag_similar and rag_graph_search share.

create function rag.add_keyword_leg(near rag.candidate[], query_embedding extensions.halfvec, query_text text,
  scope rag.search_scope, mode text, row_limit integer, shown integer)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- The keyword leg also returns the subject of a similarity search, so it gets a larger limit.
  spare constant integer := num_nonnulls(scope.without_document, scope.without_chunk);
  by_words rag.search_scope := scope;
  keywords constant rag.keyword_query := rag.parse_keyword_query(query_text, scope);
  documents rag.document_key[];
  candidates rag.candidate[];
begin
  -- The subject is removed afterwards: with this filter, rag.candidate_documents would read all the org's documents.
  by_words.without_document := null;
  documents := array(
    select (document.org_id, document.document_id)::rag.document_key
    from unnest(rag.candidate_documents(keywords, by_words, 4 * row_limit + spare)) as document
    where document.document_id is distinct from scope.without_document);
  candidates := rag.score_candidates(keywords,
    documents || array(
      select (candidate.org_id, candidate.document_id)::rag.document_key
      from unnest(near) as candidate),
    near, query_embedding, scope, mode, row_limit + spare, shown, false);
  if mode = 'hierarchical' then
    candidates := rag.score_candidates(keywords, rag.best_documents(candidates, shown), null, query_embedding, scope,
      mode, row_limit, shown, true);
  end if;
  return candidates;
end;
$$;

comment on function rag.add_keyword_leg is
  'The candidates of both legs, best first: those of vector search, `near`, and the `row_limit` with the highest '
  'keyword scores. mode: as in rag_search. shown: the number of results that the caller returns.';

create function rag.two_leg_search(query_embedding extensions.halfvec, query_text text, scope rag.search_scope,
  mode text, row_limit integer, shown integer, judged_text text default null, judged_top_k integer default null,
  out candidates rag.candidate[], out exact boolean, out considered bigint, out complete boolean, out vector_ms real,
  out lexical_ms real, out judged rag.candidate[], out judged_vector_ms real, out judged_lexical_ms real)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- What each leg brings for the judged matches: as in rag_search.
  judged_pool constant integer := greatest(20, 2 * least(judged_top_k, 300));
  started timestamptz := clock_timestamp();
  nearest record;
  near rag.candidate[];
begin
  considered := 0;
  if mode <> 'keyword' or judged_top_k is not null then
    nearest := rag.nearest_chunks(query_embedding, scope,
      case when judged_top_k is null then row_limit else greatest(row_limit, judged_pool) end);
    exact := nearest.exact;
    considered := nearest.considered;
    judged_vector_ms := rag.milliseconds_since(started);
  end if;
  if mode <> 'keyword' then
    vector_ms := judged_vector_ms;
    near := (nearest.candidates)[:row_limit];
    candidates := near;
  end if;
  started := clock_timestamp();
  if mode <> 'semantic' then
    candidates := rag.add_keyword_leg(near,
      case when mode <> 'keyword' or judged_top_k is null then query_embedding end, query_text, scope, mode, row_limit,
      shown);
    lexical_ms := rag.milliseconds_since(started);
  end if;
  complete := coalesce(cardinality(case when mode = 'keyword' then candidates else near end), 0) < row_limit;
  if judged_top_k is not null then
    judged := (nearest.candidates)[:judged_pool];
    if rag.uses_keywords(scope) then
      started := clock_timestamp();
      judged := rag.add_keyword_leg(judged, query_embedding, judged_text, scope, 'hybrid', judged_pool, judged_top_k);
      judged_lexical_ms := rag.milliseconds_since(started);
    end if;
    judged := rag.to_page(judged, null, null, judged_top_k, 0);
  end if;
end;
$$;

comment on function rag.two_leg_search is
  'The `row_limit` nearest candidates, and with rag.add_keyword_leg those of both legs. complete: whether a larger '
  'row_limit would return no further candidates. judged: the first judged_top_k of a hybrid search for judged_text, '
  'with the same vectors; null without judged_top_k. vector_ms, lexical_ms: the duration of each leg, null for an unused one; the '
  'keyword leg includes the fusion. judged_vector_ms, judged_lexical_ms: those of the judged matches; vector search runs '
  'once for both.';

create function rag.uses_keywords(scope rag.search_scope)
returns boolean
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return scope.collection_ids is null or exists (
    select from rag.collections
    where collections.org_id = any (scope.org_ids) and collections.id = any (scope.collection_ids)
      and collections.config -> 'enable_hybrid_search' is distinct from 'false'::jsonb);
end;
$$;

comment on function rag.uses_keywords is
  'Whether a search of these collections uses keywords: not if all of them have hybrid search disabled.';
