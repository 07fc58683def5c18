-- Writes to the keyword index: triggers on chunks and documents, once a statement, and the folding of tails.
--
-- A writer locks the rows of documents first, in rag.documents and then here, and then the segments that lose a document, in
-- order. Folding locks rows of documents only, and skips those that are locked; so it waits for no other transaction.

create function rag.index_words(org_id uuid, document_ids uuid[])
returns void
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  -- Two writers of a document's chunks index it one after the other.
  perform from rag.documents
  where documents.org_id = index_words.org_id and documents.id = any (document_ids)
  order by documents.id
  for no key update;
  perform rag.remove_words(index_words.org_id, document_ids);

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
      array_agg(greatest(1, floor(impact * 511))::bigint << 54 | (ordinal::bigint << 32) | (least(length, 65535)::bigint << 16)
        | least(times, 65535)::bigint order by key, ordinal) as places
    from posting
    group by 1, 2
  ), total as (
    select document_id, collection_id, owner_id, embedding_model, config, count(*) as chunks, sum(length) as length
    from counted
    group by 1, 2, 3, 4, 5
  )
  select index_words.org_id, document_id, collection_id, owner_id, embedding_model, pg_ts_config.cfgname, chunks, length,
    coalesce(listed.terms, '{}'), coalesce(listed.places, '{}')
  from total
  join pg_catalog.pg_ts_config on pg_ts_config.oid = config
  left join listed using (document_id, embedding_model);

  perform rag.fold_tail(index_words.org_id, written.class)
  from (
    select distinct class
    from rag.document_terms
    where org_id = index_words.org_id and document_id = any (document_ids) and segment is null
    offset 0
  ) as written;
end;
$$;

comment on function rag.index_words is
  'Rewrite the terms of documents, and fold the tails that become too long. A document''s title counts as part of each of '
  'its chunks, as it does for their embeddings.';

create function rag.remove_words(org_id uuid, document_ids uuid[])
returns void
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off set join_collapse_limit = 1
as $$
#variable_conflict use_variable
declare
  part record;
