-- Chat sessions and their messages. A session belongs to its user alone: the org's admins do not read it. It is about
-- one collection, or about everything that its user sees. A turn (a question and its answer) is stored when it is
-- complete, as its user (rag_save_turn); the next turn reads it (rag_open_session).

create table rag.sessions (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid not null references auth.users (id) on delete cascade,
  collection_id uuid,
  title text not null check (length(title) <= 200 and rag.is_visible_text(title)),
  message_count integer not null default 0 check (message_count >= 0),
  created_at timestamptz not null default clock_timestamp(),
  last_message_at timestamptz not null default clock_timestamp(),
  primary key (org_id, id),
  -- What messages hang on: nobody's but the session's user's.
  constraint sessions_owner unique (org_id, id, owner_id),
  foreign key (org_id, collection_id) references rag.collections (org_id, id) on delete set null (collection_id)
);

comment on table rag.sessions is 'Chat sessions, each of one user.';
comment on column rag.sessions.collection_id is
  'Null: of no one collection, or of one that has gone; the next turn in a collection gives it that one.';
comment on column rag.sessions.title is 'From the first question.';
comment on column rag.sessions.message_count is 'Also the ordinal of the message that comes next.';

-- rag_list_sessions; and deleting a user.
create index sessions_by_owner on rag.sessions (owner_id, last_message_at desc, id);
-- Deleting a collection.
create index sessions_by_collection on rag.sessions (org_id, collection_id);

create table rag.messages (
  org_id uuid not null,
  session_id uuid not null,
  ordinal integer not null check (ordinal >= 0),
  id uuid not null default gen_random_uuid(),
  owner_id uuid not null,
  collection_id uuid,
  role text not null check (role in ('user', 'assistant', 'system')),
  content text not null check (length(content) <= 100000),
  details jsonb not null default '{}' check (rag.is_metadata(details)),
  created_at timestamptz not null default clock_timestamp(),
  -- A session has one owner: the ordinal is unique in it.
  primary key (org_id, session_id, owner_id, ordinal),
  foreign key (org_id, session_id, owner_id) references rag.sessions (org_id, id, owner_id) on delete cascade,
  foreign key (org_id, collection_id) references rag.collections (org_id, id) on delete set null (collection_id)
);

comment on table rag.messages is 'Messages of chat sessions, in order.';
comment on column rag.messages.collection_id is
  'The session''s when it was said. What was said before stays of no collection when the session takes another.';
comment on column rag.messages.details is 'Of an answer: what it cites, what it took.';

-- Deleting a collection.
create index messages_by_collection on rag.messages (org_id, collection_id);

alter table rag.sessions enable row level security;
alter table rag.sessions force row level security;
alter table rag.messages enable row level security;
alter table rag.messages force row level security;

create policy "members use their org's sessions" on rag.sessions
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "members use their org's messages" on rag.messages
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "a session is its user's alone" on rag.sessions
  as restrictive for all to authenticated
  using (owner_id = (select auth.uid()))
  with check (owner_id = (select auth.uid()));

create policy "a session is its user's alone" on rag.messages
  as restrictive for all to authenticated
  using (owner_id = (select auth.uid()))
  with check (owner_id = (select auth.uid()));

create policy "a key chats with chat:read" on rag.sessions
  as restrictive for all to authenticated
  using ((select rag.has_scope('chat:read')))
  with check ((select rag.has_scope('chat:read')));

create policy "a key chats with chat:read" on rag.messages
  as restrictive for all to authenticated
  using ((select rag.has_scope('chat:read')))
  with check ((select rag.has_scope('chat:read')));

create policy "a bound key stays in its collection" on rag.sessions
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

create policy "a bound key stays in its collection" on rag.messages
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

create type rag.session as (
  id uuid, org_id uuid, owner_id uuid, collection_id uuid, title text, message_count integer, created_at timestamptz,
  last_message_at timestamptz
);

comment on type rag.session is 'A session as a list returns it.';
create type rag.message as (
  id uuid, session_id uuid, ordinal integer, role text, content text, details jsonb, created_at timestamptz
);

comment on type rag.message is 'A message as a list returns it.';

