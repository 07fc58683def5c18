-- What is like a chunk or a document that is already here. (Like a text: embed it and use rag_search.)

-- chunk_id or document_id: the subject, never among what is found, nor is any chunk of a document that is the
-- subject. result: chunks, or documents, each by its best chunk. A subject that the caller cannot see is not
-- there: PT404.
create function public.rag_similar(
  chunk_id uuid default null,
  document_id uuid default null,
  result text default 'chunks',
  top_k integer default 10,
  filters jsonb default '{}'
)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  scope rag.scope;
  average extensions.vector;
  needle extensions.halfvec(1536);
  org_ids uuid[];
  near record;
  hits rag.hit[];
  wanted integer := top_k;
begin
  if num_nonnulls(chunk_id, document_id) <> 1 then
    raise exception 'either chunk_id or document_id is needed' using errcode = 'PT400', detail = 'invalid_subject';
  elsif result is null or result not in ('chunks', 'documents') then
    raise exception 'result must be chunks or documents' using errcode = 'PT400', detail = 'invalid_result';
  end if;
  perform rag.check_top_k(top_k);
  scope := rag.scope_of(filters);
  -- The subject may stand outside the filters.
  org_ids := array(select rag.current_org_ids());

  -- A document is where its chunks are on average.
  select extensions.avg(chunks.embedding::extensions.vector), min(chunks.embedding_model)
    into average, scope.model
  from rag.chunks
  where chunks.org_id = any (org_ids)
    and (chunks.id = chunk_id or chunks.document_id = document_id);
  if average is null then
    raise exception 'no such subject' using errcode = 'PT404', detail = 'subject_not_found';
  end if;
  needle := rag.needle(average);
  scope.without_chunk := chunk_id;
  scope.without_document := document_id;

  loop
    near := rag.nearest(needle, scope, wanted);
    exit when result = 'chunks';
    select array_agg(best.hit order by (best.hit).score desc, (best.hit).chunk_id) into hits
    from (
      select distinct on (hit.org_id, hit.document_id) hit
      from unnest(near.hits) as hit
      order by hit.org_id, hit.document_id, hit.score desc, hit.chunk_id
    ) as best;
    -- Enough documents, or all there are.
    exit when cardinality(hits) >= top_k or coalesce(cardinality(near.hits), 0) < wanted;
    wanted := wanted * 4;
  end loop;
  if result = 'chunks' then
    hits := near.hits;
  end if;
  return query select * from rag.show(hits[:top_k], near.exact, near.considered, null, null);
end;
$$;

revoke all on function public.rag_similar(uuid, uuid, text, integer, jsonb) from public, anon, service_role;
grant execute on function public.rag_similar(uuid, uuid, text, integer, jsonb) to authenticated;
