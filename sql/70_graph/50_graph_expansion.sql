-- Graph expansion: from the linked entities of a query to the chunks that may answer it. Documents about an entity
-- weigh most, then chunks that name it, and one hop further the documents about entities that these name. The weight of
-- an edge depends on its evidence: a stated relation of a requested type, a stated relation, or co-occurrence. Each
-- step reads a bounded number of rows, and starts only within the time limit.

create type rag.neighbour as (
  org_id uuid, entity text, weight double precision, seed text, document_id uuid, ordinal integer
);

comment on type rag.neighbour is
  'An entity that co-occurs with a seed entity: its weight, and the chunk that is the evidence.';

create function rag.chunks_naming(seeds rag.seed_entity[], scope rag.search_scope, subjects_each integer,
  mentions_each integer, mention_share double precision)
returns rag.graph_candidate[]
language plpgsql stable security invoker set search_path = ''
-- Under row security the planner expects hardly a row, and would read all of a name to sort it.
set enable_sort = off
as $$
begin
  return array(
    with about as materialized (
      select seed.org_id, found.document_id, null::integer as ordinal, seed.entity,
        -- Of several documents with that title each is meant less.
        seed.weight * found.weight / (1 + 0.3 * (count(*) over (partition by seed.org_id, seed.entity) - 1)) as weight
      from unnest(seeds) as seed
      cross join lateral (
        (select subjects.document_id, subjects.weight
        from rag.subjects
        where scope.collection_ids is null and subjects.org_id = seed.org_id and subjects.entity = seed.entity
        order by subjects.weight desc
        limit subjects_each)
        union all
        (select inside.document_id, inside.weight
        from unnest(scope.collection_ids) as home (id)
        cross join lateral (
          select subjects.document_id, subjects.weight
          from rag.subjects
          where subjects.org_id = seed.org_id and subjects.collection_id = home.id and subjects.entity = seed.entity
          order by subjects.weight desc
          limit subjects_each
        ) as inside
        order by inside.weight desc
        limit subjects_each)
      ) as found
    ), named as materialized (
      select seed.org_id, found.document_id, found.ordinal, seed.entity,
        mention_share * seed.weight * (0.5 + 0.5 * found.weight)
          / sqrt(1 + count(*) over (partition by seed.org_id, seed.entity) / 24.0) as weight
      from unnest(seeds) as seed
      cross join lateral (
        (select mentions.document_id, mentions.ordinal, mentions.weight
        from rag.mentions
        where scope.collection_ids is null and mentions.org_id = seed.org_id and mentions.entity = seed.entity
        order by mentions.weight desc
        limit mentions_each)
        union all
        (select inside.document_id, inside.ordinal, inside.weight
        from unnest(scope.collection_ids) as home (id)
        cross join lateral (
          select mentions.document_id, mentions.ordinal, mentions.weight
          from rag.mentions
          where mentions.org_id = seed.org_id and mentions.collection_id = home.id and mentions.entity = seed.entity
          order by mentions.weight desc
          limit mentions_each
        ) as inside
        order by inside.weight desc
        limit mentions_each)
      ) as found
    )
    select (found.org_id, found.document_id, found.ordinal,
      -- What several lead to is worth more: as if each were a chance of its own.
      1 - exp(sum(ln(1 - least(0.98, found.weight)))),
      (array_agg(found.entity order by found.weight desc, found.entity))[1])::rag.graph_candidate
    from (select * from about union all select * from named) as found
    group by found.org_id, found.document_id, found.ordinal);
end;
$$;

comment on function rag.chunks_naming is
  'The documents about the entities, and the chunks that name them, so many of either for each. An entity that is '
  'named more often says less; how often is counted no further than is read. Of an org, or of the scope''s '
  'collections one by one: one of the two look-ups is never begun.';

create function rag.co_occurring_entities(places rag.graph_candidate[], seeds rag.seed_entity[],
  scope rag.search_scope, relation_types text[])
