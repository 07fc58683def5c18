-- Parsed keyword queries: the terms of a query, how much each weighs, and which of them are adjacent.

create type rag.query_term as (
  term text, key bigint, slot integer, config oid, position integer, weight double precision, documents bigint
);

comment on type rag.query_term is
  'A term of a query. key: its key in the index. slot: the same for all terms of one word, which each language stems in '
  'its own way. config: '
  'the OID of the text search configuration; not a regconfig, which pg_upgrade does not support in stored types. '
  'position: the first position of the term in the query, null for identifiers. weight: the IDF of the term times its '
  'frequency in the query. documents: the number of documents that contain the term.';

create type rag.word_pair as (
  config oid, first text, second text, gap integer, weight double precision
);

comment on type rag.word_pair is 'Two consecutive words of a query. gap: the distance of their positions.';

create type rag.keyword_query as (
  terms rag.query_term[], pairs rag.word_pair[], weight_sum double precision,
  chunk_length double precision, document_length double precision, lists rag.term_list[]
);

comment on type rag.keyword_query is
  'A parsed query. terms: those of the 100 words with the largest weights among the words that count, in that order. pairs: '
  'the consecutive words. weight_sum: the sum of the weights of all words. chunk_length, document_length: the mean lengths for '
  'BM25, in terms. lists: the lists of all its terms in the segments and tails of the scope.';

create function rag.parse_keyword_query(query_text text, scope rag.search_scope)
returns rag.keyword_query
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
as $$
declare
  keywords rag.keyword_query;
  configs regconfig[];
  chunk_count bigint;
  index_parts rag.term_segments[];
  places bigint;
begin
  select array_agg(distinct ('pg_catalog.' || total.config)::regconfig), sum(total.chunks),
    sum(total.length)::double precision / nullif(sum(total.chunks), 0),
    sum(total.length)::double precision / nullif(sum(total.documents), 0),
    array_agg(total),
    count(distinct total.segment) + coalesce(sum(total.documents) filter (where total.segment is null), 0)
    into configs, chunk_count, keywords.chunk_length, keywords.document_length, index_parts, places
  from rag.index_totals(scope.org_ids, scope.collection_ids) as total;

  with word as (
    select languages.config, word.lexeme as term, position,
      count(*) over (partition by position) = cardinality(configs) as counts_everywhere
    from unnest(configs) as languages (config), unnest(rag.words(languages.config, query_text)) as word,
      unnest(word.positions) as position
  ), identifier as (
    select found.term, -min(found.place) as slot, count(distinct found.place) as occurrences
    from unnest(configs) as languages (config), rag.identifier_terms(languages.config, query_text) as found
    group by 1
  ), neighbour as (
    -- Two words of the query may be one in a document, with a number up to five: PPR 9087 is PPR-9087 or PPR9087, soft logout
    -- softLogout. Each is a look-up in each segment, so in a longer query only those with a number count, from its first fifty
    -- words on.
    select word.lexeme as term, -2000000 - min(position) as slot
    from (
      select string_agg(joined, ' ')
      from (
        select array(select parts[1] from regexp_matches(lower(rag.tokenized_text(query_text)), '[[:alnum:]]+', 'g') as parts)
      ) as line (words)
      cross join generate_series(1, least(cardinality(line.words), 50)) as first
      cross join generate_series(first + 1, least(first + 4, cardinality(line.words))) as last
      cross join array_to_string(line.words[first : last], '') as joined
      where length(joined) <= 40 and joined ~ '[[:alpha:]]'
        and (joined ~ '[0-9]' or cardinality(line.words) <= 12 and last = first + 1)
    ) as joined (words)
    cross join unnest(configs) as languages (config)
    cross join unnest(to_tsvector(languages.config, joined.words)) as word
    cross join unnest(word.positions) as position
    group by 1
  ), part as (
    -- The parts of identifiers. Parts of abbreviations (e.g., U.S.) are repeated, so that their frequency becomes 0.
    select languages.config, word.lexeme as term, cardinality(word.positions) as occurrences
    from (
      select string_agg(repeat(name || ' ', case when name ~ '^[[:alpha:]](\.[[:alpha:]])+$' then 2 else 1 end), '')
      from rag.identifiers(query_text) as name
    ) as joined (content)
    cross join unnest(configs) as languages (config), unnest(rag.words(languages.config, joined.content)) as word
  ), term as (
    select word.term, min(word.position)::integer as slot, word.config, min(word.position)::integer as position,
      count(*) - coalesce(min(part.occurrences), 0) / 2.0 as frequency
    from word
    left join part on part.config = word.config and part.term = word.term
    where word.counts_everywhere or not exists (select from word where word.counts_everywhere)
    group by word.term, word.config
    union all
    select identifier.term, identifier.slot, null, null, identifier.occurrences / 2.0
    from identifier
    union all
    -- A document with MPXV5010DP has no part of it, so the whole weighs more than a part; one with softLogout has all.
    select neighbour.term, neighbour.slot, null, null, case when neighbour.term ~ '[0-9]' then 1.5 else 0.25 end
    from neighbour
    where neighbour.term not in (select word.term from word union select identifier.term from identifier)
  ), keyed as (
    -- Counting a term takes a look-up in each segment and in each document of a tail: the first words count, for 20,000
    -- look-ups, but at least 200, and as many names.
    select early.*, rag.term_key(early.term) as key, max(early.frequency) over (partition by early.term) as times
    from (
      select term.*, dense_rank() over (partition by term.slot < 0 order by abs(term.slot)) as occurrence
      from term
    ) as early
    where early.occurrence <= greatest(200, 20000 / greatest(1, places))
  ), list as materialized (
    select whole
    from rag.term_lists(index_parts, array(select distinct keyed.key from keyed where keyed.frequency > 0), scope.model)
      as whole
  ), known as (
    select counts.*, ln(1 + (chunk_count - counts.chunks + 0.5) / (counts.chunks + 0.5)) as idf
    from (
      select (list.whole).key, sum((list.whole).documents)::bigint as documents, sum((list.whole).chunks)::bigint as chunks
      from list
      group by 1
    ) as counts
  )
  select array_agg((found.term, found.key, found.slot, found.config, found.position, found.weight, found.documents)::rag.query_term
      order by found.weight desc, found.term),
    (select array_agg(list.whole) from list)
    into keywords.terms, keywords.lists
  from (
    select slots.*, dense_rank() over (order by slots.slot_weight desc, slots.slot) as turn
    from (
      select weighted.*, max(weighted.weight) over (partition by weighted.slot) as slot_weight
      from (
        select keyed.*, known.documents, known.idf * keyed.times as weight
        from keyed join known on known.key = keyed.key
      ) as weighted
    ) as slots
  ) as found
  where found.turn <= 100;

  select sum(slots.weight) into keywords.weight_sum
  from (
    select max(query_term.weight) from unnest(keywords.terms) as query_term group by query_term.slot
  ) as slots (weight);

  select array_agg((neighbours.config, neighbours.term, neighbours.next_term,
      neighbours.next_position - neighbours.position, neighbours.weight)::rag.word_pair)
    into keywords.pairs
  from (
    select query_term.config, query_term.term, query_term.position,
      lead(query_term.term) over in_order as next_term, lead(query_term.position) over in_order as next_position,
      least(query_term.weight, lead(query_term.weight) over in_order) as weight
    from unnest(keywords.terms) as query_term
    where query_term.position is not null
    window in_order as (partition by query_term.config order by query_term.position)
  ) as neighbours
  where neighbours.next_term <> neighbours.term;
  return keywords;
