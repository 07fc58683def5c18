-- Keyword search reads half as many postings and finds more: those of a word that has more than are read count
-- for less. Candidates are grouped, not joined, and texts read in one statement; passages that repeat themselves
-- no longer cost a scan; words that nobody says any more are forgotten at once: sql/27, and 58 to 66.

drop function rag.check_search(text, extensions.vector, text, integer, integer, double precision, text);
drop function rag.closeness(rag.question, regconfig, text);
drop function rag.nearest_of_index(extensions.halfvec, rag.scope, integer, integer);

alter type rag.sought add attribute documents bigint;

alter table rag.settings alter column postings_read set default 500;
-- A deployment that has chosen its own keeps it.
update rag.settings set postings_read = 500 where postings_read = 1000;

-- Whether the token carries one of the scopes, or admin, which implies them all.
create or replace function rag.has_scope(variadic wanted text[])
returns boolean
language plpgsql stable security invoker set search_path = ''
as $$
declare
  claim constant jsonb := auth.jwt() -> 'rag';
begin
  return case
    when coalesce(jsonb_typeof(claim), 'null') = 'null' then true
    when jsonb_typeof(claim) <> 'object' then false
    when coalesce(jsonb_typeof(claim -> 'scopes'), 'null') = 'null' then true
    when jsonb_typeof(claim -> 'scopes') = 'array' then claim -> 'scopes' ?| (wanted || array['admin'])
    else false
  end;
end;
$$;

-- The one collection that the token is bound to; null when it is not, no collection's id when it is to
-- something that is no id.
create or replace function rag.bound_collection()
returns uuid
language plpgsql stable security invoker set search_path = ''
as $$
declare
  claim constant jsonb := auth.jwt() -> 'rag';
begin
  return case
    when coalesce(jsonb_typeof(claim), 'null') = 'null' then null
    when jsonb_typeof(claim) = 'object'
      and coalesce(jsonb_typeof(claim -> 'collection'), 'null') = 'null' then null
    when claim ->> 'collection' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
      then (claim ->> 'collection')::uuid
    else '00000000-0000-0000-0000-000000000000'
  end;
end;
$$;

-- Adds what changed to the log. Of an org that is being deleted the counts are gone already.
create or replace function rag.count_changed_terms()
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

  -- One write in sixteen, so that a term has about sixteen rows, however often it is written; and every delete, so
  -- that a word which nobody says any more is gone from here too.
  if tg_op = 'DELETE' or random() < 0.0625 then
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

-- Make the documents' postings anew. A document's title counts as part of each of its chunks, as it does for
-- their embeddings.
create or replace function rag.index_words(org_id uuid, document_ids uuid[])
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
    -- By the default settings, whatever they are now: it chooses what is scored, and scores nothing.
    max(occurrences / (occurrences + 1.5 * (0.15 + 0.85 * length / 100))) / 2
      + sum(occurrences) / (sum(occurrences) + 1.5 * (0.15 + 0.85 * document_length / 500)) / 2
  from measured
  group by document_id, term, collection_id, owner_id, document_length;
end;
$$;

-- Raises PT400 for filters that are no object, PT403 for a key without a scope that reads.
create or replace function rag.scope_of(filters jsonb)
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
  -- Row security would keep a bound key in its collection, but not find that by an index.
  if rag.bound_collection() is not null then
    scope.collection_ids := array(
      select rag.bound_collection()
      where scope.collection_ids is null or rag.bound_collection() = any (scope.collection_ids));
  end if;
  scope.source_types := nullif(wanted.source_types, '{}');
  if wanted.source_type is not null then
    scope.source_types := array[wanted.source_type];
  end if;
  scope.lang := lower(wanted.lang);
  scope.date_from := wanted.date_from;
  scope.date_to := wanted.date_to;

  if num_nonnulls(wanted.origins, wanted.authors, wanted.states, wanted.labels, wanted.metadata) = 0 then
    return scope;
  end if;

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

-- Whether it asks for what only documents and chunks know, and not their postings.
create function rag.filters_documents(scope rag.scope)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select not (scope.source_types, scope.lang, scope.date_from, scope.date_to, scope.document_ids,
    scope.without_document) is null;
$$;

-- Raises PT400 for a page that nobody gets.
create function rag.check_top_k(top_k integer)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
begin
  if top_k is null or top_k not between 1 and 100 then
    raise exception 'top_k must be between 1 and 100' using errcode = 'PT400', detail = 'invalid_top_k';
  end if;