create function rag.require_chat_scope()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if not rag.has_scope('chat:read') then
    raise exception 'the key lacks the scope chat:read' using errcode = 'PT403', detail = 'missing_scope';
  end if;
end;
$$;

comment on function rag.require_chat_scope is 'Raises PT403 for a key without the scope chat:read.';

create function rag.get_session(session_id uuid)
returns rag.sessions
language plpgsql stable security invoker set search_path = ''
as $$
declare
  found_session rag.sessions;
begin
  perform rag.require_chat_scope();
  select * into found_session
  from rag.sessions
  where org_id = any (array(select rag.current_org_ids())) and id = get_session.session_id;
  if not found then
    raise exception 'there is no such session' using errcode = 'PT404', detail = 'session_not_found';
  end if;
  return found_session;
end;
$$;

comment on function rag.get_session is 'The session of that id; PT404 for one that is not the caller''s.';

create function rag.check_messages(messages jsonb)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if coalesce(jsonb_typeof(messages), 'null') <> 'array' or jsonb_array_length(messages) not between 1 and 1000 then
    raise exception 'messages must be a list of 1 to 1000' using errcode = 'PT400', detail = 'invalid_messages';
  elsif exists (
    select from jsonb_array_elements(messages) as item (body)
    where coalesce(item.body ->> 'role', '') not in ('user', 'assistant', 'system')
      or coalesce(jsonb_typeof(item.body -> 'content'), '') <> 'string'
      or not rag.is_metadata(coalesce(nullif(item.body -> 'details', 'null'), '{}')))
  then
    raise exception 'a message has a role, user, assistant or system, a content, and details of at most 64 KB'
      using errcode = 'PT400', detail = 'invalid_messages';
  elsif exists (
    select from jsonb_array_elements(messages) as item (body) where length(item.body ->> 'content') > 100000)
  then
    raise exception 'a message has at most 100000 characters' using errcode = 'PT400', detail = 'message_too_long';
  end if;
end;
$$;

comment on function rag.check_messages is
  'Raises PT400 for messages that nobody says: [{role, content, details}], with details an object or not there.';

