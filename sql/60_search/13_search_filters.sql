-- Filters of a search as the caller sends them, and their unknown keys.

create type rag.filters as (
  source_type text, lang text, org_id uuid, date_from timestamptz, date_to timestamptz, model text,
  source_types text[], collection_id uuid, collection_ids uuid[], origins text[], authors text[],
  states text[], labels text[], metadata jsonb, collection text, document_type text
);

comment on type rag.filters is
  'The filters of a request. Dates are inclusive and mean the document''s own date. lang "fr" finds fr-CA too. A '
  'document needs one value of a list; an empty list is no filter. metadata: values that the document''s must '
  'equal, or operators (rag.metadata_operations), of which all must hold. collection is the name of one of the '
  'caller''s collections. model is the deployment''s by default. document_type is the type that the uploader gave, '
  'or that was detected.';

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

create function rag.find_by_facets(org_ids uuid[], filters rag.filters,
  out document_ids uuid[], out excluded_document_ids uuid[])
language plpgsql stable security invoker set search_path = ''
as $$
declare
  conditions rag.facet_condition[];
  required integer;
begin
  if num_nonnulls(filters.origins, filters.authors, filters.states, filters.labels, filters.metadata,
    filters.document_type) = 0 then
    return;
  end if;
  -- A null in a list is no document's.
  conditions := array(
    select (requested.number, false, rag.facet_hash(requested.kind, coalesce(requested.value, 'null')), null, null,
      null)::rag.facet_condition
    from (
      select -1, 'origin', to_jsonb(value) from unnest(filters.origins) as value
      union all select -2, 'author', to_jsonb(value) from unnest(filters.authors) as value
      union all select -3, 'state', to_jsonb(value) from unnest(filters.states) as value
      union all select -4, 'label', to_jsonb(value) from unnest(filters.labels) as value
      union all select -5, 'document_type', to_jsonb(filters.document_type) where filters.document_type is not null
    ) as requested (number, kind, value)
    union all
    select condition from rag.metadata_conditions(nullif(filters.metadata, 'null')) as condition);
  if conditions = '{}' then
    return;
  end if;
  required := (select count(distinct number) filter (where not excludes) from unnest(conditions));

  select array_agg(document_id) filter (where satisfied = required and not is_excluded),
      array_agg(document_id) filter (where is_excluded)
    into document_ids, excluded_document_ids
  from (
    select match.document_id, bool_or(condition.excludes) as is_excluded, count(distinct condition.number) as satisfied
    from unnest(conditions) as condition
    cross join unnest(org_ids) as org (id)
    -- One look-up each, which the planner cannot turn into a walk through the org.
    cross join lateral (
      select facets.document_id
      from rag.facets
      where facets.org_id = org.id and facets.facet = condition.facet
      union all
      select facets.document_id
      from rag.facets
      where facets.org_id = org.id and facets.metadata_key = condition.metadata_key
        and facets.sort_key >= condition.lowest collate "C" and facets.sort_key < condition.below collate "C"
      offset 0
    ) as match
    group by org.id, match.document_id
  ) as documents;
  if required > 0 then
    document_ids := coalesce(document_ids, '{}');
    excluded_document_ids := null;
  else
    document_ids := null;
  end if;
end;
$$;

comment on function rag.find_by_facets is
  'document_ids: the documents that satisfy the filters of facets; null if no filter requires a facet. In that case '
  'excluded_document_ids are the documents with a facet that a filter excludes.';
