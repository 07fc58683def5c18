-- What a graph search shows besides chunks: the entities that had a part in it, the edges between them, and which
-- chunks say so. All of it is read under row security from rows of documents that the caller sees.

-- The entities, by their names as documents write them most prominently, with other spellings as aliases.
create function rag.show_entities(seeds rag.seed[], neighbours rag.neighbour[], scope rag.scope)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
begin
  return (
    with wanted as (
      select seed.org_id, seed.entity, true as is_seed, seed.weight from unnest(seeds) as seed
      union all
      select near.org_id, near.entity, false, near.weight from unnest(neighbours) as near
    ), shown as (
      select wanted.*, coalesce(text.name, title.name) as name, coalesce(text.kind, 'name') as kind,
        array(
          select distinct surface
          from unnest(text.surfaces || title.name) as surface
          where surface is not null and surface <> coalesce(text.name, title.name)
          order by surface
          limit 10) as aliases
      from wanted
      cross join lateral (
        select (array_agg(named.name order by named.weight desc, named.name))[1] as name,
          (array_agg(named.kind order by named.kind = 'name', named.weight desc, named.kind))[1] as kind,
          array_agg(named.surface) as surfaces
        from (
          select mentions.name, mentions.kind, mentions.weight, surface
          from (
            select * from rag.mentions
            where mentions.org_id = wanted.org_id and mentions.entity = wanted.entity
              and (scope.collection_ids is null or mentions.collection_id = any (scope.collection_ids))
            order by mentions.weight desc
            limit 16
          ) as mentions
          left join lateral unnest(mentions.said || mentions.name) as surface on true
        ) as named
      ) as text
      left join lateral (
        select heaviest.name
        from (
          select subjects.name, subjects.weight
          from rag.subjects
          where subjects.org_id = wanted.org_id and subjects.entity = wanted.entity
            and (scope.collection_ids is null or subjects.collection_id = any (scope.collection_ids))
          order by subjects.weight desc
          limit 16
        ) as heaviest
        order by heaviest.weight desc, heaviest.name
        limit 1
      ) as title on true
      where coalesce(text.name, title.name) is not null
    )
    select coalesce(jsonb_agg(jsonb_build_object('id', replace(shown.entity, ' ', '_'), 'org_id', shown.org_id,
      'name', shown.name, 'kind', shown.kind, 'aliases', shown.aliases, 'seed', shown.is_seed,
      'weight', round(shown.weight::numeric, 4)) order by shown.is_seed desc, shown.weight desc, shown.entity), '[]')
    from shown);
end;
$$;

-- The edges between the entities that documents state, the surest first, `wanted` at most. Several chunks that say the
-- same make it surer: as if each were a chance of its own.
create function rag.edges_among(org_id uuid, entities text[], scope rag.scope, wanted integer)
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
      select said.subject, said.type, said.object, least(0.99, 1 - exp(sum(ln(1 - least(0.98, said.confidence)))))
        as confidence, (array_agg(chunks.id order by said.confidence desc, chunks.id))[:5] as evidence
      from (select distinct entity from unnest(edges_among.entities) as entity) as ends
      cross join lateral (
        select relations.subject, relations.type, relations.object, relations.confidence, relations.document_id,
          relations.ordinal
        from rag.relations
        where relations.org_id = edges_among.org_id and relations.subject = ends.entity
          and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
        order by relations.confidence desc
        limit 50
      ) as said
      join rag.chunks on chunks.org_id = edges_among.org_id and chunks.document_id = said.document_id
        and chunks.ordinal = said.ordinal and chunks.embedding_model = scope.model
        and (unfiltered
          or rag.is_within(chunks.document_id, chunks.source_type, chunks.lang, chunks.occurred_at, scope))
      where said.object = any (edges_among.entities)
      group by said.subject, said.type, said.object
      order by 4 desc, 1, 2, 3
      limit wanted
    ) as stated);
end;
$$;

-- The edges that nothing but standing together makes: from a seed to what stands with it, where no document states
-- more.
create function rag.edges_of_neighbours(neighbours rag.neighbour[], stated jsonb[])
returns jsonb[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return array(
    select jsonb_build_object('type', 'RELATED_TO', 'from', replace(near.seed, ' ', '_'),
      'to', replace(near.entity, ' ', '_'), 'org_id', near.org_id,
      'confidence', round((0.5 * near.weight)::numeric, 4), 'evidence', array[chunks.id])
    from unnest(neighbours) as near
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

-- Entities, edges and evidence of what was reached: all seeds, and of their neighbours those that matter most, sixteen.
create function rag.show_graph(seeds rag.seed[], neighbours rag.neighbour[], scope rag.scope)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  near constant rag.neighbour[] := neighbours[:16];
  stated jsonb[] := '{}';
  edges jsonb[];
  at_org uuid;
begin
  for at_org in select distinct seed.org_id from unnest(seeds) as seed order by 1 loop
    stated := stated || rag.edges_among(at_org, array(
      select seed.entity from unnest(seeds) as seed where seed.org_id = at_org
      union
      select other.entity from unnest(near) as other where other.org_id = at_org), scope, 32);
  end loop;
  edges := stated || rag.edges_of_neighbours(near, stated);
  return jsonb_build_object('entities', rag.show_entities(seeds, near, scope), 'edges', to_jsonb(edges),
    'evidence', coalesce((
      select jsonb_agg(said.id order by said.place)
      from (
        select id, min(place) as place
        from unnest(edges) with ordinality as edge (body, place)
        cross join lateral jsonb_array_elements_text(edge.body -> 'evidence') as id
        group by id
        order by 2, 1
        limit 50
      ) as said), '[]')
    -- And of what the question names, where no edge touches it.
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
        where rag.is_within(chunks.document_id, chunks.source_type, chunks.lang, chunks.occurred_at, scope)
      ) as named
      where not exists (
        select from unnest(edges) as edge
        where edge ->> 'org_id' = seed.org_id::text
          and replace(seed.entity, ' ', '_') in (edge ->> 'from', edge ->> 'to'))), '[]'));
end;
$$;

revoke all on function rag.show_entities(rag.seed[], rag.neighbour[], rag.scope),
  rag.edges_among(uuid, text[], rag.scope, integer), rag.edges_of_neighbours(rag.neighbour[], jsonb[]),
  rag.show_graph(rag.seed[], rag.neighbour[], rag.scope) from public, anon, service_role;
grant execute on function rag.show_entities(rag.seed[], rag.neighbour[], rag.scope),
  rag.edges_among(uuid, text[], rag.scope, integer), rag.edges_of_neighbours(rag.neighbour[], jsonb[]),
  rag.show_graph(rag.seed[], rag.neighbour[], rag.scope) to authenticated;
