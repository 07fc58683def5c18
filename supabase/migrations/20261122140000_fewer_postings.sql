-- Keyword search reads half as many postings and finds more: those of a word that has more than are read count
-- for less. Candidates are grouped, not joined, and texts read in one statement: sql/58 to 66.

drop function rag.check_search(text, extensions.vector, text, integer, integer, double precision, text);
drop function rag.closeness(rag.question, regconfig, text);

alter table rag.settings alter column postings_read set default 500;
-- A deployment that has chosen its own keeps it.
update rag.settings set postings_read = 500 where postings_read = 1000;

-- Whether it asks for what only documents and chunks know, and not their postings.
create function rag.filters_documents(scope rag.scope)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select not (scope.source_types, scope.lang, scope.date_from, scope.date_to, scope.document_ids,
    scope.without_document) is null;
$$;

-- Raises PT400 for a page that nobody gets.
create function rag.check_top_k(top_k integer)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if top_k is null or top_k not between 1 and 100 then
    raise exception 'top_k must be between 1 and 100' using errcode = 'PT400', detail = 'invalid_top_k';
  end if;
end;
$$;

-- filters: the fields of rag.filters; other keys are ignored.
create or replace function public.rag_match(
  query_vector extensions.vector,
  top_k integer default 8,
  filters jsonb default '{}'
)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  near record;
begin
  perform rag.check_top_k(top_k);
  near := rag.nearest(rag.needle(query_vector), rag.scope_of(filters), top_k);
  return query select * from rag.show(near.hits, near.exact, near.considered);
end;
$$;

-- How much of what is asked stands together in each text as it was asked, 0 to 1: the more, the more of its
-- words follow each other as they do in the question, the rarer those are and the fewer stand between. Texts
-- where no two do are left out.
create function rag.closeness(asked rag.question, ids uuid[], configs oid[], contents text[])
returns table (id uuid, closeness double precision)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  terms constant text[] := array(select distinct sought.term from unnest(asked.sought) as sought);
begin
  return query
  with word as materialized (
    select text.id, text.config, word.lexeme, word.positions
    from unnest(ids, configs, contents) as text (id, config, content)
    cross join unnest(rag.words(text.config::regconfig, text.content)) as word
    where word.lexeme = any (terms)
  )
  select one.id, sum(pair.weight / (1 + (
      select min(abs(b - a - pair.gap)) from unnest(one.positions) as a, unnest(other.positions) as b
    ))) / asked.idf_sum
  from unnest(asked.pairs) as pair
  join word as one on one.config = pair.config and one.lexeme = pair.first
  join word as other on other.id = one.id and other.lexeme = pair.second
  group by one.id;
end;
$$;

