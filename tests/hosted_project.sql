-- What hosted projects refuse beyond local/bootstrap.sql, after tests/vault.sql and tests/realtime.sql: the schemas auth, storage
-- and realtime belong to Supabase's services. The role postgres writes policies of their tables, triggers of auth.users and rows,
-- and changes nothing else there. (Hosted, the extension supautils lets it write policies of tables that it does not own; here it
-- is a member of the owners, and an event trigger refuses the rest.) New objects of schema public are granted to no API role, as
-- in projects since April 2026.
create role supabase_auth_admin noinherit createrole login;
create role supabase_storage_admin noinherit createrole login;
create role supabase_realtime_admin noinherit;
grant supabase_storage_admin, supabase_realtime_admin to postgres;
grant pg_monitor, pg_read_all_data, pg_signal_backend to postgres;

alter schema auth owner to supabase_auth_admin;
alter table auth.users owner to supabase_auth_admin;
alter function auth.uid() owner to supabase_auth_admin;
alter function auth.role() owner to supabase_auth_admin;
alter function auth.jwt() owner to supabase_auth_admin;
alter schema storage owner to supabase_storage_admin;
alter table storage.buckets owner to supabase_storage_admin;
alter table storage.objects owner to supabase_storage_admin;
grant all on storage.buckets, storage.objects to postgres;
alter schema realtime owner to supabase_realtime_admin;
alter table realtime.messages owner to supabase_realtime_admin;
grant all on realtime.messages to postgres;

alter default privileges for role postgres in schema public
  revoke all on tables from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  revoke execute on functions from anon, authenticated, service_role;
alter role authenticator set lock_timeout = '8s';
grant set on parameter "pgrst.db_pre_request" to postgres;

create function extensions.refuse_changes_of_supabase() returns event_trigger language plpgsql as $$
declare
  schemas constant text[] := '{auth,storage,realtime,vault}';
  privileges text;
  change text;
begin
  if session_user = 'supabase_admin' then
    return;
  elsif tg_tag in ('GRANT', 'REVOKE') then
    -- Event triggers do not learn the object of these commands: privileges before and after are compared.
    select string_agg(acl::text, ' ' order by oid) into privileges
    from (
      select oid, relacl from pg_class where relnamespace = any (schemas::regnamespace[])
      union all select oid, proacl from pg_proc where pronamespace = any (schemas::regnamespace[])
      union all select oid, nspacl from pg_namespace where nspname = any (schemas)
    ) as objects (oid, acl);
    if tg_event = 'ddl_command_start' then
      perform set_config('hosted.privileges', privileges, true);
    elsif privileges <> current_setting('hosted.privileges') then
      change := 'the object';
    end if;
  elsif tg_event = 'ddl_command_end' then
    select object_identity into change from pg_event_trigger_ddl_commands()
    where schema_name = any (schemas)
      and command_tag not in ('CREATE POLICY', 'ALTER POLICY', 'CREATE TRIGGER');
  elsif tg_event = 'sql_drop' then
    select object_identity into change from pg_event_trigger_dropped_objects()
    where schema_name = any (schemas) and object_type not in ('policy', 'trigger');
  end if;
  if change is not null then
    raise exception 'must be owner of %', change using errcode = '42501';
  end if;
end;
$$;
create event trigger privileges_of_supabase on ddl_command_start when tag in ('GRANT', 'REVOKE')
  execute function extensions.refuse_changes_of_supabase();
create event trigger refuse_changes_of_supabase on ddl_command_end
  execute function extensions.refuse_changes_of_supabase();
create event trigger refuse_drops_of_supabase on sql_drop
  execute function extensions.refuse_changes_of_supabase();
