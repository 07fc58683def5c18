-- The parts that the queues of the worker share. The queues are ingestion jobs (20_documents), extractions (70_graph),
-- deliveries (50_webhooks) and object removals (40_storage). A claim leases due items, the same number for every org.
-- An item whose lease has expired is due again, and after rag.max_attempts() without a result it fails. A removal has
-- no lease and never fails. The claims themselves differ by table (docs/decisions/storage.md).

create function rag.check_claim(max_items integer, lease_seconds integer default 60)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if max_items is null or max_items not between 1 and 100
    or lease_seconds is null or lease_seconds not between 5 and 3600
  then
    raise exception 'max_items must be between 1 and 100, and lease_seconds between 5 and 3600'
      using errcode = 'PT400', detail = 'invalid_claim';
  end if;
end;
$$;

comment on function rag.check_claim is 'Raises PT400 for invalid arguments of a claim.';

create function rag.max_attempts()
returns integer
language sql immutable security invoker set search_path = ''
as $$
  select 16;
$$;

comment on function rag.max_attempts is 'The number of claims after which an item without a result fails: 16.';

create function rag.lock_leased(queue anyelement, with_document boolean default true)
returns anyelement
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  condition constant text :=
    'leased.org_id = any (array(select rag.current_org_ids())) and leased.lease = (select rag.lease_of_token())';
begin
  if with_document then
    -- The document first: every transaction that deletes or replaces a document locks it before its items.
    execute format('select from rag.documents join %s as leased on leased.org_id = documents.org_id '
      'and leased.document_id = documents.id where %s for no key update of documents', pg_typeof(queue), condition);
  end if;
  execute format('select leased.* from %s as leased where %s for update', pg_typeof(queue), condition) into queue;
  if queue is null then
    raise exception 'The lease has ended. Claim the item again.' using errcode = 'PT409', detail = 'lease_lost';
  end if;
  return queue;
end;
$$;

comment on function rag.lock_leased is
  'The item of the token''s lease, locked. queue: null of the row type of rag.jobs or rag.extractions. PT409 when the '
  'lease is lost: the item was claimed again, or its document was replaced or deleted, or the user no longer sees it. '
  'with_document: the document is locked too.';
