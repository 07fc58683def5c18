-- Documents: a call, a mail, a page. A document keeps its converted text, so that the span of every chunk can be
-- checked against it, and the fields that searches filter by. rag_put_documents writes and replaces documents; searches
-- read them when they return rows. owner_id null: the whole org sees it.

create table rag.documents (
  org_id uuid not null,
  id uuid not null default rag.time_ordered_id(),
  collection_id uuid not null,
  owner_id uuid,
  created_by uuid not null default rag.creator_id(),
  external_id text check (length(external_id) between 1 and 500),
  source_type text not null default 'doc' check (source_type ~ '^[A-Za-z0-9_-]{1,64}$'),
  title text not null check (length(title) between 1 and 1000 and title !~ '[\n\t]' and rag.is_visible_text(title)),
  uri text check (length(uri) <= 2000 and uri ~ '^https?://[^[:space:]]+$' and rag.is_visible_text(uri)),
  lang text check (lang ~ '^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$' and length(lang) <= 35),
  occurred_at timestamptz check (occurred_at >= '0001-01-02Z' and occurred_at < '9999-12-31Z'),
  origin text check (length(origin) between 1 and 200 and rag.is_visible_text(origin)),
  author text check (length(author) between 1 and 200 and rag.is_visible_text(author)),
  state text check (length(state) between 1 and 200 and rag.is_visible_text(state)),
  labels text[] not null default '{}' check (
    cardinality(labels) <= 100 and array_position(labels, null) is null
    and length(array_to_string(labels, '')) <= 10000 and rag.is_visible_text(array_to_string(labels, ' '))
  ),
  metadata jsonb not null default '{}' check (rag.is_metadata(metadata)),
  content text not null check (length(content) <= 20000000 and rag.is_visible_text(content)),
  content_hash text not null check (content_hash ~ '^[0-9a-f]{64}$'),
  status text not null default 'completed' check (status in ('processing', 'completed', 'failed')),
  error_code text check (error_code ~ '^[a-z_]{1,40}$'),
  error_message text check (length(error_message) <= 500 and rag.is_visible_text(error_message)),
  filename text check (length(filename) between 1 and 512 and filename !~ '[\n\t]' and rag.is_visible_text(filename)),
  content_type text check (length(content_type) between 1 and 255 and rag.is_visible_text(content_type)),
  size_bytes bigint check (size_bytes >= 0),
  processing_info jsonb not null default '{}' check (
    pg_column_size(processing_info) <= 4000 and rag.is_metadata(processing_info)
  ),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id),
  -- No cascade: the trigger below deletes a collection's documents.
  foreign key (org_id, collection_id) references rag.collections (org_id, id)
);

comment on table rag.documents is 'Documents with their converted text and the fields that searches filter by.';
comment on column rag.documents.created_by is 'The user who created it. No permission depends on this.';
comment on column rag.documents.external_id is
  'The caller''s own name for it, when there is one: putting the same name again replaces the document.';
comment on column rag.documents.uri is 'A link that a page may show: no javascript: or data: address.';
comment on column rag.documents.occurred_at is
  'The document''s own date (of the call, of the mail), not the date of its ingestion. Within what readers in other '
  'languages can represent: one document must not break a whole search.';
comment on column rag.documents.origin is
  'The source system of the document (github, slack); the next columns: its author and its state (open, merged).';
comment on column rag.documents.content_hash is
  'SHA-256 of the text; of a document with an original (30_original_files.sql), of the original''s bytes.';
comment on column rag.documents.status is
  'The ingestion status of the latest version. Before completion, searches find the previous version.';
comment on column rag.documents.error_code is
  'The error code of a failed ingestion; the next column has the message.';
comment on column rag.documents.filename is 'The name of the uploaded file; null for a document without a file.';

-- rag_put_documents: replace by name. The owner is part of the key, so that one user's private name
-- neither blocks nor betrays another's.
create unique index documents_external_id
  on rag.documents (org_id, collection_id, owner_id, external_id) nulls not distinct
  where external_id is not null;

-- The keyword half of rag_search, for the documents that its filters leave; and deleting a collection.
create index documents_by_scope on rag.documents (org_id, collection_id, source_type, occurred_at)
  include (owner_id, lang, id);

call rag.admit_members('documents');
call rag.bind_keys('documents');
call rag.require_edit('documents');

create function rag.deleted_collection()
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select nullif(current_setting('rag.deleted_collection', true), '')::uuid
  where rag.has_scope('collections:manage');
$$;

comment on function rag.deleted_collection is
  'The collection that the running statement deletes; null outside of the trigger '
  'rag.delete_documents_of_collection. A key that may delete a collection may delete the documents in it.';

create policy "a key reads and writes with the scopes for it" on rag.documents
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read'))
    or collection_id = (select rag.deleted_collection()))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.documents
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')) or collection_id = (select rag.deleted_collection()));
