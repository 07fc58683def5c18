-- Removes the schema with all documents from a project, as the owner (postgres): docs/install.md, Remove. The files
-- in Storage, the bucket, pgvector and the schema `extensions` stay.

begin;

do $$
declare
  name text;
begin
  if to_regclass('storage.objects') is not null then
    for name in
      select polname from pg_policy where polrelid = to_regclass('storage.objects') and polname like 'rag: %'
    loop
      execute format('drop policy %I on storage.objects', name);
    end loop;
  end if;
  -- Without cascade: a policy or view of yours that uses one of them stops the removal.
  for name in
    select oid::regprocedure from pg_proc
    where pronamespace = 'public'::regnamespace and (proname like 'rag\_%' or proname = 'is_org_member')
  loop
    execute format('drop function %s', name);
  end loop;
end;
$$;

drop schema rag cascade;

-- The role stays where another database of the same server uses it.
grant rag_worker to current_user;
drop owned by rag_worker;
do $$
begin
  drop role rag_worker;
exception when dependent_objects_still_exist then
  revoke rag_worker from current_user;
end;
$$;

commit;
