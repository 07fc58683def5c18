-- Search by word and by both, filters of every kind, and matches that know when they are exact: the settings of
-- it, what a document may be filtered by, the inverted index with its counts, and the functions. What is there
-- already is indexed at the end, which takes as long as its texts are.

alter table rag.settings
  alter column exact_rows set default 12000,
  add column ef_search integer not null default 40 check (ef_search between 1 and 1000),
  add column language text not null default 'en' check (language ~ '^[A-Za-z]{2,8}$'),
  add column bm25_k1 real not null default 1.5 check (bm25_k1 between 0 and 10),
  add column bm25_b real not null default 0.85 check (bm25_b between 0 and 1),
  add column document_share real not null default 0.5 check (document_share between 0 and 1),
  add column phrase_share real not null default 0.02 check (phrase_share between 0 and 1),
  add column similarity_share real not null default 0.4 check (similarity_share between 0 and 1),
  add column postings_read integer not null default 1000 check (postings_read between 100 and 1000000);

update rag.settings set exact_rows = 12000 where exact_rows = 10000;

alter table rag.documents
  add column origin text check (length(origin) between 1 and 200 and rag.shows_only(origin)),
  add column author text check (length(author) between 1 and 200 and rag.shows_only(author)),
  add column state text check (length(state) between 1 and 200 and rag.shows_only(state)),
  add column labels text[] not null default '{}' check (
    cardinality(labels) <= 100 and array_position(labels, null) is null
    and length(array_to_string(labels, '')) <= 10000 and rag.shows_only(array_to_string(labels, ' '))
  );

create index documents_by_scope on rag.documents (org_id, collection_id, source_type, occurred_at)
  include (owner_id, lang, id);

drop index rag.chunks_by_scope;
create index chunks_by_scope on rag.chunks (org_id, embedding_model, source_type, occurred_at)
  include (owner_id, lang, collection_id, document_id);

create index chunks_by_collection on rag.chunks (org_id, collection_id, embedding_model)
  include (owner_id, lang, source_type, occurred_at, document_id);

-- What a text is made of for keyword search: the stems of its words, in its own language, and its
-- identifiers, which are found whole (INC-4821, a/b, mail addresses, v1.2.3). Documents and questions go
-- through the same functions, so that what was written is found as it was written.

-- Postgres' text search configuration for a language tag: fr-CA is French. Languages that it has no stemmer
-- for are searched by their words as they stand.
create function rag.text_config(lang text)
returns regconfig
language sql immutable security invoker set search_path = ''
as $$
  select case split_part(lower(lang), '-', 1)
    when 'ar' then 'pg_catalog.arabic' when 'ca' then 'pg_catalog.catalan' when 'da' then 'pg_catalog.danish'
    when 'de' then 'pg_catalog.german' when 'el' then 'pg_catalog.greek' when 'en' then 'pg_catalog.english'
    when 'es' then 'pg_catalog.spanish' when 'eu' then 'pg_catalog.basque' when 'fi' then 'pg_catalog.finnish'
    when 'fr' then 'pg_catalog.french' when 'ga' then 'pg_catalog.irish' when 'hi' then 'pg_catalog.hindi'
    when 'hu' then 'pg_catalog.hungarian' when 'hy' then 'pg_catalog.armenian'
    when 'id' then 'pg_catalog.indonesian' when 'it' then 'pg_catalog.italian'
    when 'lt' then 'pg_catalog.lithuanian' when 'ne' then 'pg_catalog.nepali'
    when 'nb' then 'pg_catalog.norwegian' when 'nl' then 'pg_catalog.dutch'
    when 'nn' then 'pg_catalog.norwegian' when 'no' then 'pg_catalog.norwegian'
    when 'pt' then 'pg_catalog.portuguese' when 'ro' then 'pg_catalog.romanian'
    when 'ru' then 'pg_catalog.russian' when 'sr' then 'pg_catalog.serbian'
    when 'sv' then 'pg_catalog.swedish' when 'ta' then 'pg_catalog.tamil' when 'tr' then 'pg_catalog.turkish'
    when 'yi' then 'pg_catalog.yiddish' else 'pg_catalog.simple'
  end::regconfig;
$$;

-- The words of a text with their places. Postgres' own parser would read INC-4821 as "inc" and the number
-- -4821, and a/b as a file: such punctuation is taken out first. Chinese, Japanese and Korean, which put no
-- spaces between words, are taken character by character.
create function rag.words(config regconfig, content text)
returns tsvector
language sql immutable security invoker set search_path = ''
as $$
  select to_tsvector(config, case
    when content ~ '[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]'
    then regexp_replace(regexp_replace(content, '([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])', ' \1 ', 'g'),
      '[-/.:@&+<>~]+', ' ', 'g')
    else regexp_replace(content, '[-/.:@&+<>~]+', ' ', 'g')
  end);
$$;

-- The identifiers in a text, in small letters, as often as they stand there: runs of letters and digits
-- with punctuation inside, C++ and C#. One of more than 200 characters is none that anybody asks for.
create function rag.identifiers(content text)
returns setof text
language sql immutable security invoker set search_path = ''
as $$
  select found.parts[1]
  from regexp_matches(lower(content),
    '([[:alnum:]]+(?:[-_./:@#&+]{1,3}[[:alnum:]]+)+|\m[[:alpha:]](?:\+\+|#)(?![[:alnum:]]))', 'g') as found (parts)
  where length(found.parts[1]) <= 200;
$$;

-- Each term of a text and how often it stands there.
create function rag.terms(config regconfig, content text)
returns table (term text, occurrences integer)
language sql immutable security invoker set search_path = ''
as $$
  select found.term, sum(found.occurrences)::integer
  from (
    select word.lexeme, cardinality(word.positions) from unnest(rag.words(config, content)) as word
    union all
    select identifier, 1 from rag.identifiers(content) as identifier
  ) as found (term, occurrences)
  group by 1;
$$;

revoke all on function rag.text_config(text), rag.words(regconfig, text), rag.identifiers(text),
  rag.terms(regconfig, text) from public, anon, service_role;
grant execute on function rag.text_config(text), rag.words(regconfig, text), rag.identifiers(text),
  rag.terms(regconfig, text) to authenticated;

-- The inverted index of keyword search. A posting says in which chunks of a document a term stands, and how
-- often. It follows the chunks by triggers, in the transaction that writes them, so a search never sees the
-- words of a text that is gone. It repeats its document's owner and collection for its policies; searches
-- reach it by equality of text and uuid, which are leakproof and so may use the index under row security.

create table rag.postings (
  org_id uuid not null,
  document_id uuid not null,
  -- One posting of each document stands for the whole of it, its term made of blank, text search
  -- configuration, blank, embedding model (rag.total_term). No other term begins with a blank.
  term text collate "C" not null,
  collection_id uuid not null,
  owner_id uuid,
  -- For every chunk that holds the term, in order: (ordinal << 32) | (terms in the chunk << 16) | occurrences.
  places bigint[] not null check (cardinality(places) > 0),
  -- Terms in the whole document.
  length integer not null,
  -- About what the best chunk scores for this term, among passages of 100 terms in documents of 500: which to
  -- read first where a term has more postings than a search reads.
  impact real not null,
  primary key (org_id, document_id, term),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade
);

-- rag.documents_with: the postings of a term, those with the most of it first.
create index postings_by_term on rag.postings (org_id, term, impact desc)
  include (document_id, collection_id, owner_id);

-- How many documents and chunks hold a term: BM25 weighs a word by how rare it is. A log of differences, one
-- row for each term that a write added or took away, so that writers never wait for each other; a search
-- sums what it may see, and now and then a write folds the rows of its own terms into one.
create table rag.term_counts (
  org_id uuid not null,
  term text collate "C" not null,
  id bigint generated always as identity,
  collection_id uuid not null,
  owner_id uuid,
  documents bigint not null,
  chunks bigint not null,
  -- Terms in all those chunks; of the postings that stand for a whole document alone.
  length bigint not null,
  primary key (org_id, term, id),
  -- Not to the collection: who folds would wait for whoever deletes it, who waits for what is being folded.
  -- A deleted collection's documents take their counts away themselves, and sums of nothing count nothing.
  foreign key (org_id) references rag.orgs (id) on delete cascade
);

alter table rag.postings enable row level security;
alter table rag.postings force row level security;
alter table rag.term_counts enable row level security;
alter table rag.term_counts force row level security;

create policy "members use their org's postings" on rag.postings
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "a key reads and writes with the scopes for it" on rag.postings
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read')))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.postings
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.postings
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

-- Counts obey the same rules as what they count: a word in somebody's private document, or in a collection
-- that a key may not enter, changes nobody else's scores. Whoever may delete a collection counts its words away.
create policy "members use their org's term counts" on rag.term_counts
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "a key reads and writes with the scopes for it" on rag.term_counts
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read')))
  with check ((select rag.has_scope('documents:write', 'collections:manage')));

