-- The inverted index of keyword search. A visibility class is what the same callers see: the documents of an org, a
-- collection and an owner. Each row belongs to one class, so the policies decide on whole rows, and statistics are sums over
-- the rows that the caller sees. The class is part of each key and generated from the columns that the policies check: a
-- caller can write no row that a statement on another class reads, and no key that another class has.
--
-- A document has a row with its terms. The latest documents of a class are its tail, which searches read document by
-- document. A write that makes the tail too long folds it into a segment: blocks that list, term by term, the documents of
-- up to 8,000 chunks. A search reads one block for each term and segment.
--
-- Terms are stored as hashes. Writes and deletions change all three tables in their own transaction, so a search never
-- finds words of a deleted text.

create function rag.term_key(term text)
returns bigint
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return hashtextextended(term collate "C", 0) & 9223372036854775807;
end;
$$;

comment on function rag.term_key is 'The hash of a term, 63 bits: the term''s key in the keyword index.';

create table rag.document_terms (
  org_id uuid not null,
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  class bytea not null generated always as (uuid_send(collection_id) || coalesce(uuid_send(owner_id), '')) stored,
  embedding_model text not null,
  config text not null,
  segment uuid,
  number integer check (number between 1 and 65535),
  chunks integer not null check (chunks between 1 and 4194304),
  length bigint not null check (length between 0 and 1000000000000),
  terms bigint[] not null check (array_position(terms, null) is null),
  places bigint[] not null check (cardinality(places) = cardinality(terms) and array_position(places, null) is null),
  check ((segment is null) = (number is null)),
  -- No foreign key to the document, which would be checked for each write. The trigger on chunks deletes the row.
  primary key (org_id, document_id, class, embedding_model)
);

comment on table rag.document_terms is
  'The terms of each document, for the exact scores of candidates and for removing the document from its segment.';
comment on column rag.document_terms.class is 'The visibility class: collection and owner.';
comment on column rag.document_terms.config is 'The name of the text search configuration (rag.text_config).';
comment on column rag.document_terms.segment is 'The segment that lists the document; null in the tail.';
comment on column rag.document_terms.number is 'The number of the document in its segment.';
comment on column rag.document_terms.length is 'Terms in the whole document.';
comment on column rag.document_terms.terms is
  'The keys of terms (rag.term_key) in order, a term once for each chunk that contains it.';
comment on column rag.document_terms.places is
  'For each of terms: (impact << 54) | (ordinal of the chunk << 32) | (terms in the chunk << 16) | occurrences. impact: an '
  'estimate of the document''s score for the term, 1 to 511, among passages of 100 terms in documents of 500.';

-- The documents of segments and tails by number, and the tails of an org.
create index document_terms_by_segment on rag.document_terms (org_id, class, segment, number);
create index document_terms_tail on rag.document_terms (org_id, collection_id) where segment is null;

create table rag.term_segments (
  org_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  class bytea not null generated always as (uuid_send(collection_id) || coalesce(uuid_send(owner_id), '')) stored,
  segment uuid not null,
  config text not null,
  embedding_model text not null,
  documents integer not null check (documents between 0 and 65535),
  chunks bigint not null check (chunks between 0 and 1000000000000),
  length bigint not null check (length between 0 and 1000000000000),
  primary key (org_id, class, segment, config, embedding_model)
);

comment on table rag.term_segments is
  'The segments of the keyword index: the numbers of documents and chunks, and the terms in all of these chunks, by text '
  'search configuration and embedding model.';

create table rag.term_blocks (
  org_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  class bytea not null generated always as (uuid_send(collection_id) || coalesce(uuid_send(owner_id), '')) stored,
  segment uuid not null,
  first bigint not null,
  terms bigint[] not null check (array_position(terms, null) is null),
  ends integer[] not null check (0 <= all (ends)),
  chunks integer[] not null check (0 < all (chunks)),
  entries integer[] not null check (array_position(entries, null) is null),
  impacts extensions.halfvec,
  primary key (org_id, class, segment, first)
);

