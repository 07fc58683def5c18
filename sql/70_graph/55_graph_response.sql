-- Entities, edges and evidence in the response of a graph search, read under row security from documents that the
-- caller sees.

create function rag.names_in_text(entities rag.seed_entity[], scope rag.search_scope)
returns table (org_id uuid, entity text, name text, kind text, surfaces text[])
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
#variable_conflict use_column
declare
  unfiltered constant boolean := not rag.filters_documents(scope);
  -- With filters, more are read than are returned.
  row_limit constant integer := case when unfiltered then 16 else 100 end;
begin
  return query
  select entity.org_id, entity.entity,
    (array_agg(mention.name order by mention.weight desc, mention.name))[1],
    (array_agg(mention.kind order by mention.kind = 'name', mention.weight desc, mention.kind))[1],
    array_agg(surface)
  from unnest(entities) as entity
  cross join lateral (
    select found.*
    from (
      (select mentions.document_id, mentions.name, mentions.kind, mentions.surfaces, mentions.weight
      from rag.mentions
      where scope.collection_ids is null and mentions.org_id = entity.org_id and mentions.entity = entity.entity
      order by mentions.weight desc
      limit row_limit)
      union all
      (select inside.document_id, inside.name, inside.kind, inside.surfaces, inside.weight
      from unnest(scope.collection_ids) as home (id)
      cross join lateral (
        select mentions.document_id, mentions.name, mentions.kind, mentions.surfaces, mentions.weight
        from rag.mentions
        where mentions.org_id = entity.org_id and mentions.collection_id = home.id
          and mentions.entity = entity.entity
        order by mentions.weight desc
        limit row_limit
      ) as inside
      order by inside.weight desc
      limit row_limit)
    ) as found
    where unfiltered or rag.is_document_in_scope(entity.org_id, found.document_id, scope)
    order by found.weight desc
    limit 16
  ) as mention
  left join lateral unnest(mention.surfaces || mention.name) as surface on true
  group by entity.org_id, entity.entity;
end;
$$;

comment on function rag.names_in_text is
  'The names of entities in the text of documents: the most prominent name, its kind, and all spellings.';

create function rag.names_in_titles(entities rag.seed_entity[], scope rag.search_scope)
returns table (org_id uuid, entity text, name text)
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
#variable_conflict use_column
declare
  unfiltered constant boolean := not rag.filters_documents(scope);
  row_limit constant integer := case when unfiltered then 16 else 100 end;
begin
  return query
  select entity.org_id, entity.entity, (array_agg(title.name order by title.weight desc, title.name))[1]
  from unnest(entities) as entity
  cross join lateral (
    (select title_entities.document_id, title_entities.name, title_entities.weight
    from rag.title_entities
    where scope.collection_ids is null and title_entities.org_id = entity.org_id
      and title_entities.entity = entity.entity
    order by title_entities.weight desc
    limit row_limit)
    union all
    (select inside.document_id, inside.name, inside.weight
    from unnest(scope.collection_ids) as home (id)
    cross join lateral (
      select title_entities.document_id, title_entities.name, title_entities.weight
      from rag.title_entities
      where title_entities.org_id = entity.org_id and title_entities.collection_id = home.id
        and title_entities.entity = entity.entity
      order by title_entities.weight desc
      limit row_limit
    ) as inside
    order by inside.weight desc
    limit row_limit)
  ) as title
  where unfiltered or rag.is_document_in_scope(entity.org_id, title.document_id, scope)
  group by entity.org_id, entity.entity;
end;
$$;

comment on function rag.names_in_titles is 'The most prominent name of each entity in the titles of documents.';