begin
  -- After it has waited for a fold that moved a document, the next statement sees the document's new segment.
  perform from rag.document_terms as gone
  where gone.org_id = org_id and gone.document_id = any (document_ids)
  order by gone.document_id, gone.class
  for update;
  perform from rag.term_segments as segments
  where segments.org_id = org_id and (segments.class, segments.segment) in (
    select gone.class, gone.segment
    from rag.document_terms as gone
    where gone.org_id = org_id and gone.document_id = any (document_ids) and gone.segment is not null)
  order by segments.class, segments.segment, segments.config, segments.embedding_model
  for update;

  for part in
    select gone.class, gone.segment, array_agg(gone.number) as numbers, count(*) >= (
      select sum(segments.documents)
      from rag.term_segments as segments
      where segments.org_id = org_id and segments.class = gone.class and segments.segment = gone.segment) as is_whole
    from rag.document_terms as gone
    where gone.org_id = org_id and gone.document_id = any (document_ids) and gone.segment is not null
    group by 1, 2
  loop
    if not part.is_whole then
      with lost as materialized (
        select term.key, count(distinct gone.number)::integer as documents, count(*)::integer as chunks,
          min((term.place >> 54 << 16)::integer | gone.number) as entry
        from rag.document_terms as gone
        cross join unnest(gone.terms, gone.places) as term (key, place)
        where gone.org_id = org_id and gone.class = part.class and gone.segment = part.segment
          and gone.number = any (part.numbers)
        group by 1
      ), touched as materialized (
        -- For each block: the removed terms in order, the sums of their documents up to each, and the entry if there is one.
        select found.first, array_agg(found.key order by found.key) as keys,
          array_agg(found.chunks order by found.key) as chunks, array_agg(found.documents order by found.key) as documents,
          case when max(found.documents) = 1 then min(found.entry) end as entry
        from (
          select block.first, lost.key, lost.chunks, lost.entry,
            sum(lost.documents) over (partition by block.first order by lost.key) as documents
          from lost
          cross join lateral (
            select blocks.first
            from rag.term_blocks as blocks
            where blocks.org_id = org_id and blocks.class = part.class and blocks.segment = part.segment
              and blocks.first <= lost.key
            order by blocks.first desc
            limit 1
          ) as block
        ) as found
        group by 1
      ), kept as materialized (
        -- Impacts are multiplied by it.
        select array(
            select case when number = any (part.numbers) then 0 else 1 end
            from generate_series(1, longest.length) as number)::real[]::extensions.halfvec as ones
        from (
          select max(extensions.vector_dims(blocks.impacts)) as length
          from touched
          join rag.term_blocks as blocks on blocks.org_id = org_id and blocks.class = part.class
            and blocks.segment = part.segment and blocks.first = touched.first
        ) as longest
        where longest.length is not null
      )
      update rag.term_blocks as blocks
      set entries = case when touched.entry is not null then array_remove(blocks.entries, touched.entry)
          else array(select entry from unnest(blocks.entries) as entry where entry & 65535 <> all (part.numbers)) end,
        (terms, ends, chunks, impacts) = (
          select coalesce(array_agg(term.key), '{}'),
            coalesce(array_agg(term.last - coalesce(touched.documents[term.i], 0)), '{}'),
            coalesce(array_agg(case when touched.keys[term.i] = term.key then term.chunks - touched.chunks[term.i]
              else term.chunks end), '{}'),
            case when max(term.position) = cardinality(blocks.terms)
              then blocks.impacts operator(extensions.*) (select kept.ones from kept) end
          from (
            select term.*, width_bucket(term.key, touched.keys) as i
            from unnest(blocks.terms, blocks.ends, blocks.chunks) with ordinality as term (key, last, chunks, position)
            offset 0
          ) as term
          where touched.keys[term.i] is distinct from term.key or term.chunks > touched.chunks[term.i]
        )
      from touched
      where blocks.org_id = org_id and blocks.class = part.class and blocks.segment = part.segment
        and blocks.first = touched.first;

      update rag.term_segments as segments
      set documents = segments.documents - lost.documents, chunks = segments.chunks - lost.chunks,
        length = segments.length - lost.length
      from (
        select gone.config, gone.embedding_model, count(*) as documents, sum(gone.chunks) as chunks,
          sum(gone.length) as length
        from rag.document_terms as gone
        where gone.org_id = org_id and gone.class = part.class and gone.segment = part.segment
          and gone.number = any (part.numbers)
        group by 1, 2
      ) as lost
      where segments.org_id = org_id and segments.class = part.class and segments.segment = part.segment
        and segments.config = lost.config and segments.embedding_model = lost.embedding_model;
    end if;
    delete from rag.term_blocks as blocks
    where blocks.org_id = org_id and blocks.class = part.class and blocks.segment = part.segment
      and (part.is_whole or blocks.terms = '{}');
    delete from rag.term_segments as segments
    where segments.org_id = org_id and segments.class = part.class and segments.segment = part.segment
      and (part.is_whole or segments.documents = 0);
  end loop;
  delete from rag.document_terms as gone where gone.org_id = org_id and gone.document_id = any (document_ids);
end;
$$;

comment on function rag.remove_words is
  'Remove documents and their terms from the index: the blocks of a segment are rewritten once for all of them. Waits for '
  'transactions that fold or remove documents of the same segments.';

create function rag.fold_tail(org_id uuid, class bytea)
returns void
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off
as $$
#variable_conflict use_variable
declare
  -- A larger segment would take seconds to write; smaller ones would be more look-ups for a search.
  most_chunks constant integer := 8000;
  -- A search reads tails document by document, and those of an org may be hundreds: a small class has a short one.
  most_documents constant integer := (
    select least(32, greatest(4, sum(segments.documents) / 4))
    from rag.term_segments as segments
    where segments.org_id = org_id and segments.class = class);
  tail record;
  small record;
