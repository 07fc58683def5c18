-- Tokenization for keyword search: the stems of a text's words in its language, and its identifiers, which stay whole
-- (INC-4821, a/b, mail addresses, v1.2.3). Documents and queries use the same functions.

create function rag.text_config(lang text)
returns regconfig
language sql immutable security invoker set search_path = ''
as $$
  select case split_part(lower(lang), '-', 1)
    when 'ar' then 'pg_catalog.arabic' when 'ca' then 'pg_catalog.catalan' when 'da' then 'pg_catalog.danish'
    when 'de' then 'pg_catalog.german' when 'el' then 'pg_catalog.greek' when 'en' then 'pg_catalog.english'
    when 'es' then 'pg_catalog.spanish' when 'eu' then 'pg_catalog.basque' when 'fi' then 'pg_catalog.finnish'
    when 'fr' then 'pg_catalog.french' when 'ga' then 'pg_catalog.irish' when 'hi' then 'pg_catalog.hindi'
    when 'hu' then 'pg_catalog.hungarian' when 'hy' then 'pg_catalog.armenian'
    when 'id' then 'pg_catalog.indonesian' when 'it' then 'pg_catalog.italian'
    when 'lt' then 'pg_catalog.lithuanian' when 'ne' then 'pg_catalog.nepali'
    when 'nb' then 'pg_catalog.norwegian' when 'nl' then 'pg_catalog.dutch'
    when 'nn' then 'pg_catalog.norwegian' when 'no' then 'pg_catalog.norwegian'
    when 'pt' then 'pg_catalog.portuguese' when 'ro' then 'pg_catalog.romanian'
    when 'ru' then 'pg_catalog.russian' when 'sr' then 'pg_catalog.serbian'
    when 'sv' then 'pg_catalog.swedish' when 'ta' then 'pg_catalog.tamil' when 'tr' then 'pg_catalog.turkish'
    when 'yi' then 'pg_catalog.yiddish' else 'pg_catalog.simple'
  end::regconfig;
$$;

comment on function rag.text_config is
  'Postgres'' text search configuration for a language tag: fr-CA is French. Languages that it has no stemmer for '
  'are searched by their words as they stand.';

create function rag.words(config regconfig, content text)
returns tsvector
language sql immutable security invoker set search_path = ''
as $$
  select to_tsvector(config, case
    when content ~ '[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]'
    then regexp_replace(regexp_replace(content, '([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])', ' \1 ', 'g'),
      '[-/.:@&+<>~]+', ' ', 'g')
    else regexp_replace(content, '[-/.:@&+<>~]+', ' ', 'g')
  end)
  from translate(normalize(words.content, nfc), '₀₁₂₃₄₅₆₇₈₉', '0123456789') as composed (content);
$$;

comment on function rag.words is
  'The words of a text with their places. Postgres'' own parser would read INC-4821 as "inc" and the number -4821, '
  'and a/b as a file: such punctuation is taken out first. Chinese, Japanese and Korean, which put no spaces '
  'between words, are taken character by character. Letters with accents are composed, and CO₂ is CO2.';

create function rag.identifiers(content text)
returns setof text
language sql immutable security invoker set search_path = ''
as $$
  select found.parts[1]
  from regexp_matches(lower(normalize(content, nfc)),
    '([[:alnum:]]+(?:[-_./:@#&+]{1,3}[[:alnum:]]+)+|\m[[:alpha:]](?:\+\+|#)(?![[:alnum:]]))', 'g') as found (parts)
  where length(found.parts[1]) <= 200
  union all
  select ltrim(padded.parts[1], '0')
  from regexp_matches(content, '(?:^|[\s|(])(0{2,}[1-9][0-9]{0,30}|0[1-9][0-9]{1,30})(?![[:alnum:]])', 'g')
    as padded (parts);
$$;

comment on function rag.identifiers is
  'The identifiers in a text, in lower case, with repetitions: runs of letters and digits with punctuation inside, '
  'C++ and C#, and 417 for 00417. Those of more than 200 characters are omitted.';

create function rag.terms(config regconfig, content text)
returns table (term text, occurrences integer)
language sql immutable security invoker set search_path = ''
as $$
  select found.term, sum(found.occurrences)::integer
  from (
    select word.lexeme, cardinality(word.positions) from unnest(rag.words(config, content)) as word
    union all
    select identifier, 1 from rag.identifiers(content) as identifier
  ) as found (term, occurrences)
  group by 1;
$$;

comment on function rag.terms is 'Each term of a text, and its number of occurrences.';
