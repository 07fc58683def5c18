-- Graph expansion: from the linked entities of a query to the chunks that may answer it. Documents about an entity
-- have the highest weight, then the chunks that name the entity, then, one hop further, the documents about entities in
-- these chunks. A stated relation has a higher weight than co-occurrence. Each step reads a bounded number of rows, and
-- starts only within the time limit.

create type rag.neighbour as (
  org_id uuid, entity text, weight double precision, seed text, document_id uuid, ordinal integer
);

comment on type rag.neighbour is
  'An entity that co-occurs with a seed entity: its weight, and the chunk that is the evidence.';

create function rag.neighbour(
  org_id uuid, entity text, weight double precision, seed text default null, document_id uuid default null,
  ordinal integer default null
)
returns rag.neighbour
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return (org_id, entity, weight, seed, document_id, ordinal);
end;
$$;

comment on function rag.neighbour is 'A neighbour from named fields.';

create function rag.documents_about(seeds rag.seed_entity[], scope rag.search_scope, titles_each integer)
returns table (org_id uuid, document_id uuid, entity text, weight double precision)
language plpgsql stable security invoker set search_path = ''
-- Under row security the planner estimates very few rows, and would read all rows of a name to sort them.
set enable_sort = off
as $$
#variable_conflict use_column
begin
  return query
  select seed.org_id, about.document_id, seed.entity,
    -- If several documents have the title, each has a lower probability of being meant.
    seed.weight * about.weight / (1 + 0.3 * (count(*) over (partition by seed.org_id, seed.entity) - 1))
  from unnest(seeds) as seed
  cross join lateral (
    (select title_entities.document_id, title_entities.weight
    from rag.title_entities
    where scope.collection_ids is null and title_entities.org_id = seed.org_id and title_entities.entity = seed.entity
    order by title_entities.weight desc
    limit titles_each)
    union all
    (select inside.document_id, inside.weight
    from unnest(scope.collection_ids) as home (id)
    cross join lateral (
      select title_entities.document_id, title_entities.weight
      from rag.title_entities
      where title_entities.org_id = seed.org_id and title_entities.collection_id = home.id
        and title_entities.entity = seed.entity
      order by title_entities.weight desc
      limit titles_each
    ) as inside
    order by inside.weight desc
    limit titles_each)
  ) as about;
end;
$$;

comment on function rag.documents_about is
  'The documents whose titles name the entities, up to titles_each for each entity. It reads an org, or the scope''s '
  'collections one by one: only one of the two look-ups runs.';

create function rag.chunks_mentioning(seeds rag.seed_entity[], scope rag.search_scope, mentions_each integer,
  mention_share double precision, rare_share double precision)
returns table (org_id uuid, document_id uuid, ordinal integer, entity text, weight double precision)
language plpgsql stable security invoker set search_path = ''
set enable_sort = off
as $$
#variable_conflict use_column
begin
  return query
  select seed.org_id, mention.document_id, mention.ordinal, seed.entity,
    seed.weight * case when mention.ordinal = 0 and mention.weight = 1
      -- The subject of the document: its title, or the name that its first words define.
      then 0.8 / (0.7 + 0.3 * count(*) filter (where mention.ordinal = 0 and mention.weight = 1)
        over (partition by seed.org_id, seed.entity))
      else (mention_share + rare_share / count(*) over (partition by seed.org_id, seed.entity))
        * (0.5 + 0.5 * mention.weight) / sqrt(1 + count(*) over (partition by seed.org_id, seed.entity) / 24.0) end
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
  ) as mention;
end;
$$;

comment on function rag.chunks_mentioning is
  'The chunks that name the entities, up to mentions_each for each entity, read as in rag.documents_about. An entity '
  'that more chunks name has less weight; only the chunks that are read count. A rare name connects its few chunks: '
  'each of n chunks gets rare_share / n in addition to its mention_share.';

create function rag.chunks_naming(seeds rag.seed_entity[], scope rag.search_scope, titles_each integer,
  mentions_each integer, mention_share double precision, rare_share double precision)
