-- BM25 (Robertson and Zaragoza, 2009) over the keyword index, in two steps: the documents that contain most of the query,
-- with a bounded number of entries for each term; then the exact scores of those documents' chunks.

create type rag.document_key as (org_id uuid, document_id uuid);

comment on type rag.document_key is 'The key of a document.';

create function rag.rank_documents(keywords rag.keyword_query, documents rag.document_key[], model text, wanted integer)
returns rag.document_key[]
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off set join_collapse_limit = 1
as $$
begin
  return (
    select array_agg((ranked.org_id, ranked.document_id)::rag.document_key)
    from (
      select document.org_id, document.document_id
      from (select distinct org_id, document_id from unnest(documents)) as document
      cross join lateral (
        -- The concatenation reads a long array from TOAST once.
        select stored.terms || '{}' as terms, stored.places || '{}' as places
        from rag.document_terms as stored
        where stored.org_id = document.org_id and stored.document_id = document.document_id
          and stored.embedding_model = model
        offset 0
      ) as present
      cross join (select distinct key, weight from unnest(keywords.terms)) as query_term
      cross join lateral (select width_bucket(query_term.key, present.terms) as i offset 0) as place
      where present.terms[place.i] = query_term.key
      group by 1, 2
      order by sum(query_term.weight * (present.places[place.i] >> 54)) desc, 2
      limit wanted
    ) as ranked);
end;
$$;

comment on function rag.rank_documents is
  'The `wanted` documents of the model that match the query best, by the impacts of all their terms.';

-- Only the entries with the highest impacts are read. A document without a read entry may contain the term too: its impact
-- is estimated as half of the highest impact that was not read (rest). The function subtracts rest from each read entry of
-- the term, and adds it to every document of the segment: neither a common word favors the documents whose entries were
-- read, nor a small segment whose entries were all read.
create function rag.best_entries(keywords rag.keyword_query, scope rag.search_scope, allowed uuid[], wanted integer,
  read integer)
returns rag.document_key[]
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off set join_collapse_limit = 1
set enable_memoize = off
as $$
declare
  best rag.document_key[];
begin
  with query_term as materialized (
    select term.key, term.weight / 511 as weight, sum(least(term.documents, read))
      over (order by term.weight desc, term.key) - least(term.documents, read) as read_before
    from (select distinct key, weight, documents from unnest(keywords.terms)) as term
  ), term_list as materialized (
    select lists.*, query_term.weight
    from unnest(keywords.lists) as lists
    join query_term on query_term.key = lists.key
    where query_term.read_before < 8 * read and lists.entries is distinct from '{}'
  ), list as materialized (
    -- The look-up is that of rag.term_lists. Arrays, because window functions over so many rows take longer than reading them.
    select term_list.part, term_list.org_id, term_list.class, term_list.segment, term_list.weight, term_list.entries, 0 as rest
    from term_list
    where term_list.segment is not null and term_list.entries is not null
    union all
    select term_list.part, term_list.org_id, term_list.class, term_list.segment, term_list.weight,
      block.entries[span.before + 1 : least(span.last, span.before + each.read)],
      case when span.before + each.read < span.last
        then term_list.weight * (block.entries[span.before + each.read + 1] >> 16) / 2 else 0 end
    from term_list
    cross join (
      select ceil(read * least(2, parts.number) / nullif(parts.number, 0))::integer as read
      from (
        select count(distinct term_list.part)::double precision as number
        from term_list
        where term_list.segment is not null
      ) as parts
      offset 0
    ) as each
    cross join lateral (
      select blocks.terms, blocks.ends, blocks.entries
      from rag.term_blocks as blocks
      where blocks.org_id = term_list.org_id and blocks.class = term_list.class and blocks.segment = term_list.segment
        and blocks.first <= term_list.key
      order by blocks.first desc
      limit 1
    ) as block
    cross join lateral (select width_bucket(term_list.key, block.terms) as i offset 0) as place
    cross join lateral (
      select block.ends[place.i] as last, coalesce(block.ends[place.i - 1], 0) as before offset 0
    ) as span
    where term_list.entries is null
  ), scored as (
    select list.part, entry & 65535 as number, sum(list.weight * (entry >> 16) - list.rest) as score
    from list, unnest(list.entries) as entry
    group by 1, 2
  ), segment_score as (
    select whole.org_id, whole.class, whole.segment, scored.number, scored.score + whole.rest as estimate
    from scored
    join (
      select list.part, list.org_id, list.class, list.segment, sum(list.rest) as rest from list group by 1, 2, 3, 4
    ) as whole on whole.part = scored.part
  ), tail_score as (
    select term_list.org_id, term_list.document_id, sum(term_list.weight * (term_list.entries[1] >> 16)) as score
    from term_list
    where term_list.segment is null and (allowed is null or term_list.document_id in (select unnest(allowed)))
    group by 1, 2
  )
  select array_agg((found.org_id, found.document_id)::rag.document_key) into best
  from (
    select * from (
      -- Documents are looked up in this order, until there are enough.
      (select ranked.org_id, stored.document_id, ranked.estimate as score
      from (select * from segment_score order by estimate desc, segment, number offset 0) as ranked
      cross join lateral (
        select document_terms.document_id
        from rag.document_terms
        where document_terms.org_id = ranked.org_id and document_terms.class = ranked.class
          and document_terms.segment = ranked.segment and document_terms.number = ranked.number
          and document_terms.embedding_model = scope.model
        offset 0
      ) as stored
      where allowed is null or stored.document_id in (select unnest(allowed))
      order by ranked.estimate desc, ranked.segment, ranked.number
      limit wanted)
      union all
      (select * from tail_score order by score desc, document_id limit wanted)
    ) as both_parts
    order by score desc, document_id
    limit wanted
  ) as found;
  return best;
