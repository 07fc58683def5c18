-- Removes the schema with all documents from a project, as the owner (postgres): docs/upgrade.md, Remove. The files
-- in Storage, the bucket, pgvector and the schema `extensions` stay. One statement, since `supabase db query` runs one.

do $$
declare
  name text;
  restricted_table regclass;
begin
  for name, restricted_table in
    select polname, polrelid from pg_policy
    where polrelid in (to_regclass('storage.objects'), to_regclass('storage.buckets'), to_regclass('realtime.messages'))
      and polname like 'rag: %'
  loop
    execute format('drop policy %I on %s', name, restricted_table);
  end loop;
  -- Without cascade: a policy or view of yours that uses one of these functions stops the removal. The name decides:
  -- functions of yours in `public` whose names begin with rag_ are dropped, too.
  for name in
    select oid::regprocedure from pg_proc
    where pronamespace = 'public'::regnamespace and (proname like 'rag\_%' or proname = 'is_org_member')
  loop
    execute format('drop function %s', name);
  end loop;
  -- With cascade: views, foreign keys and triggers of yours on tables of the schema are dropped, too.
  drop schema rag cascade;
  grant rag_worker to current_user;
  drop owned by rag_worker;
  begin
    drop role rag_worker;
  exception when dependent_objects_still_exist then
    -- Another database of the same server uses the role.
    revoke rag_worker from current_user;
  end;
end;
$$;
