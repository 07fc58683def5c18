-- Rebuilding of an org's keyword index, after a change of the tokenization or a repair. The command rebuild-keywords
-- (local/operations/rebuild_keywords.py), which the operator runs with the database's own URL, calls the function until it
-- returns null. Each call is a transaction: a search finds a document by its former terms or by its new ones.

create function rag.rebuild_keywords(org_id uuid, after uuid)
returns uuid
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off
as $$
#variable_conflict use_variable
declare
  -- Writers of these documents wait until the call ends. A longer document is the last of its step.
  most_chunks constant integer := 1000;
  document_ids uuid[];
begin
  select array_agg(part.id order by part.id) into document_ids
  from (
    select next.id, sum(next.chunks) over (order by next.id) - next.chunks as before
    from (
      select documents.id, (
          select count(*) from rag.chunks where chunks.org_id = org_id and chunks.document_id = documents.id
        ) as chunks
      from rag.documents
      where documents.org_id = org_id and documents.id > after
      order by documents.id
      limit most_chunks
    ) as next
  ) as part
  where part.before < most_chunks;
  if document_ids is not null then
    perform rag.index_words(org_id, document_ids);
    return document_ids[cardinality(document_ids)];
  end if;

  -- Every document has left its former segment. What remains belongs to no document.
  perform rag.remove_words(org_id, array(
    select stale.document_id
    from rag.document_terms as stale
    where stale.org_id = org_id and not exists (
      select from rag.documents where documents.org_id = org_id and documents.id = stale.document_id)));
  delete from rag.term_blocks as stale
  where stale.org_id = org_id and not exists (
    select from rag.document_terms as present
    where present.org_id = org_id and present.class = stale.class and present.segment = stale.segment);
  delete from rag.term_segments as stale
  where stale.org_id = org_id and not exists (
    select from rag.document_terms as present
    where present.org_id = org_id and present.class = stale.class and present.segment = stale.segment);
  return null;
end;
$$;

comment on function rag.rebuild_keywords is
  'Write the terms of an org''s next documents anew, by id, of about 1,000 chunks. Returns the id of the last one; null '
  'after the last call, which removes what belongs to no document.';
