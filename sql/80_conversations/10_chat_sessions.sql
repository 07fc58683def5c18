-- Chat sessions and their messages. A session belongs to its user alone: the org's admins do not read it. It is about
-- one collection, or about everything that its user sees. A turn (a question and its answer) is stored when it is
-- complete, as its user (rag_save_turn); the next turn reads it (rag_open_session).

create table rag.sessions (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid not null,
  collection_id uuid,
  title text not null check (length(title) <= 200 and rag.is_visible_text(title)),
  message_count integer not null default 0 check (message_count >= 0),
  created_at timestamptz not null default clock_timestamp(),
  last_message_at timestamptz not null default clock_timestamp(),
  auth_user_id uuid generated always as (rag.auth_user_id(owner_id)) stored references auth.users (id) on delete cascade,
  primary key (org_id, id),
  -- The key of messages, which belong to the session's user alone.
  constraint sessions_owner unique (org_id, id, owner_id),
  foreign key (org_id, collection_id) references rag.collections (org_id, id) on delete set null (collection_id)
);

comment on table rag.sessions is 'Chat sessions, each of one user.';
comment on column rag.sessions.collection_id is
  'Null: the session is about no single collection, or its collection was deleted; the next turn in a collection '
  'sets that one.';
comment on column rag.sessions.title is 'From the first question; empty before it.';
comment on column rag.sessions.message_count is 'Also the ordinal of the message that comes next.';

-- rag_list_sessions.
create index sessions_by_owner on rag.sessions (owner_id, last_message_at desc, id);
-- Deleting a user.
create index sessions_by_auth_user on rag.sessions (auth_user_id);
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
  'The session''s collection at the time of the message. It stays null when the session gets a collection later.';
comment on column rag.messages.details is 'Of an answer: its citations and its usage.';

-- Deleting a collection.
create index messages_by_collection on rag.messages (org_id, collection_id);

call rag.admit_members('sessions');
call rag.bind_keys('sessions');
call rag.admit_members('messages');
call rag.bind_keys('messages');

create policy "a session is its user's alone" on rag.sessions
  as restrictive for all to authenticated
  using (owner_id = (select rag.current_user_id()))
  with check (owner_id = (select rag.current_user_id()));

create policy "a session is its user's alone" on rag.messages
  as restrictive for all to authenticated
  using (owner_id = (select rag.current_user_id()))
  with check (owner_id = (select rag.current_user_id()));

-- Answers repeat texts of the collection.
create policy "a session needs the view of its collection" on rag.sessions
  as restrictive for all to authenticated
  using (collection_id is null or collection_id not in (select rag.closed_collections('view')))
  with check (collection_id is null or collection_id not in (select rag.closed_collections('view')));

create policy "a message needs the view of its collection" on rag.messages
  as restrictive for all to authenticated
  using (collection_id is null or collection_id not in (select rag.closed_collections('view')))
  with check (collection_id is null or collection_id not in (select rag.closed_collections('view')));

create policy "a key chats with chat:read" on rag.sessions
  as restrictive for all to authenticated
  using ((select rag.has_scope('chat:read')))
  with check ((select rag.has_scope('chat:read')));

create policy "a key chats with chat:read" on rag.messages
  as restrictive for all to authenticated
  using ((select rag.has_scope('chat:read')))
  with check ((select rag.has_scope('chat:read')));

create function rag.require_chat_scope()
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if not rag.has_scope('chat:read') then
    raise exception 'The API key lacks the scope chat:read. Use a key that has it.'
      using errcode = 'PT403', detail = 'missing_scope';
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
    raise exception 'There is no such session. Check its id.' using errcode = 'PT404', detail = 'session_not_found';
  end if;
  return found_session;
end;
$$;

comment on function rag.get_session is 'The session of that id; PT404 for one that is not the caller''s.';
