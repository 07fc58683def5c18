-- The chunks that say what a question says: BM25 (Robertson and Zaragoza, 2009) over rag.postings, in three
-- steps. What is sought, and how rare it is; which documents have most of it, reading a bounded number of
-- postings for each term; and the exact scores of those documents' chunks.

-- A term of a question. Terms of one slot are the same word as several languages stem it, often to the same
-- term; place is where it stands in the question, null for identifiers. config: a regconfig, which no type
-- should hold that an upgrade carries over.
create type rag.sought as (
  term text, slot integer, config oid, place integer, idf double precision, chunks bigint
);

-- Two words that follow each other in a question, that many places apart.
create type rag.word_pair as (
  config oid, first text, second text, gap integer, weight double precision
);

-- A question taken apart: its terms, rarest first, at most 40; its pairs; the sum of idf that a chunk which
-- holds everything would have; the mean lengths, in terms, that BM25 compares with; and, where there are
-- other embedding models too, the terms that stand for a whole document of the one that is asked for.
create type rag.question as (
  sought rag.sought[], pairs rag.word_pair[], idf_sum double precision,
  chunk_length double precision, document_length double precision, totals text[]
);

create type rag.reference as (org_id uuid, document_id uuid);

-- What a text asks for among the documents of a scope: only terms that some visible chunk holds. The languages
-- are those of the documents; each stems the text in its own way, and a word that one of them passes over
-- ("the", "der") counts in none.
create function rag.question(query_text text, scope rag.scope)
returns rag.question
language plpgsql stable security invoker set search_path = ''
as $$
declare
  asked rag.question;
  configs regconfig[];
  chunk_count bigint;
begin
  select array_agg(distinct rag.config_of_total(total.term)), sum(total.chunks),
    sum(total.length) / sum(total.chunks), sum(total.length) / sum(total.documents),
    case when bool_or(rag.model_of_total(total.term) <> scope.model) then coalesce(
      array_agg(total.term) filter (where rag.model_of_total(total.term) = scope.model), '{}') end
    into configs, chunk_count, asked.chunk_length, asked.document_length, asked.totals
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
    select counts.term, sum(counts.chunks) as chunks
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
  select (array_agg((term.term, term.slot, term.config, term.place,
      ln(1 + (chunk_count - known.chunks + 0.5) / (known.chunks + 0.5)), known.chunks)::rag.sought
      order by known.chunks, term.term))[:40]
    into asked.sought
  from term join known on known.term = term.term;

  select sum(slots.idf) into asked.idf_sum
  from (select max(sought.idf) from unnest(asked.sought) as sought group by sought.slot) as slots (idf);

  select array_agg((neighbours.config, neighbours.term, neighbours.next_term,
      neighbours.next_place - neighbours.place, neighbours.weight)::rag.word_pair)
    into asked.pairs
  from (
    select sought.config, sought.term, sought.place,
      lead(sought.term) over in_order as next_term, lead(sought.place) over in_order as next_place,
      least(sought.idf, lead(sought.idf) over in_order) as weight
    from unnest(asked.sought) as sought
    where sought.place is not null
    window in_order as (partition by sought.config order by sought.place)
  ) as neighbours
  where neighbours.next_term <> neighbours.term;
  return asked;
end;
$$;

