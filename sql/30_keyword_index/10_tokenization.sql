-- Tokenization for keyword search: the stems of a text's words in its language, and its identifiers, which stay whole
-- (INC-4821, softLogout, a/b, mail addresses, v1.2.3). Documents and queries use the same functions.

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

create function rag.tokenized_text(content text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  -- Between a letter in lower case and a capital, before the last capital of several, between letters and a final number.
  -- iPhone, nDCG, PhD and i18n stay whole: a part has two letters or more, but for a capital before a word.
  select regexp_replace(
    regexp_replace(text, '([[:alnum:]][[:lower:]](?=[[:upper:]][[:alnum:]])|[[:upper:]0-9](?=[[:upper:]][[:lower:]]{2}))',
      '\1' || chr(31), 'g'),
    '(\m[[:alpha:]]{2,}(?=[0-9]+\M))', '\1' || chr(31), 'g')
  from (
    select case when content ~ '[₀-₉‐-–−]'
      then translate(normalize(content, nfc), '₀₁₂₃₄₅₆₇₈₉‐‑‒–−', '0123456789-----') else normalize(content, nfc) end
  ) as composed (text);
$$;

comment on function rag.tokenized_text is
  'The text as keyword search reads it: with U+001F, which no document contains, between the parts of softLogout and ISO27001; '
  'each hyphen and short dash as "-", composed letters, CO2 for CO₂.';

create function rag.words(config regconfig, content text)
returns tsvector
language sql immutable security invoker set search_path = ''
as $$
  select to_tsvector(config, case
    when text ~ '[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]'
    then regexp_replace(regexp_replace(text, '([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])', ' \1 ', 'g'),
      '[-/.:@&+<>~\x1f]+', ' ', 'g')
    else regexp_replace(text, '[-/.:@&+<>~\x1f]+', ' ', 'g')
  end)
  from rag.tokenized_text(content) as text;
$$;

comment on function rag.words is
  'The words of a text with their places. Postgres'' own parser would read INC-4821 as "inc" and the number -4821, '
  'and a/b as a file: such punctuation is taken out first. Chinese, Japanese and Korean, which put no spaces '
  'between words, are taken character by character.';

create function rag.identifiers(content text)
returns setof text
language sql immutable security invoker set search_path = ''
as $$
  select found.parts[1]
  from rag.tokenized_text(content) as text, regexp_matches(lower(text),
    '([[:alnum:]]+(?:[-_./:@#&+\x1f]{1,3}[[:alnum:]]+)+|\m[[:alpha:]](?:\+\+|#)(?![[:alnum:]]))', 'g') as found (parts)
  where length(found.parts[1]) <= 200
  union all
  select ltrim(padded.parts[1], '0')
  from regexp_matches(content, '(?:^|[\s|(])(0{2,}[1-9][0-9]{0,30}|0[1-9][0-9]{1,30})(?![[:alnum:]])', 'g')
    as padded (parts)
  union all
  -- 2180 for 2,180 and 2.180, 1234.50 for 1.234,50. One pattern for both steps takes four times as long.
  select translate(regexp_replace(found.parts[1], '[.,][0-9]{1,2}$', ''), '.,’' || chr(160) || chr(8239), '')
    || coalesce('.' || substring(found.parts[1], '[.,]([0-9]{1,2})$'), '')
  from regexp_matches(content,
    '([[:alnum:].,]*[.,’\u00a0\u202f][0-9]{3}(?:[.,]?[[:alnum:]]+|[’\u00a0\u202f][0-9]{3})*)', 'g') as found (parts)
  where found.parts[1] ~ '^[1-9][0-9]{0,2}([.,’\u00a0\u202f][0-9]{3}){1,6}([.,][0-9]{1,2})?$';
$$;

comment on function rag.identifiers is
  'The identifiers in a text (rag.tokenized_text), in lower case, with repetitions: runs of letters and digits with '
  'punctuation or U+001F inside, C++ and C#, 417 for 00417 and 2180 for 2,180. Those of more than 200 characters are omitted.';

create function rag.identifier_terms(config regconfig, content text)
returns table (term text, place integer)
language sql immutable security invoker set search_path = ''
as $$
  with identifier as materialized (
    select name, row_number() over () as place from rag.identifiers(content) as name
  ), joined as (
    select translate(found.parts[1], '-_' || chr(31), '') as word, identifier.place, form.has_dashes
    from identifier
    cross join (values (true), (false)) as form (has_dashes)
    cross join regexp_matches(identifier.name, case when form.has_dashes
      then '[[:alnum:]]+(?:[-_\x1f]{1,3}[[:alnum:]]+)+' else '[[:alnum:]]+(?:\x1f[[:alnum:]]+)+' end, 'g') as found (parts)
    where found.parts[1] ~ '[[:alpha:]]' and form.has_dashes = (found.parts[1] ~ '[-_]')
  )
  select translate(identifier.name, chr(31), ''), identifier.place::integer + 1000000
  from identifier
  where identifier.name !~ '^[[:alnum:]_\x1f-]*[[:alpha:]][[:alnum:]_\x1f-]*$'
  union all
  -- A-T and I-T would be the stop words "at" and "it".
  select joined.word, joined.place::integer + 2000000
  from joined
  where length(joined.word) <= 3
  union all
  select word.lexeme, position
  from (
    select string_agg(joined.word, ' ' order by joined.place, joined.has_dashes) from joined where length(joined.word) > 3
  ) as line (words)
  cross join unnest(to_tsvector(config, line.words)) as word
  cross join unnest(word.positions) as position;
$$;

comment on function rag.identifier_terms is
  'The terms of the identifiers in a text, with a place that is the same in each language. Letters with hyphens and '
  'underscores are a word: softLogout, soft-logout and soft_logout have the term of softlogout, ISO-27001 that of '
  'ISO27001, MW30-Q5 those of MW30 and MW30Q5. Numbers and identifiers with other punctuation are terms as they stand.';

create function rag.terms(config regconfig, content text)
returns table (term text, occurrences integer)
language sql immutable security invoker set search_path = ''
as $$
  select found.term, sum(found.occurrences)::integer
  from (
    select word.lexeme, cardinality(word.positions) from unnest(rag.words(config, content)) as word
    union all
    select identifier.term, 1 from rag.identifier_terms(config, content) as identifier
  ) as found (term, occurrences)
  group by 1;
$$;

comment on function rag.terms is 'Each term of a text, and its number of occurrences.';