returns rag.graph_candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return array(
    -- By position: a constructor would be called for thousands of rows.
    select (found.org_id, found.document_id, found.ordinal,
      -- Several paths to an entity raise its weight, as independent probabilities.
      1 - exp(sum(ln(1 - least(0.98, found.weight)))),
      (array_agg(found.entity order by found.weight desc, found.entity))[1])::rag.graph_candidate
    from (
      select about.org_id, about.document_id, null::integer as ordinal, about.entity, about.weight
      from rag.documents_about(seeds, scope, titles_each) as about
      union all
      select named.org_id, named.document_id, named.ordinal, named.entity, named.weight
      from rag.chunks_mentioning(seeds, scope, mentions_each, mention_share, rare_share) as named
    ) as found
    group by found.org_id, found.document_id, found.ordinal);
end;
$$;

comment on function rag.chunks_naming is
  'The documents about the entities, and the chunks that name them, with the shares of a mention in the weight.';

create function rag.strongest_candidates(candidates rag.graph_candidate[], scope rag.search_scope)
returns table (
  org_id uuid, document_id uuid, ordinal integer, weight double precision, entity text, from_ordinal integer,
  to_ordinal integer
)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  select strongest.org_id, strongest.document_id, strongest.ordinal, strongest.weight, strongest.entity,
    coalesce(strongest.ordinal, 0), coalesce(strongest.ordinal, 3)
  from (
    select best.*, row_number() over (partition by best.ordinal is null
      order by best.weight desc, best.document_id, best.ordinal) as turn
    from unnest(candidates) as best
  ) as strongest
  where strongest.turn <= 16 and exists (
    select from rag.chunks
    where chunks.org_id = strongest.org_id and chunks.document_id = strongest.document_id
      and chunks.ordinal = coalesce(strongest.ordinal, 0) and chunks.embedding_model = scope.model);
end;
$$;

comment on function rag.strongest_candidates is
  'The sixteen documents and the sixteen chunks with the highest weights, with the range of ordinals to read in each: '
  'the first four chunks of a document. The bounds are columns, because under row security an index scan cannot use a '
  'bound that is computed in the condition.';

create function rag.co_occurring_entities(candidates rag.graph_candidate[], seeds rag.seed_entity[],
  scope rag.search_scope)
returns rag.neighbour[]
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return array(
    with candidate as materialized (
      select * from rag.strongest_candidates(candidates, scope)
    ), named as materialized (
      select candidate.org_id, candidate.document_id, found.ordinal, found.entity, candidate.weight as candidate_weight,
        candidate.entity as seed,
        0.35 + 0.35 * found.weight as strength
      from candidate
      cross join lateral (
        select mentions.ordinal, mentions.entity, mentions.weight
        from rag.mentions
        where mentions.org_id = candidate.org_id and mentions.document_id = candidate.document_id
          and mentions.ordinal between candidate.from_ordinal and candidate.to_ordinal
        order by mentions.ordinal, mentions.weight desc
        limit 60
      ) as found
    ), related as materialized (
      select candidate.org_id, candidate.document_id, found.ordinal, found.entity, candidate.weight as candidate_weight,
        candidate.entity as seed,
        0.75 + 0.25 * found.confidence as strength
      from candidate
      cross join lateral (
        select relations.ordinal, ends.entity, relations.confidence
        from rag.relations
        cross join lateral (values (relations.object, relations.subject), (relations.subject, relations.object))
          as ends (entity, other)
        where relations.org_id = candidate.org_id and relations.document_id = candidate.document_id
          and relations.ordinal between candidate.from_ordinal and candidate.to_ordinal
          and exists (
            select from unnest(seeds) as seed
            where seed.org_id = relations.org_id and seed.entity = ends.other)
        limit 60
      ) as found
    ), way as (
      select distinct on (ways.org_id, ways.entity) ways.org_id, ways.entity,
        ways.candidate_weight * ways.strength as weight, ways.seed, ways.document_id, ways.ordinal
      from (select * from named union all select * from related) as ways
      where not exists (
        select from unnest(seeds) as seed where seed.org_id = ways.org_id and seed.entity = ways.entity)
      order by ways.org_id, ways.entity, ways.candidate_weight * ways.strength desc, ways.document_id, ways.ordinal
    )
    select rag.neighbour(org_id => way.org_id, entity => way.entity, weight => way.weight, seed => way.seed,
      document_id => way.document_id, ordinal => way.ordinal)
    from (select * from way order by way.weight desc, way.entity limit 48) as way
    order by way.weight desc, way.entity);
end;
$$;

comment on function rag.co_occurring_entities is
  'The entities that occur together with the seeds in the strongest of these candidates: the 48 with the highest '
  'weight, each by its best path.';

create function rag.load_chunks(candidates rag.graph_candidate[], query_embedding extensions.halfvec,
  scope rag.search_scope, row_limit integer)
