-- Weights of names in a question, by the rarity of their words in the documents. A name of frequent words has weight 0.

create function rag.name_rarity(name text, config regconfig, org_id uuid, scope rag.search_scope,
  out rarity double precision, out documents_of_rarest_word bigint)
language plpgsql stable security invoker set search_path = '' set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  words constant text[] := tsvector_to_array(rag.words(config, name));
  parts constant rag.term_segments[] := array(select part from rag.index_totals(array[org_id], scope.collection_ids) as part);
begin
  with counts as (
    select counted.key, counted.documents
    from rag.term_counts(parts, array(select rag.term_key(word) from unnest(words) as word)) as counted
  ), total as (
    -- Smoothing by a hundred documents without the words: a few documents do not show how rare a word is.
    select 100 + coalesce(sum(part.documents), 0) as documents from unnest(parts) as part
  )
  select coalesce(least(1, sum(ln((total.documents + 1) / (coalesce(counts.documents, 0) + 1)))
      / ln(min(total.documents) + 1)), 0)::double precision,
    coalesce(min(coalesce(counts.documents, 0)), 0)::bigint
    into rarity, documents_of_rarest_word
  from unnest(words) as word (term)
  cross join total
  left join counts on counts.key = rag.term_key(word.term);
end;
$$;

comment on function rag.name_rarity is
  'The rarity of a name''s words in the documents of an org: the sum of their inverse document frequencies, as if the '
  'words were independent, divided by that of a word in one document. It is near 0 for stop words and, in an org of '
  'thousands of documents, for words of every document. It is 1 if by chance no document would have all the words. '
  'Also returns the number of documents that have the rarest word.';

create function rag.places_of_name(entity text, org_id uuid, scope rag.search_scope, row_limit integer)
returns bigint
language plpgsql stable security invoker set search_path = ''
-- The function reads an org, or the scope's collections one by one: only one of the two look-ups runs.
set enable_sort = off set enable_seqscan = off
as $$
begin
  return (select count(*)
  from (
    (select from rag.title_entities
    where scope.collection_ids is null and title_entities.org_id = places_of_name.org_id
      and title_entities.entity = places_of_name.entity
    limit row_limit)
    union all
    (select from rag.mentions
    where scope.collection_ids is null and mentions.org_id = places_of_name.org_id
      and mentions.entity = places_of_name.entity
    limit row_limit)
    union all
    (select from unnest(scope.collection_ids) as home (id)
    cross join lateral (
      select from rag.title_entities
      where title_entities.org_id = places_of_name.org_id and title_entities.collection_id = home.id
        and title_entities.entity = places_of_name.entity
      limit row_limit
    ) as inside
    limit row_limit)
    union all
    (select from unnest(scope.collection_ids) as home (id)
    cross join lateral (
      select from rag.mentions
      where mentions.org_id = places_of_name.org_id and mentions.collection_id = home.id
        and mentions.entity = places_of_name.entity
      limit row_limit
    ) as inside
    limit row_limit)
    limit row_limit
  ) as counted);
end;
$$;

comment on function rag.places_of_name is 'How many titles and chunks name an entity, counted up to row_limit.';

create function rag.name_weight(entity text, query_name text, config regconfig, org_id uuid, scope rag.search_scope)
returns double precision
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  query_rarity constant record := rag.name_rarity(query_name, config, org_id, scope);
  documents bigint := query_rarity.documents_of_rarest_word;
  -- A name in so many places has its weight, however common its words are.
  places_needed integer;
begin
  if entity <> query_name then
    documents := (rag.name_rarity(entity, config, org_id, scope)).documents_of_rarest_word;
  end if;
  places_needed := least(20, ceil(greatest(1, documents) / 10.0));
  return query_rarity.rarity
    * rag.places_of_name(entity, org_id, scope, places_needed)::double precision / places_needed;
end;
$$;

comment on function rag.name_weight is
  'The probability, 0 to 1, that these words of a question mean the entity: the rarity of the words, reduced if '
  'the entity has fewer places (titles and chunks, of which at most 20 count) than a tenth of the documents with '
  'its rarest word. In a library with the title "Information retrieval" in which the two words are frequent, the words '
  'of a question rarely mean the title.';