comment on table rag.term_blocks is
  'The blocks of a segment: the documents that contain a term. A block has all of a segment''s terms from `first` up to the '
  'next block.';
comment on column rag.term_blocks.terms is 'The keys of the block''s terms, in order.';
comment on column rag.term_blocks.ends is
  'For each term, the sum of the numbers of documents up to it: the position of its last entry in entries.';
comment on column rag.term_blocks.chunks is 'For each term, the number of chunks that contain it.';
comment on column rag.term_blocks.entries is
  '(impact << 16) | number of the document in the segment; those of a term together, highest impact first.';
comment on column rag.term_blocks.impacts is
  'Of the last term, if an eighth of the segment''s documents contain it: the impact in each document by number, in place of '
  'entries. 0 for a document without the term.';

-- A block and a document of a few chunks stay in the row: reading from TOAST takes longer. Hashes and entries do not
-- compress.
alter table rag.document_terms set (toast_tuple_target = 8160);
alter table rag.document_terms alter column terms set storage external;
alter table rag.term_blocks alter column entries set storage external;
alter table rag.term_blocks set (toast_tuple_target = 8160);

call rag.admit_members('document_terms', 'terms of documents');
call rag.admit_members('term_segments', 'segments');
call rag.admit_members('term_blocks', 'blocks');

-- Who deletes a collection also removes its words. Rows are written by triggers and by rag_load_chunks alone: a row that a
-- caller invents would disturb the searches and writes of all who share the class.
do $$
declare
  by_index constant text :=
    '(select pg_trigger_depth()) > 0 or (select current_setting(''rag.loads_words'', true)) = ''true''';
  table_name text;
