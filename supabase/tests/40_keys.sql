-- The token of an API key: its org, collection and scopes restrict what its user may do.

begin;
\ir fixtures.psql
select plan(24);

select pg_temp.sign_in('ada', pg_temp.key('{admin}'));
select is((select count(*) from rag.documents), 3::bigint, 'a key with the scope admin sees the org''s documents');
select isnt_empty('select from rag_list_members(10, 0)', 'a key with the scope admin lists the members');

select pg_temp.sign_in('ada', pg_temp.key('{retrievals:read}'));
select isnt_empty('select from rag_match(pg_temp.question())', 'a key for searches searches');
select throws_ok('select rag_list_members(10, 0)', 'PT403', null, 'a key for searches of an admin does not list the members');
select throws_ok($$ select pg_temp.put('0a000000-0000-4000-8000-0000000000aa', 'x', 'x', 'manuals') $$, null, null,
  'a key for searches writes no document');
select lives_ok(format('delete from rag.documents where id = %L', :'kettle'), 'a deletion by a key for searches ends without an error');
select isnt_empty(format('select from rag.documents where id = %L', :'kettle'), 'a key for searches deleted no document');
select throws_ok($$ select rag_create_key('x', 'x', repeat('0', 64), '{admin}') $$, null, null, 'a key for searches creates no key');

select pg_temp.sign_in('ada', pg_temp.key('{documents:write}'));
select throws_ok('select rag_list_members(10, 0)', 'PT403', null, 'a key for documents does not list members');
select lives_ok($$ select pg_temp.put('0a000000-0000-4000-8000-0000000000aa', 'New', 'new', 'manuals') $$,
  'a key for documents writes one');

-- Bound to the collection "notes".
reset role;
select id as collection from rag.collections
where org_id = '0a000000-0000-4000-8000-0000000000aa' and name = 'notes' \gset
select pg_temp.sign_in('ada', pg_temp.key('{admin}', :'collection'));
select results_eq('select title from rag.documents order by 1', array['Diary', 'Notes'], 'a bound key sees documents of its collection only');
select results_eq('select title from rag_match(pg_temp.question()) order by 1', array['Diary', 'Notes'], 'a bound key searches its collection');
select throws_ok(format('select rag_get_document(%L)', :'kettle'), 'PT404', null, 'documents of other collections are unknown to a bound key');
select throws_ok($$ select pg_temp.put('0a000000-0000-4000-8000-0000000000aa', 'x', 'x', 'manuals') $$, null, null,
  'a bound key writes to no other collection');
select throws_ok($$ select rag_create_webhook('https://a.invalid', 'whsec_' || repeat('A', 43) || '=',
  '{document.deleted}') $$, 'PT403', null, 'a bound key creates no webhook');
select is_empty('select from rag.webhooks', 'a bound key sees no webhook');

-- A token cannot name an org of which its user is no member.
select pg_temp.sign_in('bob', pg_temp.key('{admin}'));
select is_empty('select from rag.documents', 'a key for an org of others sees nothing');
select ok(not is_org_member('0a000000-0000-4000-8000-0000000000aa'), 'a key for an org of others makes no member');
select ok(not is_org_member('0b000000-0000-4000-8000-0000000000bb'), 'a key for an org of others does not count for the user''s own org');

-- Claims that are malformed permit nothing.
select pg_temp.sign_in('ann', '{"rag": "admin"}');
select is_empty('select from rag.documents', 'a claim that is a string permits nothing');
select pg_temp.sign_in('ann', '{"rag": {"scopes": "admin"}}');
select is_empty('select from rag.documents', 'scopes that are a string permit nothing');
select pg_temp.sign_in('ann', '{"rag": {"collection": "notes"}}');
select is_empty('select from rag.documents', 'a collection that is no id permits nothing');
select pg_temp.sign_in('ann', '{"rag": {"org": ""}}');
select is_empty('select from rag.documents', 'an org that is no id permits nothing');

-- A direct call of a function for this project's functions, as PostgREST sets its headers.
select pg_temp.sign_in('ann');
select set_config('request.headers', '{"content-length": "2"}', true) \g /dev/null
select throws_ok(format('select rag_get_document(%L)', :'kettle'), 'PT403', null, 'a guarded function needs the functions secret');
reset role;

select * from finish();
rollback;
