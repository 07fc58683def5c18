-- Settings of the database and of the roles of a request, against those that change no access; PostgREST's settings;
-- Supabase's functions of the claims; settings in the schema. Each row is one fault: the object, its property, and a
-- sentence about it. A value that may be a secret is not shown.

with api_roles as (
  select * from pg_roles where rolname in ('anon', 'authenticated', 'rag_worker', 'authenticator')
),
role_settings as (
  select setrole, setdatabase, lower(split_part(setting, '=', 1)) as name, substring(setting from '=(.*)') as value
  from pg_db_role_setting cross join unnest(setconfig) as setting
  where setdatabase in (0, (select oid from pg_database where datname = current_database()))
    and (setrole = 0 or setrole in (select oid from api_roles))
),
-- As PostgREST reads them: a value for this database overrides one for every database.
rest_settings as (
  select distinct on (name) name, value
  from role_settings where setrole = to_regrole('authenticator') and name like 'pgrst.%' order by name, setdatabase desc
),
-- The settings of PostgREST that change no access, with the values that do not.
rest_allowed (name, value) as (
  values ('db_schemas', ''), ('db_pre_request', ''), ('db_anon_role', '^anon$'), ('db_plan_enabled', '^(false|off|0)$'),
    ('db_tx_end', '^commit$'), ('db_extra_search_path', '^[ "]*((public|extensions)[ "]*(,[ "]*|$))*$'),
    ('jwt_role_claim_key', '^\."?role"?$'), ('jwt_aud', '^authenticated$'),
    ('(db_(max_rows|aggregates_enabled|prepared_statements|timezone_enabled)|openapi_\w+|server_\w+|log_\w+|jwt_cache_\w+)', '')
),
-- Supabase's functions, as its migrations had them from 2020 on, and as the local stack has them.
claim_functions (signature, body) as (
  values
    ('auth.uid()', $$select nullif(current_setting('request.jwt.claim.sub', true), '')::uuid$$),
    ('auth.uid()', $$select coalesce(current_setting('request.jwt.claim.sub', true),
      (current_setting('request.jwt.claims', true)::jsonb ->> 'sub'))::uuid$$),
    ('auth.uid()', $$select nullif(coalesce(current_setting('request.jwt.claim.sub', true),
      (current_setting('request.jwt.claims', true)::jsonb ->> 'sub')), '')::uuid$$),
    ('auth.uid()', $$select coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''),
      (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'))::uuid$$),
    ('auth.role()', $$select nullif(current_setting('request.jwt.claim.role', true), '')::text$$),
    ('auth.role()', $$select coalesce(current_setting('request.jwt.claim.role', true),
      (current_setting('request.jwt.claims', true)::jsonb ->> 'role'))::text$$),
    ('auth.role()', $$select coalesce(nullif(current_setting('request.jwt.claim.role', true), ''),
      (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role'))::text$$),
    ('auth.role()', $$select coalesce(nullif(current_setting('request.jwt.claim.role', true), ''),
      nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role')$$),
    ('auth.jwt()', $$select coalesce(nullif(current_setting('request.jwt.claim', true), ''),
      nullif(current_setting('request.jwt.claims', true), ''))::jsonb$$)
)
select coalesce('role ' || nullif(setrole, 0)::regrole, 'database ' || current_database()) as target, name as property,
  case name when 'search_path' then format('it is %s', value)
    else 'the setting is not one of those that change no access' end as finding
from role_settings
where name not like 'pgrst.%'
  and case
    when name = 'search_path' then exists (
      -- The defaults of Postgres and of Supabase are no fault.
      select from string_to_table(value, ',') as entry
      where btrim(entry, ' "') not in ('$user', 'public', 'extensions', ''))
    when name = 'session_preload_libraries' then exists (
      select from string_to_table(value, ',') as entry
      where btrim(entry, ' "') not in ('supautils', 'safeupdate', 'plan_filter', 'auto_explain', 'pg_stat_statements',
        'pgaudit', 'pg_hint_plan', ''))
    -- Settings of extensions and of the adopter's own: policies and functions of the release read only these.
    when name like '%.%' then name ~ '^(request|rag|storage)\.' or name = 'plpgsql.variable_conflict'
    else name !~ concat('^(\w*timeout|\w+_cost|\w*_mem|\w+_buffers|(log|track|enable|jit|geqo|parallel|effective|lc|tcp|vacuum|',
      'idle|autovacuum|maintenance|checkpoint|wal)_\w+|jit|geqo|max_parallel\w+|timezone|datestyle|intervalstyle|client_encoding|',
      'client_min_messages|application_name|plan_cache_mode|default_(statistics_target|text_search_config|transaction_\w+)|',
      'temp_file_limit|synchronous_commit|extra_float_digits|bytea_output|\w+_collapse_limit|cursor_tuple_fraction|',
      'compute_query_id|hash_mem_multiplier|password_encryption|\w+_io_concurrency)$')
  end

union all
-- A setting of the server's own configuration, which no role has.
select 'database ' || current_database(), name, 'it is set for all sessions'
from unnest(array['request.jwt.claim', 'request.jwt.claim.sub', 'request.jwt.claim.role', 'request.jwt.claims',
  'request.headers', 'rag.own_issuer']) as name
where current_setting(name, true) <> '' and not exists (select from role_settings where role_settings.name = name)

union all
select 'database ' || current_database(), name, 'triggers and foreign keys are off in all sessions'
from pg_settings where name = 'session_replication_role' and reset_val <> 'origin'

union all
-- White space, parentheses and a semicolon make no difference.
select format('function %s', signature), 'body',
  'it is no version of Supabase''s: policies and functions read the caller from it'
from pg_proc join (select distinct signature from claim_functions) as listed on pg_proc.oid = to_regprocedure(signature)
where prolang <> (select oid from pg_language where lanname = 'sql')
  or exists (select from unnest(proconfig) as setting where setting !~ '^search_path=')
  or not exists (
    select from claim_functions
    where claim_functions.signature = listed.signature
      and regexp_replace(lower(prosrc), '[\s();]', '', 'g') = regexp_replace(body, '[\s();]', '', 'g'))

union all
select 'rag.settings', 'functions_secret_hashes', case cardinality(functions_secret_hashes)
  when 0 then 'the functions secret is not set (docs/install.md, Functions secret)'
  else 'a second secret is valid: if no rotation is under way, remove the other hash (docs/install.md, Functions secret)' end
from rag.settings where cardinality(functions_secret_hashes) <> 1

union all
select 'rag.settings', 'open_to_direct_callers', 'any signed-in user may call the guarded functions without the secret'
from rag.settings where open_to_direct_callers

union all
select 'PostgREST', rest_settings.name, case rest_settings.name
  when 'pgrst.db_anon_role' then format('requests without a token run as %s', rest_settings.value)
  else 'the setting, or its value, is not one of those that change no access' end
from rest_settings
where not exists (
  select from rest_allowed
  where rest_settings.name ~ format('^pgrst\.%s$', rest_allowed.name) and lower(rest_settings.value) ~ rest_allowed.value)

union all
-- Of Supabase's schemas, these two and Storage's are exposed by default or once were.
select 'PostgREST', 'pgrst.db_schemas', format('it exposes schema %s', schema)
from rest_settings cross join string_to_table(value, ',') as entry cross join btrim(entry, ' "') as schema
where name = 'pgrst.db_schemas'
  and (schema ~ '^_|^pg_' or schema = any (array['rag', 'auth', 'cron', 'extensions', 'graphql', 'information_schema', 'net',
    'pgbouncer', 'pgmq', 'pgsodium', 'realtime', 'supabase_functions', 'supabase_migrations', 'vault']))

union all
select 'PostgREST', 'pgrst.db_pre_request', 'rag.check_request is not set as the pre-request function, nor called by it'
where not exists (
  select from rest_settings
  where name = 'pgrst.db_pre_request' and (value = 'rag.check_request' or exists (
    select from pg_proc where oid::regproc = to_regproc(value) and prosrc ~ '\mrag\.check_request\M')))
order by 1, 2, 3;
