-- Subjects: the entities that a document's title, file name, external_id and URL name. Triggers on documents write the
-- rows. A graph search goes from an entity to the documents about it, and from the entities in these documents to
-- further documents.

create table rag.title_entities (
  org_id uuid not null,
  document_id uuid not null,
  entity text collate "C" not null check (length(entity) between 1 and 200),
  collection_id uuid not null,
  owner_id uuid,
  name text not null,
  weight real not null check (weight between 0 and 1),
  sound text collate "C" not null,
  ending text collate "C" not null,
  primary key (org_id, document_id, entity),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade
);

comment on table rag.title_entities is 'Entities that documents'' titles, file names, external_ids and URLs name.';
comment on column rag.title_entities.weight is '0 to 1; the whole title has 1.';

-- rag.link_entities and rag.expand_graph: the documents about an entity.
create index title_entities_by_entity on rag.title_entities (org_id, entity, weight desc)
  include (document_id, collection_id, owner_id);

-- The same within a collection, which may be a small part of its org.
create index title_entities_by_collection on rag.title_entities (org_id, collection_id, entity, weight desc)
  include (document_id, owner_id);

-- rag.link_entities: names with the same phonetic key, or a key with the same beginning or end (the key reversed).
create index title_entities_by_sound on rag.title_entities (org_id, sound) include (entity, collection_id, owner_id);
create index title_entities_by_ending on rag.title_entities (org_id, ending) include (entity, collection_id, owner_id);

call rag.admit_members('title_entities');
call rag.restrict_keys('title_entities', 'documents:read', 'documents:write', 'retrievals:read', 'chat:read');
call rag.bind_keys('title_entities');
call rag.require_edit('title_entities');

create function rag.is_in_graph(org_id uuid, collection_id uuid)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select collections.config -> 'enable_knowledge_graph' is distinct from 'false'::jsonb
  from rag.collections
  where collections.org_id = is_in_graph.org_id and collections.id = is_in_graph.collection_id;
$$;

comment on function rag.is_in_graph is
  'Whether the documents of a collection are in the graph. The collection''s config may exclude them.';

create function rag.subject_names(document rag.documents)
returns table (entity text, name text, weight real)
language sql immutable security invoker set search_path = ''
as $$
  select found.entity, (array_agg(found.name order by found.weight desc, found.position))[1], max(found.weight)
  from (
    select titled.entity, titled.name, titled.weight, 0 as position
    from rag.title_names(document.title) as titled
    union all
    select rag.entity_key(named.name), named.name, 0.9::real, path.position
    from (values (document.filename, 1), (document.external_id, 2), (document.uri, 3)) as path (path, position)
    -- Without "offset 0", each reference to the name would call the function. (The same holds below.)
    cross join lateral (select rag.path_name(path.path) where path.path is not null offset 0) as named (name)
    where named.name is not null
  ) as found
  group by found.entity;
$$;

comment on function rag.subject_names is 'The names of a document by its title, file name, external_id and URL.';

create function rag.title_rows(document rag.documents)
returns setof rag.title_entities
language sql immutable security invoker set search_path = ''
as $$
  select document.org_id, document.id, found.entity, document.collection_id, document.owner_id, found.name,
    found.weight, heard.sound, reverse(heard.sound)
  from rag.subject_names(document) as found
  cross join lateral (select rag.phonetic_key(found.entity) offset 0) as heard (sound);
$$;

comment on function rag.title_rows is 'The rows of a document''s subjects.';

create function rag.add_title_entities(document rag.documents)
returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into rag.title_entities
  select titled.*
  from rag.title_rows(document) as titled
  where rag.is_in_graph(document.org_id, document.collection_id)
  on conflict do nothing;
$$;

comment on function rag.add_title_entities is 'Insert the subjects of a document.';

create function rag.index_new_titles()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  insert into rag.title_entities
  select titled.*
  from (select distinct added.org_id, added.collection_id from added offset 0) as home
  join added on added.org_id = home.org_id and added.collection_id = home.collection_id
  cross join lateral rag.title_rows(added) as titled
  where rag.is_in_graph(home.org_id, home.collection_id)
  on conflict do nothing;
  return null;
end;
$$;

comment on function rag.index_new_titles is
  'Trigger that writes the title entities of inserted documents, once per statement.';

create trigger index_title_entities_of_new_documents after insert on rag.documents
  referencing new table as added
  for each statement execute function rag.index_new_titles();

create function rag.index_changed_title()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  delete from rag.title_entities where title_entities.org_id = new.org_id and title_entities.document_id = new.id;
  perform rag.add_title_entities(new);
  if (old.title, old.collection_id, old.owner_id) is distinct from (new.title, new.collection_id, new.owner_id) then
    perform rag.requeue_extraction(new.org_id, new.id);
  end if;
  return null;
end;
$$;

comment on function rag.index_changed_title is 'Trigger that replaces the title entities of a document.';

create trigger index_title_entities_of_changed_documents
  after update of title, collection_id, owner_id, external_id, filename, uri on rag.documents
  for each row
  when ((old.title, old.collection_id, old.owner_id, old.external_id, old.filename, old.uri)
    is distinct from (new.title, new.collection_id, new.owner_id, new.external_id, new.filename, new.uri))
  execute function rag.index_changed_title();
