-- Postings: the inverted index of keyword search. A posting lists the chunks of a document that contain a term, and how
-- often. Triggers update it in the transaction that writes the chunks, so a search never sees words of a deleted text.
-- It repeats its document's owner and collection for its policies; searches use equality of text and uuid, which is
-- leakproof and so may use the index under row security.

create table rag.postings (
  org_id uuid not null,
  document_id uuid not null,
  term text collate "C" not null,
  collection_id uuid not null,
  owner_id uuid,
  places bigint[] not null check (cardinality(places) > 0),
  length integer not null,
  impact real not null,
  -- No foreign key to the document, which would be checked for every term. A write of postings has locked the
  -- document's row or has inserted its chunks, and the trigger that follows the deletion of chunks deletes the
  -- postings.
  primary key (org_id, document_id, term)
);

comment on table rag.postings is 'The inverted index of keyword search: the chunks of a document that contain a term.';
comment on column rag.postings.term is
  'A term. One posting of each document represents the whole document; its term consists of blank, text search '
  'configuration, blank and embedding model (rag.total_term). No other term begins with a blank.';
comment on column rag.postings.places is
  'For every chunk that holds the term, in order: (ordinal << 32) | (terms in the chunk << 16) | occurrences.';
comment on column rag.postings.length is 'Terms in the whole document.';
comment on column rag.postings.impact is
  'An estimate of the best chunk''s score for this term, among passages of 100 terms in documents of 500. If a term '
  'has more postings than a search reads, the search reads those with the highest impact.';

-- rag.candidate_documents: the postings of a term, those with the most of it first.
create index postings_by_term on rag.postings (org_id, term, impact desc)
  include (document_id, collection_id, owner_id);

create table rag.term_counts (
  org_id uuid not null,
  term text collate "C" not null,
  id bigint generated always as identity,
  collection_id uuid not null,
  owner_id uuid,
  documents bigint not null,
  chunks bigint not null,
  length bigint not null,
  -- No foreign key to the org, which would be checked for every term; a trigger deletes the counts of a deleted org.
  -- No foreign key to the collection: folding would wait for its deletion, which waits for the folded rows.
  -- The documents of a deleted collection subtract their counts, so that each sum becomes 0.
  primary key (org_id, term, id)
);

comment on table rag.term_counts is
  'The numbers of documents and chunks that contain a term, from which BM25 computes the term''s rarity. A log of '
  'differences, with one row for each term that a write added or removed, so that writers never wait for each '
  'other. A search sums the rows that it may see, and from time to time a write folds the rows of its terms into '
  'one.';
comment on column rag.term_counts.length is
  'The number of terms in all these chunks; only for the postings that represent whole documents.';

call rag.admit_members('postings');
call rag.bind_keys('postings');

create policy "a key reads and writes with the scopes for it" on rag.postings
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read'))
    or collection_id = (select rag.deleted_collection()))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.postings
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')) or collection_id = (select rag.deleted_collection()));

-- Counts obey the same rules as what they count: a word in a private document, or in a collection
-- that a key may not enter, does not change other callers' scores. Deleting a collection subtracts its words.
call rag.admit_members('term_counts', 'term counts');
call rag.bind_keys('term_counts');

create policy "a key reads and writes with the scopes for it" on rag.term_counts
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read')))
  with check ((select rag.has_scope('documents:write', 'collections:manage')));

create policy "a key deletes with documents:write" on rag.term_counts
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create function rag.total_term(config regconfig, embedding_model text)
returns text
language sql stable security invoker set search_path = ''
as $$
  select format(' %s %s', pg_ts_config.cfgname, embedding_model)
  from pg_catalog.pg_ts_config
  where pg_ts_config.oid = config;
$$;

comment on function rag.total_term is
  'The term of the posting that represents a whole document: blank, text search configuration, blank, embedding '
  'model.';

create function rag.config_of_total(term text)
returns regconfig
language sql stable security invoker set search_path = ''
as $$
  select ('pg_catalog.' || split_part(term, ' ', 2))::regconfig;
$$;

comment on function rag.config_of_total is 'The text search configuration in such a term (rag.total_term).';

create function rag.model_of_total(term text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select substr(term, length(split_part(term, ' ', 2)) + 3);
$$;

comment on function rag.model_of_total is 'The embedding model in such a term (rag.total_term).';
