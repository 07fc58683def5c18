-- Names of private collections: a name that ends in ":u:" and a user's id denotes that user's collection, which only this
-- user and the org's admins may create or name.

create function rag.owner_in_name(name text)
returns uuid
language sql immutable security invoker set search_path = ''
as $$
  select substring(owner_in_name.name from ':u:([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$')::uuid;
$$;

comment on function rag.owner_in_name is
  'The user whose private collection a name denotes, by its last segment: ":u:" and a user''s id. Null for every '
  'other name.';

create function rag.check_owner_in_name(org_id uuid, name text)
returns void
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if name ~ ':u:[^:]*$' and rag.owner_in_name(name) is distinct from rag.current_user_id()
    and check_owner_in_name.org_id not in (select rag.admin_org_ids())
  then
    raise exception 'This name belongs to another user. Choose another name.'
      using errcode = 'PT403', detail = 'another_users_name';
  end if;
end;
$$;

comment on function rag.check_owner_in_name is
  'Raises PT403 for a name that denotes another user''s private collection, unless the caller is an admin.';

create function rag.new_collection_owner(org_id uuid, name text)
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform rag.check_owner_in_name(new_collection_owner.org_id, new_collection_owner.name);
  if new_collection_owner.name ~ ':u:[^:]*$' and rag.owner_in_name(new_collection_owner.name) is null then
    raise exception 'after :u:, the name must end in the id of a user' using errcode = 'PT400', detail = 'invalid_name';
  end if;
  return rag.owner_in_name(new_collection_owner.name);
end;
$$;

comment on function rag.new_collection_owner is
  'The owner of a new collection of that name, null without a user in the name. Raises what rag.check_owner_in_name '
  'raises, and PT400 for a name that ends in an invalid user id.';