create function public.rag_open_session(
  session_id uuid default null, collection_id uuid default null, history integer default 100
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  present rag.sessions;
  wanted rag.collections;
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
    raise exception 'the session is about another collection'
      using errcode = 'PT409', detail = 'session_of_another_collection';
  elsif present.collection_id is null then
    wanted := rag.collection_in(present.org_id, collection_id);
  end if;
  return jsonb_build_object(
    'session_id', present.id,
    'org_id', coalesce(present.org_id, wanted.org_id, rag.resolve_org(null)),
    'collection_id', coalesce(present.collection_id, wanted.id),
    'title', present.title,
    'message_count', coalesce(present.message_count, 0),
    'messages', (
      select coalesce(jsonb_agg(jsonb_build_object('role', latest.role, 'content', latest.content)
        order by latest.ordinal), '[]')
      from (
        -- The sizes, which are read from where the texts begin: of what is too far back no text is read.
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
      -- More than any model is told, and no less than the longest message.
      where latest.bytes <= 400000));
end;
$$;

comment on function public.rag_open_session is
  'Where a turn takes place, before it: {"session_id", "org_id", "collection_id", "title", "message_count", '
  '"messages"}, messages being the last `history` of it in their order, as {"role", "content"}, of 400,000 bytes in '
  'all at most. A collection narrows the turn where the session has none. Without a session, a new one''s place: in '
  'the collection, or in the caller''s only org; nothing is made yet. PT404 for a session or a collection that is '
  'not the caller''s, PT409 for a session of another collection than the one given.';

create function rag.collection_in(org_id uuid, collection_id uuid)
returns rag.collections
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  wanted rag.collections;
begin
  if collection_id is null then
    return null;
  end if;
  wanted := rag.get_collection(collection_id);
  if wanted.org_id <> org_id then
    raise exception 'there is no such collection' using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  return wanted;
end;
$$;

comment on function rag.collection_in is
  'The collection of that id, in the given org if any; null without an id. PT404 for one that the caller does not '
  'see.';

create function public.rag_save_turn(session_id uuid, org_id uuid, collection_id uuid, title text, messages jsonb)
returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  home rag.sessions;
  wanted rag.collections;
  said integer;
begin
  perform rag.begin_call();
  perform rag.require_chat_scope();
  perform rag.check_json('messages', messages), rag.check_messages(messages);
  said := jsonb_array_length(messages);
  if session_id is null then
    home.org_id := rag.resolve_org(org_id);
    wanted := rag.collection_in(home.org_id, collection_id);
    insert into rag.sessions (org_id, owner_id, collection_id, title, message_count)
    values (home.org_id, auth.uid(), wanted.id, coalesce(title, ''), said)
    returning * into home;
  else
    home := rag.get_session(session_id);
    -- The row is locked from here on: whoever keeps another turn of it counts from there.
    update rag.sessions as grown
    set message_count = grown.message_count + said,
      last_message_at = greatest(grown.last_message_at, clock_timestamp())
    where grown.org_id = home.org_id and grown.id = home.id
    returning grown.* into home;
    if not found then
      raise exception 'there is no such session' using errcode = 'PT404', detail = 'session_not_found';
    end if;
  end if;
  insert into rag.messages (org_id, session_id, ordinal, owner_id, collection_id, role, content, details)
  select home.org_id, home.id, home.message_count - said + item.place::integer - 1, home.owner_id, home.collection_id,
    item.body ->> 'role', item.body ->> 'content', coalesce(nullif(item.body -> 'details', 'null'), '{}')
  from jsonb_array_elements(messages) with ordinality as item (body, place);
  return jsonb_build_object('session_id', home.id, 'message_count', home.message_count);
end;
$$;

comment on function public.rag_save_turn is
  'Keep what was said in a turn, in order, at the end of the session, or in a new one of that org, collection and '
  'title where session_id is null: {"session_id", "message_count"}. A session stays where it began: one about the '
  'org takes no collection later, or a key that is bound to that would read what was said of others. Of two turns '
  'of one session at once the later to come stands after the other. PT404 for a session or a collection that has '
  'gone meanwhile.';

create function public.rag_list_sessions("limit" integer default 20, "offset" integer default 0)
returns setof rag.session
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.begin_call();
  perform rag.require_chat_scope();
  perform rag.check_page("limit", "offset", 'desc', 'last_message_at', array['last_message_at']);
  return query
    select sessions.id, sessions.org_id, sessions.owner_id, sessions.collection_id, sessions.title,
      sessions.message_count, sessions.created_at, sessions.last_message_at
    from rag.sessions
    where sessions.org_id = any (array(select rag.current_org_ids())) and sessions.owner_id = (select auth.uid())
    order by sessions.last_message_at desc, sessions.id
    limit "limit" offset "offset";
end;
$$;

comment on function public.rag_list_sessions is 'The caller''s sessions, the latest message first.';

create function public.rag_list_session_messages(
  session_id uuid, "limit" integer default 1000, "offset" integer default 0
)
returns setof rag.message
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  home constant rag.sessions := rag.get_session(session_id);
begin
  if "limit" is null or "limit" not between 1 and 1000 then
    raise exception 'limit must be between 1 and 1000' using errcode = 'PT400', detail = 'invalid_limit';
  elsif "offset" is null or "offset" < 0 then
    raise exception 'offset must be at least 0' using errcode = 'PT400', detail = 'invalid_offset';
  end if;
  return query
    select messages.id, messages.session_id, messages.ordinal, messages.role, messages.content, messages.details,
      messages.created_at
    from rag.messages
    where messages.org_id = home.org_id and messages.session_id = home.id and messages.owner_id = home.owner_id
    order by messages.ordinal
    limit "limit" offset "offset";
end;
$$;

comment on function public.rag_list_session_messages is
  'The messages of a session, in order; PT404 for an unknown session.';

create function public.rag_delete_session(session_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  is_admitted constant boolean := rag.begin_call();
  gone constant rag.sessions := rag.get_session(session_id);
begin
  delete from rag.sessions where sessions.org_id = gone.org_id and sessions.id = gone.id;
end;
$$;

comment on function public.rag_delete_session is 'Delete a session with its messages; PT404 for an unknown session.';
