-- Filters of a search as the caller sends them, and the keys among them that no search knows.

create type rag.filters as (
  source_type text, lang text, org_id uuid, date_from timestamptz, date_to timestamptz, model text,
  source_types text[], collection_id uuid, collection_ids uuid[], origins text[], authors text[],
  states text[], labels text[], metadata jsonb, collection text, document_type text
);

comment on type rag.filters is
  'The filters as they come. Dates are inclusive and mean the document''s own date; lang "fr" finds fr-CA too; of a '
  'list one suffices, an empty one is none; metadata are equalities that all must hold. collection is the name of '
  'one of the caller''s. model is the deployment''s by default. document_type is what the uploader calls the document, '
  'or what it was read as.';

create function rag.ignored_filters(filters jsonb, known jsonb)
returns text[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  ignored constant text[] := array(
    select regexp_replace(left(key, 100), '[^A-Za-z0-9_.-]', '?', 'g')
    from jsonb_object_keys(filters) as key
    where not known ? key
    order by key
    limit 20);
begin
  if ignored = '{}' then
    return null;
  end if;
  perform set_config('response.headers', jsonb_build_array(
    jsonb_build_object('X-Rag-Ignored-Filters', array_to_string(ignored, ', ')),
    jsonb_build_object('Access-Control-Expose-Headers', 'X-Rag-Ignored-Filters'))::text, true);
  return ignored;
end;
$$;

comment on function rag.ignored_filters is
  'The unknown keys of the filters; null if there are none. A response names them, because a misspelt key widens a '
  'search. At most twenty, with ? for each character that a header may not have: they are in a header as well, '
  'since an empty result has no row.';

create function rag.documents_with_facets(org_ids uuid[], filters rag.filters)
returns uuid[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  groups integer[];
  facets uuid[];
begin
  if num_nonnulls(filters.origins, filters.authors, filters.states, filters.labels, filters.metadata,
    filters.document_type) = 0 then
    return null;
  end if;
  -- A document needs one facet of each group. A null in a list is no document's.
  select array_agg(requested.number), array_agg(rag.facet_hash(requested.kind, coalesce(requested.value, 'null')))
    into groups, facets
  from (
    select 1, 'origin', to_jsonb(value) from unnest(filters.origins) as value
    union all select 2, 'author', to_jsonb(value) from unnest(filters.authors) as value
    union all select 3, 'state', to_jsonb(value) from unnest(filters.states) as value
    union all select 4, 'label', to_jsonb(value) from unnest(filters.labels) as value
    union all select 5, 'document_type', to_jsonb(filters.document_type) where filters.document_type is not null
    union all select 5 + entry.number, 'metadata.' || entry.key, entry.value
      from jsonb_each(nullif(filters.metadata, 'null')) with ordinality as entry (key, value, number)
  ) as requested (number, kind, value);
  if facets is null then
    return null;
  end if;
  return array(
    select match.document_id
    from unnest(groups, facets) as requested (number, facet)
    cross join unnest(org_ids) as org (id)
    -- One look-up each, which the planner cannot turn into a walk through the org.
    cross join lateral (
      select facets_of.document_id
      from rag.facets as facets_of
      where facets_of.org_id = org.id and facets_of.facet = requested.facet
      offset 0
    ) as match
    group by org.id, match.document_id
    having count(distinct requested.number) = (select count(distinct number) from unnest(groups) as number));
end;
$$;

comment on function rag.documents_with_facets is
  'The documents that have the facets of the filters; null if the filters name no facet.';
