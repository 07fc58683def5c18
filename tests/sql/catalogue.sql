-- Everything that makes one database of ours behave unlike another, one text row an object, so that two
-- databases are compared as two sets and what differs can be read. It covers the schema rag and what is ours
-- in public, and goes where the CLI's diff does not: storage, compression, statistics, owners, ACLs, data.
--
-- The order of a table's columns is left out on purpose: a migration can only append.

with ours as (
  select oid, nspname, nspowner, nspacl from pg_namespace where nspname in ('rag', 'public')
),
-- What an extension brought is the extension's.
extensions_own as (
  select classid, objid from pg_depend where deptype = 'e'
),
relations as (
  select pg_class.*, format('%I.%I', nspname, relname) as name
  from pg_class join ours on ours.oid = relnamespace
  where ('pg_class'::regclass, pg_class.oid) not in (select classid, objid from extensions_own)
),
grants (oid, class, acl) as (
  select grantable.oid, grantable.class, string_agg(item::text, ' ' order by item::text)
  from (
    select oid, 'schema', coalesce(nspacl, acldefault('n', nspowner)) from ours
    union all
    select oid, 'relation', coalesce(relacl, acldefault(case relkind when 'S' then 's' else 'r' end::"char", relowner))
    from relations
    union all
    select oid, 'function', coalesce(proacl, acldefault('f', proowner)) from pg_proc
    where pronamespace in (select oid from ours)
    union all
    select oid, 'type', coalesce(typacl, acldefault('T', typowner)) from pg_type
    where typnamespace in (select oid from ours)
  ) as grantable (oid, class, items), unnest(items) as item
  group by grantable.oid, grantable.class
),
objects (line) as (
  select format('schema %I: owner %s, acl %s', nspname, nspowner::regrole, acl)
  from ours join grants on grants.oid = ours.oid and class = 'schema'

  union all
  select format('default privileges of %s in %s for %s: %s', defaclrole::regrole,
    coalesce(defaclnamespace::regnamespace::text, 'every schema'), defaclobjtype,
    (select string_agg(item::text, ' ' order by item::text) from unnest(defaclacl) as item))
  from pg_default_acl where defaclnamespace = 0 or defaclnamespace in (select oid from ours)

  union all
  select format('relation %s: kind %s, persistence %s, owner %s, row security %s, forced %s, options %s, '
    'partition key %s, partition of %s bound %s, acl %s', name, relkind, relpersistence, relowner::regrole,
    relrowsecurity, relforcerowsecurity, reloptions, pg_get_partkeydef(relations.oid),
    (select string_agg(inhparent::regclass::text, ' ') from pg_inherits where inhrelid = relations.oid),
    pg_get_expr(relpartbound, relations.oid), acl)
  from relations left join grants on grants.oid = relations.oid and class = 'relation'
  where relkind in ('r', 'p', 'v', 'm', 'f', 'S')

  union all
  select format('view %s: %s', name, md5(pg_get_viewdef(oid))) from relations where relkind in ('v', 'm')

  union all
  -- A composite type's attributes are in an order that row literals follow; a table's are not.
  select format('column %s.%I: %s, not null %s, default %s, generated %s, identity %s, storage %s, '
    'compression %s, statistics %s, collation %s, options %s, acl %s%s', name, attname,
    format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid), attgenerated, attidentity,
    attstorage, attcompression, nullif(attstattarget, -1), nullif(attcollation, 0)::regcollation, attoptions,
    (select string_agg(item::text, ' ' order by item::text) from unnest(attacl) as item),
    case relkind when 'c' then format(', position %s', attnum) end)
  from relations
  join pg_attribute on attrelid = relations.oid and attnum > 0 and not attisdropped
  left join pg_attrdef on adrelid = attrelid and adnum = attnum
  where relkind in ('r', 'p', 'v', 'm', 'f', 'c')

  union all
  select format('constraint %I on %s: %s, validated %s', conname, coalesce(relations.name, contypid::regtype::text),
    pg_get_constraintdef(pg_constraint.oid), convalidated)
  from pg_constraint left join relations on relations.oid = conrelid
  where connamespace in (select oid from ours)

  union all
  select format('index %s: %s, valid %s, statistics %s', relations.name, pg_get_indexdef(indexrelid), indisvalid,
    (select string_agg(format('%s=%s', attnum, attstattarget), ' ' order by attnum)
      from pg_attribute where attrelid = indexrelid and attstattarget <> -1))
  from pg_index join relations on relations.oid = indexrelid

  union all
  select format('statistics %I.%I: %s', stxnamespace::regnamespace, stxname, pg_get_statisticsobjdef(oid))
  from pg_statistic_ext where stxnamespace in (select oid from ours)

  union all
  select format('policy %I on %s: %s for %s to %s using %s with check %s', polname, relations.name,
    case when polpermissive then 'permissive' else 'restrictive' end, polcmd,
    (select string_agg(case member when 0 then 'public' else member::regrole::text end, ' ' order by member::regrole::text)
      from unnest(polroles) as member),
    pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
  from pg_policy join relations on relations.oid = polrelid

  union all
  -- Of Storage's tables the rows that are ours: policies, and the bucket.
  select format('policy %I on storage.objects: %s for %s to %s using %s with check %s', polname,
    case when polpermissive then 'permissive' else 'restrictive' end, polcmd, polroles::regrole[],
    pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
  from pg_policy where polrelid = 'storage.objects'::regclass

  union all
  select format('bucket %s: public %s, limit %s', id, public, file_size_limit) from storage.buckets

  union all
  select format('trigger on %s: %s, enabled %s', relations.name, pg_get_triggerdef(pg_trigger.oid), tgenabled)
  from pg_trigger join relations on relations.oid = tgrelid where not tgisinternal

  union all
  select format('rule on %s: %s', relations.name, pg_get_ruledef(pg_rewrite.oid))
  from pg_rewrite join relations on relations.oid = ev_class where relkind in ('r', 'p')

  union all
  select format('%s %s returns %s: language %s, volatility %s, %s, leakproof %s, strict %s, parallel %s, '
    'config %s, owner %s, acl %s, definition %s',
    case prokind when 'p' then 'procedure' when 'a' then 'aggregate' else 'function' end,
    pg_proc.oid::regprocedure, pg_get_function_result(pg_proc.oid), lanname, provolatile,
    case when prosecdef then 'security definer' else 'security invoker' end, proleakproof, proisstrict,
    proparallel, proconfig, proowner::regrole, acl,
    case when prokind <> 'a' then md5(pg_get_functiondef(pg_proc.oid)) end)
  from pg_proc
  join pg_language on pg_language.oid = prolang
  left join grants on grants.oid = pg_proc.oid and class = 'function'
  where pronamespace in (select oid from ours)
    and ('pg_proc'::regclass, pg_proc.oid) not in (select classid, objid from extensions_own)

  union all
  select format('type %s: kind %s, owner %s, acl %s, base %s, default %s, not null %s, labels %s',
    pg_type.oid::regtype, typtype, typowner::regrole, acl, nullif(typbasetype, 0)::regtype, typdefault, typnotnull,
    (select string_agg(enumlabel, ' ' order by enumsortorder) from pg_enum where enumtypid = pg_type.oid))
  from pg_type left join grants on grants.oid = pg_type.oid and class = 'type'
  where typnamespace in (select oid from ours)
    -- Not the row types and array types that come with a table or with another type.
    and (typrelid = 0 or exists (select from relations where relations.oid = typrelid and relkind = 'c'))
    and typcategory <> 'A'
    and ('pg_type'::regclass, pg_type.oid) not in (select classid, objid from extensions_own)

  union all
  select format('text search configuration %I.%I: owner %s, parser %s, mappings %s', cfgnamespace::regnamespace,
    cfgname, cfgowner::regrole, prsname,
    (select string_agg(format('%s %s %s', maptokentype, mapseqno, mapdict::regdictionary), '; '
        order by maptokentype, mapseqno)
      from pg_ts_config_map where mapcfg = pg_ts_config.oid))
  from pg_ts_config join pg_ts_parser on pg_ts_parser.oid = cfgparser
  where cfgnamespace in (select oid from ours)

  union all
  select format('text search dictionary %I.%I: owner %s, template %s, options %s', dictnamespace::regnamespace,
    dictname, dictowner::regrole, tmplname, dictinitoption)
  from pg_ts_dict join pg_ts_template on pg_ts_template.oid = dicttemplate
  where dictnamespace in (select oid from ours)

  union all
  select format('comment on %s: %s', pg_describe_object(classoid, objoid, objsubid), description)
  from pg_description
  where objoid in (select oid from relations)
    or objoid in (select oid from pg_proc where pronamespace in (select oid from ours)
      and ('pg_proc'::regclass, oid) not in (select classid, objid from extensions_own))
    or objoid in (select oid from pg_type where typnamespace in (select oid from ours))

  union all
  select format('row of rag.settings: %s', to_jsonb(settings)) from rag.settings
)
select line from objects order by line collate "C";
