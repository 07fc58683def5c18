-- Relations that chunks state between entities: one row for each edge and chunk, so that an edge exists as long as its
-- evidence. Co-occurrence is not stored: rag.mentions has it.

create table rag.relations (
  org_id uuid not null,
  document_id uuid not null,
  ordinal integer not null,
  subject text collate "C" not null check (length(subject) between 1 and 200),
  type text collate "C" not null check (type ~ '^[A-Z][A-Z_]{1,49}$'),
  object text collate "C" not null check (length(object) between 1 and 200),
  collection_id uuid not null,
  owner_id uuid,
  confidence real not null check (confidence > 0 and confidence <= 1),
  primary key (org_id, document_id, ordinal, subject, type, object),
  foreign key (org_id, document_id, ordinal) references rag.chunks (org_id, document_id, ordinal) on delete cascade,
  check (subject <> object)
);

comment on table rag.relations is 'Relations between entities that chunks state.';
comment on column rag.relations.type is 'Read forwards: subject OWNED_BY object.';

-- rag.edges_among, both ways; the surest first.
create index relations_by_subject on rag.relations (org_id, subject, confidence desc)
  include (type, object, document_id, ordinal, collection_id, owner_id);
create index relations_by_object on rag.relations (org_id, object, confidence desc)
  include (type, subject, document_id, ordinal, collection_id, owner_id);

-- rag.link_entities: other names of an entity, which may have any number of other edges.
create index relations_aliases_by_subject on rag.relations (org_id, subject, confidence desc)
  include (object, collection_id, owner_id) where type = 'ALIAS_OF';
create index relations_aliases_by_object on rag.relations (org_id, object, confidence desc)
  include (subject, collection_id, owner_id) where type = 'ALIAS_OF';

alter table rag.relations enable row level security;
alter table rag.relations force row level security;

create policy "members use their org's relations" on rag.relations
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "a key reads and writes with the scopes for it" on rag.relations
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write', 'retrievals:read', 'chat:read')))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.relations
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.relations
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

create function rag.move_graph_of_document()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  update rag.mentions set collection_id = new.collection_id, owner_id = new.owner_id
  where mentions.org_id = new.org_id and mentions.document_id = new.id;
  update rag.relations set collection_id = new.collection_id, owner_id = new.owner_id
  where relations.org_id = new.org_id and relations.document_id = new.id;
  update rag.extractions
  set collection_id = new.collection_id, owner_id = new.owner_id, user_id = coalesce(auth.uid(), user_id), lease = null
  where extractions.org_id = new.org_id and extractions.document_id = new.id;
  return null;
end;
$$;

comment on function rag.move_graph_of_document is
  'Mentions, relations and how far they are read follow their document, should it go to another collection or '
  'owner.';

create trigger move_names_of_changed_documents after update of collection_id, owner_id on rag.documents
  for each row
  when ((old.collection_id, old.owner_id) is distinct from (new.collection_id, new.owner_id))
  execute function rag.move_graph_of_document();

create function rag.names_of_document(org_id uuid, document_id uuid)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  return (
    select coalesce(jsonb_object_agg(named.entity, true), '{}')
    from (
      select mentions.entity
      from rag.mentions
      where mentions.org_id = names_of_document.org_id and mentions.document_id = names_of_document.document_id
      union
      select subjects.entity
      from rag.subjects
      where subjects.org_id = names_of_document.org_id and subjects.document_id = names_of_document.document_id
    ) as named);
end;
$$;

comment on function rag.names_of_document is
  'What a document names, in its text or its title, as the keys of an object: asked once a document, however many '
  'relations it states.';

