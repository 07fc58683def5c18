-- BM25 (Robertson and Zaragoza, 2009) over rag.postings, in two steps: the documents that contain most of the query,
-- with a bounded number of postings for each term; then the exact scores of those documents' chunks.

create type rag.document_key as (org_id uuid, document_id uuid);

comment on type rag.document_key is 'The key of a document.';

-- PostgREST's connections cache plans. A plan made while rag.postings was empty would scan the filled table for each
-- term until autovacuum has analyzed the table. So these functions disable sequential scans.
create function rag.rank_documents(keywords rag.keyword_query, documents rag.document_key[], wanted integer)
returns rag.document_key[]
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
  -- A nested loop would compare each posting with each term of a long query.
  set enable_nestloop = off
  -- A cached plan estimates that every word is rare. For each document it would read all postings of the word from the
  -- index of terms, which has all columns of the query.
  set enable_indexonlyscan = off
as $$
declare
  terms constant text[] := array(select distinct query_term.term from unnest(keywords.terms) as query_term);
begin
  return (
    select array_agg((ranked.org_id, ranked.document_id)::rag.document_key)
    from (
      select postings.org_id, postings.document_id
      from unnest(documents) as document
      cross join lateral (
        select org_id, document_id, term, impact
        from rag.postings
        where postings.org_id = document.org_id and postings.document_id = document.document_id
          and postings.term = any (terms)
        offset 0
      ) as postings
      join (select distinct term, weight from unnest(keywords.terms)) as query_term on query_term.term = postings.term
      group by 1, 2
      order by sum(query_term.weight * postings.impact) desc, 2
      limit wanted
    ) as ranked);
end;
$$;

comment on function rag.rank_documents is
  'The `wanted` documents that match the query best, scored by all their postings.';

-- Only the postings with the highest impacts are read. A document without a read posting may contain the term too: its
-- impact is estimated as half of the lowest impact that was read (rest). The function subtracts rest from each read
-- posting of the term, so that a common word does not favor the documents whose postings were read. With several orgs
-- it adds rest to every document of the org, so that a small org whose postings were all read has no advantage.
create function rag.top_postings(keywords rag.keyword_query, scope rag.search_scope, allowed uuid[], wanted integer,
  read integer)
returns rag.document_key[]
language plpgsql stable security invoker set search_path = ''
  set enable_seqscan = off
  -- Because of row security the planner estimates very few postings, and would read and sort all of them.
  set enable_sort = off
as $$
declare
  orgs constant integer := cardinality(scope.org_ids);
  each constant integer := greatest(wanted, read / greatest(1, orgs));
begin
  return (with list as materialized (
    -- Arrays, because window functions over so many rows take longer than reading the rows.
    select org.id as org_id, query_term.weight, taken.ids, taken.impacts, query_term.weight * taken.rest as rest
    from (
      select term, weight, sum(least(documents, each * orgs)) over (order by weight desc, term)
        - least(documents, each * orgs) as read_before
      from (select distinct term, weight, documents from unnest(keywords.terms)) as terms
    ) as query_term
    cross join unnest(scope.org_ids) as org (id)
    cross join lateral (
      select array_agg(most.document_id) as ids, array_agg(most.impact) as impacts,
        case when count(*) = each then min(most.impact) / 2 else 0 end as rest
      from (
        select document_id, impact
        from rag.postings
        where org_id = org.id and term = query_term.term
          and (scope.collection_ids is null or collection_id = any (scope.collection_ids))
        order by impact desc
        limit each
      ) as most
    ) as taken
    where query_term.read_before < 8 * read
  ), scored as (
    select list.org_id, best.document_id, sum(list.weight * best.impact - list.rest) as score
    from list, unnest(list.ids, list.impacts) as best (document_id, impact)
    where allowed is null or best.document_id in (select unnest(allowed))
    group by 1, 2
  )
  select array_agg((ranked.org_id, ranked.document_id)::rag.document_key)
  from (
    select scored.org_id, scored.document_id
    from scored
    left join (select list.org_id, sum(list.rest) as rest from list group by 1) as whole
      on orgs > 1 and whole.org_id = scored.org_id
    order by scored.score + coalesce(whole.rest, 0) desc, scored.document_id
    limit wanted
  ) as ranked);
end;
$$;

comment on function rag.top_postings is
  'The `wanted` allowed documents (null: all) that match the query best, scored by a bounded number of postings: '
  'about `read` of each term, with the highest impacts, and about eight times `read` in total. The terms with the '
  'largest weights come first.';

create function rag.collection_share(scope rag.search_scope)
returns double precision
language plpgsql stable security invoker set search_path = ''
as $$
declare
  whole rag.search_scope := scope;
