-- Original files: the bytes, the address or the object of Supabase Storage that a document was made of, kept so that it
-- can be converted again and downloaded. Written with the document and its job in one transaction; read by the worker
-- and by everyone who may read the document.

create table rag.originals (
  org_id uuid not null,
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  bytes bytea check (length(bytes) <= 50000000),
  url text check (length(url) <= 2000 and url ~ '^https?://[^[:space:]]+$' and rag.is_visible_text(url)),
  object_bytes bigint check (object_bytes >= 0),
  path text check (path ~ '^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/){4}[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$'),
  content_hash text check (content_hash ~ '^[0-9a-f]{64}$'),
  created_at timestamptz not null default now(),
  primary key (org_id, document_id),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade,
  check (num_nonnulls(bytes, url, path, content_hash) > 0),
  check (split_part(path, '/', 1) = org_id::text)
);

comment on table rag.originals is 'Original files: the bytes, address or Storage object that a document was made of.';
comment on column rag.originals.bytes is 'Null for an object, for an address that is not fetched yet, and for a file of a kind that is never read.';
comment on column rag.originals.object_bytes is 'The size of the object.';
comment on column rag.originals.path is
  'The path of a large file''s Storage object: org/collection/user/unique part/name.';
comment on column rag.originals.content_hash is
  'SHA-256 of the bytes. For an object or a URL, the worker sets it after reading the content.';

-- Most file formats are compressed: further compression takes time and saves little.
alter table rag.originals alter column bytes set storage external;

-- Duplicate content is refused. The owner is part of the key, so that no user learns of another user's files.
create unique index originals_content
  on rag.originals (org_id, collection_id, owner_id, content_hash) nulls not distinct
  where content_hash is not null;

-- An object belongs to one document. Storage's policies look up whether it does.
create unique index originals_path on rag.originals (org_id, path) where path is not null;

call rag.admit_members('originals');
call rag.restrict_keys('originals', 'documents:read', 'documents:write');
call rag.bind_keys('originals');
call rag.require_edit('originals');

create policy "originals are read with a grant for them" on rag.originals
  as restrictive for select to authenticated
  using (owner_id = (select rag.current_user_id()) or collection_id not in (select rag.closed_collections('original')));

-- A reader of a document may read its object; so no user may add a document with another user's object.
create policy "an object is brought by who uploaded it" on rag.originals
  as restrictive for insert to authenticated
  with check (path is null or split_part(path, '/', 3) = (select rag.current_user_id())::text);

create policy "an object takes a place by who uploaded it" on rag.originals
  as restrictive for update to authenticated
  using (true) with check (path is null or split_part(path, '/', 3) = (select rag.current_user_id())::text);
