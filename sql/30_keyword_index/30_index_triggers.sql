-- Triggers that keep postings and term counts equal to the chunks: on chunks, documents and postings, once a statement.

create function rag.index_words(org_id uuid, document_ids uuid[])
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  delete from rag.postings
  where org_id = index_words.org_id and document_id = any (document_ids);

  insert into rag.postings (org_id, document_id, term, collection_id, owner_id, places, length, impact)
  with counted as (
    select documents.id as document_id, documents.collection_id, documents.owner_id, present.ordinal,
      found.terms, found.occurrences, found.length,
      sum(found.length) over (partition by documents.id)::integer as document_length
    from rag.settings
    cross join rag.documents
    -- "offset 0" keeps the order of the joins: under row security the planner expects one chunk, and might read all of
    -- the org first.
    cross join lateral (
      select chunks.ordinal, chunks.content, chunks.embedding_model,
        rag.text_config(coalesce(documents.lang, settings.language)) as config
      from rag.chunks
      where chunks.org_id = documents.org_id and chunks.document_id = documents.id
      offset 0
    ) as present
    cross join lateral (
      select array_agg(term) || rag.total_term(present.config, present.embedding_model) as terms,
        array_agg(occurrences) || 0 as occurrences, coalesce(sum(occurrences), 0)::integer as length
      from rag.terms(present.config, documents.title || E'\n' || present.content)
    ) as found
    where documents.org_id = index_words.org_id and documents.id = any (document_ids)
  )
  select index_words.org_id, document_id, entry.term, collection_id, owner_id,
    -- << and | bind alike, from the left.
    array_agg((ordinal::bigint << 32) | (least(length, 65535)::bigint << 16)
      | least(entry.times, 65535)::bigint order by ordinal),
    document_length,
    -- By the default settings, not the present ones: the impact selects candidates and scores nothing.
    max(entry.times / (entry.times + 1.5 * (0.15 + 0.85::float8 * length / 100))) / 2
      + sum(entry.times) / (sum(entry.times) + 1.5 * (0.15 + 0.85::float8 * document_length / 500)) / 2
  from counted
  cross join unnest(terms, occurrences) as entry (term, times)
  group by document_id, entry.term, collection_id, owner_id, document_length;
end;
$$;

comment on function rag.index_words is
  'Rewrite the documents'' postings. A document''s title counts as part of each of its chunks, as it does for '
  'their embeddings.';

create function rag.index_changed_chunks()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- A document that is stored in parts counts its words at the end (rag_load_chunks).
  if current_setting('rag.words_later', true) = 'true' then
    return null;
  end if;
  perform rag.index_words(changed.org_id, array_agg(distinct changed.document_id))
  from changed
  group by changed.org_id;
  return null;
end;
$$;

comment on function rag.index_changed_chunks is 'Trigger that rewrites the postings of documents whose chunks changed.';

create function rag.index_changed_document()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.index_words(new.org_id, array[new.id]);
  return null;
end;
$$;

comment on function rag.index_changed_document is
  'Trigger that rewrites the postings of a document whose title, language, collection or owner changed.';

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
  where exists (select from rag.orgs where orgs.id = changed.org_id)
  group by changed.org_id, changed.term, changed.collection_id, changed.owner_id;

  -- One write in sixteen, so that a term has about sixteen rows, however often it is written; and every delete, so
  -- that a word without documents disappears here too.
  if tg_op = 'DELETE' or random() < 0.0625 then
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

comment on function rag.count_changed_terms is
  'Trigger that adds the changes to the log, and folds some terms. It adds nothing for a deleted org, of which it '
  'deletes the counts of the changed terms (rag.fold_term_counts).';

create function rag.take_term_counts(places tid[])
returns setof rag.term_counts
language sql volatile security invoker set search_path = ''
  -- Under row security the planner expects very few rows of an org, and would compare each with each place.
  set enable_seqscan = off set enable_indexscan = off set enable_bitmapscan = off
as $$
  delete from rag.term_counts
  where term_counts.ctid = any (places)
  returning term_counts.*;
$$;

comment on function rag.take_term_counts is
  'Delete the rows at these places, which the caller has locked, and return them.';

create function rag.fold_term_counts(org_id uuid, collection_id uuid, owner_id uuid, terms text[])
returns void
language plpgsql volatile security invoker set search_path = ''
  -- A plan made while rag.term_counts was small would scan the filled table for each term.
  set enable_seqscan = off
as $$
declare
  -- Term by term: under row security the planner expects very few rows, and would compare each with every term.
  places constant tid[] := array(
    select counts.place
    from (select distinct unnest(terms) as term) as folded
    cross join lateral (
      select counts.ctid as place
      from rag.term_counts as counts
      where counts.org_id = fold_term_counts.org_id and counts.term = folded.term
        and counts.collection_id is not distinct from fold_term_counts.collection_id
        and counts.owner_id is not distinct from fold_term_counts.owner_id
      for update skip locked
    ) as counts);
  gone constant rag.term_counts[] := array(select rag.take_term_counts(places));
begin
  insert into rag.term_counts (org_id, term, collection_id, owner_id, documents, chunks, length)
  select fold_term_counts.org_id, counts.term, fold_term_counts.collection_id, fold_term_counts.owner_id,
    sum(counts.documents), sum(counts.chunks), sum(counts.length)
  from unnest(gone) as counts
  where exists (select from rag.orgs where orgs.id = fold_term_counts.org_id)
  group by counts.term
  having sum(counts.documents) <> 0 or sum(counts.chunks) <> 0 or sum(counts.length) <> 0;
end;
$$;

comment on function rag.fold_term_counts is
  'Fold the rows of these terms into one each, and into none if all sums are 0 or the org is deleted. Rows that '
  'another transaction is folding are skipped; the sums stay the same.';

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

create function rag.delete_term_counts()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  delete from rag.term_counts where term_counts.org_id = old.id;
  return null;
end;
$$;

comment on function rag.delete_term_counts is
  'Trigger that deletes the counts of a deleted org that rag.fold_term_counts skipped, at the end of the transaction. '
  'By then, the deletion has waited for all writers of the org''s documents. Before Postgres 18, the trigger runs as '
  'the session''s user, to whom row security may hide the counts.';

create constraint trigger delete_term_counts_of_deleted_org
  after delete on rag.orgs
  deferrable initially deferred for each row execute function rag.delete_term_counts();
