-- What is found says what its document's file was called, and whose it is (sql/59).
alter type rag.found add attribute filename text, add attribute owner_id uuid;

-- The hits as rows, in their order.
create or replace function rag.show(hits rag.hit[], exact boolean, considered integer, vector_ms real, lexical_ms real)
returns setof rag.found
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return query
  select hit.chunk_id, hit.document_id, hit.org_id, hit.ordinal, hit.content, hit.span_start, hit.span_end,
    hit.similarity, hit.word_score, hit.score, documents.collection_id, documents.source_type,
    documents.title, documents.uri, documents.lang, documents.occurred_at, documents.origin,
    documents.author, documents.state, documents.labels, documents.metadata, show.exact, show.considered,
    documents.external_id, stood.place, show.vector_ms, show.lexical_ms, documents.filename,
    documents.owner_id
  from unnest(hits) with ordinality as hit (org_id, document_id, ordinal, chunk_id, content, span_start,
    span_end, similarity, word_score, score, place)
  join rag.documents on documents.org_id = hit.org_id and documents.id = hit.document_id
  -- Offset 0 keeps this a look-up of each.
  cross join lateral (
    select chunks.metadata as place
    from rag.chunks
    where chunks.org_id = hit.org_id and chunks.id = hit.chunk_id
    offset 0
  ) as stood
  order by hit.place;
end;
$$;

-- Documents are filtered by their type too (sql/26, sql/58).
alter type rag.filters add attribute document_type text;

-- Raises PT400 for filters that are no object, PT403 for a key without a scope that reads, and for a collection by name
-- what rag.require_collection raises.
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
  if wanted.collection is not null then
    scope.collection_ids := array[(rag.require_collection(wanted.collection)).id];
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

  if num_nonnulls(wanted.origins, wanted.authors, wanted.states, wanted.labels, wanted.metadata,
    wanted.document_type) = 0 then
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
    union all select 5, 'document_type', to_jsonb(wanted.document_type) where wanted.document_type is not null
    union all select 5 + entry.number, 'metadata.' || entry.key, entry.value
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

-- The facets of a document. Metadata is under "metadata.key", so that no key of it can pass for a label or an
-- author. Its type is what somebody calls it, and what it was read as: it is found by either.
create or replace function rag.facets_of(document rag.documents)
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
    union all
    select 'document_type', said.value
    from (values (document.metadata -> 'document_type'), (document.processing_info -> 'document_type'))
      as said (value)
    where jsonb_typeof(said.value) = 'string'
  ) as found (kind, value);
$$;

drop trigger index_facets_of_changed_documents on rag.documents;

create trigger index_facets_of_changed_documents
  after update of origin, author, state, labels, metadata, processing_info, collection_id, owner_id on rag.documents
  for each row
  when ((old.origin, old.author, old.state, old.labels, old.metadata, old.processing_info -> 'document_type',
      old.collection_id, old.owner_id)
    is distinct from
    (new.origin, new.author, new.state, new.labels, new.metadata, new.processing_info -> 'document_type',
      new.collection_id, new.owner_id))
  execute function rag.index_facets();

-- Of those that are there already.
insert into rag.facets (org_id, facet, document_id, collection_id, owner_id)
select documents.org_id, rag.facet('document_type', said.value), documents.id, documents.collection_id,
  documents.owner_id
from rag.documents
cross join lateral (values (documents.metadata -> 'document_type'), (documents.processing_info -> 'document_type'))
  as said (value)
where jsonb_typeof(said.value) = 'string'
on conflict do nothing;