begin
  loop
    select count(*) > most_documents or coalesce(sum(waiting.chunks), 0) > 256 as is_long into tail
    from rag.document_terms as waiting
    where waiting.org_id = org_id and waiting.class = class and waiting.segment is null;
    exit when not tail.is_long;
    -- Documents that another transaction is changing are skipped.
    select array_agg(waiting.document_id) as ids, sum(waiting.chunks) as chunks,
      count(*) > most_documents or coalesce(sum(waiting.chunks), 0) > 256 as is_long into tail
    from (
      select free.document_id, free.chunks, sum(free.chunks) over (order by free.document_id) - free.chunks as before
      from (
        select present.document_id, present.chunks
        from rag.document_terms as present
        where present.org_id = org_id and present.class = class and present.segment is null
        for update skip locked
      ) as free
    ) as waiting
    where waiting.before < most_chunks;
    exit when not tail.is_long;
    -- Segments of like size are merged, so that a class has few: up to the largest that is a third of the result; half, if
    -- the result is one of the largest segments. All segments of a class of up to 256 chunks are merged.
    select coalesce(array_agg(part.segment), '{}') as segments, sum(part.documents) as documents into small
    from (
      select whole.*, bool_or(whole.total <= most_chunks
          and whole.total >= whole.chunks
            * case when whole.total <= 256 then 1 when whole.total < most_chunks / 2 then 3 else 2 end)
        over (order by whole.total desc) as is_merged
      from (
        select segments.segment, sum(segments.documents) as documents, sum(segments.chunks) as chunks,
          tail.chunks + sum(sum(segments.chunks)) over (order by sum(segments.chunks), segments.segment) as total
        from rag.term_segments as segments
        where segments.org_id = org_id and segments.class = class
        group by 1
      ) as whole
    ) as part
    where part.is_merged;
    -- All of their documents, or none.
    if small.documents > (
      select count(*)
      from (
        select from rag.document_terms as held
        where held.org_id = org_id and held.class = class and held.segment = any (small.segments)
        for update skip locked
      ) as locked)
    then
      small.segments := '{}';
    end if;
    perform rag.write_segment(org_id, class, tail.ids, small.segments);
  end loop;
end;
$$;

comment on function rag.fold_tail is
  'Fold the tail of a visibility class into a segment if it has more than 256 chunks, or more documents than a quarter of those '
  'in segments, at least 4 and at most 32. What another transaction has locked is left to the next write.';

create function rag.write_segment(org_id uuid, class bytea, document_ids uuid[], sources uuid[])
returns void
language plpgsql volatile security invoker set search_path = '' set enable_seqscan = off
as $$
#variable_conflict use_variable
declare
  target constant uuid := gen_random_uuid();
  numbered integer;
begin
  delete from rag.term_blocks as blocks
  where blocks.org_id = org_id and blocks.class = class and blocks.segment = any (sources);
  delete from rag.term_segments as segments
  where segments.org_id = org_id and segments.class = class and segments.segment = any (sources);
  update rag.document_terms as present
  set segment = target, number = listed.number
  from (
    select source.document_id, source.embedding_model, row_number() over () as number
    from (
      (select tail.document_id, tail.embedding_model
      from rag.document_terms as tail
      where tail.org_id = org_id and tail.class = class and tail.segment is null and tail.document_id = any (document_ids)
      offset 0)
      union all
      (select held.document_id, held.embedding_model
      from rag.document_terms as held
      where held.org_id = org_id and held.class = class and held.segment = any (sources)
      offset 0)
    ) as source
  ) as listed
  where present.org_id = org_id and present.document_id = listed.document_id and present.class = class
    and present.embedding_model = listed.embedding_model;
  get diagnostics numbered = row_count;

  insert into rag.term_segments (org_id, collection_id, owner_id, segment, config, embedding_model, documents, chunks, length)
  select org_id, member.collection_id, member.owner_id, target, member.config, member.embedding_model, count(*),
    sum(member.chunks), sum(member.length)
  from rag.document_terms as member
  where member.org_id = org_id and member.class = class and member.segment = target
  group by member.collection_id, member.owner_id, member.config, member.embedding_model;

  insert into rag.term_blocks (org_id, collection_id, owner_id, segment, first, terms, ends, chunks, entries,
    impacts)
  with posting as materialized (
    select term.key, (min(term.place) >> 54 << 16)::integer | member.number as entry, count(*) as chunks
    from rag.document_terms as member
    cross join unnest(member.terms, member.places) as term (key, place)
    where member.org_id = org_id and member.class = class and member.segment = target
    group by term.key, member.number
  ), list as materialized (
    -- A block has about 128 entries, those of a small segment 512: a term begins a new one after each 128. A frequent term
    -- is the last of its block: its impacts are summed many times as fast as entries.
    select counted.*,
      counted.frequent << 32 | counted.entries / case when counted.all_documents <= 4096 then 512 else 128 end as block
    from (
      select term.*, sum(term.documents) over in_order as last, sum(term.documents) over () as all_documents,
        coalesce(count(*) filter (where term.is_frequent) over before, 0) as frequent,
        coalesce(sum(term.documents) filter (where not term.is_frequent) over before, 0)::bigint as entries
      from (
        select posting.key, count(*) as documents, sum(posting.chunks) as chunks,
          count(*) >= 128 and count(*) * 8 > numbered as is_frequent
        from posting
        group by 1
      ) as term
      window in_order as (order by term.key), before as (order by term.key rows between unbounded preceding and 1 preceding)
    ) as counted
  ), dictionary as (
    select list.block, min(list.key) as first, array_agg(list.key order by list.key) as terms,
      array_agg(list.chunks::integer order by list.key) as chunks,
      array_agg((list.last - list.before)::integer order by list.key) as ends
    from (select list.*, min(list.last - list.documents) over (partition by list.block) as before from list) as list
    group by 1
  ), content as (
    select list.block,
      coalesce(array_agg(posting.entry order by posting.key, posting.entry desc) filter (where not list.is_frequent), '{}')
        as entries,
      ('{' || string_agg((posting.entry & 65535) || ':' || (posting.entry >> 16), ',') filter (where list.is_frequent)
        || '}/' || numbered)::extensions.sparsevec::extensions.halfvec as impacts
    from posting
    join list on list.key = posting.key
    group by 1
  )
  select org_id, home.collection_id, home.owner_id, target, dictionary.first, dictionary.terms, dictionary.ends,
    dictionary.chunks, content.entries, content.impacts
  from (
    select distinct segments.collection_id, segments.owner_id
    from rag.term_segments as segments
    where segments.org_id = org_id and segments.class = class and segments.segment = target
  ) as home
  cross join dictionary
  join content on content.block = dictionary.block;
