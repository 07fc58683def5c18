-- Faults outside the objects of the release: roles, schemas, settings, and other objects that give access to schema rag.
-- Each row is one fault: the object, its property, and a sentence about it.

with api_roles as (
  select * from pg_roles where rolname in ('anon', 'authenticated', 'rag_worker')
),
relations as (
  select oid from pg_class where relnamespace = 'rag'::regnamespace
),
role_settings as (
  select setrole, setdatabase, split_part(setting, '=', 1) as name, substring(setting from '=(.*)') as value
  from pg_db_role_setting cross join unnest(setconfig) as setting
  where setdatabase in (0, (select oid from pg_database where datname = current_database()))
),
-- As PostgREST reads them: a value for this database overrides one for every database.
rest_settings as (
  select distinct on (name) name, value
  from role_settings where setrole = to_regrole('authenticator') order by name, setdatabase desc
)
select format('role %s', rolname) as target, 'attributes' as property, format('the role has %s', attribute) as finding
from pg_roles
cross join lateral (values ('SUPERUSER', rolsuper), ('BYPASSRLS', rolbypassrls), ('CREATEROLE', rolcreaterole),
  ('REPLICATION', rolreplication), ('LOGIN', rolcanlogin and rolname <> 'authenticator')) as attributes (attribute, is_set)
where is_set and rolname in ('anon', 'authenticated', 'rag_worker', 'authenticator')

union all
select format('role %s', api_roles.rolname), 'membership', format('it is a member of %s', roleid::regrole)
from pg_auth_members join api_roles on api_roles.oid = member

union all
select 'role authenticator', 'membership', format('it is a member of %s, which row security does not bind', rolname)
from pg_auth_members join pg_roles on pg_roles.oid = roleid
where member = to_regrole('authenticator') and (rolsuper or rolbypassrls) and rolname <> 'service_role'

union all
select 'schema rag', 'owner', format('%s owns it', nspowner::regrole)
from pg_namespace
where nspname = 'rag' and nspowner::regrole::text in ('anon', 'authenticated', 'rag_worker', 'authenticator', 'service_role')

union all
select format('schema %s', nspname), 'privileges', format('%s may create objects in it', rolname)
from pg_namespace cross join api_roles
where nspname in ('rag', 'public', 'extensions') and has_schema_privilege(api_roles.oid, pg_namespace.oid, 'create')

union all
-- Without a schema only tables and sequences: new functions and types are granted to public by Postgres itself.
select coalesce('schema ' || nullif(defaclnamespace, 0)::regnamespace, 'every schema'), 'default privileges',
  format('%s gets %s on each new %s of %s', case grantee when 0 then 'public' else grantee::regrole::text end,
    privilege_type, case defaclobjtype when 'r' then 'table' when 'S' then 'sequence' when 'f' then 'function' else 'type' end,
    defaclrole::regrole)
from pg_default_acl cross join lateral aclexplode(defaclacl)
where grantee in (select 0 union select oid from pg_roles where rolname in ('anon', 'authenticated', 'rag_worker', 'service_role'))
  and (defaclnamespace = 'rag'::regnamespace or (defaclnamespace = 0 and defaclobjtype in ('r', 'S')))

union all
select format('function %s', pg_proc.oid::regprocedure), 'security definer',
  format('it refers to schema rag or its exposed functions, runs as %s, and %s may execute it', proowner::regrole,
    (select string_agg(rolname, ', ' order by rolname) from api_roles
      where has_function_privilege(api_roles.oid, pg_proc.oid, 'execute')))
from pg_proc
where prosecdef and pronamespace <> 'rag'::regnamespace
  and not (pronamespace = 'public'::regnamespace and (proname like 'rag\_%' or proname = 'is_org_member'))
  and concat_ws(' ', coalesce(pg_get_function_sqlbody(pg_proc.oid), prosrc), array_to_string(proconfig, ' '))
    ~* '\mrag\M|\mrag_|\mis_org_member\M'
  and exists (select from api_roles where has_function_privilege(api_roles.oid, pg_proc.oid, 'execute'))

union all
select distinct format('%s %s', case pg_class.relkind when 'm' then 'materialized view' else 'view' end, pg_class.oid::regclass),
  'security_invoker', 'it reads tables of schema rag as its owner'
from pg_depend join pg_rewrite on pg_rewrite.oid = objid join pg_class on pg_class.oid = ev_class
where classid = 'pg_rewrite'::regclass and refclassid = 'pg_class'::regclass and refobjid in (select oid from relations)
  and pg_class.oid not in (select oid from relations)
  and (pg_class.relkind = 'm' or not coalesce(array_to_string(reloptions, ',') ~ 'security_invoker=(true|on|1)', false))

union all
-- A query of the parent reads the child's rows under the parent's policies.
select format('table %s', inhrelid::regclass), 'inheritance', format('its rows are also rows of %s', inhparent::regclass)
from pg_inherits where inhrelid in (select oid from relations) and inhparent not in (select oid from relations)

union all
-- The defaults of Postgres and of Supabase are no fault.
select coalesce('role ' || nullif(setrole, 0)::regrole, 'database ' || current_database()), 'search_path',
  format('it is %s', value)
from role_settings
where name = 'search_path' and (setrole = 0 or setrole in (select oid from api_roles))
  and exists (
    select from string_to_table(value, ',') as entry
    where btrim(entry, ' "') not in ('$user', 'public', 'extensions', ''))

union all
select format('publication %s', pubname), 'tables', format('it publishes rag.%s', tablename)
from pg_publication_tables where schemaname = 'rag'

union all
select 'rag.settings', 'functions_secret_hashes', 'the functions secret is not set (docs/install.md, Functions secret)'
from rag.settings where functions_secret_hashes = '{}'

union all
select 'rag.settings', 'open_to_direct_callers', 'any signed-in user may call the guarded functions without the secret'
from rag.settings where open_to_direct_callers

union all
select 'PostgREST', 'pgrst.db_schemas', format('it exposes schema rag: %s', value)
from rest_settings where name = 'pgrst.db_schemas' and value ~ '\mrag\M'

union all
select 'PostgREST', 'pgrst.db_anon_role', format('requests without a token run as %s', value)
from rest_settings where name = 'pgrst.db_anon_role' and value <> 'anon'

union all
select 'PostgREST', 'pgrst.db_pre_request', 'rag.check_request is not set as the pre-request function, nor called by it'
where not exists (
  select from rest_settings
  where name = 'pgrst.db_pre_request' and (value = 'rag.check_request' or exists (
    select from pg_proc where oid::regproc = to_regproc(value) and prosrc ~ '\mrag\.check_request\M')))
order by 1, 2, 3;
