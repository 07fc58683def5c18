-- Mentions and relations of chunks, written from the JSON that the functions or the worker send. Invalid entries are
-- omitted, so that no document fails because of its entities.

create function rag.list_entries(body jsonb, list text)
returns table (entry jsonb, number bigint)
language sql immutable security invoker set search_path = ''
as $$
  select listed.entry, listed.number
  from jsonb_array_elements(case jsonb_typeof(body -> list) when 'array' then body -> list else '[]' end)
    with ordinality as listed (entry, number)
  where listed.number <= 200 and jsonb_typeof(listed.entry) = 'object';
$$;

comment on function rag.list_entries is
  'The objects among the first 200 entries of a list in a chunk''s JSON, with their numbers.';

create function rag.name_value(value jsonb)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select text.surface
  from (select case jsonb_typeof(value) when 'string' then value #>> '{}' end) as text (surface)
  where length(text.surface) between 1 and 200 and rag.is_visible_text(text.surface);
$$;

comment on function rag.name_value is
  'A text in a list''s entry, if it is printable and no longer than a name; otherwise null.';

create function rag.weight_value(value jsonb)
returns real
language sql immutable security invoker set search_path = ''
as $$
  select case jsonb_typeof(value) when 'number' then round(least(1, greatest(0, value::numeric)), 6)::real end;
$$;

comment on function rag.weight_value is
  'A number in a list''s entry, no more than 1 and no less than 0; null for other values.';

create function rag.insert_mentions(org_id uuid, documents rag.document_chunks[], first integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  -- Materialized, so that expensive functions are called once for each name.
  insert into rag.mentions (org_id, document_id, ordinal, entity, collection_id, owner_id, name, kind, surfaces, weight,
    sound, ending)
  with listed as materialized (
    select chunked.document_id, item.position::integer as position, listed.number, listed.entry,
      rag.name_value(listed.entry -> 'name') as name
    from unnest(insert_mentions.documents) as chunked
    cross join lateral jsonb_array_elements(chunked.chunks) with ordinality as item (body, position)
    cross join lateral rag.list_entries(item.body, 'names') as listed
  ), named as materialized (
    select listed.*, rag.entity_key(listed.name) as entity,
      case when listed.entry ->> 'kind' ~ '^[a-z][a-z_]{0,39}$' then listed.entry ->> 'kind' else 'name' end as kind,
      coalesce(rag.weight_value(listed.entry -> 'weight'), 0.5) as weight
    from listed
    where listed.name is not null
  ), folded as materialized (
    select named.document_id, named.position, named.entity, max(named.weight) as weight,
      (array_agg(named.name order by named.weight desc, named.number))[1] as name,
      (array_agg(named.kind order by named.kind = 'name', named.weight desc, named.number))[1] as kind,
      coalesce((array_agg(distinct surface.name) filter (where surface.name is not null))[:20], '{}') as surfaces
    from named
    left join lateral (
      select case when listed.entry = to_jsonb(named.name) then named.name else rag.name_value(listed.entry) end as name
      from jsonb_array_elements(case jsonb_typeof(named.entry -> 'surfaces') when 'array' then named.entry -> 'surfaces'
        else jsonb_build_array(named.name) end) with ordinality as listed (entry, number)
      where listed.number <= 20
      offset 0
    ) as surface on true
    group by named.document_id, named.position, named.entity
  ), heard as materialized (
    select folded.*, rag.phonetic_key(folded.entity) as sound from folded where length(folded.entity) between 1 and 200
  )
  select stored.org_id, stored.id, insert_mentions."first" + heard.position - 1, heard.entity, stored.collection_id,
    stored.owner_id, heard.name, heard.kind, heard.surfaces, heard.weight, heard.sound, reverse(heard.sound)
  from heard
  join rag.documents as stored on stored.org_id = insert_mentions.org_id and stored.id = heard.document_id
  on conflict do nothing;
end;
$$;

comment on function rag.insert_mentions is
  'Store the entities that each chunk names. The parameters are those of rag.insert_names.';

create function rag.insert_relations(org_id uuid, documents rag.document_chunks[], first integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  insert into rag.relations (org_id, document_id, ordinal, subject, type, object, collection_id, owner_id, confidence)
  with listed as materialized (
    select chunked.document_id, item.position::integer as position, listed.entry ->> 'type' as type,
      rag.entity_key(rag.name_value(listed.entry -> 'subject')) as subject,
      rag.entity_key(rag.name_value(listed.entry -> 'object')) as object,
      rag.weight_value(listed.entry -> 'confidence') as confidence
    from unnest(insert_relations.documents) as chunked
    cross join lateral jsonb_array_elements(chunked.chunks) with ordinality as item (body, position)
    cross join lateral rag.list_entries(item.body, 'relations') as listed
  ), named as materialized (
    select related.document_id, rag.names_of_document(insert_relations.org_id, related.document_id) as names
    from (select distinct listed.document_id from listed offset 0) as related
  ), stated as (
    select listed.document_id, listed.position, listed.subject, listed.type, listed.object,
      max(listed.confidence) as confidence
    from listed
    join named on named.document_id = listed.document_id
    where listed.subject <> listed.object and listed.type ~ '^[A-Z][A-Z_]{1,49}$' and listed.confidence > 0
      and named.names ? listed.subject and named.names ? listed.object
    group by 1, 2, 3, 4, 5
  )
  select stored.org_id, stored.id, insert_relations."first" + stated.position - 1, stated.subject, stated.type,
    stated.object, stored.collection_id, stored.owner_id, stated.confidence
  from stated
  join rag.documents as stored on stored.org_id = insert_relations.org_id and stored.id = stated.document_id
  on conflict do nothing;
end;
$$;

comment on function rag.insert_relations is
  'Store the relations that each chunk states between entities that its document names.';

create function rag.insert_names(org_id uuid, documents rag.document_chunks[], first integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform rag.insert_mentions(org_id, documents, "first");
  perform rag.insert_relations(org_id, documents, "first");
end;
$$;

comment on function rag.insert_names is
  'Store the names and relations of the chunks of documents; each document has the ordinal of its first chunk. '
  'Malformed names are omitted, so that they do not prevent the storing of the document. One row for each entity '
  'and chunk; a relation needs both of its names in the document. At most 200 names and 200 relations for each '
  'chunk.';
