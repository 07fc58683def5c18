-- Vector search: the chunks nearest to a query vector, among those that the caller may see.
--
-- An HNSW index with a row-security filter behind it returns too few rows to a small org: the index returns the nearest
-- candidates of all orgs, and the filter removes those of others. So the search first estimates how many rows the
-- caller's orgs and filters leave. It compares few rows exactly. For many rows it scans the index iteratively, fetches
-- more rows than required and orders them exactly. If the index returns too few, it compares all rows. In each case
-- the caller gets min(top_k, visible rows) rows.
--
-- Row security applies in every branch. The org ids are resolved first and named in each query, so that each scan reads
-- the rows of these orgs only.

create function rag.count_chunks(scope rag.search_scope)
returns bigint
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    select coalesce(sum(totals.chunks), 0)
    from rag.index_totals(scope.org_ids, scope.collection_ids) as totals
    where totals.embedding_model = scope.model);
end;
$$;

comment on function rag.count_chunks is
  'The number of chunks of its model in a scope that filters by org and collection only, by the keyword index.';

create function rag.exact_scan(query_embedding extensions.halfvec, scope rag.search_scope, row_limit integer)
returns rag.candidate[]
language plpgsql stable security invoker set search_path = ''
-- A cached plan ignores the org: with few orgs it expects a large part of the table, and would read all of it.
set enable_seqscan = off
as $$
begin
  return (
    select array_agg(rag.candidate(org_id => org_id, document_id => document_id, ordinal => ordinal, chunk_id => id,
      content => content, span_start => span_start, span_end => span_end,
      similarity => greatest(0, least(1, 1 - distance)), score => greatest(0, least(1, 1 - distance)))
      order by distance, id)
    from (
      -- Org by org: the plan for one id reads the org's rows faster than that for an array.
      select found.*
      from unnest(scope.org_ids) as orgs (one_org)
      cross join lateral (
        -- "+ 0" keeps the HNSW index out of the scan.
        select org_id, document_id, ordinal, id, content, span_start, span_end,
          (embedding operator(extensions.<=>) query_embedding) + 0 as distance
        from rag.chunks
        where org_id = one_org and embedding_model = scope.model
        offset 0
      ) as found
      order by distance, id
      limit row_limit
    ) as nearest);
end;
$$;

comment on function rag.exact_scan is
  'The nearest chunks of a scope without filters, by comparing all. Planning takes longer than scanning a small '
  'tenant, so this plan is cached.';

create function rag.filtered_scan(query_embedding extensions.halfvec, scope rag.search_scope, row_limit integer,
  bound bigint, out candidates rag.candidate[], out considered bigint)
language plpgsql stable security invoker set search_path = ''
-- As above: a cached plan ignores org and source type.
set enable_seqscan = off
as $$
declare
  one_type constant text := scope.source_types[1];
begin
  if rag.has_one_source_type(scope) then
    with visible as materialized (
      select found.*
      from unnest(scope.org_ids) as orgs (one_org)
      cross join lateral (
        select org_id, id, (embedding operator(extensions.<=>) query_embedding) + 0 as distance
        from rag.chunks
        where org_id = one_org and embedding_model = scope.model and source_type = one_type
        offset 0
      ) as found
      limit bound + 1
    )
    select array_agg(rag.candidate(org_id => org_id, document_id => document_id, ordinal => ordinal, chunk_id => id,
      content => content, span_start => span_start, span_end => span_end,
      similarity => greatest(0, least(1, 1 - distance)), score => greatest(0, least(1, 1 - distance)))
        order by distance, id), (select count(*) from visible)
      into candidates, considered
    from (select * from visible order by distance, id limit row_limit) as nearest
    cross join lateral (
      select document_id, ordinal, content, span_start, span_end
      from rag.chunks
      where chunks.org_id = nearest.org_id and chunks.id = nearest.id
      offset 0
    ) as text;
    return;
  end if;

  execute format($query$
    with visible as materialized (
      select org_id, id, (embedding operator(extensions.<=>) $2) + 0 as distance
      from rag.chunks
      where %s
      limit $4 + 1
    )
    select array_agg(rag.candidate(org_id => org_id, document_id => document_id, ordinal => ordinal, chunk_id => id,
      content => content, span_start => span_start, span_end => span_end,
      similarity => greatest(0, least(1, 1 - distance)), score => greatest(0, least(1, 1 - distance)))
        order by distance, id), (select count(*) from visible)
    from (select * from visible order by distance, id limit $3) as nearest
    cross join lateral (
      select document_id, ordinal, content, span_start, span_end
      from rag.chunks
      where chunks.org_id = nearest.org_id and chunks.id = nearest.id
      offset 0
    ) as text
  $query$, rag.chunk_where_clause(scope))
    into candidates, considered using scope, query_embedding, row_limit, bound;