create policy "a key deletes with documents:write" on rag.term_counts
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.term_counts
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

grant select, insert, update, delete on rag.postings, rag.term_counts to authenticated;

create function rag.total_term(config regconfig, embedding_model text)
returns text
language sql stable security invoker set search_path = ''
as $$
  select format(' %s %s', pg_ts_config.cfgname, embedding_model)
  from pg_catalog.pg_ts_config
  where pg_ts_config.oid = config;
$$;

create function rag.config_of_total(term text)
returns regconfig
language sql stable security invoker set search_path = ''
as $$
  select ('pg_catalog.' || split_part(term, ' ', 2))::regconfig;
$$;

create function rag.model_of_total(term text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select substr(term, length(split_part(term, ' ', 2)) + 3);
$$;

revoke all on function rag.total_term(regconfig, text), rag.config_of_total(text), rag.model_of_total(text)
  from public, anon, service_role;
grant execute on function rag.total_term(regconfig, text), rag.config_of_total(text),
  rag.model_of_total(text) to authenticated;

-- What documents are filtered by besides their own columns: origin, author, state, labels, and every entry of
-- their metadata. jsonb's own operators are not leakproof, and under row security would scan the whole org;
-- so each value becomes a row that is found by equality. Written by a trigger, read by rag.scope_of.

create table rag.facets (
  org_id uuid not null,
  -- A hash of kind and value (rag.facet): as long for a long value as for a short one.
  facet uuid not null,
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  primary key (org_id, document_id, facet),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade
);

-- rag.scope_of: the documents with a facet.
create index facets_by_value on rag.facets (org_id, facet) include (document_id, collection_id, owner_id);

alter table rag.facets enable row level security;
alter table rag.facets force row level security;

create policy "members use their org's facets" on rag.facets
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "a key reads and writes with the scopes for it" on rag.facets
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read')))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.facets
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.facets
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

grant select, insert, update, delete on rag.facets to authenticated;

-- The value with its numbers as short as they can be, since equal ones are one: 1.0 is 1, and [1.0] is [1].
create function rag.plain(value jsonb)
returns jsonb
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  return case jsonb_typeof(value)
    when 'number' then to_jsonb(trim_scale(value::numeric))
    when 'array' then coalesce((
      select jsonb_agg(rag.plain(item) order by place)
      from jsonb_array_elements(value) with ordinality as items (item, place)), '[]')
    when 'object' then coalesce((
      select jsonb_object_agg(entry.key, rag.plain(entry.value)) from jsonb_each(value) as entry), '{}')
    else value
  end;
end;
$$;

-- The first 128 bits of SHA-256 over kind and value. No document's value is deeper than 32 levels.
create function rag.facet(kind text, value jsonb)
returns uuid
language sql immutable security invoker set search_path = ''
as $$
  select encode(substr(sha256(convert_to(kind || ':' || case
    when jsonb_path_exists(value, '$.**{32}') then value else rag.plain(value)
  end::text, 'UTF8')), 1, 16), 'hex')::uuid;
$$;

-- The facets of a document. Metadata is under "metadata.key", so that no key of it can pass for a label or an
-- author.
create function rag.facets_of(document rag.documents)
returns setof uuid
language sql immutable security invoker set search_path = ''
as $$
  select distinct rag.facet(found.kind, found.value)
  from (
    select field.kind, to_jsonb(field.value)
    from (values ('origin', document.origin), ('author', document.author), ('state', document.state))
      as field (kind, value)
    where field.value is not null
    union all
    select 'label', to_jsonb(label) from unnest(document.labels) as label
    union all
    select 'metadata.' || entry.key, entry.value from jsonb_each(document.metadata) as entry
  ) as found (kind, value);
$$;

create function rag.index_facets()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  if tg_op = 'UPDATE' then
    delete from rag.facets where facets.org_id = new.org_id and facets.document_id = new.id;
  end if;
  insert into rag.facets (org_id, facet, document_id, collection_id, owner_id)
  select new.org_id, facet, new.id, new.collection_id, new.owner_id
  from rag.facets_of(new) as facet;
  return null;
end;
$$;

create trigger index_facets_of_new_documents after insert on rag.documents
  for each row execute function rag.index_facets();

create trigger index_facets_of_changed_documents
  after update of origin, author, state, labels, metadata, collection_id, owner_id on rag.documents
  for each row
  when ((old.origin, old.author, old.state, old.labels, old.metadata, old.collection_id, old.owner_id)
    is distinct from
    (new.origin, new.author, new.state, new.labels, new.metadata, new.collection_id, new.owner_id))
  execute function rag.index_facets();

revoke all on function rag.plain(jsonb), rag.facet(text, jsonb), rag.facets_of(rag.documents), rag.index_facets()
  from public, anon, service_role;
grant execute on function rag.plain(jsonb), rag.facet(text, jsonb), rag.facets_of(rag.documents), rag.index_facets()
  to authenticated;

-- Keeps postings and their counts equal to the chunks, whoever writes those: triggers on chunks, documents
-- and postings, once a statement.

-- Make the documents' postings anew. A document's title counts as part of each of its chunks, as it does for
-- their embeddings.
create function rag.index_words(org_id uuid, document_ids uuid[])
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  delete from rag.postings
  where org_id = index_words.org_id and document_id = any (document_ids);

  -- Windows instead of joins: a document may have thousands of chunks, which the planner does not expect.
  insert into rag.postings (org_id, document_id, term, collection_id, owner_id, places, length, impact)
  with counted as (
    select documents.id as document_id, documents.collection_id, documents.owner_id, chunks.ordinal,
      found.term, found.occurrences
    from rag.settings
    cross join rag.documents
    cross join lateral (
      select rag.text_config(coalesce(documents.lang, settings.language))
    ) as language (config)
    join rag.chunks on chunks.org_id = documents.org_id and chunks.document_id = documents.id
    cross join lateral (
      select term, occurrences
      from rag.terms(language.config, documents.title || E'\n' || chunks.content)
      union all
      select rag.total_term(language.config, chunks.embedding_model), 0
    ) as found
    where documents.org_id = index_words.org_id and documents.id = any (document_ids)
  ), measured as (
    select counted.*,
      sum(occurrences) over (partition by document_id, ordinal)::integer as length,
      sum(occurrences) over (partition by document_id)::integer as document_length
    from counted
  )
  select index_words.org_id, document_id, term, collection_id, owner_id,
    -- << and | bind alike, from the left.
    array_agg((ordinal::bigint << 32) | (least(length, 65535)::bigint << 16)
      | least(occurrences, 65535)::bigint order by ordinal),
    document_length,
    max(occurrences / (occurrences + 1.5 * (0.15 + 0.85 * length / 100))) / 2
      + sum(occurrences) / (sum(occurrences) + 1.5 * (0.15 + 0.85 * document_length / 500)) / 2
  from measured
  group by document_id, term, collection_id, owner_id, document_length;
end;
$$;

create function rag.index_changed_chunks()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.index_words(changed.org_id, array_agg(distinct changed.document_id))
  from changed
  group by changed.org_id;
  return null;
end;
$$;

create function rag.index_changed_document()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.index_words(new.org_id, array[new.id]);
  return null;
end;
$$;

-- Adds what changed to the log. Of an org that is being deleted the counts are gone already.
create function rag.count_changed_terms()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  sign constant integer := case tg_op when 'DELETE' then -1 else 1 end;
  place record;
begin
  insert into rag.term_counts (org_id, term, collection_id, owner_id, documents, chunks, length)
  select changed.org_id, changed.term, changed.collection_id, changed.owner_id, sign * count(*),
    sign * sum(cardinality(changed.places)),
    case when starts_with(changed.term, ' ') then sign * sum(changed.length) else 0 end
  from changed
  where exists (select from rag.orgs where orgs.id = changed.org_id)
  group by changed.org_id, changed.term, changed.collection_id, changed.owner_id;

  -- One write in sixteen, so that a term has some sixteen rows at most, however often it is written.
  if random() < 0.0625 then
    for place in
      select changed.org_id, changed.collection_id, changed.owner_id, array_agg(distinct changed.term) as terms
      from changed
      group by 1, 2, 3
    loop
      perform rag.fold_term_counts(place.org_id, place.collection_id, place.owner_id, place.terms);
    end loop;
  end if;
  return null;
end;
$$;

-- Fold the rows of these terms into one each, and into none where nothing is left. Rows that somebody else is
-- folding are left to them: whoever folds what, the sums stay the same.
create function rag.fold_term_counts(org_id uuid, collection_id uuid, owner_id uuid, terms text[])
returns void
language sql volatile security invoker set search_path = ''
as $$
  -- Term by term, and by the rows' places: under row security the planner believes that hardly a row is left,
  -- and would compare each with every term. A document has tens of thousands.
  with mine as (
    select counts.place
    from (select distinct unnest(terms) as term) as folded
    cross join lateral (
      select counts.ctid as place
      from rag.term_counts as counts
      where counts.org_id = fold_term_counts.org_id and counts.term = folded.term
        and counts.collection_id is not distinct from fold_term_counts.collection_id
        and counts.owner_id is not distinct from fold_term_counts.owner_id
      for update skip locked
    ) as counts
  ), gone as (
    delete from rag.term_counts as counts
    where counts.ctid = any (array(select mine.place from mine))
    returning counts.*
  )
  insert into rag.term_counts (org_id, term, collection_id, owner_id, documents, chunks, length)
  select fold_term_counts.org_id, gone.term, fold_term_counts.collection_id, fold_term_counts.owner_id,
    sum(gone.documents), sum(gone.chunks), sum(gone.length)
  from gone
  group by gone.term
  having sum(gone.documents) <> 0 or sum(gone.chunks) <> 0 or sum(gone.length) <> 0;
$$;

create trigger index_words_of_new_chunks after insert on rag.chunks
  referencing new table as changed
  for each statement execute function rag.index_changed_chunks();

create trigger index_words_of_changed_chunks after update on rag.chunks
  referencing new table as changed
  for each statement execute function rag.index_changed_chunks();

create trigger index_words_of_deleted_chunks after delete on rag.chunks
  referencing old table as changed
  for each statement execute function rag.index_changed_chunks();

create trigger index_words_of_changed_documents
  after update of title, lang, collection_id, owner_id on rag.documents
  for each row
  when ((old.title, old.lang, old.collection_id, old.owner_id)
    is distinct from (new.title, new.lang, new.collection_id, new.owner_id))
  execute function rag.index_changed_document();

create trigger count_new_terms after insert on rag.postings
  referencing new table as changed
  for each statement execute function rag.count_changed_terms();

create trigger count_deleted_terms after delete on rag.postings
  referencing old table as changed
  for each statement execute function rag.count_changed_terms();

revoke all on function rag.index_words(uuid, uuid[]), rag.index_changed_chunks(), rag.index_changed_document(),
  rag.count_changed_terms(), rag.fold_term_counts(uuid, uuid, uuid, text[]) from public, anon, service_role;
grant execute on function rag.index_words(uuid, uuid[]), rag.index_changed_chunks(),
  rag.index_changed_document(), rag.count_changed_terms(),
  rag.fold_term_counts(uuid, uuid, uuid, text[]) to authenticated;

-- As before, with what a document is filtered by.
create or replace function public.rag_put_document(document jsonb, chunks jsonb)
returns table (document_id uuid, replaced boolean, chunk_count integer)
language plpgsql volatile security invoker set search_path = ''
-- PostgREST applies it before the call. A document of thousands of chunks takes its time: each is entered
-- into the HNSW index.
set statement_timeout = '60s'
as $$
declare
  input record;
  home rag.collections;
  stored record;
begin
  select * into input from jsonb_to_record(document) as fields (
    org_id uuid, external_id text, collection text, private boolean, source_type text, title text,
    uri text, lang text, occurred_at timestamptz, origin text, author text, state text, labels text[],
    metadata jsonb, content text, content_hash text, embedding_model text);

  -- Row security would refuse the rows as well, but with an error that reads like a fault of ours.
  if input.org_id is null or input.org_id not in (select rag.current_org_ids()) then
    raise exception 'no such org' using errcode = 'PT404', detail = 'org_not_found';
  end if;

  home := rag.ensure_collection(input.org_id, auth.uid(), coalesce(input.collection, 'default'));

  insert into rag.documents as present (org_id, collection_id, owner_id, external_id, source_type, title,
    uri, lang, occurred_at, origin, author, state, labels, metadata, content, content_hash)
  values (input.org_id, home.id, case when input.private then auth.uid() else home.owner_id end,
    input.external_id, coalesce(input.source_type, 'doc'), input.title, input.uri, input.lang,
    input.occurred_at, input.origin, input.author, input.state, coalesce(input.labels, '{}'),
    coalesce(input.metadata, '{}'), input.content, input.content_hash)
  on conflict (org_id, collection_id, owner_id, external_id) where external_id is not null
  do update set source_type = excluded.source_type, title = excluded.title, uri = excluded.uri,
    lang = excluded.lang, occurred_at = excluded.occurred_at, origin = excluded.origin,
    author = excluded.author, state = excluded.state, labels = excluded.labels, metadata = excluded.metadata,
    content = excluded.content, content_hash = excluded.content_hash, updated_at = clock_timestamp()
  -- An inserted row has no xmax, one that was there was locked by this transaction.
  returning present.*, present.xmax::text <> '0' as was_there into stored;

  if exists (
    select from jsonb_array_elements(rag_put_document.chunks) as item (body)
    where (item.body ->> 'span_end')::integer > length(input.content)
  ) then
    raise exception 'a chunk ends behind its document' using errcode = 'PT400', detail = 'span_outside';
  end if;

  -- The upsert holds the row: a second writer of the same document waits here, then replaces these.
  delete from rag.chunks where chunks.org_id = stored.org_id and chunks.document_id = stored.id;

  insert into rag.chunks (org_id, document_id, collection_id, owner_id, ordinal, content, span_start,
    span_end, token_count, source_type, lang, occurred_at, embedding_model, embedding)
  select stored.org_id, stored.id, stored.collection_id, stored.owner_id, item.position - 1,
    fields.content, fields.span_start, fields.span_end, fields.token_count, stored.source_type,
    stored.lang, stored.occurred_at, input.embedding_model, fields.embedding
  from jsonb_array_elements(rag_put_document.chunks) with ordinality as item (body, position),
    jsonb_to_record(item.body) as fields (content text, span_start integer, span_end integer,
      token_count integer, embedding extensions.halfvec(1536));
  get diagnostics chunk_count = row_count;

  document_id := stored.id;
  replaced := stored.was_there;
  return next;
end;
$$;

drop function public.rag_match(extensions.vector, integer, jsonb);
drop type rag.filters;

-- What a search may find besides what row security says: its filters, read and resolved once, and then used
-- by every way of searching. Conditions are text that the match functions execute with the scope as a
-- parameter: planned for the filters at hand, and all of them reach an index as row security allows.

-- The filters as they come. Dates are inclusive and mean the document's own date; lang "fr" finds fr-CA too;
-- of a list one suffices, an empty one is none; metadata are equalities that all must hold. model is the
-- deployment's by default.
create type rag.filters as (
  source_type text, lang text, org_id uuid, date_from timestamptz, date_to timestamptz, model text,
  source_types text[], collection_id uuid, collection_ids uuid[], origins text[], authors text[],
  states text[], labels text[], metadata jsonb
);

-- The same, resolved: null where nothing is asked. document_ids: the documents with the facets asked for.
create type rag.scope as (
  org_ids uuid[], model text, collection_ids uuid[], source_types text[], lang text,
  date_from timestamptz, date_to timestamptz, document_ids uuid[], without_document uuid, without_chunk uuid
);

-- Raises PT400 for filters that are no object, PT403 for a key without a scope that reads.
create function rag.scope_of(filters jsonb)
returns rag.scope
language plpgsql stable security invoker set search_path = ''
as $$
declare
  wanted rag.filters;
  scope rag.scope;
  groups integer[];
  facets uuid[];
begin
  if not rag.has_scope('retrievals:read', 'chat:read') then
    raise exception 'the key lacks the scope retrievals:read' using errcode = 'PT403', detail = 'missing_scope';
  elsif jsonb_typeof(coalesce(filters, '{}')) <> 'object'
    or jsonb_typeof(coalesce(nullif(filters -> 'metadata', 'null'), '{}')) <> 'object' then
    raise exception 'filters must be an object' using errcode = 'PT400', detail = 'invalid_filters';
  end if;
  wanted := jsonb_populate_record(null::rag.filters, coalesce(filters, '{}'));

  scope.org_ids := array(
    select ids.id from rag.current_org_ids() as ids (id)
    where wanted.org_id is null or ids.id = wanted.org_id);
  scope.model := coalesce(wanted.model, (select settings.embedding_model from rag.settings));
  scope.collection_ids := nullif(wanted.collection_ids, '{}');
  if wanted.collection_id is not null then
    scope.collection_ids := array[wanted.collection_id];
  end if;
  scope.source_types := nullif(wanted.source_types, '{}');
  if wanted.source_type is not null then
    scope.source_types := array[wanted.source_type];
  end if;
  scope.lang := lower(wanted.lang);
  scope.date_from := wanted.date_from;
  scope.date_to := wanted.date_to;

  -- One facet of each group must be there.
  -- A null in a list is no document's.
  select array_agg(found.number), array_agg(rag.facet(found.kind, coalesce(found.value, 'null')))
    into groups, facets
  from (
    select 1, 'origin', to_jsonb(value) from unnest(wanted.origins) as value
    union all select 2, 'author', to_jsonb(value) from unnest(wanted.authors) as value
    union all select 3, 'state', to_jsonb(value) from unnest(wanted.states) as value
    union all select 4, 'label', to_jsonb(value) from unnest(wanted.labels) as value
    union all select 4 + entry.number, 'metadata.' || entry.key, entry.value
      from jsonb_each(nullif(wanted.metadata, 'null')) with ordinality as entry (key, value, number)
  ) as found (number, kind, value);
  if facets is not null then
    scope.document_ids := array(
      select found.document_id
      from unnest(groups, facets) as asked (number, facet)
      cross join unnest(scope.org_ids) as org (id)
      -- One look-up each, which the planner cannot turn into a walk through the org.
      cross join lateral (
        select facets_of.document_id
        from rag.facets as facets_of
        where facets_of.org_id = org.id and facets_of.facet = asked.facet
        offset 0
      ) as found
      group by org.id, found.document_id
      having count(distinct asked.number) = (select count(distinct number) from unnest(groups) as number));
  end if;
  return scope;
end;
$$;

-- Whether a scope asks for nothing but orgs and a model.
create function rag.has_no_filters(scope rag.scope)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select (scope.collection_ids, scope.source_types, scope.lang, scope.date_from, scope.date_to,
    scope.document_ids, scope.without_document, scope.without_chunk) is null;
$$;

-- Whether it asks for one source type and nothing else.
create function rag.has_one_source_type(scope rag.scope)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select cardinality(scope.source_types) = 1
    and (scope.collection_ids, scope.lang, scope.date_from, scope.date_to, scope.document_ids,
      scope.without_document, scope.without_chunk) is null;
$$;

-- The conditions of a scope, $1, on documents or on their chunks; document_id is the column that holds the
-- document's id.
create function rag.conditions(scope rag.scope, document_id text)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select concat_ws(' and ',
    'org_id = any (($1).org_ids)',
    case when scope.collection_ids is not null then 'collection_id = any (($1).collection_ids)' end,
    case when scope.source_types is not null then 'source_type = any (($1).source_types)' end,
    case when scope.lang is not null
      then '(lower(lang) = ($1).lang or starts_with(lower(lang), ($1).lang || ''-''))' end,
    case when scope.date_from is not null then 'occurred_at >= ($1).date_from' end,
    case when scope.date_to is not null then 'occurred_at <= ($1).date_to' end,
    case when scope.document_ids is not null then format('%I = any (($1).document_ids)', document_id) end,
    case when scope.without_document is not null then format('%I <> ($1).without_document', document_id) end);
$$;

create function rag.chunk_conditions(scope rag.scope)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select concat_ws(' and ', rag.conditions(scope, 'document_id'), 'embedding_model = ($1).model',
    case when scope.without_chunk is not null then 'id <> ($1).without_chunk' end);
$$;

revoke all on function rag.scope_of(jsonb), rag.has_no_filters(rag.scope),
  rag.has_one_source_type(rag.scope), rag.conditions(rag.scope, text), rag.chunk_conditions(rag.scope)
  from public, anon, service_role;
grant execute on function rag.scope_of(jsonb), rag.has_no_filters(rag.scope),
  rag.has_one_source_type(rag.scope), rag.conditions(rag.scope, text),
  rag.chunk_conditions(rag.scope) to authenticated;

-- What every way of searching gives back: chunks with their documents' fields, best first.

-- A chunk on its way through a search, with what is shown of it, so that nobody reads it twice. Scores are 0 to
-- 1; null where nobody has computed them.
create type rag.hit as (
  org_id uuid, document_id uuid, ordinal integer, chunk_id uuid, content text, span_start integer,
  span_end integer, similarity double precision, word_score double precision, score double precision
);

-- exact: whether the nearest were found by comparing all that the filters leave; considered: how many
-- vectors were compared.
create type rag.found as (
  chunk_id uuid, document_id uuid, org_id uuid, ordinal integer, content text,
  span_start integer, span_end integer, similarity double precision, word_score double precision,
  score double precision, collection_id uuid, source_type text, title text, uri text, lang text,
  occurred_at timestamptz, origin text, author text, state text, labels text[], metadata jsonb,
  exact boolean, considered integer
);

-- The query's vector as it is compared. Raises PT400 for one that cannot be.
create function rag.needle(query_vector extensions.vector)
returns extensions.halfvec
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  dimensions constant integer := extensions.vector_dims(query_vector);
  needle extensions.halfvec(1536);
begin
  if dimensions is distinct from 1536 then
    raise exception 'query_vector has % dimensions, not 1536', dimensions
      using errcode = 'PT400', detail = 'wrong_dimensions', hint = 'pad shorter embeddings with zeros';
  end if;
  needle := query_vector::extensions.halfvec(1536);
  -- Asked of the half-precision vector: a tiny one may have become zero.
  if extensions.l2_norm(needle) = 0 then
    raise exception 'query_vector has no direction' using errcode = 'PT400', detail = 'zero_vector';
  end if;
  return needle;
end;
$$;

-- The hits as rows, in their order.
create function rag.show(hits rag.hit[], exact boolean, considered integer)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return query
  select hit.chunk_id, hit.document_id, hit.org_id, hit.ordinal, hit.content, hit.span_start, hit.span_end,
    hit.similarity, hit.word_score, hit.score, documents.collection_id, documents.source_type,
    documents.title, documents.uri, documents.lang, documents.occurred_at, documents.origin,
    documents.author, documents.state, documents.labels, documents.metadata, show.exact, show.considered
  from unnest(hits) with ordinality as hit (org_id, document_id, ordinal, chunk_id, content, span_start,
    span_end, similarity, word_score, score, place)
  join rag.documents on documents.org_id = hit.org_id and documents.id = hit.document_id
  order by hit.place;
end;
$$;

-- The hits, each text so many chunks longer to both sides, as far as its document goes and no further than
-- half-way to the document's next hit; where chunks overlap, it begins behind the hit before: no text comes
-- twice.
create function rag.widen(hits rag.hit[], neighbours integer)
returns rag.hit[]
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    with hit as (
      select hit.*,
        lag(hit.ordinal) over of_document as before,
        lead(hit.ordinal) over of_document as after
      from unnest(hits) with ordinality as hit (org_id, document_id, ordinal, chunk_id, content, span_start,
        span_end, similarity, word_score, score, place)
      window of_document as (partition by hit.org_id, hit.document_id order by hit.ordinal)
    ), wide as (
      select hit.*, around.span_end as wide_end, greatest(around.span_start,
        least(coalesce(lag(around.span_end) over of_document, 0), around.span_end - 1)) as wide_start
      from hit
      cross join lateral (
        select min(chunks.span_start), max(chunks.span_end)
        from rag.chunks
        where chunks.org_id = hit.org_id and chunks.document_id = hit.document_id
          and chunks.ordinal between greatest(hit.ordinal - neighbours, (hit.before + hit.ordinal) / 2 + 1)
            and least(hit.ordinal + neighbours, (hit.ordinal + hit.after) / 2)
      ) as around (span_start, span_end)
      window of_document as (partition by hit.org_id, hit.document_id order by hit.ordinal)
    )
    select array_agg((wide.org_id, wide.document_id, wide.ordinal, wide.chunk_id,
        substr(documents.content, wide.wide_start + 1, wide.wide_end - wide.wide_start), wide.wide_start,
        wide.wide_end, wide.similarity, wide.word_score, wide.score)::rag.hit order by wide.place)
    from wide
    join rag.documents on documents.org_id = wide.org_id and documents.id = wide.document_id);
