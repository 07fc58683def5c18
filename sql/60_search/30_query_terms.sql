-- Parsed keyword queries: the terms of a query, how rare they are, and which of them are adjacent.

create type rag.query_term as (
  term text, slot integer, config oid, place integer, idf double precision, chunks bigint, documents bigint
);

comment on type rag.query_term is
  'A term of a question. Terms of one slot are the same word as several languages stem it, often to the same term; '
  'place is where it stands in the question, null for identifiers. config: a regconfig, which no type should hold '
  'that an upgrade carries over.';

create type rag.word_pair as (
  config oid, first text, second text, gap integer, weight double precision
);

comment on type rag.word_pair is 'Two words that follow each other in a question, that many places apart.';

create type rag.keyword_query as (
  terms rag.query_term[], pairs rag.word_pair[], idf_sum double precision,
  chunk_length double precision, document_length double precision, totals text[]
);

comment on type rag.keyword_query is
  'A question taken apart: its 40 rarest words at most, rarest first; its pairs; the sum of idf that a chunk which '
  'holds everything would have; the mean lengths, in terms, that BM25 compares with; and, where there are other '
  'embedding models too, the terms that stand for a whole document of the one that is asked for.';

create function rag.parse_keyword_query(query_text text, scope rag.search_scope)
returns rag.keyword_query
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
as $$
declare
  keywords rag.keyword_query;
  configs regconfig[];
  chunk_count bigint;
begin
  select array_agg(distinct rag.config_of_total(total.term)), sum(total.chunks),
    sum(total.length) / sum(total.chunks), sum(total.length) / sum(total.documents),
    case when bool_or(rag.model_of_total(total.term) <> scope.model) then coalesce(
      array_agg(total.term) filter (where rag.model_of_total(total.term) = scope.model), '{}') end
    into configs, chunk_count, keywords.chunk_length, keywords.document_length, keywords.totals
  from (
    select counts.term, sum(counts.documents) as documents, sum(counts.chunks) as chunks,
      sum(counts.length) as length
    from unnest(scope.org_ids) as org (id)
    cross join lateral (
      select term_counts.*
      from rag.term_counts
      where term_counts.org_id = org.id and term_counts.term >= ' ' and term_counts.term < '!'
      offset 0
    ) as counts
    where scope.collection_ids is null or counts.collection_id = any (scope.collection_ids)
    group by counts.term
    having sum(counts.chunks) > 0
  ) as total;

  with word as (
    select languages.config, word.lexeme as term, place,
      count(*) over (partition by place) = cardinality(configs) as counts_everywhere
    from unnest(configs) as languages (config), unnest(rag.words(languages.config, query_text)) as word,
      unnest(word.positions) as place
  ), term as (
    select word.term, min(word.place)::integer as slot, word.config, min(word.place)::integer as place
    from word
    where word.counts_everywhere or not exists (select from word where word.counts_everywhere)
    group by word.term, word.config
    union all
    select found.term, -row_number() over (), null, null
    from (select distinct identifier from rag.identifiers(query_text) as identifier) as found (term)
  ), known as (
    select counts.term, sum(counts.chunks) as chunks, sum(counts.documents) as documents
    from (select distinct term.term from term) as wanted
    cross join unnest(scope.org_ids) as org (id)
    cross join lateral (
      select term_counts.*
      from rag.term_counts
      where term_counts.org_id = org.id and term_counts.term = wanted.term
      offset 0
    ) as counts
    where scope.collection_ids is null or counts.collection_id = any (scope.collection_ids)
    group by counts.term
    having sum(counts.chunks) > 0
  )
  select array_agg((found.term, found.slot, found.config, found.place,
      ln(1 + (chunk_count - found.chunks + 0.5) / (found.chunks + 0.5)), found.chunks, found.documents)::rag.query_term
      order by found.chunks, found.term)
    into keywords.terms
  from (
    select slots.*, dense_rank() over (order by slots.rarest, slots.slot) as turn
    from (
      select term.*, known.chunks, known.documents, min(known.chunks) over (partition by term.slot) as rarest
      from term join known on known.term = term.term
    ) as slots
  ) as found
  where found.turn <= 40;

  select sum(slots.idf) into keywords.idf_sum
  from (select max(query_term.idf) from unnest(keywords.terms) as query_term group by query_term.slot) as slots (idf);

  select array_agg((neighbours.config, neighbours.term, neighbours.next_term,
      neighbours.next_place - neighbours.place, neighbours.weight)::rag.word_pair)
    into keywords.pairs
  from (
    select query_term.config, query_term.term, query_term.place,
      lead(query_term.term) over in_order as next_term, lead(query_term.place) over in_order as next_place,
      least(query_term.idf, lead(query_term.idf) over in_order) as weight
    from unnest(keywords.terms) as query_term
    where query_term.place is not null
    window in_order as (partition by query_term.config order by query_term.place)
  ) as neighbours
  where neighbours.next_term <> neighbours.term;
  return keywords;
end;
$$;

comment on function rag.parse_keyword_query is
  'What a text asks for among the documents of a scope: only terms that some visible chunk holds. The languages are '
  'those of the documents; each stems the text in its own way, and a word that one of them passes over ("the", '
  '"der") counts in none.';

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
    select text.id, text.config, word.lexeme, word.positions
    from unnest(ids, configs, contents) as text (id, config, content)
    cross join unnest(rag.words(text.config::regconfig, text.content)) as word
    where word.lexeme = any (terms)
  )
  select one.id, sum(pair.weight / (1 + (
      select min(abs(b - a - pair.gap)) from unnest(one.positions) as a, unnest(other.positions) as b
    ))) / keywords.idf_sum
  from unnest(keywords.pairs) as pair
  join word as one on one.config = pair.config and one.lexeme = pair.first
  join word as other on other.id = one.id and other.lexeme = pair.second
  group by one.id;
end;
$$;

comment on function rag.phrase_proximity is
  'How much of what is asked stands together in each text as it was asked, 0 to 1: the more, the more of its words '
  'follow each other as they do in the question, the rarer those are and the fewer stand between. Texts where no '
  'two do are left out.';
