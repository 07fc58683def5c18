-- Functions to list sessions and their messages, and to delete a session. They run as their caller.

create type rag.session as (
  id uuid, org_id uuid, owner_id uuid, collection_id uuid, title text, message_count integer, created_at timestamptz,
  last_message_at timestamptz
);

comment on type rag.session is 'A session as a list returns it.';
create type rag.message as (
  id uuid, session_id uuid, ordinal integer, role text, content text, details jsonb, created_at timestamptz
);

comment on type rag.message is 'A message as a list returns it.';

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
    where sessions.org_id = any (array(select rag.current_org_ids())) and sessions.owner_id = (select rag.current_user_id())
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