end;
$$;

comment on function rag.parse_keyword_query is
  'Parses a query for the documents of a scope and omits terms that no visible chunk contains. Each language of the '
  'documents stems the query in its own way. A stop word of one language ("the", "der") is omitted in all languages. '
  'The weight of a word is its IDF times its frequency in the query, as in BM25. An identifier and its parts count '
  'half each, because they are one word. The letters of an abbreviation (e.g., U.S.) do not count. Neighbouring words are also '
  'tried as one name. Of a long question the first words and names count: at least 200 of each, and more where the index has less than 100 segments and '
  'documents in tails.';

create function rag.phrase_proximity(keywords rag.keyword_query, ids uuid[], configs oid[], contents text[])
returns table (id uuid, closeness double precision)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  terms constant text[] := array(select distinct query_term.term from unnest(keywords.terms) as query_term);
begin
  return query
  with word as materialized (
    select text.id, text.config, word.lexeme, word.positions::integer[]
    from unnest(ids, configs, contents) as text (id, config, content)
    cross join unnest(rag.words(text.config::regconfig, text.content)) as word
    where word.lexeme = any (terms)
  )
  select one.id, sum(pair.weight / (1 + (
      -- Positions ascend: the nearest of the other word are found by binary search.
      select min(least(abs(a + pair.gap - other.positions[before]), abs(a + pair.gap - other.positions[before + 1])))
      from unnest(one.positions) as a
      cross join lateral width_bucket(a + pair.gap, other.positions) as before
    ))) / keywords.weight_sum
  from unnest(keywords.pairs) as pair
  join word as one on one.config = pair.config and one.lexeme = pair.first
  join word as other on other.id = one.id and other.lexeme = pair.second
  group by one.id;
end;
$$;

comment on function rag.phrase_proximity is
  'The share of the query''s adjacent words that are adjacent in each text, 0 to 1. More and rarer pairs increase the '
  'share; words between the two words of a pair decrease it. Texts without a pair are omitted.';
