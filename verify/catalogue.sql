-- Objects of the schema that decide who may read and write, each with its properties: row security, owners, grants,
-- policies, functions with a digest of their body, triggers, constraints, and Storage's policies and bucket. The text of
-- a property does not depend on the version of Postgres, nor on the name of the schema's owner, whose own privileges are
-- left out. `make generated` stores the release's objects in catalogue.json.

with owner as (
  select nspowner as id from pg_namespace where nspname = 'rag'
),
relations as (
  select pg_class.*, format('%I.%I', nspname, relname) as name
  from pg_class join pg_namespace on pg_namespace.oid = relnamespace
  where nspname = 'rag' and relkind in ('r', 'p', 'v', 'm', 'f', 'S')
),
functions as (
  select pg_proc.*, pg_proc.oid::regprocedure::text as signature
  from pg_proc
  where (pronamespace = 'rag'::regnamespace
      or (pronamespace = 'public'::regnamespace and (proname like 'rag\_%' or proname = 'is_org_member')))
    and not exists (
      select from pg_depend where classid = 'pg_proc'::regclass and objid = pg_proc.oid and deptype = 'e')
),
-- Privileges of roles other than the object's owner. MAINTAIN exists from Postgres 17 on.
privileges (class, id, part, texts) as (
  select class, id, part, jsonb_agg(format('%s %s', grantee, names) order by grantee)
  from (
    select class, id, part, case grantee when 0 then 'public' else grantee::regrole::text end as grantee,
      string_agg(privilege_type || case when is_grantable then ' with grant option' else '' end, ', '
        order by privilege_type) as names
    from (
      select 'schema', oid, 0, nspowner, coalesce(nspacl, acldefault('n', nspowner))
      from pg_namespace where nspname = 'rag'
      union all
      select 'relation', oid, 0, relowner,
        coalesce(relacl, acldefault(case relkind when 'S' then 's' else 'r' end::"char", relowner))
      from relations
      union all
      select 'relation', attrelid, attnum, relowner, attacl
      from pg_attribute join relations on relations.oid = attrelid where attacl is not null
      union all
      select 'function', oid, 0, proowner, coalesce(proacl, acldefault('f', proowner)) from functions
    ) as granted (class, id, part, owner, items)
    cross join lateral aclexplode(items)
    where aclexplode.grantee <> granted.owner and privilege_type <> 'MAINTAIN'
    group by class, id, part, aclexplode.grantee
  ) as of_grantee
  group by class, id, part
),
policies as (
  select pg_policy.*, polrelid::regclass as relation
  from pg_policy
  where polrelid in (select oid from relations)
    or (polrelid in (to_regclass('storage.objects'), to_regclass('storage.buckets')) and polname like 'rag: %')
),
objects (name, properties) as (
  select 'schema rag', jsonb_build_object('grants', coalesce(texts, '[]'))
  from pg_namespace left join privileges on class = 'schema' and privileges.id = pg_namespace.oid
  where nspname = 'rag'

  union all
  select format('%s %s',
      case relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence' else 'table' end, name),
    jsonb_build_object('row security', relrowsecurity, 'row security forced', relforcerowsecurity,
      'owner', case relowner when owner.id then 'of the schema' else relowner::regrole::text end,
      'grants', coalesce((select texts from privileges where class = 'relation' and id = oid and part = 0), '[]'))
    || coalesce((
      select jsonb_object_agg(format('column %s', attname), concat_ws(' ', format_type(atttypid, atttypmod),
        case when attnotnull then 'not null' end,
        case when adbin is not null then 'default ' || pg_get_expr(adbin, adrelid) end,
        nullif('generated ' || attgenerated::text, 'generated ')))
      from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
      where attrelid = relations.oid and attnum > 0 and not attisdropped), '{}')
    || coalesce((
      select jsonb_object_agg(format('grants on column %s', attname), texts)
      from privileges join pg_attribute on attrelid = privileges.id and attnum = part
      where class = 'relation' and privileges.id = relations.oid and part > 0), '{}')
  from relations cross join owner

  union all
  select format('policy "%s" on %s', polname, relation),
    jsonb_build_object('kind', case when polpermissive then 'permissive' else 'restrictive' end,
      'command', case polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete'
        else 'all' end,
      'roles', (select jsonb_agg(case member when 0 then 'public' else member::regrole::text end order by member::regrole::text)
        from unnest(polroles) as member),
      'using', pg_get_expr(polqual, polrelid), 'with check', pg_get_expr(polwithcheck, polrelid))
  from policies

  union all
  select format('function %s', signature),
    jsonb_build_object('security', case when prosecdef then 'definer' else 'invoker' end, 'language', lanname,
      'volatility', provolatile, 'leakproof', proleakproof, 'settings', coalesce(to_jsonb(proconfig), '[]'),
      'arguments', pg_get_function_arguments(functions.oid), 'result', pg_get_function_result(functions.oid),
      'owner', case proowner when owner.id then 'of the schema' else proowner::regrole::text end,
      'grants', coalesce((select texts from privileges where class = 'function' and id = functions.oid), '[]'),
      'body', encode(sha256(convert_to(coalesce(pg_get_function_sqlbody(functions.oid), prosrc), 'UTF8')), 'hex'))
  from functions cross join owner join pg_language on pg_language.oid = prolang

  union all
  select format('trigger %s on %s', tgname, relations.name),
    jsonb_build_object('definition', pg_get_triggerdef(pg_trigger.oid), 'enabled', tgenabled)
  from pg_trigger join relations on relations.oid = tgrelid where not tgisinternal

  union all
  select format('rule %s on %s', rulename, relations.name), jsonb_build_object('definition', pg_get_ruledef(pg_rewrite.oid))
  from pg_rewrite join relations on relations.oid = ev_class where relkind in ('r', 'p')

  union all
  -- Postgres 18 also lists "not null" here.
  select format('constraint %s on %s', conname, relations.name),
    jsonb_build_object('definition', pg_get_constraintdef(pg_constraint.oid), 'validated', convalidated)
  from pg_constraint join relations on relations.oid = conrelid where contype <> 'n'

  union all
  select format('table storage.%s', relname), jsonb_build_object('row security', relrowsecurity)
  from pg_class where oid in (to_regclass('storage.objects'), to_regclass('storage.buckets'))
)
select name, properties from objects order by name collate "C";
