-- Faults outside the objects of the release: roles, schemas, and other objects that give access to schema rag.
-- Each row is one fault: the object, its property, and a sentence about it.

with api_roles as (
  select * from pg_roles where rolname in ('anon', 'authenticated', 'rag_worker')
),
relations as (
  select oid from pg_class where relnamespace = 'rag'::regnamespace
),
owner_views as (
  select distinct pg_class.oid, relkind, source
  from unnest(array['storage.objects', 'storage.buckets', 'auth.users']) as source
  join pg_depend on refclassid = 'pg_class'::regclass and refobjid = to_regclass(source)
  join pg_rewrite on classid = 'pg_rewrite'::regclass and pg_rewrite.oid = objid join pg_class on pg_class.oid = ev_class
  where relkind in ('v', 'm') and not coalesce(array_to_string(reloptions, ',') ~ 'security_invoker=(true|on|1)', false)
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
-- Materialized views: own_functions.sql.
select distinct format('%s %s', case pg_class.relkind when 'v' then 'view' else 'rule of' end, pg_class.oid::regclass),
  'security_invoker', 'it reads tables of schema rag as its owner'
from pg_depend join pg_rewrite on pg_rewrite.oid = objid join pg_class on pg_class.oid = ev_class
where classid = 'pg_rewrite'::regclass and refclassid = 'pg_class'::regclass and refobjid in (select oid from relations)
  and pg_class.oid not in (select oid from relations)
  and pg_class.relkind <> 'm' and not coalesce(array_to_string(reloptions, ',') ~ 'security_invoker=(true|on|1)', false)

union all
-- A query of the parent reads the child's rows under the parent's policies.
select format('table %s', inhrelid::regclass), 'inheritance', format('its rows are also rows of %s', inhparent::regclass)
from pg_inherits where (inhrelid in (select oid from relations)) <> (inhparent in (select oid from relations))

union all
-- A session of its own sets any claims. The members of the role postgres have these rights already.
select format('role %s', rolname), 'membership', format('it logs in and is a member of %s: it may set the claims of any user',
  roleid::regrole)
from pg_auth_members join pg_roles on pg_roles.oid = member
where roleid in (select oid from api_roles) and rolcanlogin and rolname not like 'supabase\_%'
  and rolname not in ('authenticator', 'postgres') and not pg_has_role(member, to_regrole('postgres'), 'member')

union all
-- Not a view of the objects of one bucket.
select format('%s %s', case relkind when 'm' then 'materialized view' else 'view' end, oid::regclass), 'security_invoker',
  format('it reads %s as its owner', source)
from owner_views
where source <> 'auth.users' and pg_get_viewdef(oid) !~ '\m(bucket_)?id = '''

union all
select format('view %s', oid::regclass), 'security_invoker',
  'a user may delete users through it, as its owner, and thereby members of orgs'
from owner_views
where source = 'auth.users' and pg_relation_is_updatable(oid, false) & 16 <> 0
  and exists (select from api_roles where has_table_privilege(api_roles.oid, owner_views.oid, 'delete'))

union all
-- A user of another issuer may have the id of a user of Supabase Auth as subject.
select format('function %s', pg_proc.oid::regprocedure), 'auth.uid()', 'it takes users of third-party issuers for users of '
  'Supabase Auth: call rag.current_user_id() in place of auth.uid()'
from pg_proc join rag.settings on third_party_issuers <> '{}'
cross join lateral (select coalesce(pg_get_function_sqlbody(pg_proc.oid), prosrc)) as source_text (body)
where pronamespace = 'rag'::regnamespace and proname in ('memberships', 'org_members')
  and (body ~* '\mauth"?\s*\.\s*"?uid\M'
    or proname = 'memberships' and body !~* '\mrag"?\s*\.\s*"?current_user_id\M')

union all
select format('publication %s', pubname), 'tables', format('it publishes rag.%s', tablename)
from pg_publication_tables where schemaname = 'rag'
order by 1, 2, 3;