-- Those of the documents that have most of what is asked, by all their postings.
create function rag.best_among(asked rag.question, documents rag.reference[], wanted integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  terms constant text[] := array(select distinct sought.term from unnest(asked.sought) as sought);
begin
  return (
    select array_agg((ranked.org_id, ranked.document_id)::rag.reference)
    from (
      select postings.org_id, postings.document_id
      from unnest(documents) as document
      cross join lateral (
        select org_id, document_id, term, impact
        from rag.postings
        where postings.org_id = document.org_id and postings.document_id = document.document_id
          and postings.term = any (terms)
        offset 0
      ) as postings
      join (select distinct term, idf from unnest(asked.sought)) as sought on sought.term = postings.term
      where asked.totals is null or exists (
        select from rag.postings as whole
        where whole.org_id = document.org_id and whole.document_id = document.document_id
          and whole.term = any (asked.totals))
      group by 1, 2
      order by sum(sought.idf * postings.impact) desc, 2
      limit wanted
    ) as ranked);
end;
$$;

-- The documents with most of what is asked, as far as a bounded number of postings tells: of each term `read`
-- with the most of it, the rarest terms first, and eight times as many in all. One that is not among them may
-- hold the term too, and about half as much as the last that is: so much less is each of those worth, or else
-- a document would gain by a common word that others only seem to lack.
create function rag.best_by_impact(asked rag.question, scope rag.scope, wanted integer, read integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  sorting constant text := current_setting('enable_sort');
  found rag.reference[];
begin
  -- Row security makes the planner believe that hardly a posting is left: it would read them all and sort.
  perform set_config('enable_sort', 'off', true);
  select array_agg((ranked.org_id, ranked.document_id)::rag.reference) into found
  from (
    select best.org_id, best.document_id
    from (
      select term, idf, sum(least(chunks, read)) over (order by chunks, term) - least(chunks, read) as read_before
      from (select distinct term, idf, chunks from unnest(asked.sought)) as terms
    ) as sought
    cross join unnest(scope.org_ids) as org (id)
    cross join lateral (
      select org_id, document_id,
        impact - case when count(*) over () = read then min(impact) over () / 2 else 0 end as impact
      from (
        select org_id, document_id, impact
        from rag.postings
        where org_id = org.id and term = sought.term
        order by impact desc
        limit read
      ) as most
    ) as best
    where read_before < 8 * read
    group by 1, 2
    order by sum(sought.idf * best.impact) desc, 2
    limit wanted
  ) as ranked;
  perform set_config('enable_sort', sorting, true);
  return found;
end;
$$;

-- The same among what filters leave, planned for them. All terms are read: filters may take most of it away.
create function rag.best_by_impact_filtered(asked rag.question, scope rag.scope, wanted integer, read integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  sorting constant text := current_setting('enable_sort');
  found rag.reference[];
begin
  perform set_config('enable_sort', 'off', true);
  execute format($query$
    select array_agg((ranked.org_id, ranked.document_id)::rag.reference)
    from (
      select best.org_id, best.document_id
      from (select distinct term, idf from unnest($2)) as sought
      cross join unnest(($1).org_ids) as org (id)
      cross join lateral (
        select org_id, document_id,
          impact - case when count(*) over () = $3 then min(impact) over () / 2 else 0 end as impact
        from (
          select org_id, document_id, impact
          from rag.postings
          where org_id = org.id and term = sought.term
            and (($1).collection_ids is null or collection_id = any (($1).collection_ids)) %s %s
          order by impact desc
          limit $3
        ) as most
      ) as best
      group by 1, 2
      order by sum(sought.idf * best.impact) desc, 2
      limit $4
    ) as ranked
  $query$, case when rag.filters_documents(scope) then format(
    'and exists (select from rag.documents where %s and org_id = postings.org_id and id = postings.document_id)',
    rag.conditions(scope, 'id')) end, case when asked.totals is not null then
    'and exists (select from rag.postings as whole where whole.org_id = postings.org_id '
    'and whole.document_id = postings.document_id and whole.term = any ($5))' end)
    into found using scope, asked.sought, read, wanted, asked.totals;
  perform set_config('enable_sort', sorting, true);
  return found;
end;
$$;

-- The documents of a scope with most of what is asked: all that hold a term of it, or about the best `wanted`.
create or replace function rag.documents_with(asked rag.question, scope rag.scope, wanted integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  filtered constant boolean := scope.collection_ids is not null or rag.filters_documents(scope);
  -- Up to so many documents are looked up one by one.
  few constant integer := 500;
  read constant integer := greatest(wanted, (select settings.postings_read from rag.settings));
  left_over rag.reference[];
begin
  if filtered then
    execute format('select array(select (org_id, id)::rag.reference from rag.documents where %s limit $2)',
      rag.conditions(scope, 'id')) into left_over using scope, few + 1;
    if cardinality(left_over) <= few then
      return rag.best_among(asked, left_over, wanted);
    end if;
  elsif asked.totals is null then
    return rag.best_by_impact(asked, scope, wanted, read);
  end if;
  return rag.best_by_impact_filtered(asked, scope, wanted, read);
end;
$$;

-- Candidates of both legs, scored. wanted: how many the words bring; closely: for how many of those it matters
-- whether the words stand together; whole_documents: all chunks of the documents are candidates.
create or replace function rag.score(asked rag.question, documents rag.reference[], near rag.hit[],
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

  with candidate as (
    -- Grouped and not joined: the planner would compare each with every scored chunk.
    select brought.org_id, brought.document_id, brought.ordinal, max(brought.score) as word_score
    from (
      select scores.*, row_number() over (order by score desc, document_id, ordinal) <= wanted as chosen
      from rag.word_scores(asked, documents) as scores
      union all
      select near.org_id, near.document_id, near.ordinal, null, true from unnest(near) as near
      union all
      select chunks.org_id, chunks.document_id, chunks.ordinal, null, true
      from unnest(documents) as wanted_document
      join rag.chunks on chunks.org_id = wanted_document.org_id
        and chunks.document_id = wanted_document.document_id
      where whole_documents
    ) as brought
    group by 1, 2, 3
    having bool_or(brought.chosen)
  ), known as (
    select found.*, coalesce(candidate.word_score, 0) as word_score,
      row_number() over (order by candidate.word_score desc nulls last, found.id) as word_place
    from candidate
    -- Offset 0 keeps this a look-up of each.
    cross join lateral (
      select chunks.org_id, chunks.document_id, chunks.ordinal, chunks.id, chunks.content, chunks.span_start,
        chunks.span_end, chunks.lang,
        case when needle is not null
          then greatest(0, least(1, 1 - (chunks.embedding operator(extensions.<=>) needle))) end as similarity
      from rag.chunks
      where chunks.org_id = candidate.org_id and chunks.document_id = candidate.document_id
        and chunks.ordinal = candidate.ordinal and chunks.embedding_model = scope.model
        and (scope.without_chunk is null or chunks.id <> scope.without_chunk)
      offset 0
    ) as found
  ), close as (
    -- Reading texts is dear: only those of the best, whose order it can change.
    select closeness.*
    from (
      select array_agg(known.id) as ids, array_agg(known.content) as contents,
        array_agg(rag.text_config(coalesce(known.lang, settings.language))::oid) as configs
      from known
      where asked.pairs is not null and settings.phrase_share > 0 and known.word_score > 0
        and known.word_place <= closely
    ) as best
    cross join rag.closeness(asked, best.ids, best.configs, best.contents) as closeness
  ), phrased as (
    select known.*, case when asked.pairs is null then known.word_score
      else (1 - settings.phrase_share) * known.word_score
        + settings.phrase_share * coalesce(close.closeness, 0) end as words
    from known
    left join close on close.id = known.id
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

-- mode: semantic (needs query_vector), keyword (query_text), hybrid (both) or hierarchical (both: the best
-- documents first, then their best chunks). filters: the fields of rag.filters. expand_context: so many
-- neighbouring chunks join each text, on both sides. half_life_days: older documents are held back; null: not.
-- fusion: mean or rrf.
create or replace function public.rag_search(
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

-- chunk_id or document_id: the subject, never among what is found, nor is any chunk of a document that is the
-- subject. result: chunks, or documents, each by its best chunk. A subject that the caller cannot see is not
-- there: PT404.
create or replace function public.rag_similar(
  chunk_id uuid default null,
  document_id uuid default null,
  result text default 'chunks',
  top_k integer default 10,
  filters jsonb default '{}'
)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  scope rag.scope;
  average extensions.vector;
  needle extensions.halfvec(1536);
  org_ids uuid[];
  near record;
  hits rag.hit[];
  wanted integer := top_k;
begin
  if num_nonnulls(chunk_id, document_id) <> 1 then
    raise exception 'either chunk_id or document_id is needed' using errcode = 'PT400', detail = 'invalid_subject';
  elsif result is null or result not in ('chunks', 'documents') then
    raise exception 'result must be chunks or documents' using errcode = 'PT400', detail = 'invalid_result';
  end if;
  perform rag.check_top_k(top_k);
  scope := rag.scope_of(filters);
  -- The subject may stand outside the filters.
  org_ids := array(select rag.current_org_ids());

  -- A document is where its chunks are on average.
  select extensions.avg(chunks.embedding::extensions.vector), min(chunks.embedding_model)
    into average, scope.model
  from rag.chunks
  where chunks.org_id = any (org_ids)
    and (chunks.id = chunk_id or chunks.document_id = document_id);
  if average is null then
    raise exception 'no such subject' using errcode = 'PT404', detail = 'subject_not_found';
  end if;
  needle := rag.needle(average);
  scope.without_chunk := chunk_id;
  scope.without_document := document_id;

  loop
    near := rag.nearest(needle, scope, wanted);
    exit when result = 'chunks';
    select array_agg(best.hit order by (best.hit).score desc, (best.hit).chunk_id) into hits
    from (
      select distinct on (hit.org_id, hit.document_id) hit
      from unnest(near.hits) as hit
      order by hit.org_id, hit.document_id, hit.score desc, hit.chunk_id
    ) as best;
    -- Enough documents, or all there are.
    exit when cardinality(hits) >= top_k or coalesce(cardinality(near.hits), 0) < wanted;
    wanted := wanted * 4;
  end loop;
  if result = 'chunks' then
    hits := near.hits;
  end if;
  return query select * from rag.show(hits[:top_k], near.exact, near.considered);
end;
$$;

revoke all on function
  rag.filters_documents(rag.scope),
  rag.check_top_k(integer),
  rag.closeness(rag.question, uuid[], oid[], text[]),
  rag.best_among(rag.question, rag.reference[], integer),
  rag.best_by_impact(rag.question, rag.scope, integer, integer),
  rag.best_by_impact_filtered(rag.question, rag.scope, integer, integer),
  rag.check_search(text, extensions.vector, text, integer, double precision, text)
  from public, anon, service_role;
grant execute on function
  rag.filters_documents(rag.scope),
  rag.check_top_k(integer),
  rag.closeness(rag.question, uuid[], oid[], text[]),
  rag.best_among(rag.question, rag.reference[], integer),
  rag.best_by_impact(rag.question, rag.scope, integer, integer),
  rag.best_by_impact_filtered(rag.question, rag.scope, integer, integer),
  rag.check_search(text, extensions.vector, text, integer, double precision, text)
  to authenticated;
