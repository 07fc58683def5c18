-- Extractions: a queue of documents whose entities are to be extracted, one row for each document with chunks in a
-- collection of the graph. Most documents are extracted when they are added, which needs no job. The worker processes
-- the others chunk by chunk, as the user who added the document.

create table rag.extractions (
  org_id uuid not null,
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  user_id uuid,
  is_extracted boolean not null,
  next_ordinal integer not null default 0 check (next_ordinal >= 0),
  attempts integer not null default 0,
  due_at timestamptz default now(),
  lease uuid,
  error_code text check (error_code ~ '^[a-z_]{1,40}$'),
  error_message text check (length(error_message) <= 500 and rag.is_visible_text(error_message)),
  updated_at timestamptz not null default now(),
  primary key (org_id, document_id),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade
);

comment on table rag.extractions is 'Progress of entity extraction, one row for each document in the graph.';
comment on column rag.extractions.user_id is
  'The user as whom the worker extracts the document; null until a user requests it (rag_build_graph).';
comment on column rag.extractions.is_extracted is 'Whether the entities of all chunks are stored.';
comment on column rag.extractions.next_ordinal is 'The ordinal of the next chunk to extract.';
comment on column rag.extractions.due_at is
  'The earliest time of a claim; for a leased extraction, the end of the lease. Null: given up.';

-- rag_claim_extractions: the orgs with waiting rows, and the due rows of each org.
create index extractions_due on rag.extractions (org_id, due_at)
  where not is_extracted and user_id is not null and due_at is not null;

-- rag.lock_leased
create index extractions_by_lease on rag.extractions (org_id, lease) where lease is not null;

-- rag.enqueue_collection
create index extractions_by_collection on rag.extractions (org_id, collection_id);

alter table rag.extractions enable row level security;
alter table rag.extractions force row level security;

create policy "members use their org's extractions" on rag.extractions
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "a key reads and writes with the scopes for it" on rag.extractions
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read')))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.extractions
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.extractions
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

-- Only the worker's token for one document has a lease; a user's own token has none.
create policy "documents are read in the name of who asks" on rag.extractions
  as restrictive for all to authenticated
  using (true)
  with check (user_id = (select auth.uid()) and (lease is null or lease = (select rag.lease_of_token())));

create policy "the worker claims extractions" on rag.extractions
  for select to rag_worker using (true);

create policy "the worker leases extractions" on rag.extractions
  for update to rag_worker using (true) with check (lease is not null or due_at is null);

create function rag.enqueue_extractions(org_id uuid, documents rag.document_chunks[], later boolean)
returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.extractions as known (org_id, document_id, collection_id, owner_id, user_id, is_extracted)
  select stored.org_id, stored.id, stored.collection_id, stored.owner_id, auth.uid(),
    not exists (
      select from jsonb_array_elements(chunked.chunks) as item (body)
      where jsonb_typeof(item.body -> 'names') is distinct from 'array')
  from unnest(enqueue_extractions.documents) as chunked
  join rag.documents as stored on stored.org_id = enqueue_extractions.org_id and stored.id = chunked.document_id
  on conflict (org_id, document_id) do update
  set is_extracted = excluded.is_extracted and (known.is_extracted or not enqueue_extractions.later),
    user_id = excluded.user_id, next_ordinal = 0, attempts = 0, due_at = now(), lease = null, error_code = null,
    error_message = null, updated_at = now();
$$;

comment on function rag.enqueue_extractions is
  'Record that documents have new chunks, which are extracted if they come with names. `later`: chunks that are added '
  'to a document''s earlier ones.';

create function rag.requeue_extraction(org_id uuid, document_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.delete_dangling_relations(requeue_extraction.org_id, requeue_extraction.document_id);
  update rag.extractions
  set is_extracted = false, next_ordinal = 0, attempts = 0, due_at = now(), lease = null,
    user_id = coalesce(auth.uid(), user_id)
  where extractions.org_id = requeue_extraction.org_id and extractions.document_id = requeue_extraction.document_id;
end;
$$;

comment on function rag.requeue_extraction is
  'Enqueue the extraction of a document whose title changed, and delete relations of the old title''s entities.';
