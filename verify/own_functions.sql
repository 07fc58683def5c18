-- Functions and triggers of the adopter's by which a caller may pass row security. Each row is one: the object, its
-- property, a sentence about it, and whether it is a difference (false: a person should read the function).
--
-- A security definer function has its owner's rights. Only an owner whom row security does not bind, and who may use the
-- tables of schema rag, is of interest. Such a function is a difference if its text leads to schema rag (by a name of it,
-- by a view, or by another function or trigger that does), or if the text does not show what it reads, since it builds
-- statements at run time.

with recursive api_roles as (
  select * from pg_roles where rolname in ('anon', 'authenticated', 'rag_worker')
),
unbound as (
  select oid from pg_roles
  where pg_has_role(oid, (select nspowner from pg_namespace where nspname = 'rag'), 'member')
    or pg_has_role(oid, to_regrole('rag_worker'), 'usage')
    or (rolbypassrls and has_schema_privilege(oid, 'rag', 'usage') and exists (
      select from pg_class where relnamespace = 'rag'::regnamespace and relkind in ('r', 'p')
        and has_table_privilege(pg_roles.oid, pg_class.oid, 'select, insert, update, delete')))
),
-- Not those of the release. Of extensions and of Supabase only those that name the schema. A trigger may add orgs,
-- and change none (docs/own-members.md).
functions as (
  select *
  from (
    select pg_proc.oid, lower(proname) as name, prosecdef, proowner, prorettype = 'trigger'::regtype as is_trigger,
      prorettype = 'event_trigger'::regtype as is_event_trigger, proleakproof, proconfig,
      regexp_replace(array_to_string(proargnames, '|'), '[^\w|]', '', 'g') as arguments,
      lanname not in ('sql', 'plpgsql') and prokind <> 'a' as is_opaque,
      lanname = 'internal' and prokind = 'f' as is_internal,
      case when pronargs = 1 and (select typtype = 'c' from pg_type where pg_type.oid = proargtypes[0])
        then '.' || lower(proname) end as attribute,
      regexp_replace(concat_ws(' ', coalesce(pg_get_function_sqlbody(pg_proc.oid), prosrc),
        array_to_string(proconfig, ' ')), '\minsert\s+into\s+rag\.orgs\s*\(\s*id\s*,\s*name\s*\)(?![^;]*\mupdate\M)', '', 'gi') as text,
      proowner::regrole::text like 'supabase\_%' and nspname in ('auth', 'extensions', 'graphql', 'graphql_public', 'net',
          'pgbouncer', 'pgsodium', 'realtime', 'storage', 'supabase_functions', 'vault')
        or exists (
          select from pg_depend where classid = 'pg_proc'::regclass and objid = pg_proc.oid and deptype = 'e') as is_known
    from pg_proc join pg_namespace on pg_namespace.oid = pronamespace join pg_language on pg_language.oid = prolang
    where nspname !~ '^pg_' and nspname not in ('information_schema', 'rag')
      and not (nspname = 'public' and (proname like 'rag\_%' or proname = 'is_org_member'))
  ) as of_all
  cross join lateral (select text ~* '\mrag\M|\mrag_|\mis_org_member\M' as is_naming) as named
  where is_naming or not is_known
),
-- Views, and tables with rules, that lead to tables of schema rag.
readers (id) as (
  select oid from pg_class where relnamespace = 'rag'::regnamespace
  union
  select ev_class
  from readers join pg_depend on refclassid = 'pg_class'::regclass and refobjid = readers.id
  join pg_rewrite on classid = 'pg_rewrite'::regclass and pg_rewrite.oid = objid
),
triggers as (
  select tgname, tgrelid, tgfoid, relowner, lower(relname) as name from pg_trigger join pg_class on pg_class.oid = tgrelid
  where not tgisinternal and tgenabled <> 'D' and relnamespace <> 'rag'::regnamespace
),
-- The names that a text calls, and those of the tables and views that it uses.
calls (id, name) as materialized (
  select distinct oid, lower(coalesce(found[1], found[2]))
  from functions cross join regexp_matches(text, '(?:"([^"]+)"|([\w$]+))\s*\(', 'g') as found
),
uses (id, name) as materialized (
  select distinct oid, lower(coalesce(found[1], found[2]))
  from functions cross join regexp_matches(text,
    '(?:\m(?:from|join|into|update|table|only)\s+|,\s*)(?:(?:"[^"]+"|[\w$]+)\s*\.\s*)?(?:"([^"]+)"|([\w$]+))', 'gi') as found
),
-- Which object runs another without a call in the text: a view, a rule, a default, a check, a cast, an operator.
steps (class, id, next_class, next_id) as materialized (
  select 'pg_class'::regclass::oid, ev_class, 'pg_rewrite'::regclass::oid, oid from pg_rewrite
  union all
  select 'pg_class'::regclass, adrelid, 'pg_attrdef'::regclass, oid from pg_attrdef
  union all
  select case contypid when 0 then 'pg_class'::regclass else 'pg_type'::regclass end,
    case contypid when 0 then conrelid else contypid end, 'pg_constraint'::regclass, oid
  from pg_constraint where contype = 'c'
  union all
  select 'pg_type'::regclass, type, 'pg_cast'::regclass, oid
  from pg_cast cross join unnest(array[castsource, casttarget]) as type
  union all
  select classid, objid, refclassid, refobjid
  from pg_depend
  where classid in ('pg_rewrite'::regclass, 'pg_attrdef'::regclass, 'pg_constraint'::regclass, 'pg_cast'::regclass,
      'pg_operator'::regclass)
    and refclassid in ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass)
),
parts (name, class, id) as (
  select name, class, id
  from (
    select lower(relname), 'pg_class'::regclass::oid, oid, relnamespace from pg_class where relkind in ('r', 'p', 'v', 'f')
    union all
    select lower(typname), 'pg_type'::regclass, oid, typnamespace from pg_type where typtype = 'd' or oid in (
      select unnest(array[castsource, casttarget]) from pg_cast)
    union all
    select oprname, 'pg_operator'::regclass, oid, oprnamespace from pg_operator
  ) as named (name, class, id, namespace)
  where namespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'rag'::regnamespace)
  union
  select name, next_class, next_id from parts join steps using (class, id)
),
-- Why the text of a function leads to schema rag, whatever rights it has.
reasons (id, reason) as materialized (
  select oid, case
    when is_naming then 'it names schema rag or an exposed function'
    when is_opaque or text ~* concat_ws('|', '\mexecute\M(?!\s+(function|procedure|on)\M)', 'u&["'']', 'search_path''',
      '\m(query|cursor|table|schema|database)_to_xml', '\mts_(stat|rewrite)\M', '\mdblink', '\mcrosstab', '\mconnectby\M',
      '\mcron"?\."?schedule') then 'it builds statements at run time'
    when oid in (
      select uses.id
      from uses join pg_class on lower(relname) = uses.name join readers on readers.id = pg_class.oid
      where relnamespace <> 'rag'::regnamespace)
      then 'it uses a view of schema rag'
    when text ~* '\mpg_(stats(_ext\w*)?|statistic\w*|logical_slot_\w+)\M' then 'it reads statistics or changes of all tables'
    when text ~* '\mstorage"?\s*\.\s*"?(objects|buckets)\M|\m(objects|buckets)\M.*search_path=.*\mstorage\M'
      and text !~* '\m(bucket_)?id"?\s*=\s*''' then 'it uses objects or buckets of Storage without the id of a bucket'
    when not is_trigger and text ~* '\mvault"?\s*\.\s*"?(decrypted_)?secrets\M' and text !~* '\mname"?\s*=\s*'''
      then 'it reads secrets of the vault without the name of one'
    when not is_trigger and text ~* '\mdelete\s+from\s+(only\s+)?"?auth"?\s*\.\s*"?users\M'
      and text !~* '\mauth"?\s*\.\s*"?uid\M' then 'it deletes users other than its caller, and thereby members of orgs'
    end
  from functions
),
-- Which function's text leads to which: by its name, or by a table whose trigger it is.
edges (caller, callee) as materialized (
  select calls.id, functions.oid from calls join functions using (name)
  union
  select uses.id, tgfoid from uses join triggers using (name)
  union
  -- Of an aggregate, or of a body that is parsed already.
  select objid, refobjid from pg_depend where classid = 'pg_proc'::regclass and refclassid = 'pg_proc'::regclass
  union
  select functions.oid, parts.id
  from parts join functions on strpos(lower(text), parts.name) > 0
  where class = 'pg_proc'::regclass
  union
  -- row.function
  select functions.oid, called.oid
  from functions as called join functions on strpos(replace(lower(functions.text), '"', ''), called.attribute) > 0
),
reaching (id) as (
  select id from reasons where reason is not null
  union
  select oid from pg_proc
  where pronamespace = 'rag'::regnamespace
    or (pronamespace = 'public'::regnamespace and (proname like 'rag\_%' or proname = 'is_org_member'))
  union
  select caller from reaching join edges on callee = reaching.id
),
-- `executed`: how a caller gets the function to run; null: in no way.
judged as (
  select functions.*, signature, reaching.id is not null as is_reaching, proowner in (select oid from unbound) as is_unbound,
    case
      when is_event_trigger then (select 'it runs by the event trigger ' || string_agg(evtname, ', ' order by evtname)
        from pg_event_trigger where evtfoid = functions.oid and evtenabled <> 'D')
      when is_trigger
        then (select 'it runs by the trigger ' || string_agg(format('%s on %s', tgname, tgrelid::regclass), ', ' order by tgname)
        from triggers where tgfoid = functions.oid)
      else (select string_agg(rolname, ', ' order by rolname) || ' may execute it'
        from api_roles where has_function_privilege(api_roles.oid, functions.oid, 'execute') or exists (
          -- The owner of an aggregate executes its functions.
          select from pg_aggregate
          where functions.oid in (aggtransfn, aggfinalfn, aggcombinefn, aggmtransfn, aggminvtransfn, aggmfinalfn)
            and has_function_privilege(api_roles.oid, aggfnoid, 'execute')))
    end as executed,
    coalesce(reason, 'it leads to schema rag by a function, or by an object that runs one') as reason
  from functions
  cross join lateral (select format('function %s', functions.oid::regprocedure)) as named (signature)
  left join reasons on reasons.id = functions.oid left join reaching on reaching.id = functions.oid
)
select signature as target, 'security definer' as property,
  format('it runs as %s, whom row security does not bind; %s; %s', proowner::regrole, executed,
    case when is_reaching then reason else 'its text is not known to read or to open schema rag: read it' end) as finding,
  is_reaching and not is_event_trigger as is_difference