end;
$$;

revoke all on function rag.needle(extensions.vector), rag.show(rag.hit[], boolean, integer),
  rag.widen(rag.hit[], integer)
  from public, anon, service_role;
grant execute on function rag.needle(extensions.vector), rag.show(rag.hit[], boolean, integer),
  rag.widen(rag.hit[], integer)
  to authenticated;

-- The heart: the chunks nearest to a query vector, among those that the caller may see.
--
-- The recipe in every tutorial (an HNSW index and a row-security filter behind it) silently returns too
-- few rows to small tenants: the index hands out its nearest candidates first, and the filter throws
-- other tenants' away. So a match asks how many rows the caller's orgs and filters leave. Few: it compares
-- them all, exactly. Many: it lets the index iterate, fetches more than asked and orders those exactly, and
-- compares all after all should the index come up short. Either way the caller gets min(top_k, visible) rows.
--
-- Row security holds underneath in every branch. The org ids are resolved first and named explicitly, so
-- that partitions prune and a distributed table goes to one shard.

-- How many chunks of its model a scope without filters leaves, by the log of term counts.
create function rag.count_chunks(scope rag.scope)
returns bigint
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    select coalesce(sum(counts.chunks), 0)
    from unnest(scope.org_ids) as org (id)
    cross join lateral (
      select term_counts.term, term_counts.chunks
      from rag.term_counts
      where term_counts.org_id = org.id and term_counts.term >= ' ' and term_counts.term < '!'
      offset 0
    ) as counts
    where rag.model_of_total(counts.term) = scope.model);
