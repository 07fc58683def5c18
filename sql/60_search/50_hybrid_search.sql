-- Search by meaning, by word, or by both, in one call.

create function public.rag_search(
  query_text text default null,
  query_vector extensions.vector default null,
  mode text default 'hybrid',
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  prefer text[] default null
)
returns setof rag.result_row
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  -- What each leg brings, where the order in which it does is not the last.
  pool constant integer := greatest(20, 2 * least(top_k, 300));
  query_embedding extensions.halfvec;
  scope rag.search_scope;
  search record;
begin
  perform rag.limit_direct_call();
  if query_vector is null and mode in ('hybrid', 'hierarchical') then
    mode := 'keyword';
  end if;
  perform rag.check_search(query_text, query_vector, mode, expand_context, half_life_days);
  perform rag.check_top_k(top_k), rag.check_prefer(prefer);
  scope := rag.resolve_filters(filters);
  prefer := nullif(prefer, '{}');
  if mode in ('hybrid', 'hierarchical') and not rag.uses_keywords(scope) then
    mode := 'semantic';
  end if;
  if query_vector is not null then
    query_embedding := rag.to_halfvec(query_vector, scope.model);
  end if;

  search := rag.two_leg_search(query_embedding, query_text, scope, mode,
    case when mode = 'semantic' and half_life_days is null and prefer is null then top_k else pool end, top_k);
  return query
  select * from rag.to_rows(rag.to_page(search.candidates, half_life_days, prefer, top_k, expand_context),
    search.exact, search.considered, search.vector_ms, search.lexical_ms, scope.ignored_filters);
end;
$$;

comment on function public.rag_search is
  'Search by vector, by keywords, or by both. mode: semantic (needs query_vector), keyword (query_text), hybrid '
  '(both) or hierarchical (both: the best documents first, then their best chunks). Without query_vector, hybrid '
  'and hierarchical become keyword. filters: the fields of rag.filters. expand_context: the number of neighbouring '
  'chunks added to each text, on both sides. half_life_days: lowers the scores of older documents, unless it is '
  'null. prefer: source types whose scores are not lowered.';

create function rag.check_search(query_text text, query_vector extensions.vector, mode text,
  expand_context integer, half_life_days double precision)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  fault constant text[] := case
    when mode is null or mode not in ('semantic', 'keyword', 'hybrid', 'hierarchical')
      then array['invalid_mode', 'mode must be semantic, keyword, hybrid or hierarchical']
    when mode <> 'keyword' and query_vector is null
      then array['missing_vector', format('mode %s needs query_vector', mode)]
    when mode <> 'semantic' and coalesce(query_text, '') = ''
      then array['missing_text', format('mode %s needs query_text', mode)]
    when length(query_text) > 10000
      then array['text_too_long', 'query_text must have at most 10,000 characters']
    when expand_context is null or expand_context not between 0 and 10
      then array['invalid_expand_context', 'expand_context must be between 0 and 10']
    when half_life_days <= 0 or half_life_days > 100000 or half_life_days = 'NaN'
      then array['invalid_half_life', 'half_life_days must be above 0 and at most 100,000']
  end;
begin
  if fault is not null then
    raise exception '%', fault[2] using errcode = 'PT400', detail = fault[1];
  end if;
end;
$$;

comment on function rag.check_search is 'Raises PT400 for invalid arguments of a search; detail names the argument.';
