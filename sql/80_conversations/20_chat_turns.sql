-- Turns of a chat: the session and its latest messages are read before a turn, and the turn is stored after it.

create function rag.check_messages(messages jsonb)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if coalesce(jsonb_typeof(messages), 'null') <> 'array' or jsonb_array_length(messages) not between 1 and 1000 then
    raise exception 'messages must be a list of 1 to 1000 messages'
      using errcode = 'PT400', detail = 'invalid_messages';
  elsif exists (
    select from jsonb_array_elements(messages) as item (body)
    where coalesce(item.body ->> 'role', '') not in ('user', 'assistant', 'system')
      or coalesce(jsonb_typeof(item.body -> 'content'), '') <> 'string'
      or not rag.is_metadata(coalesce(nullif(item.body -> 'details', 'null'), '{}')))
  then
    raise exception 'each message must have a role (user, assistant or system), a content, and details of at most 64 KB'
      using errcode = 'PT400', detail = 'invalid_messages';
  elsif exists (
    select from jsonb_array_elements(messages) as item (body) where length(item.body ->> 'content') > 100000)
  then
    raise exception 'each message must have at most 100,000 characters'
      using errcode = 'PT400', detail = 'message_too_long';
  end if;
end;
$$;

comment on function rag.check_messages is
  'Raises PT400 unless the messages are [{role, content, details}] with valid roles; details may be absent.';

create function public.rag_open_session(
  session_id uuid default null, collection_id uuid default null, history integer default 100
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  present rag.sessions;
  collection rag.collections;
begin
  perform rag.begin_call();
  if history is null or history not between 0 and 1000 then
    raise exception 'history must be between 0 and 1000' using errcode = 'PT400', detail = 'invalid_history';
  end if;
  perform rag.require_chat_scope();
  if session_id is not null then
    present := rag.get_session(session_id);
  else
    collection_id := coalesce(collection_id, rag.bound_collection());
  end if;
  if collection_id <> present.collection_id then
    raise exception 'The session belongs to another collection. Begin another session.'
      using errcode = 'PT409', detail = 'session_of_another_collection';
  elsif present.collection_id is null then
    collection := rag.collection_in(present.org_id, collection_id);
  end if;
  return jsonb_build_object(
    'session_id', present.id,
    'org_id', coalesce(present.org_id, collection.org_id, rag.resolve_org(null)),
    'collection_id', coalesce(present.collection_id, collection.id),
    'title', present.title,
    'message_count', coalesce(present.message_count, 0),
    'messages', (
      select coalesce(jsonb_agg(jsonb_build_object('role', latest.role, 'content', latest.content)
        order by latest.ordinal), '[]')
      from (
        -- octet_length reads only the size of a long text, not the text, so older texts beyond the limit are not read.
        select newest.*, sum(octet_length(newest.content)) over (order by newest.ordinal desc) as bytes
        from (
          select messages.role, messages.content, messages.ordinal
          from rag.messages
          where messages.org_id = present.org_id and messages.session_id = present.id
            and messages.owner_id = present.owner_id
          order by messages.ordinal desc
          limit history
        ) as newest
      ) as latest
      -- More bytes than the request to a model has, and enough for the longest message.
      where latest.bytes <= 400000));
end;
$$;

comment on function public.rag_open_session is
  'The session for a new turn: {"session_id", "org_id", "collection_id", "title", "message_count", "messages"}. '
  'messages: the last `history` messages in their order, as {"role", "content"}, at most 400,000 bytes in total. If '
  'the session has no collection, collection_id restricts this turn to one. Without session_id the function returns '
  'the org and collection of a new session, by default the caller''s only org, and stores nothing. PT404 for a '
  'session or collection that the caller may not read; PT409 if the session belongs to another collection.';

create function rag.collection_in(org_id uuid, collection_id uuid)
returns rag.collections
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  collection rag.collections;
begin
  if collection_id is null then
    return null;
  end if;
  collection := rag.get_collection(collection_id);
  if collection.org_id <> org_id then
    raise exception 'There is no such collection. Check its id or name.'
      using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return collection;
end;
$$;

comment on function rag.collection_in is
  'The collection of that id, in the given org if org_id is set; null without an id. PT404 for a collection that the '
  'caller may not read.';

create function public.rag_save_turn(session_id uuid, org_id uuid, collection_id uuid, title text, messages jsonb)
returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  home rag.sessions;
  collection rag.collections;
  added integer;
begin
  perform rag.begin_write();
  perform rag.require_chat_scope();
  perform rag.check_json('messages', messages), rag.check_messages(messages);
  added := jsonb_array_length(messages);
  if session_id is null then
    home.org_id := rag.resolve_org(org_id);
    collection := rag.collection_in(home.org_id, collection_id);
    insert into rag.sessions (org_id, owner_id, collection_id, title, message_count)
    values (home.org_id, rag.current_user_id(), collection.id, coalesce(title, ''), added)
    returning * into home;
  else
    home := rag.get_session(session_id);
    -- The update locks the session's row, so that a concurrent turn gets the ordinals behind this one's.
    update rag.sessions as grown
    set title = coalesce(nullif(grown.title, ''), title, ''),
      message_count = grown.message_count + added,
      last_message_at = greatest(grown.last_message_at, clock_timestamp())
    where grown.org_id = home.org_id and grown.id = home.id
    returning grown.* into home;
    if not found then
      raise exception 'There is no such session. Check its id.' using errcode = 'PT404', detail = 'session_not_found';
    end if;
  end if;
  insert into rag.messages (org_id, session_id, ordinal, owner_id, collection_id, role, content, details)
  select home.org_id, home.id, home.message_count - added + item.position::integer - 1, home.owner_id, home.collection_id,
    item.body ->> 'role', item.body ->> 'content', coalesce(nullif(item.body -> 'details', 'null'), '{}')
  from jsonb_array_elements(messages) with ordinality as item (body, position);
  return jsonb_build_object('session_id', home.id, 'message_count', home.message_count);
end;
$$;

comment on function public.rag_save_turn is
  'Store the messages of a turn, in order, at the end of the session, or in a new session with that org, collection '
  'and title if session_id is null. Returns {"session_id", "message_count"}. A session whose title is empty gets the '
  'given title. A session without a collection never gets one: a key that is bound to the collection would read '
  'messages about other collections. Two concurrent turns of a session are stored one after the other. PT404 for a '
  'session or a collection that was deleted meanwhile.';