create function rag.render_entities(seeds rag.seed_entity[], neighbours rag.neighbour[], scope rag.search_scope)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  entities constant rag.seed_entity[] := seeds || array(
    select rag.seed_entity(org_id => near.org_id, entity => near.entity, weight => near.weight)
    from unnest(neighbours) as near);
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('id', replace(shown.entity, ' ', '_'), 'org_id', shown.org_id,
      'name', shown.name, 'kind', shown.kind, 'aliases', shown.aliases, 'seed', shown.is_seed,
      'weight', round(shown.weight::numeric, 4)) order by shown.is_seed desc, shown.weight desc, shown.entity), '[]')
    from (
      select entity.org_id, entity.entity, entity.weight, entity.position <= cardinality(seeds) as is_seed,
        coalesce(text.name, title.name) as name, coalesce(text.kind, 'name') as kind,
        array(
          select distinct surface
          from unnest(text.surfaces || title.name) as surface
          where surface is not null and surface <> coalesce(text.name, title.name)
          order by surface
          limit 10) as aliases
      from unnest(entities) with ordinality as entity (org_id, entity, weight, start, finish, position)
      left join rag.names_in_text(entities, scope) as text
        on text.org_id = entity.org_id and text.entity = entity.entity
      left join rag.names_in_titles(entities, scope) as title
        on title.org_id = entity.org_id and title.entity = entity.entity
      where coalesce(text.name, title.name) is not null
    ) as shown);
end;
$$;

comment on function rag.render_entities is
  'The entities, by their names as documents write them most prominently, with other spellings as aliases.';

create function rag.edges_among(org_id uuid, entities text[], scope rag.search_scope, row_limit integer)
returns jsonb[]
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
#variable_conflict use_column
declare
  unfiltered constant boolean := not rag.filters_documents(scope);
begin
  return array(
    select jsonb_build_object('type', stated.type, 'from', replace(stated.subject, ' ', '_'),
      'to', replace(stated.object, ' ', '_'), 'org_id', edges_among.org_id,
      'confidence', round(stated.confidence::numeric, 4), 'evidence', stated.evidence)
    from (
      select statement.subject, statement.type, statement.object,
        max(statement.confidence) as confidence,
        (array_agg(chunks.id order by statement.confidence desc, chunks.id))[:5] as evidence
      from (select distinct entity from unnest(edges_among.entities) as entity) as ends
      cross join lateral (
        select relations.subject, relations.type, relations.object, relations.confidence, relations.document_id,
          relations.ordinal
        from rag.relations
        where relations.org_id = edges_among.org_id and relations.subject = ends.entity
          and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
        order by relations.confidence desc
        limit 50
      ) as statement
      join rag.chunks on chunks.org_id = edges_among.org_id and chunks.document_id = statement.document_id
        and chunks.ordinal = statement.ordinal and chunks.embedding_model = scope.model
        and (unfiltered
          or rag.is_in_scope(chunks.document_id, chunks.source_type, chunks.lang, chunks.occurred_at, scope))
      where statement.object = any (edges_among.entities)
      group by statement.subject, statement.type, statement.object
      order by 4 desc, 1, 2, 3
      limit row_limit
    ) as stated);
end;
$$;

comment on function rag.edges_among is
  'The edges between the entities that documents state, highest confidence first, at most `row_limit`. The confidence '
  'of an edge is the highest of its statements.';

create function rag.is_about(org_id uuid, document_id uuid, entity text)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.title_entities
    where title_entities.org_id = is_about.org_id and title_entities.document_id = is_about.document_id
      and title_entities.entity = is_about.entity);
$$;

comment on function rag.is_about is 'Whether a document''s title names an entity.';

