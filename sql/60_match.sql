-- The heart: the chunks nearest to a query vector, among those that the caller may see.
--
-- The recipe in every tutorial (an HNSW index and a row-security filter behind it) silently returns too
-- few rows to small tenants: the index hands out its nearest candidates first, and the filter throws
-- other tenants' away. So a match asks how many rows the caller's orgs and filters leave. Few: it compares
-- them all, exactly. Many: it lets the index iterate, fetches more than asked and orders those exactly, and
-- compares all after all should the index come up short. Either way the caller gets min(top_k, visible) rows.
--
-- Row security holds underneath in every branch. The org ids are resolved first and named explicitly, so
-- that partitions prune and a distributed table goes to one shard.

-- How many chunks of its model a scope without filters leaves, by the log of term counts.
create function rag.count_chunks(scope rag.scope)
returns bigint
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    select coalesce(sum(counts.chunks), 0)
    from rag.term_counts as counts
    where counts.org_id = any (scope.org_ids) and counts.term >= ' ' and counts.term < '!'
      and rag.model_of_total(counts.term) = scope.model);
end;
$$;

create function rag.hit_at(org_id uuid, document_id uuid, ordinal integer, chunk_id uuid,
  distance double precision)
returns rag.hit
language sql immutable security invoker set search_path = ''
as $$
  select (org_id, document_id, ordinal, chunk_id, similarity, null, similarity)::rag.hit
  from (select greatest(0, least(1, 1 - distance))) as clamped (similarity);
$$;

-- The nearest chunks of a scope by comparing them all, as long as those are at most `bound`; considered: how
-- many were compared. Planning takes longer than scanning a small tenant: the two common shapes are
-- statements whose plans are kept, whereas the other filters are planned each time.
create function rag.nearest_of_all(needle extensions.halfvec, scope rag.scope, wanted integer, bound bigint,
  out hits rag.hit[], out considered integer)
language plpgsql stable security invoker set search_path = ''
-- A kept plan knows no org: among few, it takes any for a large part of the table, and would read all of it.
set enable_seqscan = off
as $$
begin
  -- "+ 0" keeps the HNSW index out of the scan.
  if rag.has_no_filters(scope) then
    with visible as materialized (
      select org_id, document_id, ordinal, id,
        (embedding operator(extensions.<=>) needle) + 0 as distance
      from rag.chunks
      where org_id = any (scope.org_ids) and embedding_model = scope.model
      limit bound + 1
    )
    select array_agg(rag.hit_at(org_id, document_id, ordinal, id, distance) order by distance, id),
      (select count(*) from visible)
      into hits, considered
    from (select * from visible order by distance, id limit wanted) as best;
  elsif rag.has_source_types_only(scope) then
    with visible as materialized (
      select org_id, document_id, ordinal, id,
        (embedding operator(extensions.<=>) needle) + 0 as distance
      from rag.chunks
      where org_id = any (scope.org_ids) and embedding_model = scope.model
        and source_type = any (scope.source_types)
      limit bound + 1
    )
    select array_agg(rag.hit_at(org_id, document_id, ordinal, id, distance) order by distance, id),
      (select count(*) from visible)
      into hits, considered
    from (select * from visible order by distance, id limit wanted) as best;
  else
    execute format($query$
      with visible as materialized (
        select org_id, document_id, ordinal, id,
          (embedding operator(extensions.<=>) $2) + 0 as distance
        from rag.chunks
        where %s
        limit $4 + 1
      )
      select array_agg(rag.hit_at(org_id, document_id, ordinal, id, distance) order by distance, id),
        (select count(*) from visible)
      from (select * from visible order by distance, id limit $3) as best
    $query$, rag.chunk_conditions(scope))
      into hits, considered using scope, needle, wanted, bound;
  end if;
end;
$$;