end;
$$;

comment on function rag.write_segment is
  'Replace segments of one visibility class, and documents of its tail, by one segment. The caller has locked the rows of '
  'all documents.';

create function rag.index_changed_chunks()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  part record;
begin
  -- A document that is stored in parts counts its words at the end (rag_load_chunks, rag.replace_documents).
  if current_setting('rag.words_later', true) = 'true' then
    return null;
  end if;
  if tg_op = 'UPDATE' then
    -- A loop, because rag_worker changes other columns and may not execute rag.index_words.
    for part in
      select different.org_id, array_agg(distinct different.document_id) as ids
      from (
        (select org_id, document_id, ordinal, embedding_model, content from changed
        except select org_id, document_id, ordinal, embedding_model, content from former)
        union all
        (select org_id, document_id, ordinal, embedding_model, content from former
        except select org_id, document_id, ordinal, embedding_model, content from changed)
      ) as different
      group by different.org_id
    loop
      perform rag.index_words(part.org_id, part.ids);
    end loop;
  else
    perform rag.index_words(changed.org_id, array_agg(distinct changed.document_id))
    from changed
    group by changed.org_id;
  end if;
  return null;
end;
$$;

comment on function rag.index_changed_chunks is 'Trigger that rewrites the terms of documents whose chunks changed.';

create function rag.index_changed_documents()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  part record;
begin
  if current_setting('rag.words_later', true) = 'true' then
    return null;
  end if;
  for part in
    select changed.org_id, array_agg(changed.id) as ids
    from changed
    join former on former.org_id = changed.org_id and former.id = changed.id
    where (former.title, former.lang, former.collection_id, former.owner_id)
      is distinct from (changed.title, changed.lang, changed.collection_id, changed.owner_id)
    group by changed.org_id
  loop
    perform rag.index_words(part.org_id, part.ids);
  end loop;
  return null;
end;
$$;

comment on function rag.index_changed_documents is
  'Trigger that rewrites the terms of documents whose title, language, collection or owner changed.';

create trigger index_words_of_new_chunks after insert on rag.chunks
  referencing new table as changed
  for each statement execute function rag.index_changed_chunks();

create trigger index_words_of_changed_chunks after update on rag.chunks
  referencing old table as former new table as changed
  for each statement execute function rag.index_changed_chunks();

create trigger index_words_of_deleted_chunks after delete on rag.chunks
  referencing old table as changed
  for each statement execute function rag.index_changed_chunks();

create trigger index_words_of_changed_documents after update on rag.documents
  referencing old table as former new table as changed
  for each statement execute function rag.index_changed_documents();

create function rag.delete_terms_of_org()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  -- Otherwise the documents would be deleted later, and their writers, for which the deletion waits, would leave terms.
  delete from rag.documents where documents.org_id = old.id;
  delete from rag.term_blocks where term_blocks.org_id = old.id;
  delete from rag.term_segments where term_segments.org_id = old.id;
  delete from rag.document_terms where document_terms.org_id = old.id;
  return null;
end;
$$;

comment on function rag.delete_terms_of_org is 'Trigger that deletes the documents and the keyword index of a deleted org.';

create trigger delete_terms_of_org after delete on rag.orgs
  for each row execute function rag.delete_terms_of_org();
