-- BM25 (Robertson and Zaragoza, 2009) over the keyword index, in two steps: the documents that match the query best by
-- impacts; then the exact scores of those documents' chunks.

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

-- A document's score for choosing candidates is the sum of weight * impact of its terms. The impacts of frequent terms are
-- summed as vectors of all the documents of a segment; the sums of entries are added to them.
create function rag.best_by_impact(keywords rag.keyword_query, scope rag.search_scope, allowed uuid[], wanted integer)
returns rag.document_key[]
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off set join_collapse_limit = 1
as $$
declare
  most_entries constant integer := 50000;
  most integer := case when allowed is null then 4 * wanted end;
  seen bigint;
  best rag.document_key[];
begin
  loop
    with term_list as materialized (
      select lists.*, query_term.weight / 511 as weight,
        sum(cardinality(lists.entries)) over (order by query_term.weight desc, lists.key) as read
      from unnest(keywords.lists) as lists
      join (select distinct key, weight from unnest(keywords.terms)) as query_term on query_term.key = lists.key
      where lists.entries <> '{}' or lists.impacts is not null
    ), list as materialized (
      select * from term_list where term_list.segment is not null and (term_list.read <= most_entries or term_list.entries = '{}')
    ), frequent as materialized (
      select list.part, extensions.sum(list.impacts::extensions.vector operator(extensions.*)
        array_fill(list.weight::real, array[extensions.vector_dims(list.impacts)])::extensions.vector)::real[] as scores
      from list
      where list.impacts is not null
      group by 1
    ), scored as (
      select either.place >> 32 as part, either.place & 65535 as number, max(either.score) as score
      from (
        (select each.part::bigint << 32 | each.number as place, each.score
        from (
          select frequent.part, unnest(frequent.scores) as score, generate_subscripts(frequent.scores, 1) as number
          from frequent
        ) as each
        where each.score > 0
        order by each.score desc
        limit most)
        union all
        (select summed.place, summed.score + coalesce(frequent.scores[summed.place & 65535], 0)
        from (
          select (each.part::bigint << 32) | (each.entry & 65535) as place, sum(each.weight * (each.entry >> 16)) as score
          from (select list.part, list.weight, unnest(list.entries) as entry from list) as each
          group by 1
        ) as summed
        left join frequent on frequent.part = summed.place >> 32
        order by 2 desc
        limit most)
      ) as either
      group by either.place
    ), tail_score as (
      select term_list.org_id, term_list.document_id, sum(term_list.weight * (term_list.entries[1] >> 16)) as score
      from term_list
      where term_list.segment is null and (allowed is null or term_list.document_id in (select unnest(allowed)))
      group by 1, 2
    )
    select array_agg((found.org_id, found.document_id)::rag.document_key), (select count(*) from scored) into best, seen
    from (
      select * from (
        -- Documents are looked up in this order, until there are enough.
        (select ranked.org_id, stored.document_id, ranked.score
        from (
          select home.*, scored.number, scored.score
          from scored
          join (select distinct list.part, list.org_id, list.class, list.segment from list) as home using (part)
          order by scored.score desc, scored.part, scored.number
          offset 0
        ) as ranked
        cross join lateral (
          select document_terms.document_id
          from rag.document_terms
          where document_terms.org_id = ranked.org_id and document_terms.class = ranked.class
            and document_terms.segment = ranked.segment and document_terms.number = ranked.number
            and document_terms.embedding_model = scope.model
          offset 0
        ) as stored
        where allowed is null or stored.document_id in (select unnest(allowed))
        order by ranked.score desc, ranked.part, ranked.number
        limit wanted)
        union all
        (select * from tail_score order by score desc, document_id limit wanted)
      ) as both_parts
      order by score desc, document_id
      limit wanted
    ) as found;
    -- While the embedding model changes, the first may all be documents of the other one.
    exit when most is null or seen < most or cardinality(best) = wanted;
    most := null;
  end loop;
  return best;
end;
$$;

comment on function rag.best_by_impact is
  'The `wanted` allowed documents (null: all) that match the query best, by the impacts of their terms. Of the terms with '
  'entries, those with the largest weights count, up to 50,000 entries.';

create function rag.candidate_documents(keywords rag.keyword_query, scope rag.search_scope, wanted integer)
returns rag.document_key[]
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
as $$
declare
  left_over rag.document_key[];
begin
  if not rag.filters_documents(scope) then
    return rag.best_by_impact(keywords, scope, null, wanted);
  end if;
  execute format('select array(select (org_id, id)::rag.document_key from rag.documents where %s)',
    rag.where_clause(scope, 'id')) into left_over using scope;
  -- A few documents are looked up one by one.
  if cardinality(left_over) <= 1000 then
    return rag.rank_documents(keywords, left_over, scope.model, wanted);
  end if;
  return rag.best_by_impact(keywords, scope, array(select document_id from unnest(left_over)), wanted);
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
