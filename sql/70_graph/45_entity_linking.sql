-- Entity linking: the entities that a query names. Longer names have priority over shorter ones inside them, exact
-- names over similar ones. Each look-up is an equality or a range in an index, and reads a bounded number of rows.

create type rag.seed_entity as (org_id uuid, entity text, weight double precision, start integer, finish integer);

comment on type rag.seed_entity is
  'A name in a question: the entity, the probability (0 to 1) that the question means the entity, and the positions of '
  'the words in the question.';

create function rag.seed_entity(
  org_id uuid, entity text, weight double precision, start integer default null, finish integer default null
)
returns rag.seed_entity
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return (org_id, entity, weight, start, finish);
end;
$$;

comment on function rag.seed_entity is 'A seed entity from named fields.';

create function rag.capitalized_words(query_text text)
returns text[]
language sql immutable security invoker set search_path = ''
as $$
  select array(
    select distinct word
    from regexp_matches(left(query_text, 2000), '[^\s]*[[:upper:][:digit:]][^\s]*', 'g') as found (parts)
    cross join lateral unnest(string_to_array(rag.fold_text(found.parts[1]), ' ')) as word
    where word <> '');
$$;

comment on function rag.capitalized_words is
  'The words with a capital or a digit in the beginning of a question, folded.';

create function rag.query_words(folded text)
returns text[]
language sql immutable security invoker set search_path = ''
as $$
  select coalesce((array_agg(found.parts[1]))[:64], '{}')
  from regexp_matches(folded, '((?:[^ \u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3040-\u30ff'
    '\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]+|[^ ]) ?)', 'g') as found (parts);
$$;

comment on function rag.query_words is
  'The words of a folded question, at most 64, each with the following blank: the runs between blanks, and single '
  'characters in scripts without blanks or with endings (Thai to Burmese, Khmer, kana, Han, Hangul).';

create function rag.known_names(words text[], capitals text[], scope rag.search_scope)
returns table (org_id uuid, start integer, size integer, entity text, weight double precision)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  config constant regconfig := (select rag.text_config(settings.language) from rag.settings);
begin
  return query
  -- On Postgres 15, an inlined expression would reach no index under row security: its functions are not leakproof.
  with gram as materialized (
    select start, size, rtrim(array_to_string(words[start:start + size - 1], '')) as entity
    from generate_series(1, cardinality(words)) as start
    cross join lateral generate_series(1, least(16, cardinality(words) - start + 1)) as size
  )
  select org.id as org_id, gram.start, gram.size, gram.entity,
    case when capitals && string_to_array(gram.entity, ' ') or lower(gram.entity) = upper(gram.entity) then 1
      else 0.5 end::double precision
  from gram
  cross join unnest(scope.org_ids) as org (id)
  -- With offset 0 the planner looks each name up; otherwise it would read all names into a hash table.
  -- By its order it uses the index of the names; otherwise it would scan a table for a row that it takes for frequent.
  cross join lateral (
    (select from rag.title_entities
    where scope.collection_ids is null and title_entities.org_id = org.id and title_entities.entity = gram.entity
    order by title_entities.weight desc limit 1)
    union all
    (select from unnest(scope.collection_ids) as home (id)
    cross join lateral (
      select from rag.title_entities
      where title_entities.org_id = org.id and title_entities.collection_id = home.id
        and title_entities.entity = gram.entity
      order by title_entities.weight desc limit 1
    ) as inside
    limit 1)
    union all
    (select from rag.mentions
    where scope.collection_ids is null and mentions.org_id = org.id and mentions.entity = gram.entity
    order by mentions.weight desc limit 1)
    union all
    (select from unnest(scope.collection_ids) as home (id)
    cross join lateral (
      select from rag.mentions
      where mentions.org_id = org.id and mentions.collection_id = home.id and mentions.entity = gram.entity
      order by mentions.weight desc limit 1
    ) as inside
    limit 1)
    limit 1 offset 0
  ) as known
  where length(gram.entity) between 2 and 200
    and (gram.size > 1 or gram.entity ~ '\D' and rag.words(config, gram.entity) <> '')
  order by org.id, gram.size desc, gram.start;
end;
$$;