begin
  whole.collection_ids := null;
  return rag.count_chunks(scope)::double precision / nullif(rag.count_chunks(whole), 0);
end;
$$;

comment on function rag.collection_share is
  'The share of its orgs'' chunks that are in the scope''s collections, by the log of term counts.';

create function rag.candidate_documents(keywords rag.keyword_query, scope rag.search_scope, wanted integer)
returns rag.document_key[]
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
as $$
declare
  read constant integer := (select settings.postings_read from rag.settings);
  left_over rag.document_key[];
begin
  if scope.collection_ids is not null and keywords.totals is null and not rag.filters_documents(scope)
    and rag.collection_share(scope) >= 0.1
  then
    -- Postings have the id of their collection. If the collection is a large part of its org, few others are read.
    return rag.top_postings(keywords, scope, null, wanted, greatest(wanted, read));
  elsif scope.collection_ids is not null or rag.filters_documents(scope) then
    execute format('select array(select (org_id, id)::rag.document_key from rag.documents where %s %s)',
      rag.where_clause(scope, 'id'), case when keywords.totals is not null then
      'and exists (select from rag.postings where postings.org_id = documents.org_id '
      'and postings.document_id = documents.id and postings.term = any ($2))' end)
      into left_over using scope, keywords.totals;
  elsif keywords.totals is not null then
    left_over := array(
      select (postings.org_id, postings.document_id)::rag.document_key
      from rag.postings
      where postings.org_id = any (scope.org_ids) and postings.term = any (keywords.totals));
  else
    return rag.top_postings(keywords, scope, null, wanted, greatest(wanted, read));
  end if;

  -- A few documents are looked up one by one. For many, postings are read: more of them, since most may not be allowed.
  if cardinality(left_over) <= 4 * read then
    return rag.rank_documents(keywords, left_over, wanted);
  end if;
  return rag.top_postings(keywords, scope, array(select document_id from unnest(left_over)), wanted, 20 * read);
end;
$$;

comment on function rag.candidate_documents is
  'The documents of a scope that match the query best: all that contain a term, or about the best `wanted`.';

create function rag.bm25_scores(keywords rag.keyword_query, documents rag.document_key[])
returns table (org_id uuid, document_id uuid, ordinal integer, score double precision)
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
  set enable_nestloop = off set enable_indexonlyscan = off
as $$
#variable_conflict use_column
declare
  k1 double precision;
  own_share double precision;
  -- k1 * (1 - b) and k1 * b / mean length, of chunks and of documents.
  fixed double precision;
  by_chunk double precision;
  by_document double precision;
  terms constant text[] := array(select distinct query_term.term from unnest(keywords.terms) as query_term);
begin
  -- The mean length is 0 if no text has a term.
  select bm25_k1, 1 - document_share, bm25_k1 * (1 - bm25_b),
    bm25_k1 * bm25_b / nullif(keywords.chunk_length, 0), bm25_k1 * bm25_b / nullif(keywords.document_length, 0)
    into k1, own_share, fixed, by_chunk, by_document
  from rag.settings;

  -- Window functions instead of joins: the planner estimates few rows and would choose nested loops.
  return query
  with posting as materialized (
    select wanted.org_id, wanted.document_id, found.places, query_term.weight / keywords.weight_sum as weight,
      fixed + by_document * found.length as holds_back, (
        select sum(place & 65535)::double precision from unnest(found.places) as place
      ) as occurrences
    from (select distinct org_id, document_id from unnest(documents)) as wanted
    -- With offset 0 the planner looks a document's terms up; otherwise it would read all terms of the document.
    cross join lateral (
      select term, places, length
      from rag.postings
      where postings.org_id = wanted.org_id and postings.document_id = wanted.document_id
        and postings.term = any (terms)
      offset 0
    ) as found
    join (select distinct term, weight from unnest(keywords.terms)) as query_term on query_term.term = found.term
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
  -- The factor k1 + 1 is in a term's score and in the highest possible score, so it cancels out. Rounding may make a
  -- sum slightly greater than 1.
  select part.org_id, part.document_id, part.ordinal,
    least(1, own_share * part.score + (1 - own_share) * part.whole_score)
  from part;
end;
$$;

comment on function rag.bm25_scores is
  'The scores, 0 to 1, of the documents'' chunks that contain a term of the query. 1 is the limit for infinitely many '
  'occurrences of all terms. The score of the whole document is part of a chunk''s score, because a short passage may '
  'lack its context. The score of a term that occurs n times in a text of length l, before the division by the highest '
  'possible score: weight * n * (k1 + 1) / (n + k1 * (1 - b + b * l / mean length)).';
