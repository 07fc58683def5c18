-- What makes two names one: an entity is a folded name within an org. It has no row of its own. It is there as long as
-- something that the caller sees names it: a document's title (37_subjects.sql), a chunk (38_mentions.sql). So an
-- entity of somebody's private document is nobody else's, and a name that two orgs share joins nothing.

-- Letters without case and accents; what stands between words is one blank. An apostrophe is nothing (O'Brien), nor is
-- an English genitive (Boritzer's); + and # stay, for C++ and C#. Scripts are kept as they are.
create function rag.fold(content text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select normalize(btrim(regexp_replace(regexp_replace(translate(replace(replace(replace(
      regexp_replace(lower(normalize(content, nfkd)),
        '[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\ufe20-\ufe2f]', '', 'g'),
      'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'øłđðı', 'olddi'),
    '[''’‘`´ʼ](?:s\M)?', '', 'g'),
    '(?:(?![+#])[[:punct:][:space:][:cntrl:]]|[–—·•…«»„“”‚‹›])+', ' ', 'g')), nfc);
$$;

-- A name as an entity: without an article before it, and what stands behind it in parentheses, unless that is all.
create function rag.entity(name text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select left(coalesce(nullif(regexp_replace(rag.fold(regexp_replace(name, '\s*[(（][^()（）]*[)）]\s*$', '')),
    '^the (?=.)', ''), ''), rag.fold(name)), 200);
$$;

-- How a folded name sounds, roughly: words that are spelled differently by mistake mostly sound alike. Vowels count at
-- the beginning of a word alone, and there are one; so are c, k and q, s and z, v and w.
create function rag.sound(entity text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select regexp_replace(regexp_replace(regexp_replace(translate(replace(replace(entity, 'ph', 'f'), 'x', 'ks'),
    'cqzwyj', 'kksvii'), '\m[aeiou]', 'a', 'g'), '\B[aeiouh]', '', 'g'), '(.)\1+', '\1', 'g');
$$;

-- How much a folded name and others are alike, 0 to 1: the share of their pairs of letters that they have in common
-- (Dice, 1945). Those that are not as long, by a third, are left out.
create function rag.likenesses(name text, others text[])
returns table (entity text, likeness double precision)
language plpgsql immutable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  with mine as (
    select substr(' ' || name || ' ', place, 2) as letters, count(*) as times
    from generate_series(1, length(name) + 1) as place
    group by 1
  ), theirs as (
    select other.entity, substr(' ' || other.entity || ' ', place, 2) as letters, count(*) as times
    from (select distinct unnest(others) as entity) as other
    cross join generate_series(1, length(other.entity) + 1) as place
    where length(other.entity) between 0.75 * length(name) and 1.34 * length(name)
    group by 1, 2
  )
  select theirs.entity,
    (2.0 * sum(least(mine.times, theirs.times)) / (length(name) + length(theirs.entity) + 2))::double precision
  from theirs
  join mine on mine.letters = theirs.letters
  group by theirs.entity;
end;
$$;

-- What a title names, and how surely: itself, with and without what it has in parentheses, and its parts. "Incident 42:
-- Billing outage" is about both.
create function rag.names_of_title(title text)
returns table (entity text, name text, weight real)
language sql immutable security invoker set search_path = ''
as $$
  select found.entity, (array_agg(found.name order by found.weight desc, found.place))[1], max(found.weight)
  from (
    select rag.entity(title), title, 1.0::real, 0
    union all
    select left(regexp_replace(rag.fold(title), '^the (?=.)', ''), 200), title, 1.0, 0
    union all
    -- A file's name without its ending.
    select rag.entity(named.base), named.base, 0.9, 0
    from (select regexp_replace(title, '^(.*/)?([^/]+)\.[A-Za-z][A-Za-z0-9]{0,4}$', '\2') as base) as named
    where named.base <> title
    union all
    select rag.entity(part), btrim(part), 0.6, place::integer
    from regexp_split_to_table(title, '\s*[:;|–—·•»>()（）《》「」『』]\s*|\s+[-/]\s+|,\s+|，|、')
      with ordinality as parts (part, place)
    where place <= 8 and part <> title
  ) as found (entity, name, weight, place)
  where length(found.entity) > 1
  group by found.entity;
$$;

revoke all on function rag.fold(text), rag.entity(text), rag.sound(text), rag.likenesses(text, text[]),
  rag.names_of_title(text) from public, anon, service_role;
grant execute on function rag.fold(text), rag.entity(text), rag.sound(text), rag.likenesses(text, text[]),
  rag.names_of_title(text) to authenticated;
