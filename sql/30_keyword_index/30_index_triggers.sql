-- Writes to the keyword index: triggers on chunks and documents, once a statement, and the folding of tails.

create function rag.index_words(org_id uuid, document_ids uuid[])
returns void
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  class record;
begin
  -- Two writers of a document's chunks index it one after the other.
  perform from rag.documents
  where documents.org_id = index_words.org_id and documents.id = any (document_ids)
  order by documents.id
  for no key update;
  -- In this order: a document that another transaction folds meanwhile is no longer pending when this one goes on.
  delete from rag.document_terms
  where org_id = index_words.org_id and document_id = any (document_ids) and pending = 1;
  update rag.document_terms set pending = -1
  where org_id = index_words.org_id and document_id = any (document_ids) and pending is null;

  insert into rag.document_terms (org_id, document_id, collection_id, owner_id, embedding_model, config, chunks, length,
    terms, places)
  with counted as materialized (
    select documents.id as document_id, documents.collection_id, documents.owner_id, present.embedding_model,
      present.config, present.ordinal, found.terms, found.occurrences, found.length,
      sum(found.length) over (partition by documents.id, present.embedding_model) as document_length
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
      select array_agg(rag.term_key(term)) as terms, array_agg(occurrences) as occurrences,
        coalesce(sum(occurrences), 0) as length
      from rag.terms(present.config, documents.title || E'\n' || present.content)
    ) as found
    where documents.org_id = index_words.org_id and documents.id = any (document_ids)
  ), posting as (
    select document_id, embedding_model, key, ordinal, length, times,
      -- By the default settings, not the present ones: the impact selects candidates and scores nothing.
      (max(times / (times + 1.5 * (0.15 + 0.85::float8 * length / 100))) over term / 2
        + sum(times) over term / (sum(times) over term + 1.5 * (0.15 + 0.85::float8 * document_length / 500)) / 2)
        as impact
    from counted
    cross join unnest(terms, occurrences) as entry (key, times)
    window term as (partition by document_id, embedding_model, key)
  ), listed as (
    select document_id, embedding_model, array_agg(key order by key, ordinal) as terms,
      -- << and | bind alike, from the left.
      array_agg(floor(impact * 511)::bigint << 54 | (ordinal::bigint << 32) | (least(length, 65535)::bigint << 16)
        | least(times, 65535)::bigint order by key, ordinal) as places
    from posting
    group by 1, 2
  )
  select index_words.org_id, document_id, collection_id, owner_id, embedding_model, pg_ts_config.cfgname,
    count(*), sum(length), coalesce(listed.terms, '{}'), coalesce(listed.places, '{}')
  from counted
  join pg_catalog.pg_ts_config on pg_ts_config.oid = config
  left join listed using (document_id, embedding_model)
  group by document_id, collection_id, owner_id, embedding_model, pg_ts_config.cfgname, listed.terms, listed.places;

  if not exists (select from rag.orgs where orgs.id = index_words.org_id) then
    return;
  end if;
  for class in
    select distinct collection_id, owner_id, embedding_model
    from rag.document_terms
    where org_id = index_words.org_id and document_id = any (document_ids) and pending is not null
  loop
    perform rag.fold_tail(index_words.org_id, class.collection_id, class.owner_id, class.embedding_model);
  end loop;
end;
$$;

comment on function rag.index_words is
  'Rewrite the terms of documents, and fold the tails that become too long. A document''s title counts as part of each of '
  'its chunks, as it does for their embeddings.';

create function rag.fold_lock(org_id uuid, collection_id uuid, owner_id uuid, embedding_model text)
returns bigint
language sql immutable security invoker set search_path = ''
as $$
  select hashtextextended(format('rag.fold_tail %s %s %s %s', org_id, collection_id, owner_id, embedding_model), 0);
$$;

comment on function rag.fold_lock is 'The advisory lock of a visibility class, which folding its tail takes.';

create function rag.fold_tail(org_id uuid, collection_id uuid, owner_id uuid, embedding_model text)
returns void
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off
as $$
#variable_conflict use_variable
declare
  -- A larger segment would take seconds to write; smaller ones would be more look-ups for a search.
  most_chunks constant integer := 8000;
  waiting record;
  removed rag.document_terms;
  sources bigint[];
  source_chunks bigint;
  small record;
