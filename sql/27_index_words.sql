-- Keeps postings and their counts equal to the chunks, whoever writes those: triggers on chunks, documents
-- and postings, once a statement.

-- Make the documents' postings anew. A document's title counts as part of each of its chunks, as it does for
-- their embeddings.
create function rag.index_words(org_id uuid, document_ids uuid[])
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  delete from rag.postings
  where org_id = index_words.org_id and document_id = any (document_ids);

  insert into rag.postings (org_id, document_id, term, collection_id, owner_id, places, length, impact)
  with changed as (
    select documents.id, documents.title,
      rag.text_config(coalesce(documents.lang, settings.language)) as config
    from rag.documents, rag.settings
    where org_id = index_words.org_id and id = any (document_ids)
  ), chunk as materialized (
    select chunks.document_id, chunks.ordinal, changed.config, chunks.embedding_model, chunks.content
    from changed
    join rag.chunks on chunks.org_id = index_words.org_id and chunks.document_id = changed.id
  ), counted as (
    select chunk.document_id, chunk.ordinal, found.term, sum(found.occurrences)::integer as occurrences
    from (
      select document_id, ordinal, body.term, body.occurrences
      from chunk, rag.terms(chunk.config, chunk.content) as body
      union all
      select chunk.document_id, chunk.ordinal, title.term, title.occurrences
      from changed
      cross join lateral rag.terms(changed.config, changed.title) as title
      join chunk on chunk.document_id = changed.id
    ) as found
    join chunk using (document_id, ordinal)
    group by 1, 2, 3
  ), measured as (
    select chunk.document_id, chunk.ordinal, chunk.config, chunk.embedding_model,
      coalesce(sum(counted.occurrences), 0)::integer as length
    from chunk left join counted using (document_id, ordinal)
    group by 1, 2, 3, 4
  ), placed as (
    select document_id, term, ordinal, occurrences, measured.length
    from counted join measured using (document_id, ordinal)
    union all
    select document_id, rag.total_term(config, embedding_model), ordinal, 0, length from measured
  )
  select index_words.org_id, documents.id, placed.term, documents.collection_id, documents.owner_id,
    -- << and | bind alike, from the left.
    array_agg((placed.ordinal::bigint << 32) | (least(placed.length, 65535)::bigint << 16)
      | least(placed.occurrences, 65535)::bigint order by placed.ordinal),
    whole.length,
    max(placed.occurrences / (placed.occurrences + 1.5 * (0.25 + 0.75 * placed.length / 100)))
  from placed
  join rag.documents on documents.org_id = index_words.org_id and documents.id = placed.document_id
  join (select document_id, sum(length) as length from measured group by 1) as whole
    on whole.document_id = placed.document_id
  group by documents.id, placed.term, documents.collection_id, documents.owner_id, whole.length;
end;
$$;

create function rag.index_changed_chunks()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.index_words(changed.org_id, array_agg(distinct changed.document_id))
  from changed
  group by changed.org_id;
  return null;
end;
$$;

create function rag.index_changed_document()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.index_words(new.org_id, array[new.id]);
  return null;
end;
$$;

-- Adds what changed to the log. The collection of a document may be gone already, and the counts with it.
create function rag.count_changed_terms()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  sign constant integer := case tg_op when 'DELETE' then -1 else 1 end;
  place record;
begin
  insert into rag.term_counts (org_id, term, collection_id, owner_id, documents, chunks, length)
  select changed.org_id, changed.term, changed.collection_id, changed.owner_id, sign * count(*),
    sign * sum(cardinality(changed.places)),
    case when starts_with(changed.term, ' ') then sign * sum(changed.length) else 0 end
  from changed
  where exists (
    select from rag.collections
    where collections.org_id = changed.org_id and collections.id = changed.collection_id)
  group by changed.org_id, changed.term, changed.collection_id, changed.owner_id;

  -- One write in sixteen, so that a term has some sixteen rows at most, however often it is written.
  if random() < 0.0625 then
    for place in
      select changed.org_id, changed.collection_id, changed.owner_id, array_agg(distinct changed.term) as terms
      from changed
      group by 1, 2, 3
    loop
      perform rag.fold_term_counts(place.org_id, place.collection_id, place.owner_id, place.terms);
    end loop;
  end if;
  return null;
end;
$$;

-- Fold the rows of these terms into one each, and into none where nothing is left. Rows that somebody else is
-- folding are left to them: whoever folds what, the sums stay the same.
create function rag.fold_term_counts(org_id uuid, collection_id uuid, owner_id uuid, terms text[])
returns void
language sql volatile security invoker set search_path = ''
as $$
  -- Term by term, and by the rows' places: under row security the planner believes that hardly a row is left,
  -- and would compare each with every term. A document has tens of thousands.
  with mine as (
    select counts.place
    from (select distinct unnest(terms) as term) as folded
    cross join lateral (
      select counts.ctid as place
      from rag.term_counts as counts
      where counts.org_id = fold_term_counts.org_id and counts.term = folded.term
        and counts.collection_id is not distinct from fold_term_counts.collection_id
        and counts.owner_id is not distinct from fold_term_counts.owner_id
      for update skip locked
    ) as counts
  ), gone as (
    delete from rag.term_counts as counts
    where counts.ctid = any (array(select mine.place from mine))
    returning counts.*
  )
  insert into rag.term_counts (org_id, term, collection_id, owner_id, documents, chunks, length)
  select fold_term_counts.org_id, gone.term, fold_term_counts.collection_id, fold_term_counts.owner_id,
    sum(gone.documents), sum(gone.chunks), sum(gone.length)
  from gone
  group by gone.term
  having sum(gone.documents) <> 0 or sum(gone.chunks) <> 0 or sum(gone.length) <> 0;
$$;

create trigger index_words_of_new_chunks after insert on rag.chunks
  referencing new table as changed
  for each statement execute function rag.index_changed_chunks();

create trigger index_words_of_changed_chunks after update on rag.chunks
  referencing new table as changed
  for each statement execute function rag.index_changed_chunks();

create trigger index_words_of_deleted_chunks after delete on rag.chunks
  referencing old table as changed
  for each statement execute function rag.index_changed_chunks();

create trigger index_words_of_changed_documents
  after update of title, lang, collection_id, owner_id on rag.documents
  for each row
  when ((old.title, old.lang, old.collection_id, old.owner_id)
    is distinct from (new.title, new.lang, new.collection_id, new.owner_id))
  execute function rag.index_changed_document();

create trigger count_new_terms after insert on rag.postings
  referencing new table as changed
  for each statement execute function rag.count_changed_terms();

create trigger count_deleted_terms after delete on rag.postings
  referencing old table as changed
  for each statement execute function rag.count_changed_terms();

revoke all on function rag.index_words(uuid, uuid[]), rag.index_changed_chunks(), rag.index_changed_document(),
  rag.count_changed_terms(), rag.fold_term_counts(uuid, uuid, uuid, text[]) from public, anon, service_role;
grant execute on function rag.index_words(uuid, uuid[]), rag.index_changed_chunks(),
  rag.index_changed_document(), rag.count_changed_terms(),
  rag.fold_term_counts(uuid, uuid, uuid, text[]) to authenticated;