end;
$$;

-- The nearest chunks of a scope without filters by comparing them all. Planning takes longer than scanning a
-- small tenant: this plan is kept.
create function rag.nearest_of_all(needle extensions.halfvec, scope rag.scope, wanted integer)
returns rag.hit[]
language plpgsql stable security invoker set search_path = ''
-- A kept plan knows no org: among few, it takes any for a large part of the table, and would read all of it.
set enable_seqscan = off
as $$
begin
  return (
    select array_agg((org_id, document_id, ordinal, id, content, span_start, span_end,
      greatest(0, least(1, 1 - distance)), null, greatest(0, least(1, 1 - distance)))::rag.hit
      order by distance, id)
    from (
      -- "+ 0" keeps the HNSW index out of the scan.
      select org_id, document_id, ordinal, id, content, span_start, span_end,
        (embedding operator(extensions.<=>) needle) + 0 as distance
      from rag.chunks
      where org_id = any (scope.org_ids) and embedding_model = scope.model
      order by distance, id
      limit wanted
    ) as nearest);
end;
$$;

-- The same with filters, as long as they leave no more than `bound`; considered: how many they leave, counted no
-- further than that. The commonest, one source type, keeps its plan; others are planned for the filters at
-- hand.
create function rag.nearest_of_filtered(needle extensions.halfvec, scope rag.scope, wanted integer,
  bound bigint, out hits rag.hit[], out considered integer)