end;
$$;

-- The nearest chunks of a scope by the HNSW index, `fetched` of them, of which the nearest `wanted` are kept.
-- complete: whether these are all that there need be; not when the index gave up, and not when the last that is
-- kept is as near as the last that was fetched, since which of those it happened upon must not decide.
create function rag.nearest_of_index(needle extensions.halfvec, scope rag.scope, wanted integer,
  fetched integer, ef_search integer, out hits rag.hit[], out considered integer, out complete boolean)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  sorting constant text := current_setting('enable_sort');
  distances double precision[];
begin
  -- Row security makes the planner believe that hardly a row is left, and sorting all of them cheap. And "+ 0"
  -- keeps it from believing that they come sorted: in relaxed order they nearly do.
  perform set_config('enable_sort', 'off', true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
    -- 1000 is its largest; iterating, the index hands out more all the same.
    set_config('hnsw.ef_search', least(1000, greatest(ef_search, 3 * fetched))::text, true);
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

-- The nearest chunks of a scope, best first; equally near ones by id. exact: whether all that the scope leaves
-- were compared; considered: how many were.
create or replace function rag.nearest(needle extensions.halfvec, scope rag.scope, wanted integer,
  out hits rag.hit[], out exact boolean, out considered integer)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  settings rag.settings;
  -- Rows scattered over several orgs are hard to find by the index.
  scattered constant integer := case when cardinality(scope.org_ids) > 1 then 2 else 1 end;
  filtered constant boolean := not rag.has_no_filters(scope);
  every_row constant bigint := 9223372036854775806;
  effort integer;
  more integer;
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

  effort := rag.effort(scope, considered, settings.ef_search);
  -- One more than wanted shows whether the last is nearer than what is left out; many more, where passages
  -- repeat themselves, as footers do.
  foreach more in array array[1, 100] loop
    select * into hits, considered, complete
    from rag.nearest_of_index(needle, scope, wanted, wanted + more, effort);
    exit when complete or considered < wanted + more;
  end loop;
  if not complete then
    exact := true;
    select * into hits, considered from rag.nearest_of_filtered(needle, scope, wanted, every_row);
  end if;
end;
$$;

-- filters: the fields of rag.filters; other keys are ignored.
create or replace function public.rag_match(
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
  perform rag.check_top_k(top_k);
  near := rag.nearest(rag.needle(query_vector), rag.scope_of(filters), top_k);
  return query select * from rag.show(near.hits, near.exact, near.considered);
end;
$$;

-- What a text asks for among the documents of a scope: only terms that some visible chunk holds. The languages
-- are those of the documents; each stems the text in its own way, and a word that one of them passes over
-- ("the", "der") counts in none.
create or replace function rag.question(query_text text, scope rag.scope)
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
    select counts.term, sum(counts.chunks) as chunks, sum(counts.documents) as documents
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
  select array_agg((found.term, found.slot, found.config, found.place,
      ln(1 + (chunk_count - found.chunks + 0.5) / (found.chunks + 0.5)), found.chunks, found.documents)::rag.sought
      order by found.chunks, found.term)
    into asked.sought
  from (
    select slots.*, dense_rank() over (order by slots.rarest, slots.slot) as turn
    from (
      select term.*, known.chunks, known.documents, min(known.chunks) over (partition by term.slot) as rarest
      from term join known on known.term = term.term
    ) as slots
  ) as found
  where found.turn <= 40;

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

-- How much of what is asked stands together in each text as it was asked, 0 to 1: the more, the more of its
-- words follow each other as they do in the question, the rarer those are and the fewer stand between. Texts
-- where no two do are left out.
create function rag.closeness(asked rag.question, ids uuid[], configs oid[], contents text[])
returns table (id uuid, closeness double precision)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  terms constant text[] := array(select distinct sought.term from unnest(asked.sought) as sought);
begin
  return query
  with word as materialized (
    select text.id, text.config, word.lexeme, word.positions
    from unnest(ids, configs, contents) as text (id, config, content)
    cross join unnest(rag.words(text.config::regconfig, text.content)) as word
    where word.lexeme = any (terms)
  )
  select one.id, sum(pair.weight / (1 + (
      select min(abs(b - a - pair.gap)) from unnest(one.positions) as a, unnest(other.positions) as b
    ))) / asked.idf_sum
  from unnest(asked.pairs) as pair
  join word as one on one.config = pair.config and one.lexeme = pair.first
  join word as other on other.id = one.id and other.lexeme = pair.second
  group by one.id;
end;
$$;

-- Those of the documents that have most of what is asked, by all their postings.
create function rag.best_among(asked rag.question, documents rag.reference[], wanted integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  terms constant text[] := array(select distinct sought.term from unnest(asked.sought) as sought);
begin
  return (
    select array_agg((ranked.org_id, ranked.document_id)::rag.reference)
    from (
      select postings.org_id, postings.document_id
      from unnest(documents) as document
      cross join lateral (
        select org_id, document_id, term, impact
        from rag.postings
        where postings.org_id = document.org_id and postings.document_id = document.document_id
          and postings.term = any (terms)
        offset 0
      ) as postings
      join (select distinct term, idf from unnest(asked.sought)) as sought on sought.term = postings.term
      group by 1, 2
      order by sum(sought.idf * postings.impact) desc, 2
      limit wanted
    ) as ranked);
end;
$$;

-- The documents, of those allowed (null: all), with most of what is asked, as far as a bounded number of postings
-- tells: of each term and org `read` with the most of it, the rarest terms first, and about eight times as many
-- in all.
--
-- A document that is not among them may hold the term too, about half as much as the last that is (its rest). So
-- much less is each of those worth than where all were read, or a document would gain by common words that
-- others only seem to lack; and so much more is every document of the org, or it would lose to those of a smaller
-- org, where all were read.
create function rag.best_by_impact(asked rag.question, scope rag.scope, allowed uuid[], wanted integer,
  read integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  orgs constant integer := cardinality(scope.org_ids);
  each constant integer := greatest(wanted, read / greatest(1, orgs));
  sorting constant text := current_setting('enable_sort');
  found rag.reference[];
begin
  -- Row security makes the planner believe that hardly a posting is left: it would read them all and sort.
  perform set_config('enable_sort', 'off', true);
  with list as materialized (
    -- As arrays: windows over so many rows take longer than reading them.
    select org.id as org_id, sought.idf, taken.ids, taken.impacts, sought.idf * taken.rest as rest
    from (
      select term, idf, sum(least(documents, each * orgs)) over (order by documents, term)
        - least(documents, each * orgs) as read_before
      from (select distinct term, idf, documents from unnest(asked.sought)) as terms
    ) as sought
    cross join unnest(scope.org_ids) as org (id)
    cross join lateral (
      select array_agg(most.document_id) as ids, array_agg(most.impact) as impacts,
        case when count(*) = each then min(most.impact) / 2 else 0 end as rest
      from (
        select document_id, impact
        from rag.postings
        where org_id = org.id and term = sought.term
        order by impact desc
        limit each
      ) as most
    ) as taken
    where sought.read_before < 8 * read
  ), scored as (
    select list.org_id, best.document_id, sum(list.idf * best.impact - list.rest) as score
    from list, unnest(list.ids, list.impacts) as best (document_id, impact)
    where allowed is null or best.document_id in (select unnest(allowed))
    group by 1, 2
  )
  select array_agg((ranked.org_id, ranked.document_id)::rag.reference) into found
  from (
    select scored.org_id, scored.document_id
    from scored
    left join (select list.org_id, sum(list.rest) as rest from list group by 1) as whole
      on orgs > 1 and whole.org_id = scored.org_id
    order by scored.score + coalesce(whole.rest, 0) desc, scored.document_id
    limit wanted
  ) as ranked;
  perform set_config('enable_sort', sorting, true);
  return found;
end;
$$;

-- The documents of a scope with most of what is asked: all that hold a term of it, or about the best `wanted`.
create or replace function rag.documents_with(asked rag.question, scope rag.scope, wanted integer)
returns rag.reference[]
language plpgsql stable security invoker set search_path = ''
as $$
declare
  read constant integer := (select settings.postings_read from rag.settings);
  left_over rag.reference[];
begin
  if scope.collection_ids is not null or rag.filters_documents(scope) then
    execute format('select array(select (org_id, id)::rag.reference from rag.documents where %s %s)',
      rag.conditions(scope, 'id'), case when asked.totals is not null then
      'and exists (select from rag.postings where postings.org_id = documents.org_id '
      'and postings.document_id = documents.id and postings.term = any ($2))' end)
      into left_over using scope, asked.totals;
  elsif asked.totals is not null then
    left_over := array(
      select (postings.org_id, postings.document_id)::rag.reference
      from rag.postings
      where postings.org_id = any (scope.org_ids) and postings.term = any (asked.totals));
  else
    return rag.best_by_impact(asked, scope, null, wanted, greatest(wanted, read));
  end if;

  -- Few are looked up one by one. Of many, the postings tell: more of them, since most may not be allowed.
  if cardinality(left_over) <= 4 * read then
    return rag.best_among(asked, left_over, wanted);
  end if;
  return rag.best_by_impact(asked, scope, array(select document_id from unnest(left_over)), wanted, 20 * read);
end;
$$;

-- Candidates of both legs, scored. wanted: how many the words bring; closely: for how many of those it matters
-- whether the words stand together; whole_documents: of each document its nearest chunks too.
create or replace function rag.score(asked rag.question, documents rag.reference[], near rag.hit[],
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

  with candidate as (
    -- Grouped and not joined: the planner would compare each with every scored chunk.
    select brought.org_id, brought.document_id, brought.ordinal, max(brought.score) as word_score
    from (
      select scores.*, row_number() over (order by score desc, document_id, ordinal) <= wanted as chosen
      from rag.word_scores(asked, documents) as scores
      union all
      select near.org_id, near.document_id, near.ordinal, null, true from unnest(near) as near
      union all
      select nearest.org_id, nearest.document_id, nearest.ordinal, null, true
      from unnest(documents) as wanted_document
      cross join lateral (
        select chunks.org_id, chunks.document_id, chunks.ordinal
        from rag.chunks
        where chunks.org_id = wanted_document.org_id and chunks.document_id = wanted_document.document_id
        order by (chunks.embedding operator(extensions.<=>) needle) + 0, chunks.ordinal
        limit wanted
      ) as nearest
      where whole_documents
    ) as brought
    group by 1, 2, 3
    having bool_or(brought.chosen)
  ), known as (
    select found.*, coalesce(candidate.word_score, 0) as word_score,
      row_number() over (order by candidate.word_score desc nulls last, found.id) as word_place
    from candidate
    -- Offset 0 keeps this a look-up of each.
    cross join lateral (
      select chunks.org_id, chunks.document_id, chunks.ordinal, chunks.id, chunks.content, chunks.span_start,
        chunks.span_end, chunks.lang,
        case when needle is not null
          then greatest(0, least(1, 1 - (chunks.embedding operator(extensions.<=>) needle))) end as similarity
      from rag.chunks
      where chunks.org_id = candidate.org_id and chunks.document_id = candidate.document_id
        and chunks.ordinal = candidate.ordinal and chunks.embedding_model = scope.model
        and (scope.without_chunk is null or chunks.id <> scope.without_chunk)
      offset 0
    ) as found
  ), close as (
    -- Reading texts is dear: only those of the best, whose order it can change.
    select closeness.*
    from (
      select array_agg(known.id) as ids, array_agg(known.content) as contents,
        array_agg(rag.text_config(coalesce(known.lang, settings.language))::oid) as configs
      from known
      where asked.pairs is not null and settings.phrase_share > 0 and known.word_score > 0
        and known.word_place <= closely
    ) as best
    cross join rag.closeness(asked, best.ids, best.configs, best.contents) as closeness
  ), phrased as (
    select known.*, case when asked.pairs is null then known.word_score
      else (1 - settings.phrase_share) * known.word_score
        + settings.phrase_share * coalesce(close.closeness, 0) end as words
    from known
    left join close on close.id = known.id
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

-- mode: semantic (needs query_vector), keyword (query_text), hybrid (both) or hierarchical (both: the best
-- documents first, then their best chunks). filters: the fields of rag.filters. expand_context: so many
-- neighbouring chunks join each text, on both sides. half_life_days: older documents are held back; null: not.
-- fusion: mean or rrf.
create or replace function public.rag_search(
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
  pool constant integer := greatest(20, 2 * top_k);
  needle extensions.halfvec(1536);
  scope rag.scope;
  near record;
  asked rag.question;
  hits rag.hit[];
begin
  perform rag.check_search(query_text, query_vector, mode, expand_context, half_life_days, fusion);
  perform rag.check_top_k(top_k);
  scope := rag.scope_of(filters);
  if mode in ('hybrid', 'hierarchical') and not rag.are_words_wanted(scope) then
    mode := 'semantic';
  end if;
  if query_vector is not null then
    needle := rag.needle(query_vector);
  end if;

  if mode = 'keyword' then
    select null::rag.hit[] as hits, null::boolean as exact, 0 as considered into near;
  else
    near := rag.nearest(needle, scope,
      case when mode = 'semantic' and half_life_days is null then top_k else pool end);
  end if;

  hits := near.hits;
  if mode <> 'semantic' then
    asked := rag.question(query_text, scope);
    hits := rag.score(asked, rag.documents_with(asked, scope, 4 * pool)
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

-- Whether words have a part in a search of these collections: not where all of them have gone without hybrid search.
create function rag.are_words_wanted(scope rag.scope)
returns boolean
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return scope.collection_ids is null or exists (
    select from rag.collections
    where collections.org_id = any (scope.org_ids) and collections.id = any (scope.collection_ids)
      and collections.config -> 'enable_hybrid_search' is distinct from 'false'::jsonb);
end;
$$;

-- Raises PT400, with the name of what is wrong in detail.
create function rag.check_search(query_text text, query_vector extensions.vector, mode text,
  expand_context integer, half_life_days double precision, fusion text)
returns void
language plpgsql immutable security invoker set search_path = ''
as $$
declare
  fault constant text[] := case
    when mode is null or mode not in ('semantic', 'keyword', 'hybrid', 'hierarchical')
      then array['invalid_mode', 'mode must be semantic, keyword, hybrid or hierarchical']
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

-- The texts of chunks that were found, longer by their neighbours: for a search that reorders what it has found
-- before it shows it (rag_search's expand_context widens at once).
create function public.rag_widen(chunk_ids uuid[], neighbours integer)
returns table (chunk_id uuid, content text, span_start integer, span_end integer)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  org_ids constant uuid[] := array(select rag.current_org_ids());
begin
  if chunk_ids is null or cardinality(chunk_ids) > 100 then
    raise exception 'chunk_ids must be at most 100' using errcode = 'PT400', detail = 'too_many_chunks';
  elsif neighbours is null or neighbours not between 0 and 10 then
    raise exception 'neighbours must be between 0 and 10' using errcode = 'PT400', detail = 'invalid_neighbours';
  end if;
  return query
  select hit.chunk_id, hit.content, hit.span_start, hit.span_end
  from unnest(rag.widen(array(
    select (chunks.org_id, chunks.document_id, chunks.ordinal, chunks.id, chunks.content, chunks.span_start,
      chunks.span_end, null, null, null)::rag.hit
    from rag.chunks
    where chunks.org_id = any (org_ids) and chunks.id = any (chunk_ids)
  ), neighbours)) as hit;
end;
$$;

-- chunk_id or document_id: the subject, never among what is found, nor is any chunk of a document that is the
-- subject. result: chunks, or documents, each by its best chunk. A subject that the caller cannot see is not
-- there: PT404.
create or replace function public.rag_similar(
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
  end if;
  perform rag.check_top_k(top_k);
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

revoke all on function
  rag.filters_documents(rag.scope),
  rag.check_top_k(integer),
  rag.closeness(rag.question, uuid[], oid[], text[]),
  rag.best_among(rag.question, rag.reference[], integer),
  rag.best_by_impact(rag.question, rag.scope, uuid[], integer, integer),
  rag.check_search(text, extensions.vector, text, integer, double precision, text),
  rag.are_words_wanted(rag.scope),
  rag.nearest_of_index(extensions.halfvec, rag.scope, integer, integer, integer),
  public.rag_widen(uuid[], integer)
  from public, anon, service_role;
grant execute on function
  rag.filters_documents(rag.scope),
  rag.check_top_k(integer),
  rag.closeness(rag.question, uuid[], oid[], text[]),
  rag.best_among(rag.question, rag.reference[], integer),
  rag.best_by_impact(rag.question, rag.scope, uuid[], integer, integer),
  rag.check_search(text, extensions.vector, text, integer, double precision, text),
  rag.are_words_wanted(rag.scope),
  rag.nearest_of_index(extensions.halfvec, rag.scope, integer, integer, integer),
  public.rag_widen(uuid[], integer)
  to authenticated;