begin
  loop
    select count(*) filter (where tail.pending = 1) as documents, sum(tail.chunks) filter (where tail.pending = 1) as chunks,
      count(*) filter (where tail.pending = -1) as removed into waiting
    from rag.document_terms as tail
    where tail.org_id = org_id and tail.collection_id = collection_id and tail.pending is not null
      and tail.owner_id is not distinct from owner_id and tail.embedding_model = embedding_model;
    exit when waiting.documents <= 32 and coalesce(waiting.chunks, 0) <= 256 and waiting.removed = 0;
    -- One transaction folds a class at a time; another one leaves it to the next write.
    exit when not pg_try_advisory_xact_lock(rag.fold_lock(org_id, collection_id, owner_id, embedding_model));

    for removed in
      select gone.*
      from rag.document_terms as gone
      where gone.org_id = org_id and gone.collection_id = collection_id and gone.pending = -1
        and gone.owner_id is not distinct from owner_id and gone.embedding_model = embedding_model
      for update
    loop
      perform rag.remove_from_segment(removed);
    end loop;
    exit when waiting.documents <= 32 and coalesce(waiting.chunks, 0) <= 256;

    -- Documents that another transaction is changing are skipped.
    select array_agg(tail.segment), sum(tail.chunks) into sources, source_chunks
    from (
      select latest.segment, latest.chunks, sum(latest.chunks) over (order by latest.segment) - latest.chunks as before
      from (
        select tail.segment, tail.chunks
        from rag.document_terms as tail
        where tail.org_id = org_id and tail.collection_id = collection_id and tail.pending = 1
          and tail.owner_id is not distinct from owner_id and tail.embedding_model = embedding_model
        for update skip locked
      ) as latest
    ) as tail
    where tail.before < most_chunks;
    exit when sources is null;
    -- Segments of like size are merged, so that a class has few.
    loop
      select array_agg(part.segment) as segments, sum(part.documents) as documents, sum(part.chunks) as chunks into small
      from (
        select whole.*, sum(whole.chunks) over (order by whole.chunks, whole.segment) as total
        from (
          select segments.segment, sum(segments.documents) as documents, sum(segments.chunks) as chunks
          from rag.term_segments as segments
          where segments.org_id = org_id and segments.collection_id = collection_id
            and segments.owner_id is not distinct from owner_id and segments.embedding_model = embedding_model
            and segments.segment <> all (sources)
          group by 1
        ) as whole
        where whole.chunks <= source_chunks
      ) as part
      where part.total + source_chunks <= most_chunks;
      exit when small.chunks is null or small.chunks < 3 * source_chunks;
      exit when small.documents > (
        select count(*)
        from (
          select from rag.document_terms as held
          where held.org_id = org_id and held.segment = any (small.segments) and held.pending is null
          for update skip locked
        ) as locked);
      sources := sources || small.segments;
      source_chunks := source_chunks + small.chunks;
    end loop;
    perform rag.write_segment(org_id, collection_id, owner_id, embedding_model, sources);
  end loop;
end;
$$;

comment on function rag.fold_tail is
  'Remove the deleted documents of a visibility class from their segments, and fold its tail into a segment if it has more '
  'than 32 documents or 256 chunks. Never waits: what another transaction holds is left to the next write.';

create function rag.remove_from_segment(gone rag.document_terms)
returns void
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off set join_collapse_limit = 1
as $$
declare
  block record;
  chunks_left integer[];
begin
  -- For each block of a term: the positions of the document's terms in it. The arrays come back in their order.
  for block in
    select present.first, present.terms, present.ends, present.chunks, present.entries,
      array(select width_bucket(key, present.terms) from unnest(touched.keys) as key) as positions
    from (
      select found.first, array_agg(term.key order by term.key) as keys
      from (select distinct unnest(gone.terms) as key) as term
      cross join lateral (
        select blocks.first
        from rag.term_blocks as blocks
        where blocks.org_id = gone.org_id and blocks.segment = gone.segment and blocks.first <= term.key
        order by blocks.first desc
        limit 1
      ) as found
      group by 1
    ) as touched
    cross join lateral (
      select blocks.*
      from rag.term_blocks as blocks
      where blocks.org_id = gone.org_id and blocks.segment = gone.segment and blocks.first = touched.first
      offset 0
    ) as present
  loop
    chunks_left := array(
      select term.chunks - case when term.i = any (block.positions)
        then width_bucket(term.key, gone.terms) - width_bucket(term.key - 1, gone.terms) else 0 end
      from unnest(block.terms, block.chunks) with ordinality as term (key, chunks, i));
    update rag.term_blocks as blocks
    set entries = array(select entry from unnest(block.entries) as entry where entry & 65535 <> gone.number),
      terms = array(
        select term.key from unnest(block.terms, chunks_left) as term (key, chunks) where term.chunks > 0),
      chunks = array_remove(chunks_left, 0),
      ends = array(
        select term.last - width_bucket(term.i, block.positions)
        from unnest(block.ends, chunks_left) with ordinality as term (last, chunks, i)
        where term.chunks > 0)
    where blocks.org_id = gone.org_id and blocks.segment = gone.segment and blocks.first = block.first;
  end loop;

  update rag.term_segments as segments
  set documents = segments.documents - 1, chunks = segments.chunks - gone.chunks, length = segments.length - gone.length
  where segments.org_id = gone.org_id and segments.segment = gone.segment and segments.config = gone.config;
  delete from rag.term_segments as segments
  where segments.org_id = gone.org_id and segments.segment = gone.segment and segments.documents = 0;
  delete from rag.term_blocks as blocks
  where blocks.org_id = gone.org_id and blocks.segment = gone.segment and blocks.entries = '{}';
  delete from rag.document_terms
  where document_terms.org_id = gone.org_id and document_terms.segment = gone.segment
    and document_terms.number = gone.number;
