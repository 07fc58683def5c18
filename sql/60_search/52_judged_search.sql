-- A search with the matches by which the confidence of its answer is judged, in one call.
--
-- Confidence is judged by the ten best matches of a hybrid search, whatever the mode of the caller's own search is. Both
-- searches compare the question with the same vectors, so vector search runs once. rag_graph_search returns the same
-- matches where the caller's search uses the graph.

create function public.rag_judged_search(
  query_text text,
  query_vector extensions.vector,
  mode text default 'semantic',
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  prefer text[] default null,
  judged_text text default null,
  judged_top_k integer default 10
)
returns json
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  is_guarded constant boolean := rag.begin_call();
  pool constant integer := greatest(20, 2 * least(top_k, 300));
  scope rag.search_scope;
  search record;
begin
  judged_text := coalesce(judged_text, query_text);
  perform rag.check_search(query_text, query_vector, mode, expand_context, half_life_days);
  perform rag.check_judged(judged_text, query_vector, judged_top_k);
  perform rag.check_top_k(top_k), rag.check_prefer(prefer);
  scope := rag.resolve_filters(filters);
  prefer := nullif(prefer, '{}');
  if mode in ('hybrid', 'hierarchical') and not rag.uses_keywords(scope) then
    mode := 'semantic';
  end if;

  search := rag.two_leg_search(rag.to_halfvec(query_vector, scope.model), query_text, scope, mode,
    case when mode = 'semantic' and half_life_days is null and prefer is null then top_k else pool end, top_k,
    judged_text, judged_top_k);
  return json_build_object(
    'matches', (
      select coalesce(json_agg(hit), '[]')
      from rag.to_rows(rag.to_page(search.candidates, half_life_days, prefer, top_k, expand_context), search.exact,
        search.considered, search.vector_ms, search.lexical_ms, scope.ignored_filters) as hit),
    'judged', (
      select coalesce(json_agg(hit), '[]')
      from rag.to_rows(search.judged, search.exact, search.considered, search.judged_vector_ms,
        search.judged_lexical_ms) as hit));
end;
$$;

comment on function public.rag_judged_search is
  'A search with the matches by which the confidence of an answer is judged. Arguments: those of rag_search; '
  'query_vector is always needed. Returns matches: the rows of rag_search; judged: the first judged_top_k of a hybrid '
  'search for judged_text, by default query_text, with the same vector and filters.';

create function rag.check_judged(judged_text text, query_vector extensions.vector, judged_top_k integer)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  perform rag.check_search(judged_text, query_vector, 'hybrid', 0, null), rag.check_top_k(judged_top_k);
end;
$$;

comment on function rag.check_judged is
  'Raises PT400 for invalid arguments of the judged matches, which need text and vector whatever the mode.';
