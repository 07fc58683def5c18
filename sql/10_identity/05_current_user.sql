-- The caller. Every policy and function reads it here, and not from auth.uid().

create function rag.current_user_id()
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return auth.uid();
end;
$$;

comment on function rag.current_user_id is 'The id of the user whose token the call has; null without a user.';
