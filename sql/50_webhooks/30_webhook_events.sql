-- Triggers that write webhook events, in the transaction of the change and at its end, when a document's chunks can be
-- counted and it is known whether its collection was deleted too.

create function rag.has_subscriber(org_id uuid, collection_id uuid, event text)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.webhooks
    where webhooks.org_id = has_subscriber.org_id and enabled and event = any (events)
      and (webhooks.collection_id is null or webhooks.collection_id = has_subscriber.collection_id));
$$;

comment on function rag.has_subscriber is 'Whether a webhook is subscribed to the event.';

create function rag.enqueue_event(org_id uuid, collection_id uuid, owner_id uuid, event text, object jsonb)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  event_id constant uuid := gen_random_uuid();
begin
  loop
    begin
      insert into rag.deliveries (org_id, webhook_id, collection_id, owner_id, event_id, event, object)
      select enqueue_event.org_id, webhooks.id, enqueue_event.collection_id, enqueue_event.owner_id, event_id,
        enqueue_event.event, object
      from rag.webhooks
      where webhooks.org_id = enqueue_event.org_id and enabled and enqueue_event.event = any (events)
        and (webhooks.collection_id is null or webhooks.collection_id = enqueue_event.collection_id);
      return;
    exception
      when foreign_key_violation then
        -- The row is deleted by now, so that the next query does not see it.
        null;
    end;
  end loop;
end;
$$;

comment on function rag.enqueue_event is
  'Enqueue an event for every subscribed webhook. A webhook that is deleted at the same time gets none, and does '
  'not fail the caller''s change.';

create function rag.enqueue_collection_event()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  collection constant rag.collections := coalesce(new, old);
  event constant text := case
    when tg_op = 'DELETE' then 'collection.deleted'
    -- One that was loaded is new when it has its name.
    when tg_op = 'INSERT' or old.loading_name is not null then 'collection.created'
    else 'collection.updated' end;
begin
  -- The event was sent when a member deleted the collection.
  if collection.loading_name is not null or collection.deleted_at is not null then
    return null;
  end if;
  if rag.has_subscriber(collection.org_id, collection.id, event) then
    perform rag.enqueue_event(collection.org_id, collection.id, collection.owner_id, event,
      jsonb_build_object('id', collection.id, 'name', collection.name));
  end if;
  return null;
end;
$$;

comment on function rag.enqueue_collection_event is 'Trigger that enqueues the event of a changed collection.';

create function rag.enqueue_document_event()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  document constant rag.documents := coalesce(new, old);
  event constant text := case
    when tg_op = 'DELETE' then 'document.deleted'
    when document.status = 'processing' then 'document.processing_started'
    else 'document.processing_' || document.status end;
  object jsonb := jsonb_build_object(
    'id', document.id, 'collection_id', document.collection_id, 'status', document.status);
begin
  if not rag.has_subscriber(document.org_id, document.collection_id, event) then
    return null;
  end if;
  -- No event while a snapshot is loading: the collection's event is written at the end of the load. (A failure is
  -- recorded by the worker, which sees no collections; a document of a running load has no job.)
  if event <> 'document.processing_failed' then
    if exists (
      select from rag.collections
      where collections.org_id = document.org_id and collections.id = document.collection_id
        and collections.loading_name is not null)
    then
      return null;
    end if;
  end if;
  if event = 'document.processing_completed' then
    object := object || jsonb_build_object('chunk_count', (
      select count(*) from rag.chunks
      where chunks.org_id = document.org_id and chunks.document_id = document.id));
  elsif event = 'document.processing_failed' then
    object := object || jsonb_build_object(
      'error_code', document.error_code, 'error_message', document.error_message);
  elsif event = 'document.deleted' and not exists (
    select from rag.collections
    where collections.org_id = document.org_id and collections.id = document.collection_id
      and collections.deleted_at is null)
  then
    -- The collection was deleted too, and has an event of its own.
    return null;
  end if;
  perform rag.enqueue_event(document.org_id, document.collection_id, document.owner_id, event, object);
  return null;
end;
$$;

comment on function rag.enqueue_document_event is 'Trigger that enqueues the event of a changed document.';

create constraint trigger tell_of_collection
  after insert or update or delete on rag.collections
  deferrable initially deferred for each row execute function rag.enqueue_collection_event();

create constraint trigger tell_of_document
  after insert or update of status or delete on rag.documents
  deferrable initially deferred for each row execute function rag.enqueue_document_event();
