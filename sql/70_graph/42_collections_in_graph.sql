-- Addition of a collection's documents to the graph and their removal: on request, or after a change of its config.
-- The worker extracts the documents, and deletes the extracted rows of a removed collection.

create function public.rag_build_graph(collection_id uuid, again boolean default false)
returns bigint
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_write();
  home constant rag.collections := rag.get_collection(collection_id);
begin
  perform rag.require_scope('documents:write');
  if not rag.is_in_graph(home.org_id, home.id) then
    raise exception 'The collection has no graph. Set enable_knowledge_graph in its config first.'
      using errcode = 'PT409', detail = 'graph_off';
  end if;
  return rag.enqueue_collection(home, coalesce(again, false));
end;
$$;

comment on function public.rag_build_graph is
  'Enqueue the extraction, as the caller, of the collection''s documents that the caller sees and that have no '
  'extraction or one that failed. `again`: all documents, from the beginning. Returns their number. '
  'PT409 for a collection that is not in the graph.';

create function rag.enqueue_collection(home rag.collections, again boolean)
returns bigint
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  enqueued bigint;
begin
  -- Documents are locked first and by id, as other writers do.
  perform from rag.documents
  where documents.org_id = home.org_id and documents.collection_id = home.id
  order by documents.id
  for no key update;
  insert into rag.jobs (org_id, id, kind, document_id, collection_id, owner_id, user_id)
  select documents.org_id, documents.id, 'extraction', documents.id, documents.collection_id, documents.owner_id,
    rag.current_user_id()
  from rag.documents
  where documents.org_id = home.org_id and documents.collection_id = home.id
  -- Sorted, so that two calls for the same documents do not deadlock.
  order by documents.id
  on conflict (org_id, id) do update
  set state = 'waiting', next_ordinal = case when again then 0 else jobs.next_ordinal end,
    user_id = excluded.user_id, attempts = 0, due_at = now(), lease = null, error_code = null, error_message = null,
    finished_at = null
  where again or jobs.state = 'failed';
  get diagnostics enqueued = row_count;
  return enqueued;
end;
$$;

comment on function rag.enqueue_collection is
  'Enqueue the extraction of a collection''s documents that the caller sees (rag_build_graph). Returns their number.';

create function rag.on_graph_setting_changed(home rag.collections, was_graphed boolean)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  at_once constant integer := 200;
  is_graphed constant boolean := rag.is_in_graph(home.org_id, home.id);
begin
  if not rag.has_scope('documents:write') then
    if is_graphed is distinct from was_graphed then
      raise exception 'The API key may not change documents. Check its scopes.'
        using errcode = 'PT403', detail = 'missing_scope';
    end if;
    return;
  end if;
  perform rag.enqueue_collection(home, not is_graphed);
  if not is_graphed then
    perform rag.delete_graph_of_document(document.org_id, document.id)
    from (
      select documents.org_id, documents.id
      from rag.documents
      join rag.jobs on jobs.org_id = documents.org_id and jobs.id = documents.id and jobs.kind = 'extraction'
      where documents.org_id = home.org_id and documents.collection_id = home.id
      limit at_once
    ) as document;
  end if;
end;
$$;

comment on function rag.on_graph_setting_changed is
  'Enqueue the extraction of the documents that the caller sees, after their collection was added to the graph or '
  'removed from it. The worker extracts their entities or deletes them; up to 200 documents'' are deleted at once.';

create function rag.delete_graph_of_document(org_id uuid, document_id uuid)
returns void
language sql volatile security invoker set search_path = ''
as $$
  delete from rag.relations
  where relations.org_id = delete_graph_of_document.org_id
    and relations.document_id = delete_graph_of_document.document_id;
  delete from rag.mentions
  where mentions.org_id = delete_graph_of_document.org_id
    and mentions.document_id = delete_graph_of_document.document_id;
  delete from rag.title_entities
  where title_entities.org_id = delete_graph_of_document.org_id
    and title_entities.document_id = delete_graph_of_document.document_id;
  delete from rag.jobs
  where jobs.org_id = delete_graph_of_document.org_id and jobs.id = delete_graph_of_document.document_id
    and jobs.kind = 'extraction';
$$;

comment on function rag.delete_graph_of_document is 'Take a document out of the graph.';
