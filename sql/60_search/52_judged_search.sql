-- A search with the matches by which the confidence of its answer is judged, in one call.
--
-- Confidence is judged by the ten best matches of a hybrid search, whatever the mode of the caller's own search is. Both
-- searches compare the question with the same vectors, so vector search runs once.

create function public.rag_judged_search(
  query_text text,
  query_vector extensions.vector,
  mode text default 'semantic',
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  prefer text[] default null,
  judged_top_k integer default 10
)
returns json
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  is_guarded constant boolean := rag.begin_call();
  -- What each leg brings for the matches that are judged: as in rag_search.
  judged_pool constant integer := greatest(20, 2 * least(judged_top_k, 300));
  pool integer;
  query_embedding extensions.halfvec;
  scope rag.search_scope;
  near record;
  candidates rag.candidate[];
  judged rag.candidate[];
  started timestamptz := clock_timestamp();
  vector_ms real;
  own_ms real;
  judged_ms real;
begin
  perform rag.check_search(query_text, query_vector, mode, expand_context, half_life_days);
  -- The judged matches need text and vector, whatever the mode.
  perform rag.check_search(query_text, query_vector, 'hybrid', expand_context, half_life_days);
  perform rag.check_top_k(top_k), rag.check_prefer(prefer);
  perform rag.check_top_k(judged_top_k);
  scope := rag.resolve_filters(filters);
  prefer := nullif(prefer, '{}');
  query_embedding := rag.to_halfvec(query_vector, scope.model);
  if mode in ('hybrid', 'hierarchical') and not rag.uses_keywords(scope) then
    mode := 'semantic';
  end if;
  pool := case when mode = 'semantic' and half_life_days is null and prefer is null then top_k
    else greatest(20, 2 * least(top_k, 300)) end;

  near := rag.nearest_chunks(query_embedding, scope, greatest(pool, judged_pool));
  vector_ms := rag.milliseconds_since(started);
  started := clock_timestamp();
  candidates := case when mode <> 'keyword' then (near.candidates)[:pool] end;
  if mode <> 'semantic' then
    candidates := rag.add_keyword_leg(candidates, case when mode <> 'keyword' then query_embedding end, query_text, scope,
      mode, pool, top_k);
    own_ms := rag.milliseconds_since(started);
    started := clock_timestamp();
  end if;
  judged := (near.candidates)[:judged_pool];
  if rag.uses_keywords(scope) then
    judged := rag.add_keyword_leg(judged, query_embedding, query_text, scope, 'hybrid', judged_pool,
      judged_top_k);
    judged_ms := rag.milliseconds_since(started);
  end if;
  return json_build_object(
    'matches', (
      select coalesce(json_agg(hit), '[]')
      from rag.to_rows(rag.to_page(candidates, half_life_days, prefer, top_k, expand_context), near.exact,
        near.considered, vector_ms, own_ms, scope.ignored_filters) as hit),
    'judged', (
      select coalesce(json_agg(hit), '[]')
      from rag.to_rows(rag.to_page(judged, null, null, judged_top_k, 0), near.exact, near.considered, vector_ms,
        judged_ms) as hit));
end;
$$;

comment on function public.rag_judged_search is
  'A search with the matches by which the confidence of an answer is judged. Arguments: those of rag_search; '
  'query_vector is always needed. Returns matches: the rows of rag_search; judged: the first judged_top_k of a hybrid '
  'search with the same filters.';
