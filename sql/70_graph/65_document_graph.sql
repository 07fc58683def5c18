-- Graph of given documents, for /v1/contents: their entities and relations, and the relations of these entities that
-- other visible documents state.

create function rag.document_entities(org_id uuid, document_id uuid, row_limit integer)
returns rag.seed_entity[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return array(
    select rag.seed_entity(
      org_id => document_entities.org_id, entity => named.entity, weight => max(named.weight))
    from (
      (select title_entities.entity, title_entities.weight
      from rag.title_entities
      where title_entities.org_id = document_entities.org_id
        and title_entities.document_id = document_entities.document_id
        and title_entities.weight >= 0.9)
      union all
      (select mentions.entity, 0.8 * mentions.weight
      from rag.mentions
      where mentions.org_id = document_entities.org_id and mentions.document_id = document_entities.document_id
      order by mentions.ordinal, mentions.weight desc
      limit 1000)
    ) as named
    group by named.entity
    order by max(named.weight) desc, named.entity
    limit row_limit);
end;
$$;

comment on function rag.document_entities is
  'At most `row_limit` entities of a document, those with the highest weights: the entities of its title first, then '
  'the entities that its chunks name.';

create function rag.edges_touching(org_id uuid, entities text[], scope rag.search_scope, document_id uuid,
  row_limit integer)
returns jsonb[]
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
#variable_conflict use_column
begin
  return array(
    select jsonb_build_object('type', stated.type, 'from', replace(stated.subject, ' ', '_'),
      'to', replace(stated.object, ' ', '_'), 'org_id', edges_touching.org_id,
      'confidence', round(stated.confidence::numeric, 4), 'evidence', stated.evidence)
    from (
      select statement.subject, statement.type, statement.object,
        max(statement.confidence) as confidence,
        (array_agg(chunks.id order by statement.confidence desc, chunks.id))[:5] as evidence
      from (
        (select relations.subject, relations.type, relations.object, relations.confidence, relations.document_id,
          relations.ordinal
        from rag.relations
        where relations.org_id = edges_touching.org_id and relations.document_id = edges_touching.document_id
          and (relations.subject = any (edges_touching.entities) or relations.object = any (edges_touching.entities))
        order by relations.ordinal
        limit 1000)
        union all
        -- An edge between two of the entities is read from both ends.
        select distinct found.*
        from (
          select distinct entity from unnest(edges_touching.entities) as entity where edges_touching.document_id is null
        ) as ends
        cross join lateral (
          (select relations.subject, relations.type, relations.object, relations.confidence, relations.document_id,
            relations.ordinal
          from rag.relations
          where relations.org_id = edges_touching.org_id and relations.subject = ends.entity
            and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
          order by relations.confidence desc
          limit 50)
          union all
          (select relations.subject, relations.type, relations.object, relations.confidence, relations.document_id,
            relations.ordinal
          from rag.relations
          where relations.org_id = edges_touching.org_id and relations.object = ends.entity
            and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
          order by relations.confidence desc
          limit 50)
          offset 0
        ) as found
      ) as statement
      join rag.chunks on chunks.org_id = edges_touching.org_id and chunks.document_id = statement.document_id
        and chunks.ordinal = statement.ordinal
      group by statement.subject, statement.type, statement.object
      order by 4 desc, 1, 2, 3
      limit row_limit
    ) as stated);
end;
$$;

comment on function rag.edges_touching is
  'The edges that chunks state and that begin or end at one of the entities, from at most a thousand statements; only '
  'the edges of one document, unless document_id is null.';

create function rag.graph_of_document(org_id uuid, document_id uuid, scope rag.search_scope, hops integer)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  seeds rag.seed_entity[] := rag.document_entities(org_id, document_id, 32);
  reached text[] := array(select seed.entity from unnest(seeds) as seed);
  edges jsonb[] := rag.edges_touching(org_id, reached, scope, case when hops = 0 then document_id end, 64);
  further rag.neighbour[] := '{}';
  entities jsonb;
begin
  for hop in 1..greatest(1, hops) loop
    reached := reached || array(
      select distinct ends.entity
      from unnest(edges) as edge
      cross join lateral (values (edge ->> 'from'), (edge ->> 'to')) as named (id)
      cross join lateral (select replace(named.id, '_', ' ')) as ends (entity)
      where ends.entity <> all (reached));
    exit when hop >= hops;
    edges := rag.edges_touching(org_id, reached[:128], scope, null, 128);
  end loop;
  further := array(
    select rag.neighbour(org_id => org_id, entity => ends.entity, weight => 0.1)
    from unnest(reached) as ends (entity)
    where not exists (select from unnest(seeds) as seed where seed.entity = ends.entity));
  entities := rag.render_entities(seeds, further, scope);
  edges := rag.edges_between(edges, entities);
  return jsonb_build_object('entities', entities, 'edges', to_jsonb(edges),
    'evidence', coalesce((
      select jsonb_agg(distinct id)
      from unnest(edges) as edge
      cross join lateral jsonb_array_elements_text(edge -> 'evidence') as id), '[]'));
end;
$$;

comment on function rag.graph_of_document is
  'Entities of a document and the relations stated about these entities, without co-occurrences.';

create function public.rag_graph_of(org_id uuid, document_ids uuid[], collection_id uuid default null,
  hops integer default 1)
returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
  scope rag.search_scope;
begin
  perform rag.limit_direct_call(), rag.require_scope('documents:read', 'retrievals:read', 'chat:read');
  if document_ids is null or cardinality(document_ids) > 20 then
    raise exception 'document_ids must have at most 20 ids' using errcode = 'PT400', detail = 'invalid_ids';
  elsif hops is null or hops not between 0 and 2 then
    raise exception 'hops must be 0, 1 or 2' using errcode = 'PT400', detail = 'invalid_hops';
  end if;
  scope.org_ids := array[org_id];
  scope.collection_ids := case when collection_id is not null then array[collection_id] end;
  return coalesce((
    select jsonb_object_agg(present.id, rag.graph_of_document(org_id, present.id, scope, hops))
    from rag.documents as present
    where present.org_id = rag_graph_of.org_id and present.id = any (document_ids)
      and (collection_id is null or present.collection_id = rag_graph_of.collection_id)), '{}');
end;
$$;

comment on function public.rag_graph_of is
  'The graph of each of the documents that the caller sees in that org, or in that collection of it: {document id: '
  '{entities, edges, evidence}}. hops: 0, the relations that the document states; 1, also the relations of its '
  'entities in other documents; 2, also the relations of the entities at their ends. At most twenty documents.';