-- The documents of a scope with most of what is asked: all that hold a term of it, or at least `wanted`, as far
-- as a bounded number of postings tell: of each term those with the most of it, the rarest terms first, and four
-- times the bound in all.
create function rag.documents_with(asked rag.question, scope rag.scope, wanted integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- Filters that postings do not know.
  filtered constant boolean := not (scope.source_types, scope.lang, scope.date_from, scope.date_to,
    scope.document_ids, scope.without_document) is null;
  conditions constant text := rag.conditions(scope, 'id');
  -- Up to so many documents are looked up one by one.
  few constant integer := 500;
  read constant integer := greatest(wanted, (select settings.postings_read from rag.settings));
  sorting constant text := current_setting('enable_sort');
  terms constant text[] := array(select distinct sought.term from unnest(asked.sought) as sought);
  left_over rag.reference[];
  found rag.reference[];
begin
  if filtered or scope.collection_ids is not null then
    execute format('select array(select (org_id, id)::rag.reference from rag.documents where %s limit $2)',
      conditions) into left_over using scope, few + 1;
  end if;

  if cardinality(left_over) <= few then
    select array_agg((ranked.org_id, ranked.document_id)::rag.reference) into found
    from (
      select postings.org_id, postings.document_id
      from unnest(left_over) as left_over
      cross join lateral (
        select org_id, document_id, term, impact
        from rag.postings
        where postings.org_id = left_over.org_id and postings.document_id = left_over.document_id
          and postings.term = any (terms)
        offset 0
      ) as postings
      join (select distinct term, idf from unnest(asked.sought)) as sought on sought.term = postings.term
      where asked.totals is null or exists (
        select from rag.postings as whole
        where whole.org_id = left_over.org_id and whole.document_id = left_over.document_id
          and whole.term = any (asked.totals))
      group by 1, 2
      order by sum(sought.idf * postings.impact) desc, 2
      limit wanted
    ) as ranked;
    return found;
  end if;

  -- Row security makes the planner believe that hardly a posting is left: it would read them all and sort.
  perform set_config('enable_sort', 'off', true);
  execute format($query$
    select array_agg((ranked.org_id, ranked.document_id)::rag.reference)
    from (
      select best.org_id, best.document_id
      from (
        select term, idf, sum(least(chunks, $3)) over (order by chunks, term) - least(chunks, $3) as read_before
        from (select distinct term, idf, chunks from unnest($2)) as terms
      ) as sought
      cross join unnest(($1).org_ids) as org (id)
      cross join lateral (
        select org_id, document_id, impact
        from rag.postings
        where org_id = org.id and term = sought.term
          and (($1).collection_ids is null or collection_id = any (($1).collection_ids)) %s %s
        order by impact desc
        limit $3
      ) as best
      %s
      group by 1, 2
      order by sum(sought.idf * best.impact) desc, 2
      limit $4
    ) as ranked
  $query$, case when filtered then format(
    'and exists (select from rag.documents where %s and org_id = postings.org_id and id = postings.document_id)',
    conditions) end, case when asked.totals is not null then
    'and exists (select from rag.postings as whole where whole.org_id = postings.org_id '
    'and whole.document_id = postings.document_id and whole.term = any ($5))' end,
    -- Enough for every page, unless filters take most of it away.
    case when left_over is null and asked.totals is null then 'where read_before < 4 * $3' end)
    into found using scope, asked.sought, read, wanted, asked.totals;
  perform set_config('enable_sort', sorting, true);
  return found;
end;
$$;

-- The documents' chunks that hold something of what is asked, and their scores: 0 to 1, where 1 would be
-- everything that is asked, for ever repeated. A chunk's score is in part its whole document's, which tells
-- what a short passage leaves unsaid. For n occurrences in a text of length l, a term's is
--
--     idf * n * (k1 + 1) / (n + k1 * (1 - b + b * l / mean length))
create function rag.word_scores(asked rag.question, documents rag.reference[])
returns table (org_id uuid, document_id uuid, ordinal integer, score double precision)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  k1 double precision;
  own_share double precision;
  -- k1 * (1 - b) and k1 * b / mean length, of chunks and of documents.
  fixed double precision;
  by_chunk double precision;
  by_document double precision;
  terms constant text[] := array(select distinct sought.term from unnest(asked.sought) as sought);
begin
  -- A mean of 0: texts without a single term.
  select bm25_k1, 1 - document_share, bm25_k1 * (1 - bm25_b),
    bm25_k1 * bm25_b / nullif(asked.chunk_length, 0), bm25_k1 * bm25_b / nullif(asked.document_length, 0)
    into k1, own_share, fixed, by_chunk, by_document
  from rag.settings;

  -- Windows instead of joins, which the planner would nest: it expects hardly a row.
  return query
  with posting as materialized (
    select wanted.org_id, wanted.document_id, found.places, sought.idf / asked.idf_sum as weight,
      fixed + by_document * found.length as holds_back, (
        select sum(place & 65535)::double precision from unnest(found.places) as place
      ) as occurrences
    from (select distinct org_id, document_id from unnest(documents)) as wanted
    -- Offset 0 keeps this a look-up of a document's terms: the planner would read all that it has.
    cross join lateral (
      select term, places, length
      from rag.postings
      where postings.org_id = wanted.org_id and postings.document_id = wanted.document_id
        and postings.term = any (terms)
      offset 0
    ) as found
    join (select distinct term, idf from unnest(asked.sought)) as sought on sought.term = found.term
  ), whole as (
    select posting.*, sum(posting.weight * posting.occurrences / (posting.occurrences + posting.holds_back))
      over (partition by posting.org_id, posting.document_id) as score
    from posting
  ), part as (
    select whole.org_id, whole.document_id, (place >> 32)::integer as ordinal, whole.score as whole_score,
      sum(whole.weight * (place & 65535) / ((place & 65535) + fixed + by_chunk * ((place >> 16) & 65535))) as score
    from whole, unnest(whole.places) as place
    group by 1, 2, 3, 4
  )
  -- k1 + 1 stands above and below, in a term's score and in the best that there could be. A sum may
  -- leave 1 behind by its last bits.
  select part.org_id, part.document_id, part.ordinal,
    least(1, own_share * part.score + (1 - own_share) * part.whole_score)
  from part;
end;
$$;

-- How much of what is asked stands together in a text as it was asked, 0 to 1: the more, the more of its
-- words follow each other as they do in the question, the rarer those are and the fewer stand between.
create function rag.closeness(asked rag.question, config regconfig, content text)
returns double precision
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    with word as materialized (
      select word.lexeme, word.positions
      from unnest(rag.words(config, content)) as word
      where word.lexeme in (select sought.term from unnest(asked.sought) as sought)
    )
    select coalesce(sum(pair.weight / (1 + (
        select min(abs(b - a - pair.gap)) from unnest(one.positions) as a, unnest(other.positions) as b
      ))), 0) / asked.idf_sum
    from unnest(asked.pairs) as pair
    join word as one on one.lexeme = pair.first
    join word as other on other.lexeme = pair.second
    where pair.config = closeness.config);
end;
$$;

revoke all on function rag.question(text, rag.scope), rag.documents_with(rag.question, rag.scope, integer),
  rag.word_scores(rag.question, rag.reference[]), rag.closeness(rag.question, regconfig, text)
  from public, anon, service_role;
grant execute on function rag.question(text, rag.scope), rag.documents_with(rag.question, rag.scope, integer),
  rag.word_scores(rag.question, rag.reference[]), rag.closeness(rag.question, regconfig, text)
  to authenticated;