returns rag.neighbour[]
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return array(
    with place as materialized (
      -- As columns: a bound that is computed where it is compared does not reach the index under row security.
      select strongest.*, coalesce(strongest.ordinal, 0) as from_ordinal, coalesce(strongest.ordinal, 3) as to_ordinal
      from (
        select best.*, row_number() over (partition by best.ordinal is null
          order by best.weight desc, best.document_id, best.ordinal) as turn
        from unnest(places) as best
      ) as strongest
      where strongest.turn <= 16 and exists (
        select from rag.chunks
        where chunks.org_id = strongest.org_id and chunks.document_id = strongest.document_id
          and chunks.ordinal = coalesce(strongest.ordinal, 0) and chunks.embedding_model = scope.model)
    ), named as materialized (
      select place.org_id, place.document_id, found.ordinal, found.entity, place.weight as place_weight,
        place.entity as seed,
        0.35 + 0.35 * found.weight as strength
      from place
      cross join lateral (
        select mentions.ordinal, mentions.entity, mentions.weight
        from rag.mentions
        where mentions.org_id = place.org_id and mentions.document_id = place.document_id
          and mentions.ordinal between place.from_ordinal and place.to_ordinal
        order by mentions.ordinal, mentions.weight desc
        limit 60
      ) as found
    ), related as materialized (
      select place.org_id, place.document_id, found.ordinal, found.entity, place.weight as place_weight,
        place.entity as seed,
        case when found.type = any (relation_types) then 0.75 + 0.25 * found.confidence
          else 0.5 + 0.3 * found.confidence end as strength
      from place
      cross join lateral (
        select relations.ordinal, ends.entity, relations.type, relations.confidence
        from rag.relations
        cross join lateral (values (relations.object, relations.subject), (relations.subject, relations.object))
          as ends (entity, other)
        where relations.org_id = place.org_id and relations.document_id = place.document_id
          and relations.ordinal between place.from_ordinal and place.to_ordinal
          and exists (
            select from unnest(seeds) as seed
            where seed.org_id = relations.org_id and seed.entity = ends.other)
        limit 60
      ) as found
    ), way as (
      select distinct on (ways.org_id, ways.entity) ways.org_id, ways.entity,
        ways.place_weight * ways.strength as weight, ways.seed, ways.document_id, ways.ordinal
      from (select * from named union all select * from related) as ways
      where not exists (
        select from unnest(seeds) as seed where seed.org_id = ways.org_id and seed.entity = ways.entity)
      order by ways.org_id, ways.entity, ways.place_weight * ways.strength desc, ways.document_id, ways.ordinal
    )
    select (way.org_id, way.entity, way.weight, way.seed, way.document_id, way.ordinal)::rag.neighbour
    from (select * from way order by way.weight desc, way.entity limit 48) as way
    order by way.weight desc, way.entity);
end;
$$;

comment on function rag.co_occurring_entities is
  'What stands with the seeds in the strongest of these places: the 48 entities that are worth most, each by its '
  'best way. relation_types: kinds of edges that the question asks for.';

create function rag.load_chunks(places rag.graph_candidate[], query_embedding extensions.halfvec,
  scope rag.search_scope, wanted integer)
returns rag.graph_candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return array(
    with place as materialized (
      select best.*
      from unnest(places) as best
      order by best.weight desc, best.document_id, best.ordinal
      limit least(2 * wanted, 200)
    ), chunk as (
      select place.org_id, place.document_id, found.ordinal, place.weight * found.share as weight
      from place
      cross join lateral (
        select near.ordinal, case row_number() over (order by near.distance, near.ordinal)
          when 1 then 1.0 else 0.85 end as share
        from (
          select chunks.ordinal, case when query_embedding is null then 0
            else (chunks.embedding operator(extensions.<=>) query_embedding) + 0 end as distance
          from rag.chunks
          where chunks.org_id = place.org_id and chunks.document_id = place.document_id
            and chunks.ordinal < 32 and chunks.embedding_model = scope.model
        ) as near
        order by near.distance, near.ordinal
        limit 2
      ) as found
      where place.ordinal is null
      union all
      select place.org_id, place.document_id, place.ordinal, place.weight from place where place.ordinal is not null
    )
    select (found.org_id, found.document_id, found.ordinal, 1 - exp(sum(ln(1 - least(0.98, found.weight)))),
      null)::rag.graph_candidate
    from chunk as found
    group by found.org_id, found.document_id, found.ordinal
    order by sum(found.weight) desc, found.document_id, found.ordinal
    limit wanted);
end;
$$;

comment on function rag.load_chunks is
  'The chunks of the places, the heaviest first, `wanted` at most: of a whole document those two of its first 32 '
  'that are nearest to what is asked.';

create function rag.expand_graph(seeds rag.seed_entity[], scope rag.search_scope, query_embedding extensions.halfvec,
  hops integer, relation_types text[], wanted integer, started timestamptz, out chunks rag.graph_candidate[],
  out neighbours rag.neighbour[], out complete boolean)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings rag.settings;
  first rag.graph_candidate[];
  second rag.graph_candidate[];
begin
  select * into settings from rag.settings;
  complete := true;
  neighbours := '{}';
  chunks := '{}';
  if cardinality(seeds) = 0 then
    return;
  end if;
  first := rag.apply_scope(rag.chunks_naming(seeds, scope, 24, settings.mentions_read, 0.35), scope);
  if hops > 1 then
    complete := rag.milliseconds_since(started) < settings.graph_milliseconds;
    if complete then
      neighbours := rag.co_occurring_entities(first, seeds, scope, relation_types);
      complete := rag.milliseconds_since(started) < settings.graph_milliseconds;
    end if;
    if complete then
      second := rag.apply_scope(rag.chunks_naming(array(
        select (near.org_id, near.entity, near.weight, null, null)::rag.seed_entity from unnest(neighbours) as near),
        scope, 4, 12, 0.3), scope);
    end if;
  end if;
  chunks := rag.load_chunks(first || second, query_embedding, scope, wanted);
end;
$$;

comment on function rag.expand_graph is
  'What is reached from the seeds in so many hops: 1 is where they are named, 2 where those are that stand with '
  'them. started: since when the graph''s time runs. complete: whether there was enough of it.';
