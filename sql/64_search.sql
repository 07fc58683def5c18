-- Search by meaning, by word, or by both, in one call.

-- mode: semantic (needs query_vector), keyword (query_text), hybrid (both) or hierarchical (both: the best
-- documents first, then their best chunks). filters: the fields of rag.filters. expand_context: so many
-- neighbouring chunks join each text, on both sides. half_life_days: older documents are held back; null: not.
-- fusion: mean or rrf.
create function public.rag_search(
  query_text text default null,
  query_vector extensions.vector default null,
  mode text default 'hybrid',
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  fusion text default 'mean'
)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  -- What each leg brings.
  pool constant integer := greatest(20, 2 * top_k);
  needle extensions.halfvec(1536);
  scope rag.scope;
  near record;
  asked rag.question;
  hits rag.hit[];
begin
  perform rag.check_search(query_text, query_vector, mode, expand_context, half_life_days, fusion);
  perform rag.check_top_k(top_k);
  scope := rag.scope_of(filters);
  if mode in ('hybrid', 'hierarchical') and not rag.are_words_wanted(scope) then
    mode := 'semantic';
  end if;
  if query_vector is not null then
    needle := rag.needle(query_vector);
  end if;

  if mode = 'keyword' then
    select null::rag.hit[] as hits, null::boolean as exact, 0 as considered into near;
  else
    near := rag.nearest(needle, scope,
      case when mode = 'semantic' and half_life_days is null then top_k else pool end);
  end if;

  hits := near.hits;
  if mode <> 'semantic' then
    asked := rag.question(query_text, scope);
    hits := rag.score(asked, rag.documents_with(asked, scope, 4 * pool)
        || array(select (hit.org_id, hit.document_id)::rag.reference from unnest(near.hits) as hit),
      near.hits, needle, scope, mode, fusion, pool, top_k, false);
  end if;
  if mode = 'hierarchical' then
    hits := rag.score(asked, rag.best_documents(hits, top_k), null, needle, scope, mode, fusion, pool, top_k, true);
  end if;
  if half_life_days is not null then
    hits := rag.fade(hits, half_life_days);
  end if;
  hits := hits[:top_k];
  if expand_context > 0 then
    hits := rag.widen(hits, expand_context);
  end if;
  return query select * from rag.show(hits, near.exact, near.considered);
end;
$$;

-- Whether words have a part in a search of these collections: not where all of them have gone without hybrid search.
create function rag.are_words_wanted(scope rag.scope)
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

-- Raises PT400, with the name of what is wrong in detail.
create function rag.check_search(query_text text, query_vector extensions.vector, mode text,
  expand_context integer, half_life_days double precision, fusion text)
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
    when fusion is null or fusion not in ('mean', 'rrf')
      then array['invalid_fusion', 'fusion must be mean or rrf']
  end;
begin
  if fault is not null then
    raise exception '%', fault[2] using errcode = 'PT400', detail = fault[1];
  end if;
end;
$$;

revoke all on function
  rag.check_search(text, extensions.vector, text, integer, double precision, text),
  rag.are_words_wanted(rag.scope),
  public.rag_search(text, extensions.vector, text, integer, jsonb, integer, double precision, text)
  from public, anon, service_role;
grant execute on function
  rag.check_search(text, extensions.vector, text, integer, double precision, text),
  rag.are_words_wanted(rag.scope),
  public.rag_search(text, extensions.vector, text, integer, jsonb, integer, double precision, text)
  to authenticated;
