-- The heart: the chunks nearest to a query vector, among those that the caller may see.
--
-- The recipe in every tutorial (an HNSW index and a row-security filter behind it) silently returns too
-- few rows to small tenants: the index hands out its nearest candidates first, and the filter throws
-- other tenants' away. So rag_match first counts, up to a bound, what the caller's orgs and filters
-- leave. Few: it scans them all, exactly. Many: it lets the index iterate, fetches more than asked and
-- orders those exactly, and falls back to the scan should the index come up short. Either way the caller
-- gets min(top_k, visible) rows.
--
-- Row security holds underneath in every branch. The org ids are resolved first and named explicitly, so
-- that partitions prune and a distributed table goes to one shard.

-- What a search may be narrowed by. Dates are inclusive and mean the document's own date; model is the
-- deployment's by default.
create type rag.filters as (
  source_type text, lang text, org_id uuid, date_from timestamptz, date_to timestamptz, model text
);

-- filters: the fields of rag.filters; other keys are ignored.
create function public.rag_match(
  query_vector extensions.vector,
  top_k integer default 8,
  filters jsonb default '{}'
)
returns table (
  chunk_id uuid, document_id uuid, org_id uuid, ordinal integer, content text,
  span_start integer, span_end integer, similarity double precision,
  source_type text, title text, uri text, lang text, occurred_at timestamptz, metadata jsonb,
  exact boolean, candidates integer
)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  dimensions constant integer := extensions.vector_dims(query_vector);
  needle extensions.halfvec(1536);
  wanted rag.filters;
  org_ids uuid[];
  settings rag.settings;
  nearest uuid[];
  -- Said once, used three times, planned each time for the values at hand ($1 org ids, $2 filters).
  visible constant text := $scope$
    rag.chunks
    where org_id = any ($1) and embedding_model = ($2).model
      and (($2).source_type is null or source_type = ($2).source_type)
      and (($2).lang is null or lang = ($2).lang)
      and (($2).date_from is null or occurred_at >= ($2).date_from)
      and (($2).date_to is null or occurred_at <= ($2).date_to)
  $scope$;
begin
  if dimensions is distinct from 1536 then
    raise exception 'query_vector has % dimensions, not 1536', dimensions
      using errcode = 'PT400', detail = 'wrong_dimensions', hint = 'pad shorter embeddings with zeros';
  elsif top_k is null or top_k not between 1 and 100 then
    raise exception 'top_k must be between 1 and 100' using errcode = 'PT400', detail = 'invalid_top_k';
  elsif jsonb_typeof(coalesce(filters, '{}')) <> 'object' then
    raise exception 'filters must be an object' using errcode = 'PT400', detail = 'invalid_filters';
  elsif not rag.has_scope('retrievals:read', 'chat:read') then
    raise exception 'the key lacks the scope retrievals:read' using errcode = 'PT403', detail = 'missing_scope';
  end if;

  needle := query_vector::extensions.halfvec(1536);
  -- Asked of the half-precision vector: a tiny one may have become zero.
  if extensions.l2_norm(needle) = 0 then
    raise exception 'query_vector has no direction' using errcode = 'PT400', detail = 'zero_vector';
  end if;
  select * into settings from rag.settings;
  wanted := jsonb_populate_record(null::rag.filters, coalesce(filters, '{}'));
  wanted.model := coalesce(wanted.model, settings.embedding_model);
  org_ids := array(
    select ids.id from rag.current_org_ids() as ids (id)
    where wanted.org_id is null or ids.id = wanted.org_id);

  execute format('select count(*) from (select from %s limit $3) as bounded', visible)
    into candidates using org_ids, wanted, settings.exact_rows + 1;
  exact := candidates <= settings.exact_rows;

  if not exact then
    perform set_config('hnsw.iterative_scan', 'relaxed_order', true),
      set_config('hnsw.ef_search', greatest(100, 2 * top_k)::text, true);
    execute format('select array(select id from %s order by embedding operator(extensions.<=>) $3 limit $4)', visible)
      into nearest using org_ids, wanted, needle, 2 * top_k;
    exact := cardinality(nearest) < 2 * top_k;
  end if;
  if exact then
    -- "+ 0" keeps the HNSW index out of the scan.
    execute format('select array(select id from %s order by (embedding operator(extensions.<=>) $3) + 0, id limit $4)',
      visible) into nearest using org_ids, wanted, needle, top_k;
  end if;

  return query
  select chunks.id, chunks.document_id, chunks.org_id, chunks.ordinal, chunks.content,
    chunks.span_start, chunks.span_end, greatest(0, least(1, 1 - found.distance)),
    documents.source_type, documents.title, documents.uri, documents.lang, documents.occurred_at,
    documents.metadata, rag_match.exact, rag_match.candidates
  from rag.chunks
  join rag.documents on documents.org_id = chunks.org_id and documents.id = chunks.document_id
  cross join lateral (select chunks.embedding operator(extensions.<=>) needle) as found (distance)
  where chunks.org_id = any (org_ids) and chunks.id = any (nearest)
  order by found.distance, chunks.id
  limit rag_match.top_k;
end;
$$;

revoke all on function public.rag_match(extensions.vector, integer, jsonb) from public, anon, service_role;
grant execute on function public.rag_match(extensions.vector, integer, jsonb) to authenticated;
