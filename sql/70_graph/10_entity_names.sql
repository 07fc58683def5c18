-- Normalization of entity names. An entity is a normalized name within an org and has no table of its own: it exists
-- for a caller who sees a row with its name, of a title (15_title_entities.sql) or a chunk (20_mentions.sql). So other
-- users do not see the entities of a private document, and a name in two orgs does not connect them.

create function rag.fold_text(content text)
returns text
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  -- Complete for a text in ASCII, as most are.
  plain text := lower(content collate "C");
begin
  if octet_length(content) <> length(content) then
    plain := translate(replace(replace(replace(
      regexp_replace(lower(normalize(replace(content, '´', ''''), nfkd)),
        -- Accents; Hebrew and Arabic points; joiners, direction marks, variation selectors.
        '[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f'
        '\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc'
        '\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]',
        '', 'g'),
      'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'øłđðıς', 'olddiσ');
  end if;
  return normalize(btrim(regexp_replace(regexp_replace(plain, '[''’‘`ʼ](?:s\M)?', '', 'g'),
    -- Punctuation and symbols: ASCII, Latin-1, other alphabets, general, East Asian; emoji.
    '[\u0001-"$-*,-/:-@[-`{-¿×÷\u055a-\u055f\u0589\u058a\u05be\u05c0\u05c3\u05c6\u05f3\u05f4\u0609-\u060d'
    '\u061b-\u061f\u066a-\u066d\u06d4\u0964\u0965\u0970\u0df4\u0e3f\u0e4f\u0e5a\u0e5b\u0f04-\u0f14\u0f3a-\u0f3d'
    '\u104a-\u104f\u10fb\u1360-\u1368\u17d4-\u17d6\u17d8-\u17db\u1800-\u180a\u2000-\u20cf\u2190-\u2bff'
    '\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d-\u303f\u30a0\u30fb\ufe30-\ufe4f'
    '\U0001f000-\U0001faff]+', ' ', 'g')), nfc);
end;
$$;

comment on function rag.fold_text is
  'The text in lower case, without accents and invisible characters, with one blank between words. Apostrophes '
  '(O''Brien) and English genitives (Boritzer''s) are removed. + and # stay, for C++ and C#, and so do marks that '
  'belong to letters, as in Devanagari and Thai. Punctuation is listed by character, because the character classes of '
  'Postgres versions differ.';

create function rag.entity_key(name text)
returns text
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return rtrim(left(regexp_replace(
    coalesce(nullif(rag.fold_text(regexp_replace(name, '\s*[(（][^()（）]*[)）]\s*$', '')), ''),
      rag.fold_text(name)),
    '^(?:the )+(?=.)', ''), 200));
end;
$$;

comment on function rag.entity_key is
  'The key of a name: the folded name without a leading article and without trailing parentheses, unless the rest '
  'would be empty. The key of a key is the same key.';

create function rag.phonetic_key(entity text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select regexp_replace(regexp_replace(translate(regexp_replace(
      translate(replace(replace(entity, 'ph', 'f'), 'x', 'ks'), 'cqzwyj', 'kksvii'),
      '\Y[aeiouhαεηιουωаеиоуыэюяьъ]', '', 'g'), 'eiouαεηιουωаеиоуыэюя', repeat('a', 20)),
    -- Runs of up to nine equal letters: (.)\1+ takes seven times as long.
    '(.)\1\1?', '\1', 'g'), '(.)\1\1?', '\1', 'g');
$$;

comment on function rag.phonetic_key is
  'A rough phonetic key of a folded name: most misspelled words have the key of the correct word. Vowels are kept only '
  'at the beginning of a word, and all vowels are equal, also Greek and Cyrillic ones. c, k and q are equal, and so '
  'are s and z, v and w.';

create function rag.bigram_similarity(name text, others text[])
returns table (entity text, likeness double precision)
language plpgsql immutable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  with mine as (
    select substr(' ' || name || ' ', position, 2) as letters, count(*) as times
    from generate_series(1, length(name) + 1) as position
    group by 1
  ), theirs as (
    select other.entity, substr(' ' || other.entity || ' ', position, 2) as letters, count(*) as times
    from (select distinct unnest(others) as entity) as other
    cross join generate_series(1, length(other.entity) + 1) as position
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

comment on function rag.bigram_similarity is
  'The similarity, 0 to 1, of a folded name to each of others: the share of common letter bigrams (Dice, 1945). Names '
  'whose length differs by more than a third are omitted.';

create function rag.title_names(title text)
returns table (entity text, name text, weight real)
language sql immutable security invoker set search_path = ''
as $$
  select found.entity, (array_agg(found.name order by found.weight desc, found.position))[1], max(found.weight)
  from (
    select rag.entity_key(title), title, 1.0::real, 0
    union all
    select rtrim(left(regexp_replace(rag.fold_text(title), '^(?:the )+(?=.)', ''), 200)), title, 1.0, 0
    where title ~ '[)）]\s*$'
    union all
    -- A file name without its extension.
    select rag.entity_key(named.base), named.base, 0.9, 0
    from (select regexp_replace(title, '^(.*/)?([^/]+)\.[A-Za-z][A-Za-z0-9]{0,4}$', '\2') as base) as named
    where named.base <> title
    union all
    select rag.entity_key(part), btrim(part), 0.6, position::integer
    from regexp_split_to_table(title, '\s*[:;|–—·•»>()（）《》「」『』]\s*|\s+[-/]\s+|,\s+|，|、')
      with ordinality as parts (part, position)
    where position <= 8 and part <> title
  ) as found (entity, name, weight, position)
  where length(found.entity) > 1
  group by found.entity;
$$;

comment on function rag.title_names is
  'The names in a title, each with its probability: the title with and without parentheses, and parts of the title. '
  '"Incident 42: Billing outage" has the parts "Incident 42" and "Billing outage".';

create function rag.path_name(path text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select case when length(part.name) between 2 and 80 and part.name !~ '^[0-9A-Fa-f-]{16,}$|[\n\t]'
    and rag.is_visible_text(part.name) and rag.fold_text(part.name) ~ '[[:alpha:]].*[[:alpha:]]' then part.name end
  from (select regexp_replace(regexp_replace(left(path, 2000), '^https?://[^/]*|[?#].*$', '', 'g'), '/+$', ''))
    as address (path)
  cross join lateral (
    -- The file name; the folder name for common files such as README.
    select regexp_replace(address.path, '(?:^|/)(?:readme|index|codeowners|main|default)(?:\.[a-z]{1,5})?$', '', 'i')
  ) as file (path)
  cross join lateral (
    -- The extension and a leading date are removed.
    select btrim(regexp_replace(regexp_replace(translate(regexp_replace(file.path, '^.*/', ''), '_+', '  '),
      '\.[A-Za-z][A-Za-z0-9]{0,4}$', ''), '^[0-9]{4}-?[0-9]{2}(?:-?[0-9]{2})?[- ]+', '')) as name
  ) as part;
$$;

comment on function rag.path_name is
  'The last name in a path or URL, without date and extension: marram for notes/2025-03-04-marram.md, inkwell for '
  'inkwell/README.md. Null for a number or a hash.';
