-- The chunks that say what a question says: BM25 (Robertson and Zaragoza, 2009) over rag.postings, in two
-- steps. Which documents have most of what is asked, reading a bounded number of postings for each term; and
-- the exact scores of those documents' chunks.

create type rag.reference as (org_id uuid, document_id uuid);

-- Those of the documents that have most of what is asked, by all their postings.
create function rag.best_among(asked rag.question, documents rag.reference[], wanted integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  terms constant text[] := array(select distinct sought.term from unnest(asked.sought) as sought);
begin
  return (
    select array_agg((ranked.org_id, ranked.document_id)::rag.reference)
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
      join (select distinct term, idf from unnest(asked.sought)) as sought on sought.term = postings.term
      where asked.totals is null or exists (
        select from rag.postings as whole
        where whole.org_id = document.org_id and whole.document_id = document.document_id
          and whole.term = any (asked.totals))
      group by 1, 2
      order by sum(sought.idf * postings.impact) desc, 2
      limit wanted
    ) as ranked);
end;
$$;

-- The documents with most of what is asked, as far as a bounded number of postings tells: of each term `read`
-- with the most of it, the rarest terms first, and eight times as many in all. One that is not among them may
-- hold the term too, and about half as much as the last that is: so much less is each of those worth, or else
-- a document would gain by a common word that others only seem to lack.
create function rag.best_by_impact(asked rag.question, scope rag.scope, wanted integer, read integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  sorting constant text := current_setting('enable_sort');
  found rag.reference[];
begin
  -- Row security makes the planner believe that hardly a posting is left: it would read them all and sort.
  perform set_config('enable_sort', 'off', true);
  select array_agg((ranked.org_id, ranked.document_id)::rag.reference) into found
  from (
    select best.org_id, best.document_id
    from (
      select term, idf, sum(least(chunks, read)) over (order by chunks, term) - least(chunks, read) as read_before
      from (select distinct term, idf, chunks from unnest(asked.sought)) as terms
    ) as sought
    cross join unnest(scope.org_ids) as org (id)
    cross join lateral (
      select org_id, document_id,
        impact - case when count(*) over () = read then min(impact) over () / 2 else 0 end as impact
      from (
        select org_id, document_id, impact
        from rag.postings
        where org_id = org.id and term = sought.term
        order by impact desc
        limit read
      ) as most
    ) as best
    where read_before < 8 * read
    group by 1, 2
    order by sum(sought.idf * best.impact) desc, 2
    limit wanted
  ) as ranked;
  perform set_config('enable_sort', sorting, true);
  return found;
end;
$$;

-- The same among what filters leave, planned for them. All terms are read: filters may take most of it away.
create function rag.best_by_impact_filtered(asked rag.question, scope rag.scope, wanted integer, read integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  sorting constant text := current_setting('enable_sort');
  found rag.reference[];
begin
  perform set_config('enable_sort', 'off', true);
  execute format($query$
    select array_agg((ranked.org_id, ranked.document_id)::rag.reference)
    from (
      select best.org_id, best.document_id
      from (select distinct term, idf from unnest($2)) as sought
      cross join unnest(($1).org_ids) as org (id)
      cross join lateral (
        select org_id, document_id,
          impact - case when count(*) over () = $3 then min(impact) over () / 2 else 0 end as impact
        from (
          select org_id, document_id, impact
          from rag.postings
          where org_id = org.id and term = sought.term
            and (($1).collection_ids is null or collection_id = any (($1).collection_ids)) %s %s
          order by impact desc
          limit $3
        ) as most
      ) as best
      group by 1, 2
      order by sum(sought.idf * best.impact) desc, 2
      limit $4
    ) as ranked
  $query$, case when rag.filters_documents(scope) then format(
    'and exists (select from rag.documents where %s and org_id = postings.org_id and id = postings.document_id)',
    rag.conditions(scope, 'id')) end, case when asked.totals is not null then
    'and exists (select from rag.postings as whole where whole.org_id = postings.org_id '
    'and whole.document_id = postings.document_id and whole.term = any ($5))' end)
    into found using scope, asked.sought, read, wanted, asked.totals;
  perform set_config('enable_sort', sorting, true);
  return found;
end;
$$;

-- The documents of a scope with most of what is asked: all that hold a term of it, or about the best `wanted`.
create function rag.documents_with(asked rag.question, scope rag.scope, wanted integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  filtered constant boolean := scope.collection_ids is not null or rag.filters_documents(scope);
  -- Up to so many documents are looked up one by one.
  few constant integer := 500;
  read constant integer := greatest(wanted, (select settings.postings_read from rag.settings));
  left_over rag.reference[];
begin
  if filtered then
    execute format('select array(select (org_id, id)::rag.reference from rag.documents where %s limit $2)',
      rag.conditions(scope, 'id')) into left_over using scope, few + 1;
    if cardinality(left_over) <= few then
      return rag.best_among(asked, left_over, wanted);
    end if;
  elsif asked.totals is null then
    return rag.best_by_impact(asked, scope, wanted, read);
  end if;
  return rag.best_by_impact_filtered(asked, scope, wanted, read);
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

revoke all on function rag.best_among(rag.question, rag.reference[], integer),
  rag.best_by_impact(rag.question, rag.scope, integer, integer),
  rag.best_by_impact_filtered(rag.question, rag.scope, integer, integer),
  rag.documents_with(rag.question, rag.scope, integer), rag.word_scores(rag.question, rag.reference[])
  from public, anon, service_role;
grant execute on function rag.best_among(rag.question, rag.reference[], integer),
  rag.best_by_impact(rag.question, rag.scope, integer, integer),
  rag.best_by_impact_filtered(rag.question, rag.scope, integer, integer),
  rag.documents_with(rag.question, rag.scope, integer), rag.word_scores(rag.question, rag.reference[])
  to authenticated;
