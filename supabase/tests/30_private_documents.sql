-- A private document is seen by its owner and by the org's admins.

begin;
\ir fixtures.psql
select plan(16);

select pg_temp.sign_in('ann');
select results_eq('select title from rag_match(pg_temp.question()) order by 1', array['Diary', 'Kettle', 'Notes'],
  'the owner of a private document finds the document');
select results_eq($$ select title from rag_search('sold', mode => 'keyword') $$, array['Diary'], 'the owner finds the document by its words');
select isnt_empty(format('select from rag_get_document(%L)', :'diary'), 'the owner reads the document');

select pg_temp.sign_in('alf');
select results_eq('select title from rag.documents order by 1', array['Kettle', 'Notes'], 'another member does not see the document');
select results_eq('select title from rag_match(pg_temp.question()) order by 1', array['Kettle', 'Notes'], 'another member''s search does not find the document');
select is_empty($$ select from rag_search('sold', mode => 'keyword') $$, 'another member''s keyword search does not find the document');
select is_empty($$ select from rag.document_terms where rag.term_key('sold') = any (terms) $$, 'another member does not see the words of the document');
select is_empty(format('select from rag.chunks where document_id = %L', :'diary'), 'another member does not see the chunks of the document');
select throws_ok(format('select rag_get_document(%L)', :'diary'), 'PT404', null, 'the id of the document is unknown to another member');
select lives_ok(format('update rag.documents set owner_id = null where id = %L', :'diary'), 'an attempt of another member to share the document ends without an error');
select lives_ok(format('delete from rag.documents where id = %L', :'diary'), 'an attempt of another member to delete the document ends without an error');
select throws_ok(format($$ update rag.documents set owner_id = '0a000000-0000-4000-8000-000000000001' where id = %L $$,
  :'kettle'), '42501', null, 'no document can be made private for another user');

select pg_temp.sign_in('ada');
select results_eq('select title from rag_match(pg_temp.question()) order by 1', array['Diary', 'Kettle', 'Notes'],
  'an admin of the org finds the document');
select is((select owner_id from rag.documents where id = :'diary'), '0a000000-0000-4000-8000-000000000001'::uuid,
  'the document is still private');

select pg_temp.sign_in('bob');
select is_empty(format('select from rag.documents where id = %L', :'diary'), 'an admin of another org does not see the document');
select throws_ok(format('select rag_get_document(%L)', :'diary'), 'PT404', null, 'an admin of another org does not read the document');
reset role;

select * from finish();
rollback;