from judged where prosecdef and is_unbound and executed is not null and not (is_event_trigger and is_naming)

union all
-- One that builds statements, for example to enable row security of new tables, is usual.
select signature, 'event trigger', format('%s; %s', executed, reason), true
from judged where is_event_trigger and is_naming and executed is not null

union all
-- The planner may call it before the policies, on rows of others.
select signature, 'leakproof', executed, true from judged where proleakproof and executed is not null

union all
select signature, 'settings', format('it shows a setting of its caller''s choice, and there are secret ones; %s', executed), true
from judged
where executed is not null and text ~* format('\mcurrent_setting"?\s*\(\s*(%s|\$\d+)\s*[,)]', nullif(arguments, ''))
  and exists (
    select from pg_db_role_setting cross join unnest(setconfig) as setting
    where split_part(setting, '=', 1) ~* 'secret|password|key'
      and setdatabase in (0, (select oid from pg_database where datname = current_database())))

union all
-- A cascade writes the rows of the referencing table as that table's owner, and its triggers run with these rights.
select distinct signature, 'trigger of a cascade', format('it runs as %s where a foreign key of %s cascades; %s',
  relowner::regrole, tgrelid::regclass, reason), true
from judged join triggers on tgfoid = judged.oid
where not prosecdef and is_reaching and relowner in (select oid from unbound) and exists (
  select from pg_constraint
  where conrelid = tgrelid and contype = 'f' and (confdeltype in ('c', 'n', 'd') or confupdtype in ('c', 'n', 'd')))

