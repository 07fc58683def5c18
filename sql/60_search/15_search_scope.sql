-- Scope of a search: its filters, resolved once and used by every kind of search. Conditions are text that the match
-- functions execute with the scope as a parameter: the planner then knows the filters, and each condition can use an
-- index under row security.

create type rag.search_scope as (
  org_ids uuid[], model text, collection_ids uuid[], source_types text[], lang text,
  date_from timestamptz, date_to timestamptz, document_ids uuid[], excluded_document_ids uuid[],
  without_document uuid, without_chunk uuid, ignored_filters text[]
);

comment on type rag.search_scope is
  'Resolved filters; null fields do not filter. document_ids, excluded_document_ids: as rag.find_by_facets '
  'returns them.';

create function rag.resolve_filters(filters jsonb, model text default null)
returns rag.search_scope
language plpgsql stable security invoker set search_path = ''
as $$
declare
  requested rag.filters;
  scope rag.search_scope;
  settings rag.settings;
begin
  perform rag.require_scope('retrievals:read', 'chat:read');
  -- Somewhat more than the largest body of a search.
  perform rag.check_json('filters', filters, 300000);
  if jsonb_typeof(coalesce(filters, '{}')) <> 'object'
    or jsonb_typeof(coalesce(nullif(filters -> 'metadata', 'null'), '{}')) <> 'object' then
    raise exception 'filters must be an object' using errcode = 'PT400', detail = 'invalid_filters';
  end if;
  requested := jsonb_populate_record(null::rag.filters, coalesce(filters, '{}'));
  if greatest(cardinality(requested.source_types), cardinality(requested.collection_ids), cardinality(requested.origins),
    cardinality(requested.authors), cardinality(requested.states), cardinality(requested.labels)) > 100
  then
    raise exception 'A list in filters must have at most 100 values' using errcode = 'PT400', detail = 'invalid_filters';
  end if;
  scope.ignored_filters := rag.ignored_filters(filters, to_jsonb(requested));

  scope.org_ids := array(
    select ids.id from rag.current_org_ids() as ids (id)
    where requested.org_id is null or ids.id = requested.org_id);
  select * into settings from rag.settings;
  scope.model := coalesce(resolve_filters.model, requested.model, settings.embedding_model);
  -- While the deployment changes its model, the functions search once with each model.
  if settings.next_embedding_model is not null then
    scope.org_ids := array(
      select org.id from unnest(scope.org_ids) as org (id)
      where exists (
        select from rag.chunks where chunks.org_id = org.id and chunks.embedding_model = scope.model));
  end if;
  scope.collection_ids := nullif(requested.collection_ids, '{}');
  if requested.collection_id is not null then
    scope.collection_ids := array[requested.collection_id];
  end if;
  if requested.collection is not null then
    scope.collection_ids := array[(rag.require_collection(requested.collection)).id];
  end if;
  -- Row security would keep a bound key in its collection, but not find that by an index.
  if rag.bound_collection() is not null then
    scope.collection_ids := array(
      select rag.bound_collection()
      where scope.collection_ids is null or rag.bound_collection() = any (scope.collection_ids));
  end if;
  scope.source_types := nullif(requested.source_types, '{}');
  if requested.source_type is not null then
    scope.source_types := array[requested.source_type];
  end if;
  scope.lang := lower(requested.lang);
  scope.date_from := requested.date_from;
  scope.date_to := requested.date_to;
  select found.document_ids, found.excluded_document_ids into scope.document_ids, scope.excluded_document_ids
  from rag.find_by_facets(scope.org_ids, requested) as found;
  return scope;
end;
$$;

comment on function rag.resolve_filters is
  'The scope of a search. model: in place of that of the filters. Raises PT400 for filters that are no object '
  'and for lists of more than 100 values, PT403 for a key without a scope that reads, and for a collection by '
  'name what rag.require_collection raises.';

create function rag.has_no_filters(scope rag.search_scope)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select (scope.collection_ids, scope.source_types, scope.lang, scope.date_from, scope.date_to,
    scope.document_ids, scope.excluded_document_ids, scope.without_document, scope.without_chunk) is null;
$$;

comment on function rag.has_no_filters is 'Whether a scope has nothing but orgs and a model.';

create function rag.has_one_source_type(scope rag.search_scope)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select cardinality(scope.source_types) = 1
    and (scope.collection_ids, scope.lang, scope.date_from, scope.date_to, scope.document_ids,
      scope.excluded_document_ids, scope.without_document, scope.without_chunk) is null;
$$;

comment on function rag.has_one_source_type is 'Whether a scope filters by one source type and nothing else.';

create function rag.filters_documents(scope rag.search_scope)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select not (scope.source_types, scope.lang, scope.date_from, scope.date_to, scope.document_ids,
    scope.excluded_document_ids, scope.without_document) is null;
$$;

comment on function rag.filters_documents is
  'Whether a scope filters by fields that documents and chunks have, and segments of the keyword index do not.';

create function rag.where_clause(scope rag.search_scope, document_id text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select concat_ws(' and ',
    'org_id = any (($1).org_ids)',
    case when scope.collection_ids is not null then 'collection_id = any (($1).collection_ids)' end,
    case when scope.source_types is not null then 'source_type = any (($1).source_types)' end,
    case when scope.lang is not null
      then '(lower(lang) = ($1).lang or starts_with(lower(lang), ($1).lang || ''-''))' end,
    case when scope.date_from is not null then 'occurred_at >= ($1).date_from' end,
    case when scope.date_to is not null then 'occurred_at <= ($1).date_to' end,
    case when scope.document_ids is not null then format('%I = any (($1).document_ids)', document_id) end,
    case when scope.excluded_document_ids is not null
      then format('%I <> all (($1).excluded_document_ids)', document_id) end,
    case when scope.without_document is not null then format('%I <> ($1).without_document', document_id) end);
$$;

comment on function rag.where_clause is
  'The conditions of a scope, $1, on documents or on their chunks; document_id is the column with the document''s '
  'id.';

create function rag.chunk_where_clause(scope rag.search_scope)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select concat_ws(' and ', rag.where_clause(scope, 'document_id'), 'embedding_model = ($1).model',
    case when scope.without_chunk is not null then 'id <> ($1).without_chunk' end);
$$;

comment on function rag.chunk_where_clause is 'The conditions of a scope, $1, on chunks.';