returns rag.graph_candidate[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return array(
    with candidate as materialized (
      select best.*
      from unnest(candidates) as best
      order by best.weight desc, best.document_id, best.ordinal
      limit least(2 * row_limit, 200)
    ), chunk as (
      select candidate.org_id, candidate.document_id, found.ordinal, candidate.weight * found.share as weight
      from candidate
      cross join lateral (
        select near.ordinal, case row_number() over (order by near.distance, near.ordinal)
          when 1 then 1.0 else 0.85 end as share
        from (
          select chunks.ordinal, case when query_embedding is null then 0
            else (chunks.embedding operator(extensions.<=>) query_embedding) + 0 end as distance
          from rag.chunks
          where chunks.org_id = candidate.org_id and chunks.document_id = candidate.document_id
            and chunks.ordinal < 32 and chunks.embedding_model = scope.model
        ) as near
        order by near.distance, near.ordinal
        limit 2
      ) as found
      where candidate.ordinal is null
      union all
      select candidate.org_id, candidate.document_id, candidate.ordinal, candidate.weight
      from candidate
      where candidate.ordinal is not null
    )
    select (found.org_id, found.document_id, found.ordinal, 1 - exp(sum(ln(1 - least(0.98, found.weight)))),
      null)::rag.graph_candidate
    from chunk as found
    group by found.org_id, found.document_id, found.ordinal
    order by sum(found.weight) desc, found.document_id, found.ordinal
    limit row_limit);
end;
$$;

comment on function rag.load_chunks is
  'The chunks of the candidates, highest weight first, at most `row_limit`. For a whole document: the two of its first 32 '
  'chunks that are nearest to the question.';

create function rag.next_seeds(neighbours rag.neighbour[], names_of_hit rag.neighbour[], scope rag.search_scope)
returns rag.seed_entity[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  config constant regconfig := (select rag.text_config(settings.language) from rag.settings);
begin
  return array(
    select rag.seed_entity(org_id => found.org_id, entity => found.entity, weight => max(found.weight))
    from (
      select near.org_id, near.entity, near.weight from unnest(neighbours) as near
      union all
      select near.org_id, near.entity,
        near.weight * rag.name_weight(near.entity, near.entity, config, near.org_id, scope)
      from unnest(names_of_hit[:12]) as near
    ) as found
    group by found.org_id, found.entity);
end;
$$;

comment on function rag.next_seeds is
  'The seeds of the second hop, each once: the neighbours of the question''s names, and the twelve strongest names of '
  'the best hit by the weight of the name.';

create function rag.expand_graph(seeds rag.seed_entity[], best_hit rag.graph_candidate[], scope rag.search_scope,
  query_embedding extensions.halfvec, hops integer, row_limit integer, started timestamptz,
  out chunks rag.graph_candidate[], out neighbours rag.neighbour[], out complete boolean)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings rag.settings;
  first rag.graph_candidate[];
  second rag.graph_candidate[];
  -- Seeds of the second hop that the response omits, because the question does not name them.
  names_of_hit rag.neighbour[] := '{}';
  next_seeds rag.seed_entity[];
begin
  select * into settings from rag.settings;
  complete := true;
  neighbours := '{}';
  first := rag.apply_scope(rag.chunks_naming(seeds, scope, 24, settings.mentions_read, 0.35, 0), scope);
  if hops > 1 then
    complete := rag.milliseconds_since(started) < settings.graph_milliseconds;
    if complete then
      neighbours := rag.co_occurring_entities(first, seeds, scope);
      if cardinality(best_hit) > 0 then
        names_of_hit := rag.co_occurring_entities(best_hit, seeds, scope);
      end if;
      next_seeds := rag.next_seeds(neighbours, names_of_hit, scope);
      complete := rag.milliseconds_since(started) < settings.graph_milliseconds;
    end if;
    if complete then
      second := rag.apply_scope(rag.chunks_naming(next_seeds, scope, 4, 12, 0.2, 1.2), scope);
    end if;
  end if;
  chunks := rag.load_chunks(first || second, query_embedding, scope, row_limit);
end;
$$;

comment on function rag.expand_graph is
  'The chunks that the names of the question reach in `hops` hops. 1: the chunks with these names. 2: also the chunks '
  'with names that co-occur with these or are in the best hit. best_hit: an array of at most one candidate. started: the start of '
  'the time limit. complete: whether all steps ran within the time limit.';