union all
-- Policies read the user of the claims, which the caller of such a function could choose. The session may change to any
-- role of authenticator's.
select signature, 'claims', format('it may set the claims of another user, or another role; %s', executed), true
from judged
where executed is not null and (
  exists (select from unnest(proconfig) as setting where setting ~ '^((request|rag)\.|role=)')
  or text ~* '\mset\s+((local|session)\s+)?"?(request|rag)"?\s*\.'
  -- Not the column of an update.
  or text ~* '\mset\s+((local|session)\s+role\M|role\s+(?!=)|session\s+authorization\M)|\mreset\s+role\M'
  or text ~* '\mset_config"?\s*\(\s*(?!\s)(?!''(?!(request|rag)\.|role''))'
  or text ~* format('\mexecute\s+(%s|\$\d+)\s*(;|into\M|using\M|loop\M)', nullif(arguments, ''))
  -- A statement that may have a text of the caller: all but constants, quoted parts and format() of these.
  or not prosecdef and (
    regexp_replace(text, concat('\mexecute\s+(',
        '\$\w*\$[^$]*\$\w*\$|(pg_catalog\.)?format\s*\(\s*''([^''%]|''''|%%|%(\d+\$)?[IL])*''\s*[,)]',
        '|(''([^'']|'''')*''|quote_(ident|literal|nullable)\s*\([^()]*\)|\s|\|\|)+(;|into\M|using\M|loop\M))'),
      '', 'gi') ~* '\mexecute\M(?!\s+(function|procedure|on)\M)'
    or text ~* '\m(ts_(stat|rewrite)|(query|cursor)_to_xml\w*|crosstab\w*|connectby)"?\s*\(|u&"'
    or is_internal))

