-- Texts of chunks extended by their neighbours, for a search that reorders its candidates before it returns them
-- (expand_context of rag_search extends texts at once).
create function public.rag_widen(chunk_ids uuid[], neighbours integer)
returns table (chunk_id uuid, content text, span_start integer, span_end integer)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_direct_read();
  org_ids constant uuid[] := array(select rag.current_org_ids());
begin
  if chunk_ids is null or cardinality(chunk_ids) > 100 then
    raise exception 'chunk_ids must be at most 100' using errcode = 'PT400', detail = 'too_many_chunks';
  elsif neighbours is null or neighbours not between 0 and 10 then
    raise exception 'neighbours must be between 0 and 10' using errcode = 'PT400', detail = 'invalid_neighbours';
  end if;
  return query
  select candidate.chunk_id, candidate.content, candidate.span_start, candidate.span_end
  from unnest(rag.expand_neighbours(array(
    select rag.candidate(org_id => chunks.org_id, document_id => chunks.document_id, ordinal => chunks.ordinal,
      chunk_id => chunks.id, content => chunks.content, span_start => chunks.span_start, span_end => chunks.span_end)
    from rag.chunks
    where chunks.org_id = any (org_ids) and chunks.id = any (chunk_ids)
  ), neighbours)) as candidate;
end;
$$;

comment on function public.rag_widen is
  'The texts of chunks with their neighbours, for a search that reorders its candidates before it returns them '
  '(expand_context of rag_search extends texts at once). At most 100 chunks.';