end;
$$;

comment on function rag.filtered_scan is
  'The same with filters, if they leave at most `bound` chunks; considered: how many they leave, counted up to '
  'that bound. The most frequent filter, one source type, has a cached plan; others are planned for their values. '
  'Only the returned chunks'' texts are read, since the texts of all of them would not fit into memory.';

create function rag.hnsw_scan(query_embedding extensions.halfvec, scope rag.search_scope, row_limit integer,
  fetched integer, ef_search integer, out candidates rag.candidate[], out considered bigint, out complete boolean)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  sorting constant text := current_setting('enable_sort');
  dimensions constant integer := extensions.vector_dims(query_embedding);
  distances double precision[];
  -- How many of the candidates came from the index.
  indexed bigint;
begin
  -- Because of row security the planner expects few rows, and prefers to sort them. "+ 0": in relaxed order the rows
  -- come only nearly sorted, and the planner must not rely on their order.
  perform set_config('enable_sort', 'off', true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
    -- 1000 is the largest value; an iterative scan returns more rows if required.
    set_config('hnsw.ef_search', least(1000, greatest(ef_search, 3 * fetched))::text, true);
  -- The most frequent number of dimensions has a cached plan; others are planned for their index.
  if rag.has_no_filters(scope) and dimensions = 1536 then
    select array_agg(rag.candidate(org_id => org_id, document_id => document_id, ordinal => ordinal, chunk_id => id,
      content => content, span_start => span_start, span_end => span_end,
      similarity => greatest(0, least(1, 1 - distance)), score => greatest(0, least(1, 1 - distance)))
        order by distance, id), array_agg(distance order by distance), count(*) filter (where in_hnsw)
      into candidates, distances, indexed
    from (
      (select org_id, document_id, ordinal, id, content, span_start, span_end, in_hnsw,
        (embedding operator(extensions.<=>) query_embedding) + 0 as distance
      from rag.chunks
      where org_id = any (scope.org_ids) and embedding_model = scope.model and in_hnsw
        and extensions.vector_dims(embedding) = 1536
      order by embedding::extensions.halfvec(1536) operator(extensions.<=>) query_embedding
      limit fetched)
      union all
      (select org_id, document_id, ordinal, id, content, span_start, span_end, in_hnsw,
        (embedding operator(extensions.<=>) query_embedding) + 0 as distance
      from rag.chunks
      where org_id = any (scope.org_ids) and embedding_model = scope.model and not in_hnsw
      order by distance, id
      limit row_limit)
    ) as nearest;
  else
    execute format($query$
      select array_agg(rag.candidate(org_id => org_id, document_id => document_id, ordinal => ordinal, chunk_id => id,
        content => content, span_start => span_start, span_end => span_end,
        similarity => greatest(0, least(1, 1 - distance)), score => greatest(0, least(1, 1 - distance)))
          order by distance, id), array_agg(distance order by distance), count(*) filter (where in_hnsw)
      from (
        (select org_id, document_id, ordinal, id, content, span_start, span_end, in_hnsw,
          (embedding operator(extensions.<=>) $2) + 0 as distance
        from rag.chunks
        where %1$s and in_hnsw and extensions.vector_dims(embedding) = %2$s
        order by embedding::extensions.halfvec(%2$s) operator(extensions.<=>) $2
        limit $3)
        union all
        (select org_id, document_id, ordinal, id, content, span_start, span_end, in_hnsw,
          (embedding operator(extensions.<=>) $2) + 0 as distance
        from rag.chunks
        where %1$s and not in_hnsw
        order by distance, id
        limit $4)
      ) as nearest
    $query$, rag.chunk_where_clause(scope), dimensions)
      into candidates, distances, indexed using scope, query_embedding, fetched, row_limit;
  end if;
  perform set_config('enable_sort', sorting, true);
  considered := coalesce(cardinality(candidates), 0);
  complete := indexed = fetched and distances[row_limit] < distances[fetched];
  candidates := candidates[:row_limit];
end;
$$;

comment on function rag.hnsw_scan is
  'The nearest `row_limit` chunks of a scope, from `fetched` candidates of the HNSW index and from the chunks outside '
  'the index, which are compared exactly. complete: whether no nearer chunk can be missing. It is false if the index '
  'stopped early, and if the last returned chunk is as near as the last candidate, because the order of the index must '
  'not decide between equally near chunks.';

create function rag.indexed_rows(dimensions integer)
returns real
language sql stable security invoker set search_path = ''
as $$
  select coalesce((
    select pg_class.reltuples from pg_catalog.pg_class
    where pg_class.relname = rag.hnsw_index(dimensions) and pg_class.relnamespace = 'rag'::regnamespace), 0);
$$;

comment on function rag.indexed_rows is
  'The number of rows of the HNSW index for these dimensions when it was analyzed last; 0 without an index.';

create function rag.ef_search_for(scope rag.search_scope, candidates bigint, ef_search integer, indexed_rows real)
returns integer
language plpgsql stable security invoker set search_path = ''
as $$
declare
  scattered constant integer := case when cardinality(scope.org_ids) > 1 then 4 else 1 end;
begin
  return least(1000, ef_search * scattered * greatest(1, sqrt(greatest(indexed_rows, 0) / 50000),
    indexed_rows / (2 * candidates)));
end;
$$;

comment on function rag.ef_search_for is
  'The candidates that the HNSW index has to consider to find the nearest of so many rows: more for a smaller '
  'share of the table, and for a large table with the root of its rows; four times as many if the rows are scattered '
  'over several orgs, since few of their neighbours are in the scope (docs/benchmarks.md)';

create function rag.exact_threshold(scope rag.search_scope, candidates bigint, exact_rows integer, indexed_rows real)
returns bigint
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return case when cardinality(scope.org_ids) > 1 then 2 else 1 end
    * case when indexed_rows > 0 and candidates > indexed_rows / 2 then least(exact_rows, 4000) else exact_rows end;
end;
$$;

comment on function rag.exact_threshold is
  'The largest number of rows that are compared exactly: `exact_rows`; twice as many for rows of several orgs, which '
  'the index finds badly; at most 4,000 if the rows are most of the table, since the index then returns nearly all.';

create function rag.nearest_chunks(query_embedding extensions.halfvec, scope rag.search_scope, row_limit integer,
  out candidates rag.candidate[], out exact boolean, out considered bigint)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings rag.settings;
  filtered constant boolean := not rag.has_no_filters(scope);
  every_row constant bigint := 9223372036854775806;
  indexed_rows constant real := rag.indexed_rows(extensions.vector_dims(query_embedding));
  bound bigint;
  ef_search integer;
  more integer;
  complete boolean;
begin
  select * into settings from rag.settings;
  -- The keyword index has the number of rows of orgs and collections. A wrong number costs time, but no rows. With
  -- other filters the scan itself counts, up to the bound.
  if not rag.filters_documents(scope) and scope.without_chunk is null then
    considered := rag.count_chunks(scope);
  end if;
  bound := rag.exact_threshold(scope, considered, settings.exact_rows, indexed_rows);
  if filtered and coalesce(considered <= bound, true) then
    select * into candidates, considered from rag.filtered_scan(query_embedding, scope, row_limit, bound);
  end if;
  exact := considered <= bound;
  if exact then
    if not filtered then
      candidates := rag.exact_scan(query_embedding, scope, row_limit);
    end if;
    return;
  end if;

  ef_search := rag.ef_search_for(scope, considered, settings.ef_search, indexed_rows);
  -- One row more than row_limit shows whether the last returned row is nearer than the first omitted one. A hundred
  -- more are needed if many passages have the same text, e.g., footers.
  foreach more in array array[1, 100] loop
    select * into candidates, considered, complete
    from rag.hnsw_scan(query_embedding, scope, row_limit, row_limit + more, ef_search);
    exit when complete or considered < row_limit + more;
  end loop;
  if not complete then
    exact := true;
    select * into candidates, considered from rag.filtered_scan(query_embedding, scope, row_limit, every_row);
  end if;
end;
$$;

comment on function rag.nearest_chunks is
  'The nearest chunks of a scope, best first; equally near ones by id. exact: whether all that the scope leaves '
  'were compared; considered: how many were.';

create function public.rag_match(
  query_vector extensions.vector,
  top_k integer default 8,
  filters jsonb default '{}'
)
returns setof rag.result_row
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  scope rag.search_scope;
  near record;
  started timestamptz;
  vector_ms real;
begin
  perform rag.limit_direct_call();
  perform rag.check_top_k(top_k);
  scope := rag.resolve_filters(filters);
  started := clock_timestamp();
  near := rag.nearest_chunks(rag.to_halfvec(query_vector, scope.model), scope, top_k);
  vector_ms := rag.milliseconds_since(started);
  return query select * from rag.to_rows(near.candidates, near.exact, near.considered, vector_ms, null,
    scope.ignored_filters);
end;
$$;

comment on function public.rag_match is
  'Vector search: the chunks nearest to a vector, best first. filters: the fields of rag.filters; other keys are '
  'ignored and listed in the result (rag.ignored_filters).';