end;
$$;

comment on function rag.remove_from_segment is 'Remove a deleted document and its terms from its segment.';

create function rag.write_segment(org_id uuid, collection_id uuid, owner_id uuid, embedding_model text, sources bigint[])
returns void
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off
as $$
#variable_conflict use_variable
declare
  -- The first source is a document of the tail, so no other document has this segment.
  target constant bigint := sources[1];
begin
  delete from rag.term_blocks as blocks where blocks.org_id = org_id and blocks.segment = any (sources);
  delete from rag.term_segments as segments where segments.org_id = org_id and segments.segment = any (sources);
  update rag.document_terms as present
  set segment = target, number = listed.position, pending = null
  from (
    select source.segment, source.number, row_number() over (order by source.segment, source.number) as position
    from rag.document_terms as source
    where source.org_id = org_id and source.segment = any (sources) and source.collection_id = collection_id
      and source.owner_id is not distinct from owner_id and source.embedding_model = embedding_model
    offset 0
  ) as listed
  where present.org_id = org_id and present.segment = listed.segment and present.number = listed.number;

  insert into rag.term_segments (org_id, segment, config, collection_id, owner_id, embedding_model, documents, chunks, length)
  select org_id, target, member.config, collection_id, owner_id, embedding_model, count(*), sum(member.chunks),
    sum(member.length)
  from rag.document_terms as member
  where member.org_id = org_id and member.segment = target
  group by 3;

  insert into rag.term_blocks (org_id, segment, first, collection_id, owner_id, terms, ends, chunks, entries)
  with posting as materialized (
    select term.key, (min(term.place) >> 54 << 16)::integer | member.number as entry, count(*) as chunks
    from rag.document_terms as member
    cross join unnest(member.terms, member.places) as term (key, place)
    where member.org_id = org_id and member.segment = target
    group by term.key, member.number
  ), list as materialized (
    -- A block has about 128 entries: a term begins a new one after each 128.
    select counted.*, (counted.last - counted.documents) / 128 as block
    from (
      select posting.key, count(*) as documents, sum(posting.chunks) as chunks, (sum(count(*)) over (order by posting.key))::bigint as last
      from posting
      group by 1
    ) as counted
  ), dictionary as (
    select list.block, min(list.key) as first, array_agg(list.key order by list.key) as terms,
      array_agg(list.chunks::integer order by list.key) as chunks,
      array_agg((list.last - list.before)::integer order by list.key) as ends
    from (select list.*, min(list.last - list.documents) over (partition by list.block) as before from list) as list
    group by 1
  ), content as (
    select list.block, array_agg(posting.entry order by posting.key, posting.entry desc) as entries
    from posting
    join list on list.key = posting.key
    group by 1
  )
  select org_id, target, dictionary.first, collection_id, owner_id, dictionary.terms, dictionary.ends, dictionary.chunks,
    content.entries
  from dictionary
  join content on content.block = dictionary.block;
end;
$$;

comment on function rag.write_segment is
  'Replace segments of one visibility class, and documents of its tail, by one segment. The first source is a document of '
  'the tail, and the caller has locked the rows of all documents.';

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

comment on function rag.index_changed_chunks is 'Trigger that rewrites the terms of documents whose chunks changed.';

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
  'Trigger that rewrites the terms of a document whose title, language, collection or owner changed.';

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

create function rag.delete_terms_of_org()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  delete from rag.term_blocks where term_blocks.org_id = old.id;
  delete from rag.term_segments where term_segments.org_id = old.id;
  delete from rag.document_terms where document_terms.org_id = old.id;
  return null;
end;
$$;

comment on function rag.delete_terms_of_org is 'Trigger that deletes the keyword index of a deleted org.';

-- By its name it follows the triggers of foreign keys (RI_ConstraintTrigger): the documents are deleted by then, after
-- waiting for their writers.
create trigger delete_terms_of_org after delete on rag.orgs
  for each row execute function rag.delete_terms_of_org();