comment on function rag.known_names is
  'The runs of words of a question that are names in documents, longest first, each with the probability, by its '
  'capitals, that the question means the name. The parameters are those of rag.link_exact.';

create function rag.link_exact(words text[], capitals text[], scope rag.search_scope)
returns rag.seed_entity[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  config constant regconfig := (select rag.text_config(settings.language) from rag.settings);
  seeds rag.seed_entity[] := '{}';
  taken boolean[];
  at_org uuid;
  named record;
begin
  for named in select * from rag.known_names(words, capitals, scope)
  loop
    if named.org_id is distinct from at_org then
      at_org := named.org_id;
      taken := array_fill(false, array[cardinality(words)]);
    end if;
    continue when true = any (taken[named.start:named.start + named.size - 1]);
    for position in named.start..named.start + named.size - 1 loop
      taken[position] := true;
    end loop;
    seeds := seeds || rag.seed_entity(org_id => named.org_id, entity => named.entity, weight => named.weight,
      start => named.start, finish => named.start + named.size - 1);
  end loop;
  return array(
    select rag.seed_entity(org_id => seed.org_id, entity => seed.entity, start => seed.start, finish => seed.finish,
      weight => seed.weight * known.weight)
    from (
      select each.org_id, each.entity, rag.name_weight(each.entity, each.entity, config, each.org_id, scope) as weight
      from (select distinct seed.org_id, seed.entity from unnest(seeds) as seed) as each
      offset 0
    ) as known
    join unnest(seeds) as seed on seed.org_id = known.org_id and seed.entity = known.entity);
end;
$$;

comment on function rag.link_exact is
  'The names in the question that documents spell in the same way; of overlapping names, the longest. words: the words '
  'of the folded question (rag.query_words). capitals: the words that have the form of a name. Words without that form '
  'are less probably a name, unless their script has no capitals.';

create function rag.link_entities(query_text text, scope rag.search_scope)
returns rag.seed_entity[]
language plpgsql stable security invoker set search_path = ''
-- With sorting disabled, the planner reads the indexes in their order instead of sorting all rows of a name.
set enable_sort = off
as $$
declare
  words constant text[] := rag.query_words(rag.fold_text(query_text));
  capitals constant text[] := rag.capitalized_words(query_text);
  unfiltered constant boolean := not rag.filters_documents(scope);
  seeds rag.seed_entity[];
begin
  if cardinality(words) = 0 then
    return '{}';
  end if;
  seeds := rag.link_exact(words, capitals, scope);
  seeds := seeds || rag.link_fuzzy(words, capitals, seeds, scope);
  return array(
    select rag.seed_entity(org_id => found.org_id, entity => found.entity, weight => max(found.weight),
      start => (array_agg(found.start order by found.weight desc, found.start))[1],
      finish => (array_agg(found.finish order by found.weight desc, found.start))[1])
    from (
      select seed.* from unnest(seeds) as seed
      union all
      select seed.org_id, same.entity, 0.9 * seed.weight * same.confidence, seed.start, seed.finish
      from unnest(seeds) as seed
      cross join lateral (
        (select relations.object as entity, relations.confidence
        from rag.relations
        where relations.org_id = seed.org_id and relations.subject = seed.entity and relations.type = 'ALIAS_OF'
          and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
          and (unfiltered or rag.is_document_in_scope(relations.org_id, relations.document_id, scope))
        order by relations.confidence desc
        limit 8)
        union all
        (select relations.subject, relations.confidence
        from rag.relations
        where relations.org_id = seed.org_id and relations.object = seed.entity and relations.type = 'ALIAS_OF'
          and (scope.collection_ids is null or relations.collection_id = any (scope.collection_ids))
          and (unfiltered or rag.is_document_in_scope(relations.org_id, relations.document_id, scope))
        order by relations.confidence desc
        limit 8)
        offset 0
      ) as same
    ) as found
    group by found.org_id, found.entity
    -- Words with a lower weight are not linked.
    having max(found.weight) >= 0.2
    order by max(found.weight) desc, min(found.start), found.org_id, found.entity
    limit 32);
end;
$$;

comment on function rag.link_entities is
  'The entities that the question names, and their aliases; at most 32, highest probability first.';