language plpgsql stable security invoker set search_path = ''
-- As above: a kept plan knows neither org nor source type.
set enable_seqscan = off
as $$
declare
  one_type constant text := scope.source_types[1];
begin
  if rag.has_one_source_type(scope) then
    with visible as materialized (
      select found.*
      from unnest(scope.org_ids) as orgs (one_org)
      cross join lateral (
        select org_id, document_id, ordinal, id, content, span_start, span_end,
          (embedding operator(extensions.<=>) needle) + 0 as distance
        from rag.chunks
        where org_id = one_org and embedding_model = scope.model and source_type = one_type
        offset 0
      ) as found
      limit bound + 1
    )
    select array_agg((org_id, document_id, ordinal, id, content, span_start, span_end,
        greatest(0, least(1, 1 - distance)), null, greatest(0, least(1, 1 - distance)))::rag.hit
        order by distance, id), (select count(*) from visible)
      into hits, considered
    from (select * from visible order by distance, id limit wanted) as nearest;
    return;
  end if;

  execute format($query$
    with visible as materialized (
      select org_id, document_id, ordinal, id, content, span_start, span_end,
        (embedding operator(extensions.<=>) $2) + 0 as distance
      from rag.chunks
      where %s
      limit $4 + 1
    )
    select array_agg((org_id, document_id, ordinal, id, content, span_start, span_end,
        greatest(0, least(1, 1 - distance)), null, greatest(0, least(1, 1 - distance)))::rag.hit
        order by distance, id), (select count(*) from visible)
    from (select * from visible order by distance, id limit $3) as nearest
  $query$, rag.chunk_conditions(scope))
    into hits, considered using scope, needle, wanted, bound;
end;
$$;

-- The nearest chunks of a scope by the HNSW index. complete: whether these are all that there need be; not when
-- the index gave up, and not when as many as were fetched are equally near, since which of them it happened
-- upon must not decide.
create function rag.nearest_of_index(needle extensions.halfvec, scope rag.scope, wanted integer,
  ef_search integer, out hits rag.hit[], out considered integer, out complete boolean)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- One more, to see whether the last of them is nearer than what was left out.
  fetched constant integer := wanted + 1;
  sorting constant text := current_setting('enable_sort');
  distances double precision[];
