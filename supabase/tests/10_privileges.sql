-- Who may execute and read which objects: row security, functions by role, functions that run as their owner.

begin;
set local search_path = public, extensions;
select no_plan();

select ok(relrowsecurity and relforcerowsecurity, format('row security of %s is on and forced', oid::regclass))
from pg_class
where relnamespace = 'rag'::regnamespace and relkind in ('r', 'p')
order by relname;

select is_empty($$ select oid::regclass from pg_class where relnamespace = 'rag'::regnamespace and relkind in ('r', 'p')
  and not exists (select from pg_policy where polrelid = pg_class.oid) $$, 'each table has a policy');
select is(array_agg(proname::text order by proname), array['broadcast_change', 'erase_from_vault', 'secret_in_vault', 'store_in_vault'],
  'only the functions for Vault and Realtime run as their owner')
from pg_proc
where (pronamespace = 'rag'::regnamespace or pronamespace = 'public'::regnamespace and proname ~ '^(rag_|is_org_member$)')
  and prosecdef;
select ok(not has_function_privilege('authenticated', name, 'execute'), format('no user executes %s', name))
from unnest('{rag.secret_in_vault(uuid),rag.store_in_vault(),rag.erase_from_vault(),rag.broadcast_change()}'::text[]) as name;
select is_empty($$ select oid::regprocedure from pg_proc
  where (pronamespace = 'rag'::regnamespace or pronamespace = 'public'::regnamespace and proname ~ '^(rag_|is_org_member$)')
  and not coalesce(proconfig @> array['search_path=""'], false) and prosqlbody is null
  $$, 'each function has an empty search_path');
select is_empty($$ select oid::regclass from pg_class where relnamespace = 'rag'::regnamespace and relkind in ('v', 'm') $$,
  'no view reads the tables');
select is_empty($$ select oid::regclass from pg_class where relnamespace = 'rag'::regnamespace
  and has_table_privilege('anon', oid, 'select, insert, update, delete, truncate, references, trigger') $$,
  'anon has no privilege on a table');
select is_empty($$ select oid::regclass from pg_class where relnamespace = 'rag'::regnamespace and relkind = 'r'
  and has_table_privilege('authenticated', oid, 'truncate, references, trigger') $$,
  'authenticated may not truncate a table');
select is_empty($$ select oid::regprocedure from pg_proc where pronamespace = 'public'::regnamespace
  and proname ~ '^(rag_|is_org_member$)' and has_function_privilege('anon', oid, 'execute') $$,
  'anon executes no function of the API');
select is_empty($$ select oid::regprocedure from pg_proc where pronamespace = 'rag'::regnamespace
  and has_function_privilege('anon', oid, 'execute') and proname not in ('check_request', 'check_direct_size') $$,
  'anon executes only the pre-request function');

-- Functions by role.
select ok(has_function_privilege('authenticated', name::regproc, 'execute'), format('authenticated executes %s', name))
from unnest('{rag_match,rag_search,rag_graph_search,rag_graph_of,rag_similar,rag_widen,is_org_member}'::text[]) as name;
select ok(not has_function_privilege('authenticated', name::regproc, 'execute')
  and has_function_privilege('rag_worker', name::regproc, 'execute'), format('only the worker executes %s', name))
from unnest('{rag_claim_jobs,rag_claim_deliveries,rag_claim_sources,rag_claim_removals,rag_end_delivery,rag_end_removal,
  rag_end_source,rag_extend_hnsw,rag_remove_deleted_collections,rag_remove_expired_records,rag_remove_old_calls}'::text[]) as name;
select ok(not has_function_privilege('rag_worker', name::regproc, 'execute'), format('the worker does not execute %s', name))
from unnest('{rag_search,rag_put_documents,rag_get_document,rag_list_members,rag_create_key}'::text[]) as name;

-- Columns that no user reads.
select ok(not has_column_privilege('authenticated', relation, name, 'select'), format('no user reads %s of %s', name, relation))
from (values ('rag.endpoints', 'secret'), ('rag.endpoints', 'old_secret'), ('rag.source_credentials', 'credentials'))
  as refused (relation, name);
select ok(not has_column_privilege('rag_worker', relation, name, 'select'), format('the worker reads no %s of %s', name, relation))
from (values ('rag.documents', 'content'), ('rag.documents', 'title'), ('rag.chunks', 'content'), ('rag.chunks', 'embedding'))
  as refused (relation, name);
select ok(not has_table_privilege('authenticated', name, 'insert, update, delete'), format('no user writes %s', name))
from unnest('{rag.settings,rag.tiers}'::text[]) as name;

-- Roles.
select ok(not rolcanlogin and not rolsuper and not rolbypassrls and not rolinherit, 'the worker''s role cannot log in')
from pg_roles where rolname = 'rag_worker';
select ok(not rolsuper and not rolbypassrls, format('row security binds %s', rolname))
from pg_roles where rolname in ('anon', 'authenticated', 'authenticator') order by rolname;

select * from finish();
rollback;
