-- A member of one org neither reads nor changes what another org has.

begin;
\ir fixtures.psql
select plan(31);

-- Bob of Bolt.
select pg_temp.sign_in('bob');
select results_eq('select title from rag.documents', array['Bolt'], 'Bob sees the documents of his org only');
select results_eq('select content from rag.chunks', array['The bolt holds the kettle.'], 'Bob sees chunks of his org only');
select results_eq('select name from rag.collections', array['manuals'], 'Bob sees collections of his org only');
select results_eq('select name from rag.orgs', array['Bolt'], 'Bob sees his org only');
select results_eq('select user_id from rag.members', array['0b000000-0000-4000-8000-000000000001'::uuid], 'Bob sees his own membership only');
select is_empty($$ select from rag.document_terms where org_id <> '0b000000-0000-4000-8000-0000000000bb' $$, 'Bob sees no word of another org');
select is_empty($$ select from rag.term_segments where org_id <> '0b000000-0000-4000-8000-0000000000bb' $$,
  'Bob sees no segment of another org');
select results_eq('select title from rag_match(pg_temp.question())', array['Bolt'], 'rag_match finds documents of Bob''s org only');
select results_eq($$ select title from rag_search('kettle', mode => 'keyword') $$, array['Bolt'], 'a keyword search finds documents of Bob''s org only');
select results_eq($$ select title from rag_search('kettle', pg_temp.question()) $$, array['Bolt'], 'a hybrid search finds documents of Bob''s org only');
select results_eq($$ select distinct hit ->> 'content' from jsonb_path_query(
  rag_graph_search('kettle', pg_temp.question(), 'hybrid'), '$.**') as hit where hit ? 'content' $$,
  array['The bolt holds the kettle.'], 'a graph search finds documents of Bob''s org only');
select is_empty($$ select from rag_match(pg_temp.question(), 8,
  '{"org_id": "0a000000-0000-4000-8000-0000000000aa"}') $$, 'a filter for another org finds nothing');
select throws_ok(format('select rag_get_document(%L)', :'kettle'), 'PT404', null, 'a document of another org is unknown');
select throws_ok(format('select rag_read_document(%L, 0, 10)', :'kettle'), 'PT404', null, 'the text of a document of another org is unknown');
select throws_ok(format($$ select rag_update_document(%L, '{"title": "x"}') $$, :'kettle'), 'PT404', null,
  'a document of another org cannot be changed');
select lives_ok(format('select rag_delete_document(%L)', :'kettle'), 'a deletion of a document of another org ends without an error');
select lives_ok($$ update rag.documents set title = 'x' where org_id = '0a000000-0000-4000-8000-0000000000aa' $$,
  'an update of documents of another org ends without an error');
select lives_ok($$ delete from rag.chunks where org_id = '0a000000-0000-4000-8000-0000000000aa' $$,
  'a deletion of chunks of another org ends without an error');
select throws_ok($$ insert into rag.collections (org_id, name) values ('0a000000-0000-4000-8000-0000000000aa', 'x') $$,
  '42501', null, 'no row can be inserted for another org');
select throws_ok($$ select pg_temp.put('0a000000-0000-4000-8000-0000000000aa', 'x', 'x', 'manuals') $$, 'PT404', null,
  'no document can be stored for another org');
select throws_ok(format($$ update rag.documents set org_id = '0a000000-0000-4000-8000-0000000000aa' where id = %L $$, :'bolt'),
  '42501', null, 'no row can be moved to another org');
select ok(is_org_member('0b000000-0000-4000-8000-0000000000bb'), 'Bob is a member of his org');
select ok(not is_org_member('0a000000-0000-4000-8000-0000000000aa'), 'Bob is no member of another org');

-- Ann of Acme.
select pg_temp.sign_in('ann');
select results_eq('select title from rag.documents order by 1', array['Diary', 'Kettle', 'Notes'],
  'the documents of Acme are unchanged');
select is((select count(*) from rag.chunks), 3::bigint, 'the chunks of Acme are unchanged');

-- Sam, without an org.
select pg_temp.sign_in('sam');
select is_empty('select from rag.documents', 'a user without an org sees no document');
select is_empty('select from rag.orgs', 'a user without an org sees no org');
select throws_ok('select rag_match(pg_temp.question())', 'PT403', null, 'a user without an org cannot search');
reset role;

-- Without a user.
set local role anon;
select throws_ok('select from rag.documents', '42501', null, 'anon may not read the table');
select throws_ok($$ select rag_search('kettle') $$, '42501', null, 'anon may not search');
select throws_ok($$ select is_org_member('0b000000-0000-4000-8000-0000000000bb') $$, '42501', null, 'anon may not ask whether a user is a member');
reset role;

select * from finish();
rollback;
