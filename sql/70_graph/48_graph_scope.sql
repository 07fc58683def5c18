-- The scope of a search (15_search_scope.sql) applied to the graph: its entities and the chunks that it reaches.

create type rag.graph_candidate as (
  org_id uuid, document_id uuid, ordinal integer, weight double precision, entity text
);

comment on type rag.graph_candidate is
  'A chunk (or a whole document if ordinal is null), its weight, and the entity that reaches it with the highest '
  'probability.';

create function rag.is_in_scope(document_id uuid, source_type text, lang text, occurred_at timestamptz,
  scope rag.search_scope)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select (scope.source_types is null or source_type = any (scope.source_types))
    and (scope.lang is null or lower(lang) = scope.lang or starts_with(lower(lang), scope.lang || '-'))
    and (scope.date_from is null or occurred_at >= scope.date_from)
    and (scope.date_to is null or occurred_at <= scope.date_to)
    and (scope.document_ids is null or document_id = any (scope.document_ids))
    and (scope.excluded_document_ids is null or document_id <> all (scope.excluded_document_ids))
    and (scope.without_document is null or document_id <> scope.without_document);
$$;

comment on function rag.is_in_scope is
  'Whether a document, or a chunk with these fields, is in a scope: the conditions of rag.where_clause on given '
  'values.';

create function rag.is_document_in_scope(org_id uuid, document_id uuid, scope rag.search_scope)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.documents
    where documents.org_id = is_document_in_scope.org_id and documents.id = is_document_in_scope.document_id
      and rag.is_in_scope(documents.id, documents.source_type, documents.lang, documents.occurred_at, scope));
$$;

comment on function rag.is_document_in_scope is 'Whether a document is in a scope, by its id.';

create function rag.seeds_in_scope(seeds rag.seed_entity[], scope rag.search_scope, titles_each integer,
  mentions_each integer)
returns rag.seed_entity[]
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
begin
  if not rag.filters_documents(scope) then
    return seeds;
  end if;
  return array(
    select seed
    from unnest(seeds) as seed
    where exists (
      select from (
        (select titles.document_id, titles.weight
        from rag.title_entities as titles
        where scope.collection_ids is null and titles.org_id = seed.org_id and titles.entity = seed.entity
        order by titles.weight desc
        limit titles_each)
        union all
        (select inside.document_id, inside.weight
        from unnest(scope.collection_ids) as home (id)
        cross join lateral (
          select titles.document_id, titles.weight
          from rag.title_entities as titles
          where titles.org_id = seed.org_id and titles.collection_id = home.id and titles.entity = seed.entity
          order by titles.weight desc
          limit titles_each
        ) as inside
        order by inside.weight desc
        limit titles_each)
        union all
        (select mentions.document_id, mentions.weight
        from rag.mentions
        where scope.collection_ids is null and mentions.org_id = seed.org_id and mentions.entity = seed.entity
        order by mentions.weight desc
        limit mentions_each)
        union all
        (select inside.document_id, inside.weight
        from unnest(scope.collection_ids) as home (id)
        cross join lateral (
          select mentions.document_id, mentions.weight
          from rag.mentions
          where mentions.org_id = seed.org_id and mentions.collection_id = home.id and mentions.entity = seed.entity
          order by mentions.weight desc
          limit mentions_each
        ) as inside
        order by inside.weight desc
        limit mentions_each)
      ) as named
      cross join lateral (
        select from rag.documents
        where documents.org_id = seed.org_id and documents.id = named.document_id
          and rag.is_in_scope(documents.id, documents.source_type, documents.lang, documents.occurred_at, scope)
        offset 0
      ) as meant));
end;
$$;

comment on function rag.seeds_in_scope is
  'The seeds that a document of the scope names. For each seed a bounded number of titles and chunks is examined.';

create function rag.apply_scope(candidates rag.graph_candidate[], scope rag.search_scope)
returns rag.graph_candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if not rag.filters_documents(scope) then
    return candidates;
  end if;
  return array(
    select candidate
    from unnest(candidates) as candidate
    -- With offset 0 the planner looks each row up.
    cross join lateral (
      select from rag.documents
      where documents.org_id = candidate.org_id and documents.id = candidate.document_id
        and rag.is_in_scope(documents.id, documents.source_type, documents.lang, documents.occurred_at, scope)
      offset 0
    ) as meant);
end;
$$;

comment on function rag.apply_scope is 'The graph candidates that are in a scope which filters documents.';