end;
$$;

comment on function rag.best_entries is
  'The `wanted` allowed documents (null: all) that match the query best, by a bounded number of entries: about `read` of '
  'each term, with the highest impacts, and about eight times `read` in total. The terms with the largest weights come '
  'first. The tails are read as a whole.';

create function rag.candidate_documents(keywords rag.keyword_query, scope rag.search_scope, wanted integer)
returns rag.document_key[]
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
as $$
declare
  read constant integer := (select greatest(wanted, settings.postings_read) from rag.settings);
  left_over rag.document_key[];
begin
  if not rag.filters_documents(scope) then
    return rag.best_entries(keywords, scope, null, wanted, read);
  end if;
  execute format('select array(select (org_id, id)::rag.document_key from rag.documents where %s)',
    rag.where_clause(scope, 'id')) into left_over using scope;
  -- A few documents are looked up one by one. For many, entries are read: more of them, since most may not be allowed.
  if cardinality(left_over) <= 1000 then
    return rag.rank_documents(keywords, left_over, scope.model, wanted);
  end if;
  return rag.best_entries(keywords, scope, array(select document_id from unnest(left_over)), wanted, 5 * read);
end;
$$;

comment on function rag.candidate_documents is
  'The documents of a scope that match the query best: all that contain a term, or about the best `wanted`.';

create function rag.bm25_scores(keywords rag.keyword_query, documents rag.document_key[])
returns table (org_id uuid, document_id uuid, ordinal integer, score double precision)
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off set join_collapse_limit = 1
as $$
#variable_conflict use_column
declare
  k1 double precision;
  own_share double precision;
  -- k1 * (1 - b) and k1 * b / mean length, of chunks and of documents.
  fixed double precision;
  by_chunk double precision;
  by_document double precision;
begin
  -- The mean length is 0 if no text has a term.
  select bm25_k1, 1 - document_share, bm25_k1 * (1 - bm25_b),
    bm25_k1 * bm25_b / nullif(keywords.chunk_length, 0), bm25_k1 * bm25_b / nullif(keywords.document_length, 0)
    into k1, own_share, fixed, by_chunk, by_document
  from rag.settings;

  -- Window functions instead of joins: the planner estimates few rows and would choose nested loops.
  return query
  with posting as materialized (
    select wanted.org_id, wanted.document_id,
      found.places[width_bucket(query_term.key - 1, found.terms) + 1 : place.last] as places,
      query_term.weight / keywords.weight_sum as weight, fixed + by_document * found.length as holds_back
    from (select distinct org_id, document_id from unnest(documents)) as wanted
    cross join lateral (
      select stored.length, stored.terms || '{}' as terms, stored.places || '{}' as places
      from rag.document_terms as stored
      where stored.org_id = wanted.org_id and stored.document_id = wanted.document_id
      offset 0
    ) as found
    cross join (select distinct key, weight from unnest(keywords.terms)) as query_term
    cross join lateral (select width_bucket(query_term.key, found.terms) as last offset 0) as place
    where found.terms[place.last] = query_term.key
  ), whole as (
    select posting.*, sum(posting.weight * counted.occurrences / (counted.occurrences + posting.holds_back))
      over (partition by posting.org_id, posting.document_id) as score
    from posting
    cross join lateral (
      select sum(place & 65535)::double precision as occurrences from unnest(posting.places) as place
    ) as counted
  ), part as (
    select whole.org_id, whole.document_id, (place >> 32)::integer & 4194303 as ordinal, whole.score as whole_score,
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