begin
  foreach table_name in array array['document_terms', 'term_segments', 'term_blocks'] loop
    call rag.bind_keys(table_name);
    execute format('create policy "a key reads and writes with the scopes for it" on rag.%I as restrictive for all '
      'to authenticated using ((select rag.has_scope(''documents:read'', ''documents:write'', ''retrievals:read'', '
      '''chat:read'')) or collection_id = (select rag.deleted_collection())) '
      'with check ((select rag.has_scope(''documents:write'')) or collection_id = (select rag.deleted_collection()))',
      table_name);
    execute format('create policy "a key deletes with documents:write" on rag.%I as restrictive for delete '
      'to authenticated using ((select rag.has_scope(''documents:write'')) '
      'or collection_id = (select rag.deleted_collection()))', table_name);
    execute format('create policy "the index inserts rows" on rag.%I as restrictive for insert to authenticated '
      'with check (%s)', table_name, by_index);
    execute format('create policy "the index changes rows" on rag.%I as restrictive for update to authenticated '
      'using (%s)', table_name, by_index);
    execute format('create policy "the index deletes rows" on rag.%I as restrictive for delete to authenticated '
      'using (%s)', table_name, by_index);
  end loop;
end;
$$;

-- PostgREST's connections cache plans. A plan made while these tables were empty would scan the filled tables; so these
-- functions disable sequential scans. They read what the joins name first, first: under row security the planner expects few
-- rows, and might read a document once for each term.
create function rag.index_totals(org_ids uuid[], collection_ids uuid[])
returns setof rag.term_segments
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
as $$
begin
  return query
  select counted.*
  from unnest(org_ids) as org (id)
  cross join lateral (
    (select segments.* from rag.term_segments as segments where segments.org_id = org.id offset 0)
    union all
    (select tail.org_id, tail.collection_id, tail.owner_id, tail.class, null, tail.config, tail.embedding_model,
      count(*)::integer, sum(tail.chunks)::bigint, sum(tail.length)::bigint
    from rag.document_terms as tail
    where tail.org_id = org.id and tail.segment is null
    group by 1, 2, 3, 4, 6, 7)
  ) as counted
  where index_totals.collection_ids is null or counted.collection_id = any (index_totals.collection_ids);
end;
$$;

comment on function rag.index_totals is
  'The segments of orgs, or of some of their collections, and their tails, each as a segment without an id.';

create type rag.term_list as (
  part integer, org_id uuid, class bytea, segment uuid, document_id uuid, key bigint, documents bigint, chunks bigint,
  entries integer[], impacts extensions.halfvec
);

comment on type rag.term_list is
  'The list of a term in a segment, or in one document of a tail. part: the number of the segment or tail. documents, chunks: '
  'the numbers of those that contain the term. entries, impacts: as in rag.term_blocks; none if the segment or document has no '
  'chunk of the wanted model.';

-- One look-up for each term and segment; tails are read document by document. Memoize would hash the arrays, which takes
-- longer than the look-ups that it saves.
create function rag.term_lists(parts rag.term_segments[], keys bigint[], model text)
returns setof rag.term_list
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off set join_collapse_limit = 1
set enable_memoize = off
as $$
begin
  return query
  with part as materialized (
    select row_number() over ()::integer as part, parted.org_id, parted.class, parted.segment,
      bool_or(parted.embedding_model = model) as has_model
    from unnest(parts) as parted
    group by 2, 3, 4
  )
  select part.part, part.org_id, part.class, part.segment, null::uuid, term.key, (span.last - span.before)::bigint,
    block.chunks[place.i]::bigint,
    case when part.has_model then block.entries[span.before + 1 : span.last] else '{}' end,
    case when part.has_model and place.i = cardinality(block.terms) then block.impacts end
  from part
  cross join unnest(keys) as term (key)
  cross join lateral (
    select blocks.terms, blocks.ends, blocks.chunks, blocks.entries, blocks.impacts
    from rag.term_blocks as blocks
    where blocks.org_id = part.org_id and blocks.class = part.class and blocks.segment = part.segment
      and blocks.first <= term.key
    order by blocks.first desc
    limit 1
  ) as block
  cross join lateral (select width_bucket(term.key, block.terms) as i offset 0) as place
  cross join lateral (
    select block.ends[place.i] as last, coalesce(block.ends[place.i - 1], 0) as before offset 0
  ) as span
  where block.terms[place.i] = term.key
  union all
  select part.part, part.org_id, part.class, null, tail.document_id, term.key, 1,
    term.last - width_bucket(term.key - 1, tail.terms),
    case when tail.embedding_model = model then array[(tail.places[term.last] >> 54)::integer << 16] else '{}' end,
    null
  from part
  cross join lateral (
    -- The concatenation reads a long array from TOAST once.
    select waiting.document_id, waiting.embedding_model, waiting.terms || '{}' as terms, waiting.places || '{}' as places
    from rag.document_terms as waiting
    where waiting.org_id = part.org_id and waiting.class = part.class and waiting.segment is null
    offset 0
  ) as tail
  cross join lateral (
    select wanted.key, width_bucket(wanted.key, tail.terms) as last
    from unnest(keys) as wanted (key)
    where tail.terms[width_bucket(wanted.key, tail.terms)] = wanted.key
    offset 0
  ) as term
  where part.segment is null;
end;
$$;

comment on function rag.term_lists is
  'The lists of terms in parts of the index (rag.index_totals), with entries for chunks of the model.';

create function rag.term_counts(parts rag.term_segments[], keys bigint[])
returns table (key bigint, documents bigint, chunks bigint)
language sql stable security invoker set search_path = ''
as $$
  select list.key, sum(list.documents)::bigint, sum(list.chunks)::bigint
  from rag.term_lists(parts, keys, null) as list
  group by 1;
$$;

comment on function rag.term_counts is
  'The numbers of documents and chunks that contain each of the terms, in parts of the index (rag.index_totals). Terms that '
  'the caller sees in no document are omitted.';