-- The nearest chunks of a scope by the HNSW index. Complete: whether these are all that there need be; not when
-- the index gave up, and not when as many as were fetched are equally near, since which of them it happened
-- upon must not decide.
create function rag.nearest_of_index(needle extensions.halfvec, scope rag.scope, wanted integer,
  ef_search integer, out hits rag.hit[], out considered integer, out complete boolean)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- Ten more, to see whether the last of them is nearer than what was left out.
  fetched constant integer := wanted + 10;
  sorting constant text := current_setting('enable_sort');
  distances double precision[];
begin
  -- Row security makes the planner believe that hardly a row is left, and sorting all of them cheap.
  perform set_config('enable_sort', 'off', true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
    -- 1000 is its largest; iterating, the index hands out more all the same.
    set_config('hnsw.ef_search', least(1000, greatest(ef_search, fetched))::text, true);
  execute format($query$
    select array_agg(rag.hit_at(org_id, document_id, ordinal, id, distance) order by distance, id),
      array_agg(distance order by distance)
    from (
      select org_id, document_id, ordinal, id, embedding operator(extensions.<=>) $2 as distance
      from rag.chunks
      where %s
      order by embedding operator(extensions.<=>) $2
      limit $3
    ) as nearest
  $query$, rag.chunk_conditions(scope))
    into hits, distances using scope, needle, fetched;
  perform set_config('enable_sort', sorting, true);
  considered := coalesce(cardinality(hits), 0);
  complete := considered = fetched and distances[wanted] < distances[fetched];
  hits := hits[:wanted];
end;
$$;

-- The nearest chunks of a scope, best first; equally near ones by id. exact: whether all that the scope leaves
-- were compared; considered: how many were.
create function rag.nearest(needle extensions.halfvec, scope rag.scope, wanted integer,
  out hits rag.hit[], out exact boolean, out considered integer)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings rag.settings;
  every_row constant bigint := 9223372036854775806;
  complete boolean := false;
begin
  select * into settings from rag.settings;
  -- Without filters the log of term counts knows how many there are; should it be wrong, it costs time and no
  -- rows. With filters, comparing as many as are few tells.
  exact := not rag.has_no_filters(scope) or rag.count_chunks(scope) <= settings.exact_rows;
  if exact then
    select * into hits, considered from rag.nearest_of_all(needle, scope, wanted, settings.exact_rows);
    exact := considered <= settings.exact_rows;
  end if;
  if not exact then
    select * into hits, considered, complete
    from rag.nearest_of_index(needle, scope, wanted, settings.ef_search);
    exact := not complete;
    if exact then
      select * into hits, considered from rag.nearest_of_all(needle, scope, wanted, every_row);
    end if;
  end if;
end;
$$;

-- filters: the fields of rag.filters; other keys are ignored.
create function public.rag_match(
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
  if top_k is null or top_k not between 1 and 100 then
    raise exception 'top_k must be between 1 and 100' using errcode = 'PT400', detail = 'invalid_top_k';
  end if;
  near := rag.nearest(rag.needle(query_vector), rag.scope_of(filters), top_k);
  return query select * from rag.show(near.hits, 0, near.exact, near.considered);
end;
$$;

revoke all on function rag.count_chunks(rag.scope), rag.hit_at(uuid, uuid, integer, uuid, double precision),
  rag.nearest_of_all(extensions.halfvec, rag.scope, integer, bigint),
  rag.nearest_of_index(extensions.halfvec, rag.scope, integer, integer),
  rag.nearest(extensions.halfvec, rag.scope, integer),
  public.rag_match(extensions.vector, integer, jsonb) from public, anon, service_role;
grant execute on function rag.count_chunks(rag.scope), rag.hit_at(uuid, uuid, integer, uuid, double precision),
  rag.nearest_of_all(extensions.halfvec, rag.scope, integer, bigint),
  rag.nearest_of_index(extensions.halfvec, rag.scope, integer, integer),
  rag.nearest(extensions.halfvec, rag.scope, integer),
  public.rag_match(extensions.vector, integer, jsonb) to authenticated;