union all
-- They run with each write of a row, or with analyze.
select distinct pg_describe_object(classid, objid, 0), 'functions', format('it passes rows to %s', refobjid::regprocedure), true
from pg_depend
join pg_proc on refclassid = 'pg_proc'::regclass and pg_proc.oid = refobjid
left join pg_index on classid = 'pg_class'::regclass and indexrelid = objid
left join pg_statistic_ext on classid = 'pg_statistic_ext'::regclass and pg_statistic_ext.oid = objid
join pg_class on pg_class.oid = coalesce(indrelid, stxrelid)
where pg_class.relnamespace in (to_regnamespace('rag'), to_regnamespace('storage'))
  and pronamespace not in (to_regnamespace('rag'), to_regnamespace('storage'), 'pg_catalog'::regnamespace)
  and not exists (
    select from pg_depend as of_extension
    where of_extension.classid = 'pg_proc'::regclass and of_extension.objid = pg_proc.oid and of_extension.deptype = 'e')

union all
select format('materialized view %s', pg_class.oid::regclass), 'security_invoker', 'it reads tables of schema rag as its owner',
  true
from readers join pg_class on pg_class.oid = readers.id
where relkind = 'm' and relnamespace <> 'rag'::regnamespace

union all
select distinct format('materialized view %s', ev_class::regclass), 'functions', format('its owner runs %s: %s',
  refobjid::regprocedure, coalesce(reason, 'it is of the release')), true
from pg_depend join pg_rewrite on classid = 'pg_rewrite'::regclass and pg_rewrite.oid = objid
join pg_class on pg_class.oid = ev_class and relkind = 'm'
join pg_proc on refclassid = 'pg_proc'::regclass and pg_proc.oid = refobjid
left join judged on judged.oid = refobjid
where is_reaching or pronamespace = 'rag'::regnamespace
  or (pronamespace = 'public'::regnamespace and (pg_proc.proname like 'rag\_%' or pg_proc.proname = 'is_org_member'))
order by 1, 2, 3;