create function rag.co_occurrence_edges(neighbours rag.neighbour[], stated jsonb[])
returns jsonb[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return array(
    select jsonb_build_object('type', 'RELATED_TO',
      'from', replace(case when turned then near.entity else near.seed end, ' ', '_'),
      'to', replace(case when turned then near.seed else near.entity end, ' ', '_'), 'org_id', near.org_id,
      'confidence', round((0.5 * near.weight)::numeric, 4), 'evidence', array[chunks.id])
    from unnest(neighbours) as near
    cross join lateral (
      select rag.is_about(near.org_id, near.document_id, near.entity)
        and not rag.is_about(near.org_id, near.document_id, near.seed)
    ) as direction (turned)
    join rag.chunks on chunks.org_id = near.org_id and chunks.document_id = near.document_id
      and chunks.ordinal = near.ordinal
    where near.seed is not null and near.seed <> near.entity and not exists (
      select from unnest(stated) as edge
      where edge ->> 'org_id' = near.org_id::text
        and (edge ->> 'from', edge ->> 'to') in (
          (replace(near.seed, ' ', '_'), replace(near.entity, ' ', '_')),
          (replace(near.entity, ' ', '_'), replace(near.seed, ' ', '_'))))
    order by near.weight desc, near.entity);
end;
$$;

comment on function rag.co_occurrence_edges is
  'The edges of entities that occur together without a stated relation: from the subject of the document to the '
  'entities that the document names, otherwise from the seed to the co-occurring entities.';

create function rag.edges_between(edges jsonb[], entities jsonb)
returns jsonb[]
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  shown constant jsonb := (
    select coalesce(jsonb_object_agg((entity ->> 'org_id') || ' ' || (entity ->> 'id'), true), '{}')
    from jsonb_array_elements(entities) as entity);
begin
  return array(
    select edge
    from unnest(edges) with ordinality as listed (edge, position)
    where shown ? ((edge ->> 'org_id') || ' ' || (edge ->> 'from'))
      and shown ? ((edge ->> 'org_id') || ' ' || (edge ->> 'to'))
    order by position);
end;
$$;

comment on function rag.edges_between is 'The edges whose two ends are both in the response.';

create function rag.render_graph(seeds rag.seed_entity[], neighbours rag.neighbour[], scope rag.search_scope)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  near constant rag.neighbour[] := neighbours[:16];
  stated jsonb[] := '{}';
  edges jsonb[];
  entities jsonb;
  at_org uuid;
begin
  for at_org in select distinct seed.org_id from unnest(seeds) as seed order by 1 loop
    stated := stated || rag.edges_among(at_org, array(
      select seed.entity from unnest(seeds) as seed where seed.org_id = at_org
      union
      select other.entity from unnest(near) as other where other.org_id = at_org), scope, 32);
  end loop;
  entities := rag.render_entities(seeds, near, scope);
  edges := rag.edges_between(stated || rag.co_occurrence_edges(near, stated), entities);
  return jsonb_build_object('entities', entities, 'edges', to_jsonb(edges),
    'evidence', coalesce((
      select jsonb_agg(statement.id order by statement.position)
      from (
        select id, min(position) as position
        from unnest(edges) with ordinality as edge (body, position)
        cross join lateral jsonb_array_elements_text(edge.body -> 'evidence') as id
        group by id
        order by 2, 1
        limit 50
      ) as statement), '[]')
    -- Also evidence for a name of the question without an edge.
    || coalesce((
      select jsonb_agg(distinct named.id)
      from unnest(seeds) as seed
      cross join lateral (
        select chunks.id
        from (
          select mentions.document_id, mentions.ordinal
          from rag.mentions
          where mentions.org_id = seed.org_id and mentions.entity = seed.entity
            and (scope.collection_ids is null or mentions.collection_id = any (scope.collection_ids))
          order by mentions.weight desc
          limit 1
        ) as best
        join rag.chunks on chunks.org_id = seed.org_id and chunks.document_id = best.document_id
          and chunks.ordinal = best.ordinal and chunks.embedding_model = scope.model
        where rag.is_in_scope(chunks.document_id, chunks.source_type, chunks.lang, chunks.occurred_at, scope)
      ) as named
      where not exists (
        select from unnest(edges) as edge
        where edge ->> 'org_id' = seed.org_id::text
          and replace(seed.entity, ' ', '_') in (edge ->> 'from', edge ->> 'to'))), '[]'));
end;
$$;

comment on function rag.render_graph is
  'Entities, edges and evidence of a search: all seeds, and the sixteen neighbours with the highest weights.';
