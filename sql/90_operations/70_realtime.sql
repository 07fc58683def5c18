-- Changes of documents and jobs as messages of Supabase Realtime, where the project has it. A trigger sends them in the
-- transaction of the change, on private channels: rag:<org id> for documents of the whole org, rag:<org id>:<user id> for
-- private ones, rag:<org id>:<collection id> for those of a restricted collection. A message has ids and states, and no text. Row security of realtime.messages decides who receives, also
-- where other policies of the project are wider; no client sends on these channels.

create function rag.may_receive(topic text)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select case when topic ~ '^rag(:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}){1,2}$' then
    split_part(topic, ':', 2)::uuid in (select rag.current_org_ids())
      and (split_part(topic, ':', 3) in ('', (select rag.current_user_id())::text)
        or split_part(topic, ':', 2)::uuid in (select rag.admin_org_ids())
        or exists (select from rag.collections where collections.org_id = split_part(topic, ':', 2)::uuid
          and collections.id = nullif(split_part(topic, ':', 3), '')::uuid))
      and rag.has_scope('documents:read', 'documents:write') and rag.bound_collection() is null
    else false end;
$$;

comment on function rag.may_receive is
  'Whether the caller may receive messages of that channel of Realtime: the caller sees the documents of the channel. A key '
  'that is bound to a collection receives none.';

create function rag.restricted_channel(org_id uuid, collection_id uuid)
returns uuid
language sql stable security invoker set search_path = ''
as $$
  select restricted_channel.collection_id
  where not exists (
    select from rag.collections
    where collections.org_id = restricted_channel.org_id and collections.id = restricted_channel.collection_id
      and collections.restricted_by is null);
$$;

comment on function rag.restricted_channel is
  'The collection''s id, the last part of its channel; null for a collection that is not restricted. rag.broadcast_change calls '
  'it as its owner, who sees all collections.';

create function rag.broadcast_change()
returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  place record := coalesce(new, old);
  change jsonb;
begin
  -- Not for each document of a deleted collection, which a trigger deletes.
  if to_regnamespace('realtime') is null or pg_trigger_depth() > 1 then
    return null;
  end if;
  if tg_table_name = 'jobs' then
    change := jsonb_build_object('id', new.id, 'document_id', new.document_id, 'collection_id', new.collection_id,
      'kind', new.kind, 'state', new.state, 'step', new.step);
  elsif tg_op = 'DELETE' then
    change := jsonb_build_object('id', old.id, 'collection_id', old.collection_id, 'status', 'deleted');
  else
    change := jsonb_build_object('id', new.id, 'collection_id', new.collection_id, 'status', new.status,
      'error_code', new.error_code);
  end if;
  begin
    perform realtime.send(change, rtrim(tg_table_name, 's'), concat_ws(':', 'rag', place.org_id,
      coalesce(place.owner_id, rag.restricted_channel(place.org_id, place.collection_id))), true);
  exception when others then
    -- A message that Realtime does not take ends no change.
    raise warning 'rag: a change was not broadcast: %', sqlerrm;
  end;
  return null;
end;
$$;

comment on function rag.broadcast_change is
  'Trigger that sends a changed document or job to Supabase Realtime, if the project has it. It runs as its owner: no user and '
  'not the worker may send on these channels.';

create trigger broadcast_changed_document after update of status on rag.documents
  for each row when (new.status <> old.status) execute function rag.broadcast_change();

create trigger broadcast_deleted_document after delete on rag.documents
  for each row execute function rag.broadcast_change();

create trigger broadcast_new_job after insert on rag.jobs
  for each row when (new.kind = 'ingestion') execute function rag.broadcast_change();

create trigger broadcast_changed_job after update of state, step on rag.jobs
  for each row when (new.kind = 'ingestion' and (new.state <> old.state or new.step is distinct from old.step))
  execute function rag.broadcast_change();

do $$
begin
  if to_regclass('realtime.messages') is null then
    return;
  end if;
  create policy "rag: members receive changes" on realtime.messages
    for select to authenticated using (topic like 'rag:%' and rag.may_receive(topic));

  -- Channels of the project itself may begin with "rag:", too.
  create policy "rag: other policies admit no receivers of changes" on realtime.messages
    as restrictive for select to authenticated using (topic !~ '^rag:[0-9a-f-]{36}' or rag.may_receive(topic));

  create policy "rag: anon receives no changes" on realtime.messages
    as restrictive for select to anon using (topic !~ '^rag:[0-9a-f-]{36}');

  create policy "rag: no client sends changes" on realtime.messages
    as restrictive for insert to anon, authenticated with check (topic !~ '^rag:[0-9a-f-]{36}');
exception when insufficient_privilege then
  raise warning 'rag: for Realtime, run the end of sql/90_operations/70_realtime.sql as the owner of realtime.messages';
end;
$$;