begin
  -- Row security makes the planner believe that hardly a row is left, and sorting all of them cheap. And "+ 0"
  -- keeps it from believing that they come sorted: in relaxed order they nearly do.
  perform set_config('enable_sort', 'off', true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
    -- 1000 is its largest; iterating, the index hands out more all the same.
    set_config('hnsw.ef_search', least(1000, greatest(ef_search, 3 * wanted))::text, true);
  if rag.has_no_filters(scope) then
    select array_agg((org_id, document_id, ordinal, id, content, span_start, span_end,
        greatest(0, least(1, 1 - distance)), null, greatest(0, least(1, 1 - distance)))::rag.hit
        order by distance, id), array_agg(distance order by distance)
      into hits, distances
    from (
      select org_id, document_id, ordinal, id, content, span_start, span_end,
        (embedding operator(extensions.<=>) needle) + 0 as distance
      from rag.chunks
      where org_id = any (scope.org_ids) and embedding_model = scope.model
      order by embedding operator(extensions.<=>) needle
      limit fetched
    ) as nearest;
  else
    execute format($query$
      select array_agg((org_id, document_id, ordinal, id, content, span_start, span_end,
          greatest(0, least(1, 1 - distance)), null, greatest(0, least(1, 1 - distance)))::rag.hit
          order by distance, id), array_agg(distance order by distance)
      from (
        select org_id, document_id, ordinal, id, content, span_start, span_end,
          (embedding operator(extensions.<=>) $2) + 0 as distance
        from rag.chunks
        where %s
        order by embedding operator(extensions.<=>) $2
        limit $3
      ) as nearest
    $query$, rag.chunk_conditions(scope))
      into hits, distances using scope, needle, fetched;
  end if;
  perform set_config('enable_sort', sorting, true);
  considered := coalesce(cardinality(hits), 0);
  complete := considered = fetched and distances[wanted] < distances[fetched];
  hits := hits[:wanted];
end;
$$;

-- How many candidates the HNSW index has to keep in sight to find the nearest of so many rows: the more, the
-- smaller their share of the table, and four times as many where they are scattered over several orgs, whose
-- neighbourhoods then hold few of ours. (bench/cutover.py)
create function rag.effort(scope rag.scope, candidates bigint, ef_search integer)
returns integer
language plpgsql stable security invoker set search_path = ''
as $$
declare
  rows_in_table constant real := (
    select reltuples from pg_catalog.pg_class where oid = 'rag.chunks'::regclass);
  scattered constant integer := case when cardinality(scope.org_ids) > 1 then 4 else 1 end;
begin
  return least(1000, ef_search * scattered * greatest(1, rows_in_table / (2 * candidates)));
end;
$$;

-- The nearest chunks of a scope, best first; equally near ones by id. exact: whether all that the scope leaves
-- were compared; considered: how many were.
create function rag.nearest(needle extensions.halfvec, scope rag.scope, wanted integer,
  out hits rag.hit[], out exact boolean, out considered integer)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings rag.settings;
  -- Rows scattered over several orgs are hard to find by the index.
  scattered constant integer := case when cardinality(scope.org_ids) > 1 then 2 else 1 end;
  filtered constant boolean := not rag.has_no_filters(scope);
  every_row constant bigint := 9223372036854775806;
  complete boolean;
begin
  select * into settings from rag.settings;
  -- Without filters the log of term counts knows how many rows there are; should it be wrong, it costs time and
  -- no rows. With filters, comparing as many as are few tells.
  if filtered then
    select * into hits, considered
    from rag.nearest_of_filtered(needle, scope, wanted, scattered * settings.exact_rows);
  else
    considered := rag.count_chunks(scope);
  end if;
  exact := considered <= scattered * settings.exact_rows;
  if exact then
    if not filtered then
      hits := rag.nearest_of_all(needle, scope, wanted);
    end if;
    return;
  end if;

  select * into hits, considered, complete
  from rag.nearest_of_index(needle, scope, wanted, rag.effort(scope, considered, settings.ef_search));
  if not complete then
    exact := true;
    select * into hits, considered from rag.nearest_of_filtered(needle, scope, wanted, every_row);
  end if;
end;
$$;

-- filters: the fields of rag.filters; other keys are ignored.
create function public.rag_match(
  query_vector extensions.vector,
  top_k integer default 8,
  filters jsonb default '{}'
)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  near record;
begin
  if top_k is null or top_k not between 1 and 100 then
    raise exception 'top_k must be between 1 and 100' using errcode = 'PT400', detail = 'invalid_top_k';
  end if;
  near := rag.nearest(rag.needle(query_vector), rag.scope_of(filters), top_k);
  return query select * from rag.show(near.hits, near.exact, near.considered);
end;
$$;

revoke all on function rag.count_chunks(rag.scope), rag.effort(rag.scope, bigint, integer),
  rag.nearest_of_all(extensions.halfvec, rag.scope, integer),
  rag.nearest_of_filtered(extensions.halfvec, rag.scope, integer, bigint),
  rag.nearest_of_index(extensions.halfvec, rag.scope, integer, integer),
  rag.nearest(extensions.halfvec, rag.scope, integer),
  public.rag_match(extensions.vector, integer, jsonb) from public, anon, service_role;
grant execute on function rag.count_chunks(rag.scope), rag.effort(rag.scope, bigint, integer),
  rag.nearest_of_all(extensions.halfvec, rag.scope, integer),
  rag.nearest_of_filtered(extensions.halfvec, rag.scope, integer, bigint),
  rag.nearest_of_index(extensions.halfvec, rag.scope, integer, integer),
  rag.nearest(extensions.halfvec, rag.scope, integer),
  public.rag_match(extensions.vector, integer, jsonb) to authenticated;

-- The chunks that say what a question says: BM25 (Robertson and Zaragoza, 2009) over rag.postings, in three
-- steps. What is sought, and how rare it is; which documents have most of it, reading a bounded number of
-- postings for each term; and the exact scores of those documents' chunks.

-- A term of a question. Terms of one slot are the same word as several languages stem it, often to the same
-- term; place is where it stands in the question, null for identifiers. config: a regconfig, which no type
-- should hold that an upgrade carries over.
create type rag.sought as (
  term text, slot integer, config oid, place integer, idf double precision, chunks bigint
);

-- Two words that follow each other in a question, that many places apart.
create type rag.word_pair as (
  config oid, first text, second text, gap integer, weight double precision
);

-- A question taken apart: its terms, rarest first, at most 40; its pairs; the sum of idf that a chunk which
-- holds everything would have; the mean lengths, in terms, that BM25 compares with; and, where there are
-- other embedding models too, the terms that stand for a whole document of the one that is asked for.
create type rag.question as (
  sought rag.sought[], pairs rag.word_pair[], idf_sum double precision,
  chunk_length double precision, document_length double precision, totals text[]
);

create type rag.reference as (org_id uuid, document_id uuid);

-- What a text asks for among the documents of a scope: only terms that some visible chunk holds. The languages
-- are those of the documents; each stems the text in its own way, and a word that one of them passes over
-- ("the", "der") counts in none.
create function rag.question(query_text text, scope rag.scope)
returns rag.question
language plpgsql stable security invoker set search_path = ''
as $$
declare
  asked rag.question;
  configs regconfig[];
  chunk_count bigint;
begin
  select array_agg(distinct rag.config_of_total(total.term)), sum(total.chunks),
    sum(total.length) / sum(total.chunks), sum(total.length) / sum(total.documents),
    case when bool_or(rag.model_of_total(total.term) <> scope.model) then coalesce(
      array_agg(total.term) filter (where rag.model_of_total(total.term) = scope.model), '{}') end
    into configs, chunk_count, asked.chunk_length, asked.document_length, asked.totals
  from (
    select counts.term, sum(counts.documents) as documents, sum(counts.chunks) as chunks,
      sum(counts.length) as length
    from unnest(scope.org_ids) as org (id)
    cross join lateral (
      select term_counts.*
      from rag.term_counts
      where term_counts.org_id = org.id and term_counts.term >= ' ' and term_counts.term < '!'
      offset 0
    ) as counts
    where scope.collection_ids is null or counts.collection_id = any (scope.collection_ids)
    group by counts.term
    having sum(counts.chunks) > 0
  ) as total;

  with word as (
    select languages.config, word.lexeme as term, place,
      count(*) over (partition by place) = cardinality(configs) as counts_everywhere
    from unnest(configs) as languages (config), unnest(rag.words(languages.config, query_text)) as word,
      unnest(word.positions) as place
  ), term as (
    select word.term, min(word.place)::integer as slot, word.config, min(word.place)::integer as place
    from word
    where word.counts_everywhere or not exists (select from word where word.counts_everywhere)
    group by word.term, word.config
    union all
    select found.term, -row_number() over (), null, null
    from (select distinct identifier from rag.identifiers(query_text) as identifier) as found (term)
  ), known as (
    select counts.term, sum(counts.chunks) as chunks
    from (select distinct term.term from term) as wanted
    cross join unnest(scope.org_ids) as org (id)
    cross join lateral (
      select term_counts.*
      from rag.term_counts
      where term_counts.org_id = org.id and term_counts.term = wanted.term
      offset 0
    ) as counts
    where scope.collection_ids is null or counts.collection_id = any (scope.collection_ids)
    group by counts.term
    having sum(counts.chunks) > 0
  )
  select (array_agg((term.term, term.slot, term.config, term.place,
      ln(1 + (chunk_count - known.chunks + 0.5) / (known.chunks + 0.5)), known.chunks)::rag.sought
      order by known.chunks, term.term))[:40]
    into asked.sought
  from term join known on known.term = term.term;

  select sum(slots.idf) into asked.idf_sum
  from (select max(sought.idf) from unnest(asked.sought) as sought group by sought.slot) as slots (idf);

  select array_agg((neighbours.config, neighbours.term, neighbours.next_term,
      neighbours.next_place - neighbours.place, neighbours.weight)::rag.word_pair)
    into asked.pairs
  from (
    select sought.config, sought.term, sought.place,
      lead(sought.term) over in_order as next_term, lead(sought.place) over in_order as next_place,
      least(sought.idf, lead(sought.idf) over in_order) as weight
    from unnest(asked.sought) as sought
    where sought.place is not null
    window in_order as (partition by sought.config order by sought.place)
  ) as neighbours
  where neighbours.next_term <> neighbours.term;
  return asked;
end;
$$;

-- The documents of a scope with most of what is asked: all that hold a term of it, or at least `wanted`, as far
-- as a bounded number of postings tell: of each term those with the most of it, the rarest terms first, and four
-- times the bound in all.
create function rag.documents_with(asked rag.question, scope rag.scope, wanted integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- Filters that postings do not know.
  filtered constant boolean := not (scope.source_types, scope.lang, scope.date_from, scope.date_to,
    scope.document_ids, scope.without_document) is null;
  conditions constant text := rag.conditions(scope, 'id');
  -- Up to so many documents are looked up one by one.
  few constant integer := 500;
  read constant integer := greatest(wanted, (select settings.postings_read from rag.settings));
  sorting constant text := current_setting('enable_sort');
  terms constant text[] := array(select distinct sought.term from unnest(asked.sought) as sought);
  left_over rag.reference[];
  found rag.reference[];
begin
  if filtered or scope.collection_ids is not null then
    execute format('select array(select (org_id, id)::rag.reference from rag.documents where %s limit $2)',
      conditions) into left_over using scope, few + 1;
  end if;

  if cardinality(left_over) <= few then
    select array_agg((ranked.org_id, ranked.document_id)::rag.reference) into found
    from (
      select postings.org_id, postings.document_id
      from unnest(left_over) as left_over
      cross join lateral (
        select org_id, document_id, term, impact
        from rag.postings
        where postings.org_id = left_over.org_id and postings.document_id = left_over.document_id
          and postings.term = any (terms)
        offset 0
      ) as postings
      join (select distinct term, idf from unnest(asked.sought)) as sought on sought.term = postings.term
      where asked.totals is null or exists (
        select from rag.postings as whole
        where whole.org_id = left_over.org_id and whole.document_id = left_over.document_id
          and whole.term = any (asked.totals))
      group by 1, 2
      order by sum(sought.idf * postings.impact) desc, 2
      limit wanted
    ) as ranked;
    return found;
  end if;

  -- Row security makes the planner believe that hardly a posting is left: it would read them all and sort.
  perform set_config('enable_sort', 'off', true);
  execute format($query$
    select array_agg((ranked.org_id, ranked.document_id)::rag.reference)
    from (
      select best.org_id, best.document_id
      from (
        select term, idf, sum(least(chunks, $3)) over (order by chunks, term) - least(chunks, $3) as read_before
        from (select distinct term, idf, chunks from unnest($2)) as terms
      ) as sought
      cross join unnest(($1).org_ids) as org (id)
      cross join lateral (
        select org_id, document_id, impact
        from rag.postings
        where org_id = org.id and term = sought.term
          and (($1).collection_ids is null or collection_id = any (($1).collection_ids)) %s %s
        order by impact desc
        limit $3
      ) as best
      %s
      group by 1, 2
      order by sum(sought.idf * best.impact) desc, 2
      limit $4
    ) as ranked
  $query$, case when filtered then format(
    'and exists (select from rag.documents where %s and org_id = postings.org_id and id = postings.document_id)',
    conditions) end, case when asked.totals is not null then
    'and exists (select from rag.postings as whole where whole.org_id = postings.org_id '
    'and whole.document_id = postings.document_id and whole.term = any ($5))' end,
    -- Enough for every page, unless filters take most of it away.
    case when left_over is null and asked.totals is null then 'where read_before < 4 * $3' end)
    into found using scope, asked.sought, read, wanted, asked.totals;
  perform set_config('enable_sort', sorting, true);
  return found;
end;
$$;

-- The documents' chunks that hold something of what is asked, and their scores: 0 to 1, where 1 would be
-- everything that is asked, for ever repeated. A chunk's score is in part its whole document's, which tells
-- what a short passage leaves unsaid. For n occurrences in a text of length l, a term's is
--
--     idf * n * (k1 + 1) / (n + k1 * (1 - b + b * l / mean length))
create function rag.word_scores(asked rag.question, documents rag.reference[])
returns table (org_id uuid, document_id uuid, ordinal integer, score double precision)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  k1 double precision;
  own_share double precision;
  -- k1 * (1 - b) and k1 * b / mean length, of chunks and of documents.
  fixed double precision;
  by_chunk double precision;
  by_document double precision;
  terms constant text[] := array(select distinct sought.term from unnest(asked.sought) as sought);
begin
  -- A mean of 0: texts without a single term.
  select bm25_k1, 1 - document_share, bm25_k1 * (1 - bm25_b),
    bm25_k1 * bm25_b / nullif(asked.chunk_length, 0), bm25_k1 * bm25_b / nullif(asked.document_length, 0)
    into k1, own_share, fixed, by_chunk, by_document
  from rag.settings;

  -- Windows instead of joins, which the planner would nest: it expects hardly a row.
  return query
  with posting as materialized (
    select wanted.org_id, wanted.document_id, found.places, sought.idf / asked.idf_sum as weight,
      fixed + by_document * found.length as holds_back, (
        select sum(place & 65535)::double precision from unnest(found.places) as place
      ) as occurrences
    from (select distinct org_id, document_id from unnest(documents)) as wanted
    -- Offset 0 keeps this a look-up of a document's terms: the planner would read all that it has.
    cross join lateral (
      select term, places, length
      from rag.postings
      where postings.org_id = wanted.org_id and postings.document_id = wanted.document_id
        and postings.term = any (terms)
      offset 0
    ) as found
    join (select distinct term, idf from unnest(asked.sought)) as sought on sought.term = found.term
  ), whole as (
    select posting.*, sum(posting.weight * posting.occurrences / (posting.occurrences + posting.holds_back))
      over (partition by posting.org_id, posting.document_id) as score
    from posting
  ), part as (
    select whole.org_id, whole.document_id, (place >> 32)::integer as ordinal, whole.score as whole_score,
      sum(whole.weight * (place & 65535) / ((place & 65535) + fixed + by_chunk * ((place >> 16) & 65535))) as score
    from whole, unnest(whole.places) as place
    group by 1, 2, 3, 4
  )
  -- k1 + 1 stands above and below, in a term's score and in the best that there could be. A sum may
  -- leave 1 behind by its last bits.
  select part.org_id, part.document_id, part.ordinal,
    least(1, own_share * part.score + (1 - own_share) * part.whole_score)
  from part;
end;
$$;

-- How much of what is asked stands together in a text as it was asked, 0 to 1: the more, the more of its
-- words follow each other as they do in the question, the rarer those are and the fewer stand between.
create function rag.closeness(asked rag.question, config regconfig, content text)
returns double precision
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    with word as materialized (
      select word.lexeme, word.positions
      from unnest(rag.words(config, content)) as word
      where word.lexeme in (select sought.term from unnest(asked.sought) as sought)
    )
    select coalesce(sum(pair.weight / (1 + (
        select min(abs(b - a - pair.gap)) from unnest(one.positions) as a, unnest(other.positions) as b
      ))), 0) / asked.idf_sum
    from unnest(asked.pairs) as pair
    join word as one on one.lexeme = pair.first
    join word as other on other.lexeme = pair.second
    where pair.config = closeness.config);
end;
$$;

revoke all on function rag.question(text, rag.scope), rag.documents_with(rag.question, rag.scope, integer),
  rag.word_scores(rag.question, rag.reference[]), rag.closeness(rag.question, regconfig, text)
  from public, anon, service_role;
grant execute on function rag.question(text, rag.scope), rag.documents_with(rag.question, rag.scope, integer),
  rag.word_scores(rag.question, rag.reference[]), rag.closeness(rag.question, regconfig, text)
  to authenticated;

-- Search by meaning, by word, or by both, in one call. The two legs each bring their best candidates; then
-- every candidate is scored by both, whichever leg brought it, and the mean of the two orders the list.
--
-- Both scores are 0 to 1 by themselves: the cosine, and BM25 over what a perfect chunk would have. So their
-- mean is too, and says the same for every query and page. Reciprocal rank fusion, which knows only places,
-- was measured worse (CONTRIBUTING.md) and is there for those who ask for it.

-- Candidates of both legs, scored. wanted: how many the words bring; closely: for how many of those it matters
-- whether the words stand together; whole_documents: all chunks of the documents are candidates.
create function rag.score(asked rag.question, documents rag.reference[], near rag.hit[],
  needle extensions.halfvec, scope rag.scope, mode text, fusion text, wanted integer, closely integer,
  whole_documents boolean)
returns rag.hit[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings rag.settings;
  legs constant integer := (mode <> 'keyword')::integer + (asked.sought is not null)::integer;
  similarity_share double precision;
  hits rag.hit[];
begin
  select * into settings from rag.settings;
  -- A leg that there is not (nothing asked that any document says) takes no part of the score.
  similarity_share := case
    when mode = 'keyword' then 0 when asked.sought is null then 1 else settings.similarity_share end;

  with worded as materialized (
    select scores.* from rag.word_scores(asked, documents) as scores
  ), candidate as (
    (select worded.org_id, worded.document_id, worded.ordinal
    from worded
    order by worded.score desc, worded.document_id, worded.ordinal
    limit wanted)
    union
    select near.org_id, near.document_id, near.ordinal from unnest(near) as near
    union
    select chunks.org_id, chunks.document_id, chunks.ordinal
    from unnest(documents) as wanted_document
    join rag.chunks on chunks.org_id = wanted_document.org_id
      and chunks.document_id = wanted_document.document_id
    where whole_documents
  ), known as (
    select chunks.org_id, chunks.document_id, chunks.ordinal, chunks.id, chunks.content, chunks.span_start,
      chunks.span_end, chunks.lang,
      case when needle is not null
        then greatest(0, least(1, 1 - (chunks.embedding operator(extensions.<=>) needle))) end as similarity,
      coalesce(worded.score, 0) as word_score,
      row_number() over (order by worded.score desc nulls last, chunks.id) as word_place
    from candidate
    join rag.chunks on chunks.org_id = candidate.org_id and chunks.document_id = candidate.document_id
      and chunks.ordinal = candidate.ordinal
    left join worded on worded.org_id = candidate.org_id and worded.document_id = candidate.document_id
      and worded.ordinal = candidate.ordinal
    where chunks.embedding_model = scope.model
      and (scope.without_chunk is null or chunks.id <> scope.without_chunk)
  ), phrased as (
    select known.*, case
      -- Reading texts is dear: only those of the best, whose order it can change.
      when asked.pairs is null or settings.phrase_share = 0 or known.word_score = 0 then known.word_score
      else (1 - settings.phrase_share) * known.word_score + settings.phrase_share * case
        when known.word_place <= closely then rag.closeness(asked,
          rag.text_config(coalesce(known.lang, settings.language)), known.content)
        else 0 end
    end as words
    from known
  ), placed as (
    select phrased.*,
      case when phrased.word_score > 0
        then row_number() over (order by phrased.words desc, phrased.id) end as by_words,
      row_number() over (order by phrased.similarity desc, phrased.id) as by_similarity
    from phrased
    where mode <> 'keyword' or phrased.word_score > 0
  ), scored as (
    select placed.*, case fusion
      when 'rrf' then (coalesce(1.0 / (60 + placed.by_words), 0)
        + case when mode = 'keyword' then 0 else 1.0 / (60 + placed.by_similarity) end) * 61 / legs
      else similarity_share * coalesce(placed.similarity, 0) + (1 - similarity_share) * placed.words
    end::double precision as score
    from placed
  )
  select array_agg((scored.org_id, scored.document_id, scored.ordinal, scored.id, scored.content,
    scored.span_start, scored.span_end, scored.similarity, scored.words, scored.score)::rag.hit
    order by scored.score desc, scored.id)
    into hits
  from scored;
  return hits;
end;
$$;

-- The best documents among the hits, as many as are needed for so many chunks and at least five: a document is
-- worth its best hit, half its second best, a quarter of the next.
create function rag.best_documents(hits rag.hit[], chunks_wanted integer)
returns rag.reference[]
language sql stable security invoker set search_path = ''
as $$
  with placed as (
    select hit.org_id, hit.document_id, hit.score,
      row_number() over (partition by hit.org_id, hit.document_id order by hit.score desc) as place
    from unnest(hits) as hit
  ), valued as (
    select placed.org_id, placed.document_id, count(*) as chunks,
      sum(placed.score * 0.5 ^ least(placed.place, 50)) as value
    from placed
    group by 1, 2
  ), counted as (
    select valued.*, row_number() over in_order as place,
      sum(valued.chunks) over in_order - valued.chunks as chunks_before
    from valued
    window in_order as (order by valued.value desc, valued.document_id)
  )
  select array_agg((counted.org_id, counted.document_id)::rag.reference)
  from counted
  where counted.place <= 5 or counted.chunks_before < chunks_wanted;
$$;

-- The hits, those of older documents held back: at one half-life a score keeps three quarters, at two five
-- eighths, and never less than half. A document without a date is as old as its row.
create function rag.fade(hits rag.hit[], half_life_days double precision)
returns rag.hit[]
language sql stable security invoker set search_path = ''
as $$
  with faded as (
    select hit.*, hit.score * (0.5 + 0.5 * 0.5 ^ (least(1000 * half_life_days, greatest(0, extract(epoch from
      now() - coalesce(documents.occurred_at, documents.created_at))::double precision
      / 86400)) / half_life_days)) as faded_score
    from unnest(hits) as hit
    join rag.documents on documents.org_id = hit.org_id and documents.id = hit.document_id
  )
  select array_agg((faded.org_id, faded.document_id, faded.ordinal, faded.chunk_id, faded.content,
    faded.span_start, faded.span_end, faded.similarity, faded.word_score, faded.faded_score)::rag.hit
    order by faded.faded_score desc, faded.chunk_id)
  from faded;
$$;

-- mode: semantic (needs query_vector), keyword (query_text), hybrid (both) or hierarchical (both: the best
-- documents first, then their best chunks). filters: the fields of rag.filters. expand_context: so many
-- neighbouring chunks join each text, on both sides. half_life_days: older documents are held back; null: not.
-- fusion: mean or rrf.
create function public.rag_search(
  query_text text default null,
  query_vector extensions.vector default null,
  mode text default 'hybrid',
  top_k integer default 10,
  filters jsonb default '{}',
  expand_context integer default 0,
  half_life_days double precision default null,
  fusion text default 'mean'
)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
-- Planning under row security takes longer than most of these statements run.
set plan_cache_mode = force_generic_plan
as $$
declare
  -- What each leg brings.
  pool constant integer := greatest(30, 2 * top_k);
  needle extensions.halfvec(1536);
  scope rag.scope;
  near record;
  asked rag.question;
  hits rag.hit[];
begin
  perform rag.check_search(query_text, query_vector, mode, top_k, expand_context, half_life_days, fusion);
  scope := rag.scope_of(filters);
  if query_vector is not null then
    needle := rag.needle(query_vector);
  end if;

  if mode = 'keyword' then
    select null::rag.hit[] as hits, true as exact, 0 as considered into near;
  else
    near := rag.nearest(needle, scope,
      case when mode = 'semantic' and half_life_days is null then top_k else pool end);
  end if;

  hits := near.hits;
  if mode <> 'semantic' then
    asked := rag.question(query_text, scope);
    hits := rag.score(asked, rag.documents_with(asked, scope, 3 * pool)
        || array(select (hit.org_id, hit.document_id)::rag.reference from unnest(near.hits) as hit),
      near.hits, needle, scope, mode, fusion, pool, top_k, false);
  end if;
  if mode = 'hierarchical' then
    hits := rag.score(asked, rag.best_documents(hits, top_k), null, needle, scope, mode, fusion, pool, top_k, true);
  end if;
  if half_life_days is not null then
    hits := rag.fade(hits, half_life_days);
  end if;
  hits := hits[:top_k];
  if expand_context > 0 then
    hits := rag.widen(hits, expand_context);
  end if;
  return query select * from rag.show(hits, near.exact, near.considered);
end;
$$;

-- Raises PT400, with the name of what is wrong in detail.
create function rag.check_search(query_text text, query_vector extensions.vector, mode text, top_k integer,
  expand_context integer, half_life_days double precision, fusion text)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  fault constant text[] := case
    when mode is null or mode not in ('semantic', 'keyword', 'hybrid', 'hierarchical')
      then array['invalid_mode', 'mode must be semantic, keyword, hybrid or hierarchical']
    when top_k is null or top_k not between 1 and 100
      then array['invalid_top_k', 'top_k must be between 1 and 100']
    when mode <> 'keyword' and query_vector is null
      then array['missing_vector', format('mode %s needs query_vector', mode)]
    when mode <> 'semantic' and coalesce(query_text, '') = ''
      then array['missing_text', format('mode %s needs query_text', mode)]
    when length(query_text) > 10000
      then array['text_too_long', 'query_text must have at most 10,000 characters']
    when expand_context is null or expand_context not between 0 and 10
      then array['invalid_expand_context', 'expand_context must be between 0 and 10']
    when half_life_days <= 0 or half_life_days > 100000 or half_life_days = 'NaN'
      then array['invalid_half_life', 'half_life_days must be above 0 and at most 100,000']
    when fusion is null or fusion not in ('mean', 'rrf')
      then array['invalid_fusion', 'fusion must be mean or rrf']
  end;
begin
  if fault is not null then
    raise exception '%', fault[2] using errcode = 'PT400', detail = fault[1];
  end if;
end;
$$;

revoke all on function
  rag.score(rag.question, rag.reference[], rag.hit[], extensions.halfvec, rag.scope, text, text, integer, integer,
    boolean),
  rag.best_documents(rag.hit[], integer), rag.fade(rag.hit[], double precision),
  rag.check_search(text, extensions.vector, text, integer, integer, double precision, text),
  public.rag_search(text, extensions.vector, text, integer, jsonb, integer, double precision, text)
  from public, anon, service_role;
grant execute on function
  rag.score(rag.question, rag.reference[], rag.hit[], extensions.halfvec, rag.scope, text, text, integer, integer,
    boolean),
  rag.best_documents(rag.hit[], integer), rag.fade(rag.hit[], double precision),
  rag.check_search(text, extensions.vector, text, integer, integer, double precision, text),
  public.rag_search(text, extensions.vector, text, integer, jsonb, integer, double precision, text)
  to authenticated;

-- What is like a chunk or a document that is already here. (Like a text: embed it and use rag_search.)

-- chunk_id or document_id: the subject, never among what is found, nor is any chunk of a document that is the
-- subject. result: chunks, or documents, each by its best chunk. A subject that the caller cannot see is not
-- there: PT404.
create function public.rag_similar(
  chunk_id uuid default null,
  document_id uuid default null,
  result text default 'chunks',
  top_k integer default 10,
  filters jsonb default '{}'
)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  scope rag.scope;
  average extensions.vector;
  needle extensions.halfvec(1536);
  org_ids uuid[];
  near record;
  hits rag.hit[];
  wanted integer := top_k;
begin
  if num_nonnulls(chunk_id, document_id) <> 1 then
    raise exception 'either chunk_id or document_id is needed' using errcode = 'PT400', detail = 'invalid_subject';
  elsif result is null or result not in ('chunks', 'documents') then
    raise exception 'result must be chunks or documents' using errcode = 'PT400', detail = 'invalid_result';
  elsif top_k is null or top_k not between 1 and 100 then
    raise exception 'top_k must be between 1 and 100' using errcode = 'PT400', detail = 'invalid_top_k';
  end if;
  scope := rag.scope_of(filters);
  -- The subject may stand outside the filters.
  org_ids := array(select rag.current_org_ids());

  -- A document is where its chunks are on average.
  select extensions.avg(chunks.embedding::extensions.vector), min(chunks.embedding_model)
    into average, scope.model
  from rag.chunks
  where chunks.org_id = any (org_ids)
    and (chunks.id = chunk_id or chunks.document_id = document_id);
  if average is null then
    raise exception 'no such subject' using errcode = 'PT404', detail = 'subject_not_found';
  end if;
  needle := rag.needle(average);
  scope.without_chunk := chunk_id;
  scope.without_document := document_id;

  loop
    near := rag.nearest(needle, scope, wanted);
    exit when result = 'chunks';
    select array_agg(best.hit order by (best.hit).score desc, (best.hit).chunk_id) into hits
    from (
      select distinct on (hit.org_id, hit.document_id) hit
      from unnest(near.hits) as hit
      order by hit.org_id, hit.document_id, hit.score desc, hit.chunk_id
    ) as best;
    -- Enough documents, or all there are.
    exit when cardinality(hits) >= top_k or coalesce(cardinality(near.hits), 0) < wanted;
    wanted := wanted * 4;
  end loop;
  if result = 'chunks' then
    hits := near.hits;
  end if;
  return query select * from rag.show(hits[:top_k], near.exact, near.considered);
end;
$$;

revoke all on function public.rag_similar(uuid, uuid, text, integer, jsonb) from public, anon, service_role;
grant execute on function public.rag_similar(uuid, uuid, text, integer, jsonb) to authenticated;

-- What is there already.
insert into rag.facets (org_id, facet, document_id, collection_id, owner_id)
select documents.org_id, facet, documents.id, documents.collection_id, documents.owner_id
from rag.documents, rag.facets_of(documents) as facet;

select rag.index_words(org_id, array[id]) from rag.documents;
