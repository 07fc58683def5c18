-- Graph search: the legs of rag_search and the expanded graph, fused in one call. The graph starts at the names of the
-- question and, if less than a third of the question is names, also at the names in the best hit.

create function rag.render_matches(shown rag.candidate[], by_legs rag.candidate[],
  graph_candidates rag.graph_candidate[], exact boolean, considered bigint, vector_ms real, lexical_ms real,
  ignored_filters text[])
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    select coalesce(jsonb_agg(to_jsonb(row_shown) || jsonb_build_object('graph_score', coalesce(graph.weight, 0),
      'graph_sourced', coalesce(graph.weight, 0) > 0 and not exists (
        select from unnest(by_legs) as candidate where candidate.chunk_id = row_shown.chunk_id))), '[]')
    from rag.to_rows(shown, exact, considered, vector_ms, lexical_ms, ignored_filters) as row_shown
    left join lateral (
      select max(found.weight)
      from unnest(graph_candidates) as found
      where found.org_id = row_shown.org_id and found.document_id = row_shown.document_id
        and found.ordinal = row_shown.ordinal
    ) as graph (weight) on true);
end;
$$;

comment on function rag.render_matches is
  'The hits as JSON, each with the probability with which the graph reached it, and whether the search without the '
  'graph would have omitted it.';

create function public.rag_graph_search(
  query_text text,
  query_vector extensions.vector default null,
  mode text default 'graph',
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  prefer text[] default null,
  hops integer default 2,
  judged_text text default null,
  judged_top_k integer default null
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  pool constant integer := greatest(20, 2 * least(top_k, 300));
  legs text := case mode when 'graph' then 'hybrid' else mode end;
  query_embedding extensions.halfvec;
  scope rag.search_scope;
  search record;
  seeds rag.seed_entity[];
  names_share double precision;
  lead double precision;
  expansion record;
  candidates rag.candidate[];
  started timestamptz;
  graph_ms real;
begin
  perform rag.limit_direct_call();
  perform rag.check_search(query_text, query_vector, legs, expand_context, half_life_days);
  perform rag.check_graph(query_text, top_k, hops), rag.check_prefer(prefer);
  judged_text := coalesce(judged_text, query_text);
  if judged_top_k is not null then
    perform rag.check_judged(judged_text, query_vector, judged_top_k);
  end if;
  scope := rag.resolve_filters(filters);
  if legs in ('hybrid', 'hierarchical') and not rag.uses_keywords(scope) then
    legs := 'semantic';
  end if;
  if query_vector is not null then
    query_embedding := rag.to_halfvec(query_vector, scope.model);
  end if;

  search := rag.two_leg_search(query_embedding, query_text, scope, legs, pool, top_k, judged_text, judged_top_k);
  if legs = 'keyword' and judged_top_k is not null then
    -- The vector is that of the judged matches alone.
    query_embedding := null;
  end if;
  started := clock_timestamp();
  seeds := rag.seeds_in_scope(
    rag.link_entities(query_text, scope), scope, 24, (select settings.mentions_read from rag.settings));
  names_share := rag.share_of_names(query_text, seeds);
  lead := rag.lead_of_best_hit(search.candidates);
  -- The weight of the names in the best hit rises with its lead, and falls with the share of names in the question.
  expansion := rag.expand_graph(seeds, array(
    select (hit.org_id, hit.document_id, hit.ordinal, lead * (1 - names_share), null)::rag.graph_candidate
    from unnest((search.candidates)[:1]) as hit
    where names_share < 1), scope, query_embedding, hops, pool, started);
  graph_ms := rag.milliseconds_since(started);
  candidates := rag.to_page(
    rag.add_graph_candidates(search.candidates, expansion.chunks, query_text, query_embedding, scope, legs,
      greatest(names_share, lead), pool),
    half_life_days, prefer, top_k, expand_context);
  return rag.render_graph(seeds, expansion.neighbours, scope) || jsonb_build_object('complete', expansion.complete,
    'graph_ms', graph_ms, 'matches', rag.render_matches(candidates, (search.candidates)[:top_k], expansion.chunks,
      search.exact, search.considered, search.vector_ms, search.lexical_ms, scope.ignored_filters))
    || case when scope.ignored_filters is null then '{}'
      else jsonb_build_object('ignored_filters', scope.ignored_filters) end
    || case when judged_top_k is null then '{}'
      else jsonb_build_object('judged', (
        select coalesce(jsonb_agg(hit), '[]')
        from rag.to_rows(search.judged, search.exact, search.considered, search.judged_vector_ms,
          search.judged_lexical_ms) as hit))
      end;
end;
$$;

comment on function public.rag_graph_search is
  'Search by vector and keywords together with the graph of the query''s entities. query_text, query_vector, '
  'filters, expand_context, half_life_days, prefer: as in rag_search. mode: graph (the legs of hybrid), or a mode of '
  'rag_search, whose legs the graph then supplements. hops: the hops of the expansion, 1 or 2. Returns {matches, '
  'entities, edges, evidence, complete, graph_ms}, and ignored_filters if there are any; with judged_top_k also judged '
  'as in rag_judged_search.';

create function rag.check_graph(query_text text, top_k integer, hops integer)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  perform rag.check_top_k(top_k);
  if coalesce(query_text, '') = '' then
    raise exception 'a graph search needs query_text' using errcode = 'PT400', detail = 'missing_text';
  elsif hops is null or hops not between 1 and 2 then
    raise exception 'hops must be 1 or 2' using errcode = 'PT400', detail = 'invalid_hops';
  end if;
end;
$$;

comment on function rag.check_graph is
  'Raises PT400 for invalid arguments of a graph search; detail names the argument.';
