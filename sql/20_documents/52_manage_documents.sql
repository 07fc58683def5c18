-- Functions to change and delete documents. They run as their caller.

create function public.rag_update_document(document_id uuid, changes jsonb)
returns setof rag.document
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  present rag.documents := rag.get_document(document_id);
  changed rag.documents;
begin
  perform rag.check_json('changes', changes, 100000);
  changed := jsonb_populate_record(present, (
    select coalesce(jsonb_object_agg(change.key, change.value), '{}')
    from jsonb_each(changes) as change
    where change.value <> 'null' or (changes ? 'metadata' and change.key <> 'title')));
  update rag.documents as renewed
  set title = changed.title, metadata = changed.metadata, source_type = coalesce(changed.source_type, 'doc'),
    uri = changed.uri, lang = changed.lang, occurred_at = changed.occurred_at, origin = changed.origin,
    author = changed.author, state = changed.state, labels = changed.labels, updated_at = clock_timestamp()
  where renewed.org_id = present.org_id and renewed.id = present.id
  returning renewed.* into changed;
  if changed.id is null then
    raise exception 'The API key may not change this document. Check its scopes and its collection.'
      using errcode = 'PT403', detail = 'missing_scope';
  end if;
  update rag.chunks
  set source_type = changed.source_type, lang = changed.lang, occurred_at = changed.occurred_at
  where chunks.org_id = changed.org_id and chunks.document_id = changed.id
    and (chunks.source_type, chunks.lang, chunks.occurred_at)
      is distinct from (changed.source_type, changed.lang, changed.occurred_at);
  return next rag.render(changed);
end;
$$;

comment on function public.rag_update_document is
  'Change a document''s title and metadata. changes: title, metadata and the fields derived from metadata. A missing '
  'or null title or metadata stays unchanged. New metadata replace the old, and all fields derived from metadata, '
  'also by null.';

create function public.rag_delete_document(document_id uuid)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_write();
begin
  delete from rag.documents
  where org_id = any (array(select rag.current_org_ids())) and id = rag_delete_document.document_id;
  return found;
end;
$$;

comment on function public.rag_delete_document is 'Delete a document; false if the caller sees none of that id.';

create function public.rag_delete_documents(document_ids uuid[])
returns setof uuid
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
declare
  is_admitted constant boolean := rag.begin_write();
  own constant uuid[] := array(select rag.current_org_ids());
begin
  perform rag.check_ids('document_ids', document_ids);
  -- In one order, so that two calls with the same documents do not wait for each other.
  perform from rag.documents
  where org_id = any (own) and id = any (document_ids)
  order by org_id, id
  for update;
  return query
    delete from rag.documents where org_id = any (own) and id = any (document_ids) returning id;
end;
$$;

comment on function public.rag_delete_documents is
  'Delete up to 100 documents in one transaction, and return the ids of those that were deleted. Documents that the '
  'caller does not see are ignored.';
