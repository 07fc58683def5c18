-- Search by meaning, by word, or by both, in one call. The two legs each bring their best candidates; then
-- every candidate is scored by both, whichever leg brought it, and the mean of the two orders the list.
--
-- Both scores are 0 to 1 by themselves: the cosine, and BM25 over what a perfect chunk would have. So their
-- mean is too, and says the same for every query and page. Reciprocal rank fusion, which knows only places,
-- was measured worse (CONTRIBUTING.md) and is there for those who ask for it.

-- Candidates of both legs, scored. wanted: how many the words bring; closely: for how many of those it matters
-- whether the words stand together; whole_documents: all chunks of the documents are candidates.
create function rag.score(asked rag.question, documents rag.reference[], near rag.hit[],
  needle extensions.halfvec, scope rag.scope, mode text, fusion text, wanted integer, closely integer,
  whole_documents boolean)
returns rag.hit[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings rag.settings;
  legs constant integer := (mode <> 'keyword')::integer + (asked.sought is not null)::integer;
  similarity_share double precision;
  hits rag.hit[];
begin
  select * into settings from rag.settings;
  -- A leg that there is not (nothing asked that any document says) takes no part of the score.
  similarity_share := case
    when mode = 'keyword' then 0 when asked.sought is null then 1 else settings.similarity_share end;

  with worded as materialized (
    select scores.* from rag.word_scores(asked, documents) as scores
  ), candidate as (
    (select worded.org_id, worded.document_id, worded.ordinal
    from worded
    order by worded.score desc, worded.document_id, worded.ordinal
    limit wanted)
    union
    select near.org_id, near.document_id, near.ordinal from unnest(near) as near
    union
    select chunks.org_id, chunks.document_id, chunks.ordinal
    from unnest(documents) as wanted_document
    join rag.chunks on chunks.org_id = wanted_document.org_id
      and chunks.document_id = wanted_document.document_id
    where whole_documents
  ), known as (
    select chunks.org_id, chunks.document_id, chunks.ordinal, chunks.id, chunks.content, chunks.span_start,
      chunks.span_end, chunks.lang,
      case when needle is not null
        then greatest(0, least(1, 1 - (chunks.embedding operator(extensions.<=>) needle))) end as similarity,
      coalesce(worded.score, 0) as word_score,
      row_number() over (order by worded.score desc nulls last, chunks.id) as word_place
    from candidate
    join rag.chunks on chunks.org_id = candidate.org_id and chunks.document_id = candidate.document_id
      and chunks.ordinal = candidate.ordinal
    left join worded on worded.org_id = candidate.org_id and worded.document_id = candidate.document_id
      and worded.ordinal = candidate.ordinal
    where chunks.embedding_model = scope.model
      and (scope.without_chunk is null or chunks.id <> scope.without_chunk)
  ), phrased as (
    select known.*, case
      -- Reading texts is dear: only those of the best, whose order it can change.
      when asked.pairs is null or settings.phrase_share = 0 or known.word_score = 0 then known.word_score
      else (1 - settings.phrase_share) * known.word_score + settings.phrase_share * case
        when known.word_place <= closely then rag.closeness(asked,
          rag.text_config(coalesce(known.lang, settings.language)), known.content)
        else 0 end
    end as words
    from known
  ), placed as (
    select phrased.*,
      case when phrased.word_score > 0
        then row_number() over (order by phrased.words desc, phrased.id) end as by_words,
      row_number() over (order by phrased.similarity desc, phrased.id) as by_similarity
    from phrased
    where mode <> 'keyword' or phrased.word_score > 0
  ), scored as (
    select placed.*, case fusion
      when 'rrf' then (coalesce(1.0 / (60 + placed.by_words), 0)
        + case when mode = 'keyword' then 0 else 1.0 / (60 + placed.by_similarity) end) * 61 / legs
      else similarity_share * coalesce(placed.similarity, 0) + (1 - similarity_share) * placed.words
    end::double precision as score
    from placed
  )
  select array_agg((scored.org_id, scored.document_id, scored.ordinal, scored.id, scored.content,
    scored.span_start, scored.span_end, scored.similarity, scored.words, scored.score)::rag.hit
    order by scored.score desc, scored.id)
    into hits
  from scored;
  return hits;
end;
$$;

-- The best documents among the hits, as many as are needed for so many chunks and at least five: a document is
-- worth its best hit, half its second best, a quarter of the next.
create function rag.best_documents(hits rag.hit[], chunks_wanted integer)
returns rag.reference[]
language sql stable security invoker set search_path = ''
as $$
  with placed as (
    select hit.org_id, hit.document_id, hit.score,
      row_number() over (partition by hit.org_id, hit.document_id order by hit.score desc) as place
    from unnest(hits) as hit
  ), valued as (
    select placed.org_id, placed.document_id, count(*) as chunks,
      sum(placed.score * 0.5 ^ least(placed.place, 50)) as value
    from placed
    group by 1, 2
  ), counted as (
    select valued.*, row_number() over in_order as place,
      sum(valued.chunks) over in_order - valued.chunks as chunks_before
    from valued
    window in_order as (order by valued.value desc, valued.document_id)
  )
  select array_agg((counted.org_id, counted.document_id)::rag.reference)
  from counted
  where counted.place <= 5 or counted.chunks_before < chunks_wanted;
$$;

-- The hits, those of older documents held back: at one half-life a score keeps three quarters, at two five
-- eighths, and never less than half. A document without a date is as old as its row.
create function rag.fade(hits rag.hit[], half_life_days double precision)
returns rag.hit[]
language sql stable security invoker set search_path = ''
as $$
  with faded as (
    select hit.*, hit.score * (0.5 + 0.5 * 0.5 ^ (least(1000 * half_life_days, greatest(0, extract(epoch from
      now() - coalesce(documents.occurred_at, documents.created_at))::double precision
      / 86400)) / half_life_days)) as faded_score
    from unnest(hits) as hit
    join rag.documents on documents.org_id = hit.org_id and documents.id = hit.document_id
  )
  select array_agg((faded.org_id, faded.document_id, faded.ordinal, faded.chunk_id, faded.content,
    faded.span_start, faded.span_end, faded.similarity, faded.word_score, faded.faded_score)::rag.hit
    order by faded.faded_score desc, faded.chunk_id)
  from faded;
$$;

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
  pool constant integer := greatest(30, 2 * top_k);
  needle extensions.halfvec(1536);
  scope rag.scope;
  near record;
  asked rag.question;
  hits rag.hit[];
begin
  perform rag.check_search(query_text, query_vector, mode, top_k, expand_context, half_life_days, fusion);
  scope := rag.scope_of(filters);
  if query_vector is not null then
    needle := rag.needle(query_vector);
  end if;

  if mode = 'keyword' then
    select null::rag.hit[] as hits, true as exact, 0 as considered into near;
  else
    near := rag.nearest(needle, scope,
      case when mode = 'semantic' and half_life_days is null then top_k else pool end);
  end if;

  hits := near.hits;
  if mode <> 'semantic' then
    asked := rag.question(query_text, scope);
    hits := rag.score(asked, rag.documents_with(asked, scope, 3 * pool)
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

-- Raises PT400, with the name of what is wrong in detail.
create function rag.check_search(query_text text, query_vector extensions.vector, mode text, top_k integer,
  expand_context integer, half_life_days double precision, fusion text)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  fault constant text[] := case
    when mode is null or mode not in ('semantic', 'keyword', 'hybrid', 'hierarchical')
      then array['invalid_mode', 'mode must be semantic, keyword, hybrid or hierarchical']
    when top_k is null or top_k not between 1 and 100
      then array['invalid_top_k', 'top_k must be between 1 and 100']
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
  rag.score(rag.question, rag.reference[], rag.hit[], extensions.halfvec, rag.scope, text, text, integer, integer,
    boolean),
  rag.best_documents(rag.hit[], integer), rag.fade(rag.hit[], double precision),
  rag.check_search(text, extensions.vector, text, integer, integer, double precision, text),
  public.rag_search(text, extensions.vector, text, integer, jsonb, integer, double precision, text)
  from public, anon, service_role;
grant execute on function
  rag.score(rag.question, rag.reference[], rag.hit[], extensions.halfvec, rag.scope, text, text, integer, integer,
    boolean),
  rag.best_documents(rag.hit[], integer), rag.fade(rag.hit[], double precision),
  rag.check_search(text, extensions.vector, text, integer, integer, double precision, text),
  public.rag_search(text, extensions.vector, text, integer, jsonb, integer, double precision, text)
  to authenticated;
