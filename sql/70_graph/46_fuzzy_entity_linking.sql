-- Entity linking of names that no document spells as the query does: misspelled names and parts of names.

create function rag.similar_names(org_id uuid, name text, scope rag.search_scope, row_limit integer)
returns table (entity text, likeness double precision)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  heard constant text := rag.phonetic_key(name);
  tail constant text := reverse(heard);
  -- The last character of Unicode: behind a prefix it gives the upper bound of the texts with that prefix.
  beyond constant text := chr(1114111);
  -- The length of the other end that a mistake at one end leaves.
  kept constant integer := greatest(2, (2 * length(heard) + 2) / 3);
  near text[];
begin
  if length(heard) < 2 then
    return;
  end if;
  near := array(
    (select named.entity from rag.title_entities as named
    where named.org_id = similar_names.org_id and named.sound >= left(heard, kept)
      and named.sound < left(heard, kept) || beyond
      and (scope.collection_ids is null or named.collection_id = any (scope.collection_ids))
    limit 100)
    union
    (select named.entity from rag.mentions as named
    where named.org_id = similar_names.org_id and named.sound >= left(heard, kept)
      and named.sound < left(heard, kept) || beyond
      and (scope.collection_ids is null or named.collection_id = any (scope.collection_ids))
    limit 200)
    union
    (select named.entity from rag.title_entities as named
    where named.org_id = similar_names.org_id and named.ending >= left(tail, kept)
      and named.ending < left(tail, kept) || beyond
      and (scope.collection_ids is null or named.collection_id = any (scope.collection_ids))
    limit 100)
    union
    (select named.entity from rag.mentions as named
    where named.org_id = similar_names.org_id and named.ending >= left(tail, kept)
      and named.ending < left(tail, kept) || beyond
      and (scope.collection_ids is null or named.collection_id = any (scope.collection_ids))
    limit 200));
  return query
  select found.entity, max(found.likeness)
  from (
    select found.entity, found.likeness
    from rag.bigram_similarity(similar_names.name, near) as found
    -- Digits must be equal: INC-4822 and INC-4821 are two entities.
    where regexp_replace(found.entity, '[^0-9]', '', 'g') = regexp_replace(similar_names.name, '[^0-9]', '', 'g')
    union all
    -- A part of a name that consists of whole words, e.g., a surname or a first name.
    select whole, 0.75
    from unnest(near) as whole
    where (starts_with(whole, similar_names.name || ' ')
        or right(whole, length(similar_names.name) + 1) = ' ' || similar_names.name)
      -- A single word does not match a name that differs from it by digits alone: February, 27 February.
      and (similar_names.name ~ ' '
        or regexp_replace(whole, '[0-9 ]', '', 'g') <> regexp_replace(similar_names.name, '[0-9]', '', 'g'))
  ) as found
  group by found.entity
  order by 2 desc, 1
  limit row_limit;
end;
$$;

comment on function rag.similar_names is
  'Up to `row_limit` entities of an org that sound like a name, or begin or end with it, most similar first.';

create function rag.link_fuzzy(words text[], capitals text[], known rag.seed_entity[], scope rag.search_scope)
returns rag.seed_entity[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  config constant regconfig := (select rag.text_config(settings.language) from rag.settings);
  seeds rag.seed_entity[] := '{}';
  open boolean[];
  at_org uuid;
  tried integer;
  best record;
  name text;
begin
  foreach at_org in array scope.org_ids loop
    open := array(
      select rtrim(words[position]) = any (capitals) and rag.words(config, words[position]) <> ''
        and not exists (
          select from unnest(known) as seed
          where seed.org_id = at_org and position between seed.start and seed.finish)
      from generate_series(1, cardinality(words)) as position
      order by position);
    for size in reverse least(5, cardinality(words))..1 loop
      tried := 0;
      for start in 1..cardinality(words) - size + 1 loop
        continue when false = any (open[start:start + size - 1]);
        name := rtrim(array_to_string(words[start:start + size - 1], ''));
        -- Numbers are not corrected, and a year is a part of many names.
        continue when length(name) < 4 or name !~ '[^0-9 ]';
        tried := tried + 1;
        exit when tried > 4;
        select alike.entity, alike.likeness into best from rag.similar_names(at_org, name, scope, 1) as alike;
        continue when not found or best.likeness < 0.6;
        for position in start..start + size - 1 loop
          open[position] := false;
        end loop;
        seeds := seeds || rag.seed_entity(org_id => at_org, entity => best.entity,
          weight => 0.8 * best.likeness * rag.name_weight(best.entity, name, config, at_org, scope),
          start => start, finish => start + size - 1);
      end loop;
    end loop;
  end loop;
  return seeds;
end;
$$;

comment on function rag.link_fuzzy is
  'The names in the question that no document spells in the same way: misspelled names and parts of names. The '
  'function examines runs of at most five words that have the form of a name and that link_exact did not link, '
  'longest first.';
