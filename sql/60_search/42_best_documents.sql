-- Candidates by document: the best documents of a hierarchical search, and the best chunk of each document.

create function rag.best_documents(candidates rag.candidate[], chunks_wanted integer)
returns rag.document_key[]
language sql stable security invoker set search_path = ''
as $$
  with placed as (
    select candidate.org_id, candidate.document_id, candidate.score,
      row_number() over (partition by candidate.org_id, candidate.document_id order by candidate.score desc) as position
    from unnest(candidates) as candidate
  ), valued as (
    select placed.org_id, placed.document_id, count(*) as chunks,
      sum(placed.score * 0.5 ^ least(placed.position, 50)) as value
    from placed
    group by 1, 2
  ), counted as (
    select valued.*, row_number() over in_order as position,
      sum(valued.chunks) over in_order - valued.chunks as chunks_before
    from valued
    window in_order as (order by valued.value desc, valued.document_id)
  )
  select array_agg((counted.org_id, counted.document_id)::rag.document_key)
  from counted
  where counted.position <= 5 or counted.chunks_before < chunks_wanted;
$$;

comment on function rag.best_documents is
  'The best documents among the hits, as many as are needed for so many chunks, and at least five. The score of a '
  'document is its best hit''s, half its second best''s, a quarter of the next, and so on.';

create function rag.best_per_document(candidates rag.candidate[])
returns rag.candidate[]
language sql stable security invoker set search_path = ''
as $$
  select array_agg(best.candidate order by (best.candidate).score desc, (best.candidate).chunk_id)
  from (
    select distinct on (candidate.org_id, candidate.document_id) candidate
    from unnest(candidates) as candidate
    order by candidate.org_id, candidate.document_id, candidate.score desc, candidate.chunk_id
  ) as best;
$$;

comment on function rag.best_per_document is 'The best candidate of each document, best first.';