create function rag.delete_dangling_relations(org_id uuid, document_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  names constant jsonb := rag.names_of_document(org_id, document_id);
begin
  delete from rag.relations
  where relations.org_id = delete_dangling_relations.org_id
    and relations.document_id = delete_dangling_relations.document_id
    and not (names ? relations.subject and names ? relations.object);
end;
$$;

comment on function rag.delete_dangling_relations is
  'Delete a document''s relations with an end that nothing in the document names any more.';

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
  'The numbered entries of a list in a chunk''s JSON that are objects; 200 are looked at.';

create function rag.name_value(value jsonb)
returns text
language sql immutable security invoker set search_path = ''
as $$
  select said.surface
  from (select case jsonb_typeof(value) when 'string' then value #>> '{}' end) as said (surface)
  where length(said.surface) between 1 and 200 and rag.is_visible_text(said.surface);
$$;

comment on function rag.name_value is
  'A text in a list''s entry that may be shown and is no longer than a name; null otherwise.';

create function rag.weight_value(value jsonb)
returns real
language sql immutable security invoker set search_path = ''
as $$
  select case jsonb_typeof(value) when 'number' then round(least(1, greatest(0, value::numeric)), 6)::real end;
$$;

comment on function rag.weight_value is
  'A number in a list''s entry, no more than 1 and no less than 0; null for what is no number.';

create function rag.insert_names(org_id uuid, document_id uuid, chunks jsonb, first integer)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  names jsonb;
begin
  -- Materialized, so that what costs is done once for each name.
  insert into rag.mentions (org_id, document_id, ordinal, entity, collection_id, owner_id, name, kind, said, weight,
    sound, ending)
  with listed as materialized (
    select item.place::integer as place, listed.number, listed.entry, rag.name_value(listed.entry -> 'name') as name
    from jsonb_array_elements(insert_names.chunks) with ordinality as item (body, place)
    cross join lateral rag.list_entries(item.body, 'names') as listed
  ), named as materialized (
    select listed.*, rag.entity_key(listed.name) as entity,
      case when listed.entry ->> 'kind' ~ '^[a-z][a-z_]{0,39}$' then listed.entry ->> 'kind' else 'name' end as kind,
      coalesce(rag.weight_value(listed.entry -> 'weight'), 0.5) as weight
    from listed
    where listed.name is not null
  ), folded as materialized (
    select named.place, named.entity, max(named.weight) as weight,
      (array_agg(named.name order by named.weight desc, named.number))[1] as name,
      (array_agg(named.kind order by named.kind = 'name', named.weight desc, named.number))[1] as kind,
      coalesce((array_agg(distinct surface.said) filter (where surface.said is not null))[:20], '{}') as said
    from named
    left join lateral (
      select case when listed.entry = to_jsonb(named.name) then named.name else rag.name_value(listed.entry) end as said
      from jsonb_array_elements(case jsonb_typeof(named.entry -> 'said') when 'array' then named.entry -> 'said'
        else jsonb_build_array(named.name) end) with ordinality as listed (entry, number)
      where listed.number <= 20
      offset 0
    ) as surface on true
    group by named.place, named.entity
  ), heard as materialized (
    select folded.*, rag.phonetic_key(folded.entity) as sound from folded where length(folded.entity) between 1 and 200
  )
  select stored.org_id, stored.id, insert_names."first" + heard.place - 1, heard.entity, stored.collection_id,
    stored.owner_id, heard.name, heard.kind, heard.said, heard.weight, heard.sound, reverse(heard.sound)
  from rag.documents as stored
  cross join heard
  where stored.org_id = insert_names.org_id and stored.id = insert_names.document_id
  on conflict do nothing;

  names := rag.names_of_document(insert_names.org_id, insert_names.document_id);
  insert into rag.relations (org_id, document_id, ordinal, subject, type, object, collection_id, owner_id, confidence)
  with listed as materialized (
    select item.place::integer as place, listed.entry ->> 'type' as type,
      rag.entity_key(rag.name_value(listed.entry -> 'subject')) as subject,
      rag.entity_key(rag.name_value(listed.entry -> 'object')) as object,
      rag.weight_value(listed.entry -> 'confidence') as confidence
    from jsonb_array_elements(insert_names.chunks) with ordinality as item (body, place)
    cross join lateral rag.list_entries(item.body, 'relations') as listed
  ), said as (
    select listed.place, listed.subject, listed.type, listed.object, max(listed.confidence) as confidence
    from listed
    where listed.subject <> listed.object and listed.type ~ '^[A-Z][A-Z_]{1,49}$' and listed.confidence > 0
      and names ? listed.subject and names ? listed.object
    group by 1, 2, 3, 4
  )
  select stored.org_id, stored.id, insert_names."first" + said.place - 1, said.subject, said.type, said.object,
    stored.collection_id, stored.owner_id, said.confidence
  from rag.documents as stored
  cross join said
  where stored.org_id = insert_names.org_id and stored.id = insert_names.document_id
  on conflict do nothing;
end;
$$;

comment on function rag.insert_names is
  'Store what each chunk of a document names and relates: chunks as rag_put_document takes them, the first of them '
  'with that ordinal. What is no name is left out, whatever stands in its place: a document is worth more than its '
  'names. Of one entity there is one row a chunk, and relations need both ends named in the document. At most 200 '
  'names and 200 relations a chunk.';
